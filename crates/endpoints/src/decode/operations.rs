//! Members of a JSON patch that operations do not have.

use serde_json::{Map, Value};

use super::strict::{COMPLAINTS_MAX, PATH_BYTES_MAX};

/// The members that an operation has.
const MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

/// Returns the complaints about unknown members of the operations of a patch, beside so many others about it. Follows
/// the strict decoding of `jsonPatchOp`.
pub(crate) fn unknown_members(patch: &Value, others: usize) -> Vec<String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let unknown = operations.flat_map(|(index, operation)| {
        let names = operation.as_object().into_iter().flat_map(Map::keys);
        let unknown = names.filter(|name| !MEMBERS.contains(&name.as_str()));
        unknown.map(move |name| format!("unknown field {:?}", format!("[{index}].{name}")))
    });
    let mut bytes = 0;
    let unknown = unknown.take_while(|text| {
        bytes += text.len();
        bytes <= PATH_BYTES_MAX
    });
    unknown
        .take(COMPLAINTS_MAX.saturating_sub(others))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_operations_do_not_have_are_told() {
        let patch = json!([{"op": "test", "path": "/a", "value": 1, "Value": 2},
            {"op": "move", "path": "/b", "from": "/a", "why": "so"}]);
        let expected = [r#"unknown field "[0].Value""#, r#"unknown field "[1].why""#];
        assert_eq!(unknown_members(&patch, 0), expected);
        assert_eq!(unknown_members(&patch, COMPLAINTS_MAX - 1), expected[..1]);
        assert!(unknown_members(&json!({"why": 1}), 0).is_empty());
    }
}

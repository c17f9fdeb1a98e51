//! What is wrong with a document that does not keep it from being read: what it has twice, and what its kind does not
//! have.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// What Go's YAML says before it tells of keys.
const YAML_ERRORS: &str = "yaml: unmarshal errors:";

/// Complaints about one document.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints {
    /// Keys that its YAML repeats, by line.
    pub(super) repeated: Vec<String>,
    /// Fields, in the order in which they are told.
    pub(super) fields: Vec<String>,
}

impl Complaints {
    /// All of them as one error of a strict reader; `None` if there are none.
    pub(super) fn error(&self) -> Option<String> {
        let yaml = yaml_error(&self.repeated);
        let all: Vec<&str> = yaml
            .iter()
            .chain(&self.fields)
            .map(String::as_str)
            .collect();
        (!all.is_empty()).then(|| format!("strict decoding error: {}", all.join(", ")))
    }

    /// Each as a warning.
    pub(super) fn warnings(self) -> impl Iterator<Item = String> {
        self.repeated.into_iter().chain(self.fields)
    }
}

/// What Go's YAML says about keys that come twice; nothing if there are none.
pub(in super::super) fn yaml_error(repeated: &[String]) -> Option<String> {
    let lines = repeated.iter().map(|line| format!("\n  {line}"));
    (!repeated.is_empty()).then(|| lines.fold(YAML_ERRORS.to_owned(), |text, line| text + &line))
}

/// Puts complaints, each of which ends with a quoted path, in the order in which JSON has the fields.
pub(super) fn order(json: &[u8], complaints: &mut [String]) {
    if complaints.len() < 2 {
        return;
    }
    let Ok(root) = serde_json::from_slice::<&RawValue>(json) else {
        return;
    };
    complaints.sort_by_cached_key(|complaint| {
        let path = complaint.split('"').nth(1).unwrap_or_default();
        position(root, path).unwrap_or(usize::MAX)
    });
}

/// Where the last value at a path lies, such as `a.b[0].c`.
fn position(root: &RawValue, path: &str) -> Option<usize> {
    let mut value = root;
    for step in path.split('.') {
        let (name, indexes) = step.split_once('[').unwrap_or((step, ""));
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
        value = members.get(name)?;
        for index in indexes.split('[').filter(|index| !index.is_empty()) {
            let index: usize = index.trim_end_matches(']').parse().ok()?;
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            value = items.get(index)?;
        }
    }
    Some(value.get().as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_in_the_order_of_the_document() {
        let json = br#"{"z": 1, "a": [{"y": 1}, {"c": 1, "x": 1, "c": 2}], "b": 1}"#;
        let mut complaints = [
            "duplicate field \"a[1].c\"",
            "unknown field \"a[1].x\"",
            "unknown field \"b\"",
            "unknown field \"nowhere.c\"",
            "unknown field \"z\"",
        ]
        .map(str::to_owned);
        order(json, &mut complaints);
        let paths = complaints.map(|it| it.split('"').nth(1).unwrap_or_default().to_owned());
        assert_eq!(paths, ["z", "a[1].x", "a[1].c", "b", "nowhere.c"]);
    }

    #[test]
    fn yaml_comes_first() {
        let complaints = Complaints {
            repeated: vec!["line 1: x".into(), "line 2: y".into()],
            fields: vec!["unknown field \"z\"".into()],
        };
        assert_eq!(
            complaints.error().expect("an error"),
            "strict decoding error: yaml: unmarshal errors:\n  line 1: x\n  line 2: y, unknown field \"z\""
        );
        assert_eq!(Complaints::default().error(), None);
    }
}

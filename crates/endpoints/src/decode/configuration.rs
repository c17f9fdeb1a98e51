//! Decodes the configuration of a server-side apply: YAML, which JSON is too.

use ringwatch_apimachinery::accessor::type_name;
use serde_json::Map;

use super::strict::DecodedBody;
use super::yaml;
use crate::errors::Failure;

/// Parses the configuration. Its version and kind are not checked.
///
/// # Errors
/// 400 when it cannot be read, or is no object.
pub(crate) fn configuration(content: &[u8]) -> Result<DecodedBody, Failure> {
    let refuse = |error: &str| Failure::bad_request(format!("error decoding YAML: {error}"));
    let mut decoded = yaml::read(content)
        .map_err(|error| refuse(&format!("error converting YAML to JSON: {error}")))?;
    if decoded.value.is_null() {
        decoded.value = Map::new().into();
    }
    if decoded.value.is_object() {
        return Ok(decoded);
    }
    let found = type_name(&decoded.value);
    Err(refuse(&format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of \
         type map[string]interface {{}}"
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_objects_can_be_applied() {
        let value = |text: &str| configuration(text.as_bytes()).map(|it| it.value);
        assert_eq!(value("a: 1").expect("YAML"), json!({"a": 1}));
        assert_eq!(value("{\"a\": 1}").expect("JSON"), json!({"a": 1}));
        assert_eq!(value("").expect("nothing"), json!({}));
        let message = |text| value(text).expect_err(text).status().message.clone();
        assert_eq!(
            message("[1]"),
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
        assert_eq!(
            message("{x"),
            "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected ',' or '}'"
        );
    }
}

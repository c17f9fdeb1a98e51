//! Reads the document that a webhook answers, by whichever decoder of kube-apiserver's takes it.
//!
//! The media type of the answer is not looked at: what begins with a brace is JSON, all else is read as YAML.

use ringwatch_apimachinery::{go_json, yaml};
use serde_json::Value;

/// Maximum number of values of an answer in YAML.
const NODES_MAX: usize = 100_000;

/// Reads the document, which is an object or null.
///
/// # Errors
/// The words of Go's decoders about what is neither JSON nor YAML, or has no version and kind.
pub(super) fn read(content: &[u8]) -> Result<Value, String> {
    let wrong = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let begin = content.iter().find(|it| !it.is_ascii_whitespace());
    let document = if begin == Some(&b'{') {
        serde_json::from_slice(content).map_err(|error| wrong(go_json::message(&error, content)))?
    } else {
        yaml::value(content, NODES_MAX)?
    };
    if !document.is_object() && !document.is_null() {
        return Err(wrong(go_json::not_of_type(
            &document,
            go_json::GO_TYPE_META,
        )));
    }
    for name in ["apiVersion", "kind"] {
        let said = document.get(name).filter(|it| !it.is_null());
        if let Some(said) = said.filter(|it| !it.is_string()) {
            return Err(wrong(go_json::wrong(said, "", name, "string")));
        }
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_that_begins_with_no_brace_is_yaml() {
        let read = |text: &str| read(text.as_bytes());
        let review = json!({"kind": "AdmissionReview", "response": {"allowed": true, "n": 1}});
        let in_yaml = "kind: AdmissionReview\nresponse: {allowed: true, n: 1.0}\n---\n[\n";
        assert_eq!(read(in_yaml), Ok(review.clone()));
        assert_eq!(read(&format!("\n {review}")), Ok(review));
        assert_eq!(read(""), Ok(Value::Null));
        assert_eq!(read("null"), Ok(Value::Null));
        for (text, found) in [
            ("not json", "string"),
            ("<html>", "string"),
            ("\"text\"", "string"),
            ("[]", "array"),
            ("5", "number"),
            ("true", "bool"),
        ] {
            let error = read(text).expect_err(text);
            let words = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value \
                 of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}"
            );
            assert_eq!(error, words, "{text}");
        }
        let error = "couldn't get version/kind; json parse error: invalid character 'a' looking for \
                     beginning of object key string";
        assert_eq!(read("{a: 1}"), Err(error.to_owned()));
        let error = "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go \
                     struct field .kind of type string";
        assert_eq!(read("kind: 5"), Err(error.to_owned()));
        let error = "yaml: line 1: did not find expected ',' or ']'";
        assert_eq!(read("a: ["), Err(error.to_owned()));
        let error = "yaml: found incompatible YAML document";
        assert_eq!(read("%YAML 1.2\n---\nkind: a\n"), Err(error.to_owned()));
    }
}

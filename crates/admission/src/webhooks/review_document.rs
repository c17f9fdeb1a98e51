//! Reads the document that a webhook answers, by whichever decoder of kube-apiserver's takes it.
//!
//! The media type of the answer is not looked at: what begins with a brace is JSON, all else is read as YAML.

use ringwatch_apimachinery::{go_json, numbers};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

/// Maximum numbers of values of a YAML document, of its aliases, and of parser events that these may expand to.
const NODES_MAX: usize = 100_000;
const ALIASES_MAX: usize = 1000;
const ALIAS_EVENTS_MAX: usize = 20_000;

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
        let mut document = yaml(content).map_err(|error| format!("yaml: {error}"))?;
        numbers::normalize(&mut document);
        document
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

/// Parses the first YAML document. Others that follow are not looked at, as by Go's library.
fn yaml(content: &[u8]) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        legacy_octal_numbers: true,
        budget: serde_saphyr::budget! {
            max_aliases: ALIASES_MAX,
            max_nodes: NODES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIAS_EVENTS_MAX,
        },
    };
    let mut first = None;
    let read =
        serde_saphyr::with_deserializer_from_slice_with_options(content, options, |deserializer| {
            first = Some(Value::deserialize(deserializer)?);
            Ok(())
        });
    // An error after the first document is one of what is not looked at.
    first.map_or_else(|| read.map(|()| Value::Null), Ok)
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
        assert!(read("a: [").is_err_and(|it| it.starts_with("yaml: ")));
    }
}

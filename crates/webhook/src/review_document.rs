//! Reads the reviews that webhooks answer, by whichever decoder of kube-apiserver's clients takes them.
//!
//! The media type of the answer is not looked at: what begins with a brace is JSON, all else is read as YAML. An answer
//! that says neither version nor kind is of those that are wanted. A value of a wrong type anywhere in it makes the
//! whole answer unreadable, as in Go.

use ringwatch::codec;
use ringwatch_apimachinery::{go_json, yaml};
use serde_json::{Map, Value};

/// Maximum number of values of an answer in YAML.
const NODES_MAX: usize = 100_000;

/// The types that the decoder of an answer knows besides the one that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerScheme {
    /// The reviews of one group: for webhooks that objects name, of admission and of conversion.
    OfGroup,
    /// All types of Kubernetes: for webhooks that files of the operator name.
    Whole,
}

impl AnswerScheme {
    /// Returns the place in Kubernetes 1.36 where this scheme is made, by which Go's errors name it.
    fn name(self) -> &'static str {
        match self {
            Self::OfGroup => "pkg/util/webhook/client.go:71",
            Self::Whole => "k8s.io/client-go/kubernetes/scheme/register.go:82",
        }
    }

    /// Returns the kind of a version and a name, if the decoder of a `wanted` one knows it.
    fn kind(self, wanted: (&str, &str), version: &str, kind: &str) -> Option<codec::Kind> {
        let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
        let is_known = match self {
            Self::Whole => true,
            Self::OfGroup if codec::is_unversioned(kind) => version == "v1",
            Self::OfGroup => {
                group(version) == group(wanted.0)
                    && (kind == wanted.1 || codec::is_of_every_version(kind))
            }
        };
        codec::kind(version, kind).filter(|_| is_known)
    }
}

/// Reads an answer that is to be of the `wanted` version and kind, and drops members that this kind does not have.
///
/// # Errors
/// The words of Go's decoders about what is neither JSON nor YAML, is of another kind, or has a value of a wrong type.
pub fn read_review(
    content: &[u8],
    scheme: AnswerScheme,
    wanted: (&str, &str),
) -> Result<Value, String> {
    let mut review = document(content)?;
    let text = |name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default();
    let or = |found: &str, default: &str| {
        let said = if found.is_empty() { default } else { found };
        said.to_owned()
    };
    let version = or(text("apiVersion"), wanted.0);
    let name = or(text("kind"), wanted.1);
    if version.split('/').count() > 2 {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    let kind = scheme.kind(wanted, &version, &name).ok_or_else(|| {
        let scheme = scheme.name();
        format!("no kind {name:?} is registered for version {version:?} in scheme {scheme:?}")
    })?;
    codec::check_types(kind, &mut review).map_err(|error| error.to_string())?;
    if (&*version, &*name) != wanted {
        let (found, wanted) = (go_type(&version, &name), go_type(wanted.0, wanted.1));
        return Err(format!(
            "converting ({found}) to ({wanted}): unknown conversion"
        ));
    }
    Ok(Value::Object(review))
}

/// Returns Go's name of the type of a kind.
fn go_type(version: &str, kind: &str) -> String {
    let is_meta = codec::is_unversioned(kind) || codec::is_of_every_version(kind);
    let version = version.rsplit('/').next().filter(|_| !is_meta);
    format!("{}.{kind}", version.unwrap_or("v1"))
}

/// Reads the members of the document; those of null are none.
fn document(content: &[u8]) -> Result<Map<String, Value>, String> {
    if content.is_empty() {
        return Err("0-length response".to_owned());
    }
    let wrong = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let begin = content.iter().find(|it| !it.is_ascii_whitespace());
    let document = if begin == Some(&b'{') {
        serde_json::from_slice(content).map_err(|error| wrong(go_json::message(&error, content)))?
    } else {
        yaml::value(content, NODES_MAX)?
    };
    let members = match document {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        other => {
            let why = go_json::not_of_type(&other, go_json::GO_TYPE_META);
            return Err(wrong(why));
        }
    };
    for name in ["apiVersion", "kind"] {
        let said = members.get(name).filter(|it| !it.is_null());
        if let Some(said) = said.filter(|it| !it.is_string()) {
            return Err(wrong(go_json::wrong(said, "", name, "string")));
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ADMISSION: &str = "admission.k8s.io/v1";
    const REVIEW: &str = "AdmissionReview";

    fn read(text: &str) -> Result<Value, String> {
        read_review(text.as_bytes(), AnswerScheme::OfGroup, (ADMISSION, REVIEW))
    }

    #[test]
    fn a_document_that_begins_with_no_brace_is_yaml() {
        let review = json!({"kind": REVIEW, "response": {"allowed": true, "status": {"code": 1}}});
        let in_yaml =
            "kind: AdmissionReview\nresponse: {allowed: true, status: {code: 1.0}}\n---\n[\n";
        assert_eq!(read(in_yaml), Ok(review.clone()));
        assert_eq!(read(&format!("\n {review}")), Ok(review));
        assert_eq!(read("null"), Ok(json!({})));
        assert_eq!(read(""), Err("0-length response".to_owned()));
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
        for (text, error) in [
            (
                "{a: 1}",
                "couldn't get version/kind; json parse error: invalid character 'a' looking for \
                 beginning of object key string",
            ),
            (
                "kind: 5",
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go \
                 struct field .kind of type string",
            ),
            ("a: [", "yaml: line 1: did not find expected ',' or ']'"),
            (
                "%YAML 1.2\n---\nkind: a\n",
                "yaml: found incompatible YAML document",
            ),
        ] {
            assert_eq!(read(text), Err(error.to_owned()));
        }
    }

    #[test]
    fn a_value_of_a_wrong_type_makes_an_answer_unreadable() {
        for (response, words) in [
            (
                json!({"allowed": "yes"}),
                "string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (
                json!({"uid": 5}),
                "number into Go struct field AdmissionResponse.response.uid of type types.UID",
            ),
            (
                json!({"patch": 5}),
                "number into Go struct field AdmissionResponse.response.patch of type []uint8",
            ),
            (
                json!({"patchType": true}),
                "bool into Go struct field AdmissionResponse.response.patchType of type v1.PatchType",
            ),
            (
                json!({"warnings": "x"}),
                "string into Go struct field AdmissionResponse.response.warnings of type []string",
            ),
            (
                json!({"auditAnnotations": {"a": 1}}),
                "number into Go struct field AdmissionResponse.response.auditAnnotations of type string",
            ),
            (
                json!({"status": {"code": "x"}}),
                "string into Go struct field Status.response.status.code of type int32",
            ),
            (
                json!([]),
                "array into Go struct field AdmissionReview.response of type v1.AdmissionResponse",
            ),
        ] {
            let review = json!({"apiVersion": ADMISSION, "kind": REVIEW, "response": response});
            let words = format!("json: cannot unmarshal {words}");
            assert_eq!(read(&review.to_string()), Err(words), "{review}");
        }
    }

    #[test]
    fn an_answer_of_another_kind_is_unreadable() {
        let whole = |text: &str| {
            let wanted = ("authorization.k8s.io/v1beta1", "SubjectAccessReview");
            read_review(text.as_bytes(), AnswerScheme::Whole, wanted)
        };
        let of =
            |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind}).to_string();
        let hooks = "in scheme \"pkg/util/webhook/client.go:71\"";
        for (found, words) in [
            (
                read(&of("v1", "Status")),
                "converting (v1.Status) to (v1.AdmissionReview): unknown conversion".to_owned(),
            ),
            (
                read(&of("admission.k8s.io/v1beta1", REVIEW)),
                "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
                    .to_owned(),
            ),
            (
                read(&of("admission.k8s.io/v1beta1", "DeleteOptions")),
                "converting (v1.DeleteOptions) to (v1.AdmissionReview): unknown conversion"
                    .to_owned(),
            ),
            (
                read(&of("v1", "Pod")),
                format!("no kind \"Pod\" is registered for version \"v1\" {hooks}"),
            ),
            (
                read(r#"{"kind": "Review"}"#),
                format!("no kind \"Review\" is registered for version \"admission.k8s.io/v1\" {hooks}"),
            ),
            (
                read(&of("a/b/c", REVIEW)),
                "unexpected GroupVersion string: a/b/c".to_owned(),
            ),
            (
                whole(&of("authorization.k8s.io/v1", "SubjectAccessReview")),
                "converting (v1.SubjectAccessReview) to (v1beta1.SubjectAccessReview): unknown conversion"
                    .to_owned(),
            ),
            (
                whole(&of("v1", "Pod")),
                "converting (v1.Pod) to (v1beta1.SubjectAccessReview): unknown conversion"
                    .to_owned(),
            ),
        ] {
            assert_eq!(found, Err(words));
        }
        assert_eq!(read("{}"), Ok(json!({})));
    }
}

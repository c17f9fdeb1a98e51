//! The webhook that converts the objects of a definition.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringwatch::meta::json_text;
use ringwatch_apimachinery::go_values::go_type;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::validation::{validate_annotations, validate_labels};
use ringwatch_apimachinery::{FieldError, GroupVersion};
use ringwatch_offload::{Work, offload};
use ringwatch_spans as spans;
use ringwatch_webhook::{AnswerScheme, ClientConfig, WebhookClient, read_review};
use serde_json::{Value, json};

/// Maximum time of a conversion, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The versions of ConversionReviews that a webhook may want.
const V1: &str = "apiextensions.k8s.io/v1";
const V1_BETA1: &str = "apiextensions.k8s.io/v1beta1";

/// The kind of what a webhook is sent and answers.
const REVIEW: &str = "ConversionReview";

/// A validation of a member of metadata, which names it by a path.
type Validate = fn(&Value, &str) -> Vec<FieldError>;

/// The members of metadata that a webhook may change, with the validation of changed ones and the path in its errors.
const CHANGEABLE: [(&str, Validate, &str); 2] = [
    ("labels", validate_labels, "metadata.labels"),
    ("annotations", validate_annotations, "metadata.annotation"),
];

/// The members of metadata that identify the object, with their names in errors.
const IDENTITY: [(&str, &str); 3] = [("name", "name"), ("namespace", "namespace"), ("uid", "UID")];

/// The webhook of a definition, and how it is called.
#[derive(Clone, Debug)]
pub(super) struct ConversionWebhook {
    config: Result<ClientConfig, String>,
    /// The version of ConversionReview that the webhook wants.
    review: &'static str,
    client: Arc<dyn WebhookClient>,
}

/// Objects that could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("conversion webhook for {what} {why}")]
pub struct NotConverted {
    /// The version and kind of the objects.
    what: String,
    /// The explanation for the user.
    why: String,
}

impl ConversionWebhook {
    /// Reads the webhook of a definition; `None` if it has none.
    pub(super) fn read(definition: &Value, client: &Arc<dyn WebhookClient>) -> Option<Self> {
        let conversion = get(definition, "spec.conversion")?;
        if text(conversion, "strategy") != "Webhook" {
            return None;
        }
        let versions = list(conversion, "webhook.conversionReviewVersions").iter();
        let mut versions = versions.filter_map(|version| match version.as_str()? {
            "v1" => Some(V1),
            "v1beta1" => Some(V1_BETA1),
            _ => None,
        });
        let config = get(conversion, "webhook.clientConfig");
        let name = format!("conversion of {}", text(definition, "metadata.name"));
        Some(Self {
            config: ClientConfig::read(&name, config.unwrap_or(&Value::Null)),
            review: versions.next().unwrap_or(V1),
            client: Arc::clone(client),
        })
    }

    /// Converts objects to another version.
    ///
    /// # Errors
    /// [`NotConverted`] as soon as one of them is not.
    pub(super) async fn convert(
        &self,
        objects: Vec<Value>,
        version: &str,
    ) -> Result<Vec<Value>, NotConverted> {
        let Some(first) = objects.first() else {
            return Ok(objects);
        };
        let what = format!(
            "{}, Kind={}",
            text(first, "apiVersion"),
            text(first, "kind")
        );
        let wrong = |why: String| NotConverted {
            what: what.clone(),
            why,
        };
        let uid = uuid::Uuid::new_v4().to_string();
        let review = json!({"kind": REVIEW, "apiVersion": self.review, "request": {
            "uid": uid, "desiredAPIVersion": version, "objects": objects}});
        let config = self.config.as_ref();
        let config = config.map_err(|why| wrong(format!("failed: {why}")))?;
        offload(Work::Object).await;
        let posted = self
            .client
            .post(config, Bytes::from(json_text(&review)), TIMEOUT);
        let span = spans::start("Call conversion webhook", || {
            [
                spans::text("desired-api-version", version),
                spans::number("object-count", objects.len() as u64),
                spans::text("UID", &uid),
            ]
        });
        let content = span
            .within(posted)
            .await
            .map_err(|why| wrong(format!("failed: {why}")))?;
        let converted = self.read_answer(&content, &uid);
        let converted = converted.map_err(|why| wrong(format!("failed: {why}")))?;
        if converted.len() != objects.len() {
            let (got, wanted) = (converted.len(), objects.len());
            return Err(wrong(format!("returned {got} objects, expected {wanted}")));
        }
        let pairs = objects.iter().zip(converted).enumerate();
        let is_list = objects.len() > 1;
        let kept = pairs.map(|(index, (original, converted))| {
            let kept = checked(original, converted, version);
            kept.map_err(|refusal| wrong(refusal.of_object(index, is_list)))
        });
        kept.collect()
    }

    fn read_answer(&self, content: &[u8], uid: &str) -> Result<Vec<Value>, String> {
        let mut review = read_review(content, AnswerScheme::OfGroup, (self.review, REVIEW))?;
        let (version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
        // Of v1beta1 neither kind nor uid is checked.
        let is_strict = self.review == V1;
        if is_strict && (version, kind) != (V1, REVIEW) {
            let found = if version.is_empty() { "/" } else { version };
            return Err(format!(
                "expected webhook response of {V1}, Kind={REVIEW}, got {found}, Kind={kind}"
            ));
        }
        let response = review.get_mut("response").filter(|it| it.is_object());
        let response = response.ok_or("no response provided")?;
        let answered = text(response, "uid");
        if is_strict && answered != uid {
            return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
        }
        let (status, message) = (
            text(response, "result.status"),
            text(response, "result.message"),
        );
        match (status, message) {
            ("Success", _) => {}
            (status, "") => {
                return Err(format!(
                    "response.result.status was '{status}', not 'Success'"
                ));
            }
            (_, message) => return Err(message.to_owned()),
        }
        match response.get_mut("convertedObjects").map(Value::take) {
            Some(Value::Array(converted)) => Ok(converted),
            _ => Ok(Vec::new()),
        }
    }
}

/// The reason why a converted object is not taken over, by the words that tell it.
#[derive(Debug, PartialEq, Eq)]
enum InvalidConversion {
    /// It is not in the version or of the kind that was asked for.
    Type(String),
    /// It is not the object that was to be converted.
    Identity(String),
    /// Its metadata cannot be taken over.
    Metadata(String),
}

impl InvalidConversion {
    /// Returns what kube-apiserver tells of an object that is converted alone, or with others.
    fn of_object(self, index: usize, is_list: bool) -> String {
        let (what, why) = match (self, is_list) {
            (Self::Type(why) | Self::Identity(why), true) => {
                (format!("converted object at index {index}"), why)
            }
            (Self::Metadata(why), true) => (format!("metadata in object at index {index}"), why),
            (Self::Type(why), false) => (format!("object at index {index}"), why),
            (Self::Identity(why), false) => ("object".to_owned(), why),
            (Self::Metadata(why), false) => ("metadata".to_owned(), why),
        };
        format!("returned invalid {what}: {why}")
    }
}

/// Returns a converted object as it is taken over, with the original's metadata but for what may change.
fn checked(original: &Value, converted: Value, version: &str) -> Result<Value, InvalidConversion> {
    is_of_type(original, &converted, version).map_err(InvalidConversion::Type)?;
    is_same(original, &converted).map_err(InvalidConversion::Identity)?;
    with_metadata_of(original, converted).map_err(InvalidConversion::Metadata)
}

/// Checks that a converted object is in the right version, and of the original's kind.
fn is_of_type(original: &Value, converted: &Value, version: &str) -> Result<(), String> {
    let found = GroupVersion::parse(text(converted, "apiVersion"));
    let found = found.map_or_else(String::new, |it| it.to_string());
    if found != version {
        return Err(format!(
            "invalid groupVersion (expected {version}, received {found})"
        ));
    }
    let (kind, found) = (text(original, "kind"), text(converted, "kind"));
    if found != kind {
        return Err(format!("invalid kind (expected {kind}, received {found})"));
    }
    Ok(())
}

/// Checks that a converted object is the original. Follows `validateConvertedObject`.
fn is_same(original: &Value, converted: &Value) -> Result<(), String> {
    for (member, name) in IDENTITY {
        let path = format!("metadata.{member}");
        let (wanted, found) = (text(original, &path), text(converted, &path));
        if found != wanted {
            return Err(format!("must have the same {name}: {wanted} != {found}"));
        }
    }
    Ok(())
}

/// Returns a converted object with the original's metadata but for what may change. Follows `restoreObjectMeta`.
fn with_metadata_of(original: &Value, mut converted: Value) -> Result<Value, String> {
    let changed = converted.get("metadata");
    let changed = changed.ok_or("missing metadata in converted object")?;
    if !changed.is_object() {
        let found = go_type(changed);
        return Err(format!(
            "invalid metadata of type {found} in converted object"
        ));
    }
    let mut metadata = original["metadata"].clone();
    for (name, validate, path) in CHANGEABLE {
        match changed.get(name) {
            Some(value) if !value.is_null() => {
                are_texts(name, value)?;
                if metadata[name] != *value {
                    let errors = FieldError::as_told(validate(value, path));
                    if !errors.is_empty() {
                        return Err(FieldError::join(&errors));
                    }
                }
                metadata[name] = value.clone();
            }
            _ => {
                if let Some(members) = metadata.as_object_mut() {
                    members.remove(name);
                }
            }
        }
    }
    converted["metadata"] = metadata;
    Ok(converted)
}

/// Checks that the value of a member of metadata is a map of texts.
fn are_texts(name: &str, value: &Value) -> Result<(), String> {
    let Some(members) = value.as_object() else {
        let found = go_type(value);
        return Err(format!(
            "invalid metadata.{name} of type {found} in converted object"
        ));
    };
    match members.iter().find(|(_, it)| !it.is_string()) {
        Some((key, other)) => Err(format!(
            "metadata.{name}[{key}] must be a string, but is {} in converted object",
            go_type(other)
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(review: &'static str) -> ConversionWebhook {
        ConversionWebhook {
            config: Err(String::new()),
            review,
            client: Arc::new(NoClient),
        }
    }

    /// A client that is not asked.
    #[derive(Debug)]
    struct NoClient;

    #[async_trait::async_trait]
    impl WebhookClient for NoClient {
        async fn post(
            &self,
            _: &ClientConfig,
            _: Bytes,
            _: Duration,
        ) -> Result<Bytes, ringwatch_webhook::CallError> {
            unreachable!("it is not asked")
        }
    }

    #[test]
    fn answers_are_read_by_their_types() {
        let read = |version, review: Value| {
            webhook(version).read_answer(review.to_string().as_bytes(), "a")
        };
        let success = json!({"status": "Success"});
        let converted = json!([{"kind": "Gate", "anything": 5}]);
        let response = json!({"uid": "a", "result": success, "convertedObjects": converted});
        let review = |version: &str, response: Value| json!({"apiVersion": version, "kind": REVIEW, "response": response});
        let objects = vec![converted[0].clone()];
        assert_eq!(read(V1, review(V1, response.clone())), Ok(objects.clone()));
        let of_other =
            json!({"response": {"uid": "b", "result": success, "convertedObjects": converted}});
        assert_eq!(read(V1_BETA1, of_other.clone()), Ok(objects));
        let wrong = |member: &str, value: Value| {
            let mut response = response.clone();
            response[member] = value;
            review(V1, response)
        };
        for (version, review, words) in [
            (
                V1,
                of_other,
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
            ),
            (V1, review(V1, Value::Null), "no response provided"),
            (
                V1,
                wrong("uid", json!("b")),
                "expected response.uid=\"a\", got \"b\"",
            ),
            (
                V1,
                wrong("convertedObjects", json!("x")),
                "json: cannot unmarshal string into Go struct field ConversionResponse.response.convertedObjects \
                 of type []runtime.RawExtension",
            ),
            (
                V1,
                wrong("result", json!({"status": "Success", "code": "x"})),
                "json: cannot unmarshal string into Go struct field Status.response.result.code of type int32",
            ),
            (
                V1,
                review(V1_BETA1, response.clone()),
                "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
            ),
        ] {
            assert_eq!(read(version, review), Err(words.to_owned()));
        }
    }

    #[test]
    fn labels_and_annotations_that_are_no_texts_are_refused() {
        let original = json!({"metadata": {"name": "a", "labels": {"old": "x"}, "generation": 1}});
        let restored = |metadata: Value| with_metadata_of(&original, json!({"metadata": metadata}));
        assert_eq!(
            restored(json!({"annotations": {"a": "b"}, "generation": 7})),
            Ok(json!({"metadata": {"name": "a", "annotations": {"a": "b"}, "generation": 1}}))
        );
        for (metadata, words) in [
            (
                json!({"labels": "x"}),
                "invalid metadata.labels of type string in converted object",
            ),
            (
                json!({"annotations": {"a": []}}),
                "metadata.annotations[a] must be a string, but is []interface {} in converted object",
            ),
            (
                json!([]),
                "invalid metadata of type []interface {} in converted object",
            ),
        ] {
            assert_eq!(restored(metadata), Err(words.to_owned()));
        }
    }
    #[test]
    fn changed_labels_and_annotations_are_validated() {
        let original =
            json!({"metadata": {"labels": {"a b": "old"}, "annotations": {"c d": "old"}}});
        let restored = |metadata: Value| with_metadata_of(&original, json!({"metadata": metadata}));
        let kept = original["metadata"].clone();
        assert_eq!(restored(kept), Ok(original.clone()));
        for (metadata, words) in [
            (
                json!({"labels": {"a": "b c"}}),
                "metadata.labels: Invalid value: \"b c\": a valid label must be",
            ),
            (
                json!({"labels": {"a b": "new"}}),
                "metadata.labels: Invalid value: \"a b\": name part must consist",
            ),
            (
                json!({"labels": {"a b": "c d"}}),
                "[metadata.labels: Invalid value: \"a b\": name part must consist",
            ),
            (
                json!({"annotations": {"c d": "new"}}),
                "metadata.annotation: Invalid value: \"c d\": name part must consist",
            ),
            (
                json!({"annotations": {"c": "x".repeat(256 << 10)}}),
                "metadata.annotation: Too long: may not be more than 262144 bytes",
            ),
        ] {
            let refused = restored(metadata).expect_err("it is invalid");
            assert!(refused.starts_with(words), "{refused}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_of_one_object_and_of_several() {
        let original = json!({"apiVersion": "example.com/v1", "kind": "Gate",
            "metadata": {"name": "a", "namespace": "b", "uid": "c"}});
        let mut good = original.clone();
        good["apiVersion"] = json!("example.com/v2");
        assert_eq!(
            checked(&original, good.clone(), "example.com/v2"),
            Ok(good.clone())
        );
        let words = |path: &str, value: Value, is_list: bool| {
            let mut converted = good.clone();
            *converted.pointer_mut(path).expect("it is there") = value;
            let refused = checked(&original, converted, "example.com/v2");
            refused.expect_err("it is invalid").of_object(0, is_list)
        };
        for (path, value, alone, among) in [
            (
                "/apiVersion",
                json!("example.com/v3"),
                "object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
                "converted object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
            ),
            (
                "/apiVersion",
                json!("a/b/c"),
                "object at index 0: invalid groupVersion (expected example.com/v2, received )",
                "converted object at index 0: invalid groupVersion (expected example.com/v2, received )",
            ),
            (
                "/kind",
                json!("Door"),
                "object at index 0: invalid kind (expected Gate, received Door)",
                "converted object at index 0: invalid kind (expected Gate, received Door)",
            ),
            (
                "/metadata/name",
                json!("x"),
                "object: must have the same name: a != x",
                "converted object at index 0: must have the same name: a != x",
            ),
            (
                "/metadata/uid",
                json!("x"),
                "object: must have the same UID: c != x",
                "converted object at index 0: must have the same UID: c != x",
            ),
        ] {
            for (is_list, expected) in [(false, alone), (true, among)] {
                let expected = format!("returned invalid {expected}");
                assert_eq!(words(path, value.clone(), is_list), expected);
            }
        }
        let mut converted = good.clone();
        converted["metadata"]["labels"] = json!(5);
        for (is_list, what) in [(false, "metadata"), (true, "metadata in object at index 0")] {
            let refused = checked(&original, converted.clone(), "example.com/v2");
            let told = refused.expect_err("it is invalid").of_object(0, is_list);
            let why = "invalid metadata.labels of type int64 in converted object";
            assert_eq!(told, format!("returned invalid {what}: {why}"));
        }
    }
}

//! The webhook that converts the objects of a definition.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_offload::{Work, offload};
use ringwatch_spans as spans;
use ringwatch_webhook::{ClientConfig, WebhookClient};
use serde_json::{Value, json};

/// Maximum time of a conversion, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The API group of ConversionReviews.
const GROUP: &str = "apiextensions.k8s.io";

/// The members of metadata that a webhook may change.
const CHANGEABLE: [&str; 2] = ["labels", "annotations"];

/// The members of metadata that identify the object.
const IDENTITY: [&str; 3] = ["name", "namespace", "uid"];

/// The webhook of a definition, and how it is called.
#[derive(Clone, Debug)]
pub(super) struct ConversionWebhook {
    config: Result<ClientConfig, String>,
    /// The version of ConversionReview that the webhook wants.
    review: String,
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
        let mut versions = versions.filter_map(Value::as_str);
        let version = versions.find(|version| matches!(*version, "v1" | "v1beta1"));
        let config = get(conversion, "webhook.clientConfig");
        let name = format!("conversion of {}", text(definition, "metadata.name"));
        Some(Self {
            config: ClientConfig::read(&name, config.unwrap_or(&Value::Null)),
            review: format!("{GROUP}/{}", version.unwrap_or("v1")),
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
        let review = json!({"kind": "ConversionReview", "apiVersion": self.review, "request": {
            "uid": uid, "desiredAPIVersion": version, "objects": objects}});
        let config = self.config.as_ref();
        let config = config.map_err(|why| wrong(format!("failed: {why}")))?;
        offload(Work::Object).await;
        let posted = self
            .client
            .post(config, Bytes::from(review.to_string()), TIMEOUT);
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
        let kept = pairs.map(|(index, (original, converted))| {
            checked(original, converted, version).map_err(|why| {
                wrong(format!(
                    "returned invalid converted object at index {index}: {why}"
                ))
            })
        });
        kept.collect()
    }

    fn read_answer(&self, content: &[u8], uid: &str) -> Result<Vec<Value>, String> {
        let mut review: Value =
            serde_json::from_slice(content).map_err(|error| error.to_string())?;
        let (version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
        if (version, kind) != (&self.review, "ConversionReview") {
            let wanted = &self.review;
            return Err(format!(
                "expected webhook response of {wanted}, Kind=ConversionReview, got {version}, Kind={kind}"
            ));
        }
        let response = review.get_mut("response").filter(|it| it.is_object());
        let response = response.ok_or("webhook response was absent")?;
        let answered = text(response, "uid");
        if answered != uid {
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

/// Returns a converted object, if it is the same one: it has the original's metadata but for what may change.
fn checked(original: &Value, mut converted: Value, version: &str) -> Result<Value, String> {
    let found = text(&converted, "apiVersion");
    if found != version {
        return Err(format!(
            "invalid apiVersion, expected={version}, got={found}"
        ));
    }
    let (kind, found) = (text(original, "kind"), text(&converted, "kind"));
    if found != kind {
        return Err(format!("invalid kind, expected={kind}, got={found}"));
    }
    for name in IDENTITY {
        let path = format!("metadata.{name}");
        let (wanted, found) = (text(original, &path), text(&converted, &path));
        if found != wanted {
            return Err(format!("must have the same {name}: {wanted} != {found}"));
        }
    }
    let mut metadata = original["metadata"].clone();
    for name in CHANGEABLE {
        match converted["metadata"].get(name) {
            Some(value) if !value.is_null() => metadata[name] = value.clone(),
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

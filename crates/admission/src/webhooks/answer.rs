//! Reads the AdmissionReview that a webhook answers, and checks that it answers the request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch::meta::{Cause, Status, StatusDetails};
use ringwatch_apimachinery::go_json;
use serde_json::Value;

use super::configuration::{Hook, ReviewVersion};

/// Warnings of one answer that are passed on, and bytes of each.
const WARNINGS_MAX: usize = 64;
const WARNING_BYTES_MAX: usize = 256;

/// The least HTTP status of a refusal.
const REFUSAL_CODE_MIN: u64 = 400;

/// The response of a webhook.
#[derive(Debug)]
pub(super) struct ReviewResponse {
    pub(super) verdict: WebhookVerdict,
    pub(super) warnings: Vec<String>,
    /// Keys and values for the audit log.
    pub(super) annotations: Vec<(String, String)>,
}

/// The verdict of a webhook.
#[derive(Debug)]
pub(super) enum WebhookVerdict {
    /// It allows the request, and may want a JSON patch of the object.
    Allowed(Option<Vec<u8>>),
    /// It denies the request, with this Status.
    Refused(Box<Status>),
}

/// A patch as a webhook sent it.
struct ReviewPatch {
    content: Vec<u8>,
    /// The type that it says it is of.
    kind: String,
}

/// The reason why what a webhook sent is no answer to a review.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// It is no AdmissionReview that can be read, as the message says.
    #[error("failed to call webhook: {0}")]
    Unreadable(String),
    /// It breaks a rule of answers, as the message says.
    #[error("received invalid webhook response: {0}")]
    Invalid(String),
    /// Its patch is no list of operations, as the message says.
    #[error("received undecodable patch in webhook response: {0}")]
    UndecodablePatch(String),
    /// Its patch is of a type that is not known.
    #[error("unsupported patch type {0:?}")]
    UnsupportedPatch(String),
}

impl From<String> for AnswerError {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}

/// Reads the answer to a review with this uid. A webhook that is not `mutating` must not have a patch.
///
/// # Errors
/// [`AnswerError`] when it is no answer to the review.
pub(super) fn read(
    content: &[u8],
    hook: &Hook,
    uid: &str,
    mutating: bool,
) -> Result<ReviewResponse, AnswerError> {
    let review: Value = serde_json::from_slice(content).map_err(|error| {
        let why = go_json::message(&error, content);
        AnswerError::Unreadable(format!(
            "couldn't get version/kind; json parse error: {why}"
        ))
    })?;
    let version = hook.review_version;
    let text = |value: &Value, name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
    let wanted = version.api_version();
    if (api_version.as_str(), kind.as_str()) != (wanted, "AdmissionReview") {
        let other = api_version
            .strip_prefix("admission.k8s.io/")
            .unwrap_or_default();
        if kind == "AdmissionReview" && matches!(other, "v1" | "v1beta1") {
            let (_, wanted) = wanted.split_once('/').unwrap_or_default();
            return Err(AnswerError::Unreadable(format!(
                "converting ({other}.AdmissionReview) to ({wanted}.AdmissionReview): unknown conversion"
            )));
        }
        return Err(AnswerError::Invalid(format!(
            "expected webhook response of {wanted}, Kind=AdmissionReview, got {api_version}, Kind={kind}"
        )));
    }
    let response = review.get("response").filter(|it| it.is_object());
    let response = response.ok_or_else(|| "webhook response was absent".to_owned())?;
    let answered = text(response, "uid");
    if version == ReviewVersion::V1 && answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}").into());
    }
    let patch = patch(response, version, mutating)?;
    let allowed = response.get("allowed").and_then(Value::as_bool);
    let verdict = if allowed == Some(true) {
        WebhookVerdict::Allowed(patch.map(checked).transpose()?.flatten())
    } else {
        WebhookVerdict::Refused(Box::new(refusal(&hook.name, response.get("status"))))
    };
    let warnings = response.get("warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
    let annotations = response.get("auditAnnotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten();
    let annotations =
        annotations.filter_map(|(key, it)| Some((key.clone(), it.as_str()?.to_owned())));
    Ok(ReviewResponse {
        annotations: annotations.collect(),
        verdict,
        warnings: warnings.take(WARNINGS_MAX).map(shortened).collect(),
    })
}

fn patch(
    response: &Value,
    version: ReviewVersion,
    mutating: bool,
) -> Result<Option<ReviewPatch>, String> {
    let patch = response.get("patch").and_then(Value::as_str);
    let patch = patch.filter(|patch| !patch.is_empty());
    let kind = response.get("patchType").filter(|it| !it.is_null());
    if version == ReviewVersion::V1 {
        match (mutating, patch, kind) {
            (false, Some(_), _) => {
                return Err("validating webhook may not return response.patch".to_owned());
            }
            (false, None, Some(_)) => {
                return Err("validating webhook may not return response.patchType".to_owned());
            }
            (true, Some(_), None) => {
                return Err("webhook returned response.patch but not response.patchType".to_owned());
            }
            (true, None, Some(_)) => {
                return Err("webhook returned response.patchType but not response.patch".to_owned());
            }
            _ => {}
        }
        if kind.is_some_and(|kind| kind == "") {
            return Err("webhook returned invalid response.patchType of \"\"".to_owned());
        }
    }
    let patch = patch.filter(|_| mutating);
    let decoded = patch.map(|patch| STANDARD.decode(patch)).transpose();
    let content = decoded.map_err(|error| format!("response.patch is not base64: {error}"))?;
    let kind = kind.filter(|_| version == ReviewVersion::V1);
    let kind = kind.and_then(Value::as_str).unwrap_or("JSONPatch");
    Ok(content.map(|content| ReviewPatch {
        content,
        kind: kind.to_owned(),
    }))
}

/// Returns the patch of a webhook that allows a request; `None` for one without operations, which changes nothing
/// whatever its type and the operation that is reviewed.
fn checked(patch: ReviewPatch) -> Result<Option<Vec<u8>>, AnswerError> {
    let ReviewPatch { content, kind } = patch;
    let undecodable = AnswerError::UndecodablePatch;
    let read = serde_json::from_slice(&content);
    match read.map_err(|error| undecodable(go_json::message(&error, &content)))? {
        Value::Null => Ok(None),
        Value::Array(operations) if operations.is_empty() => Ok(None),
        Value::Array(_) if kind == "JSONPatch" => Ok(Some(content)),
        Value::Array(_) => Err(AnswerError::UnsupportedPatch(kind)),
        other => Err(undecodable(go_json::not_of_type(&other, "jsonpatch.Patch"))),
    }
}

/// Returns a refusal as kube-apiserver passes it on: always with the status of an error, and with the name of the
/// webhook.
fn refusal(hook: &str, status: Option<&Value>) -> Status {
    let text = |value: Option<&Value>, name: &str| {
        let text = value.and_then(|value| value.get(name));
        text.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (message, reason) = (text(status, "message"), text(status, "reason"));
    let why = [message, reason.clone()]
        .into_iter()
        .find(|why| !why.is_empty());
    let why = why.map_or_else(
        || " without explanation".to_owned(),
        |why| format!(": {why}"),
    );
    let code = status.and_then(|status| status.get("code")?.as_u64());
    let code = code.unwrap_or_default().max(REFUSAL_CODE_MIN);
    let code = u16::try_from(code).ok().filter(|code| *code < 600);
    let message = format!("admission webhook {hook:?} denied the request{why}");
    // The webhook's choice, as long as it is an error's: it is passed on as it came.
    let refusal = Status::failure(code.unwrap_or(500), reason, message);
    let details = status.and_then(|status| status.get("details"));
    let Some(details) = details.filter(|details| details.is_object()) else {
        return refusal;
    };
    let causes = details.get("causes").and_then(Value::as_array);
    let causes = causes.into_iter().flatten().map(|cause| Cause {
        reason: text(Some(cause), "reason").into(),
        message: text(Some(cause), "message"),
        field: text(Some(cause), "field"),
    });
    let seconds = details.get("retryAfterSeconds").and_then(Value::as_u64);
    refusal.with_details(StatusDetails {
        name: text(Some(details), "name"),
        group: text(Some(details), "group"),
        kind: text(Some(details), "kind"),
        uid: text(Some(details), "uid"),
        causes: causes.collect(),
        retry_after_seconds: seconds.and_then(|seconds| u32::try_from(seconds).ok()),
    })
}

/// Returns a warning, cut to the bytes that fit into a header.
fn shortened(warning: &str) -> String {
    let mut end = warning.len().min(WARNING_BYTES_MAX);
    while !warning.is_char_boundary(end) {
        end -= 1;
    }
    warning[..end].to_owned()
}

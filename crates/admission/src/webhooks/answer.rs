//! Reads the AdmissionReview that a webhook answers, and checks that it answers the request.

use ringwatch::codec;
use ringwatch::meta::{Cause, Status, StatusDetails};
use ringwatch_apimachinery::go_json;
use ringwatch_apimachinery::go_text::quoted;
use ringwatch_webhook::{AnswerScheme, read_review};
use serde_json::Value;

use super::configuration::{Hook, ReviewVersion};

/// Warnings of one answer that are passed on, and bytes of each.
const WARNINGS_MAX: usize = 64;
const WARNING_BYTES_MAX: usize = 16 << 10;

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
    /// It allows the request, and may want a patch of the object.
    Allowed(Option<ReviewPatch>),
    /// It denies the request, with this Status.
    Refused(Box<Status>),
}

/// A patch as a webhook sent it.
#[derive(Debug)]
pub(super) struct ReviewPatch {
    content: Vec<u8>,
    /// The type that it says it is of.
    kind: String,
}

/// The kind of what a webhook answers.
const REVIEW: &str = "AdmissionReview";

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
    #[error("unsupported patch type {}", quoted(.0))]
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
    let version = hook.review_version;
    let wanted = version.api_version();
    let review = read_review(content, AnswerScheme::OfGroup, (wanted, REVIEW));
    let review = review.map_err(AnswerError::Unreadable)?;
    let text = |value: &Value, name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let response = review.get("response").filter(|it| it.is_object());
    let response = response.ok_or_else(|| "webhook response was absent".to_owned())?;
    // Of v1beta1 neither kind nor uid is checked.
    if version == ReviewVersion::V1 {
        let answered = text(response, "uid");
        if answered != uid {
            let (uid, answered) = (quoted(uid), quoted(&answered));
            return Err(format!("expected response.uid={uid}, got {answered}").into());
        }
        // An answer without apiVersion and kind can be read, but is refused here.
        let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
        if (api_version.as_str(), kind.as_str()) != (wanted, REVIEW) {
            let found = if api_version.is_empty() {
                "/"
            } else {
                &api_version
            };
            return Err(AnswerError::Invalid(format!(
                "expected webhook response of {wanted}, Kind={REVIEW}, got {found}, Kind={kind}"
            )));
        }
    }
    let patch = patch(response, version, mutating)?;
    let allowed = response.get("allowed").and_then(Value::as_bool);
    let verdict = if allowed == Some(true) {
        WebhookVerdict::Allowed(patch)
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
) -> Result<Option<ReviewPatch>, AnswerError> {
    let patch = response.get("patch").and_then(Value::as_str);
    let patch = patch.map(codec::base64).transpose();
    let patch = patch.map_err(|error| AnswerError::Unreadable(error.to_string()))?;
    let patch = patch.filter(|patch| !patch.is_empty());
    let kind = response.get("patchType").filter(|it| !it.is_null());
    if version == ReviewVersion::V1 {
        match (mutating, &patch, kind) {
            (false, Some(_), _) => {
                return Err("validating webhook may not return response.patch"
                    .to_owned()
                    .into());
            }
            (false, None, Some(_)) => {
                return Err("validating webhook may not return response.patchType"
                    .to_owned()
                    .into());
            }
            (true, Some(_), None) => {
                return Err("webhook returned response.patch but not response.patchType"
                    .to_owned()
                    .into());
            }
            (true, None, Some(_)) => {
                return Err("webhook returned response.patchType but not response.patch"
                    .to_owned()
                    .into());
            }
            _ => {}
        }
        if kind.is_some_and(|kind| kind == "") {
            return Err("webhook returned invalid response.patchType of \"\""
                .to_owned()
                .into());
        }
    }
    let patch = patch.filter(|_| mutating);
    let kind = kind.filter(|_| version == ReviewVersion::V1);
    let kind = kind.and_then(Value::as_str).unwrap_or("JSONPatch");
    Ok(patch.map(|content| ReviewPatch {
        content,
        kind: kind.to_owned(),
    }))
}

impl ReviewPatch {
    /// Returns the operations in JSON; `None` if there are none, so that nothing changes whatever the type of the patch
    /// and the operation that is reviewed. If there is no object, the type is not looked at.
    ///
    /// # Errors
    /// [`AnswerError::UndecodablePatch`], [`AnswerError::UnsupportedPatch`].
    pub(super) fn operations(self, has_object: bool) -> Result<Option<Vec<u8>>, AnswerError> {
        let Self { content, kind } = self;
        let undecodable = |why| AnswerError::UndecodablePatch(why);
        let of_type = |value: &Value, name| undecodable(go_json::not_of_type(value, name));
        let read = serde_json::from_slice(&content);
        let operations =
            match read.map_err(|error| undecodable(go_json::message(&error, &content)))? {
                Value::Null => return Ok(None),
                Value::Array(operations) => operations,
                other => return Err(of_type(&other, "jsonpatch.Patch")),
            };
        if let Some(other) = operations
            .iter()
            .find(|it| !it.is_object() && !it.is_null())
        {
            return Err(of_type(other, "jsonpatch.Operation"));
        }
        if operations.is_empty() {
            return Ok(None);
        }
        if has_object && kind != "JSONPatch" {
            return Err(AnswerError::UnsupportedPatch(kind));
        }
        Ok(Some(content))
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

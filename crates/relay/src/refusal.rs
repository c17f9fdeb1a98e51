//! The answers by which an upstream refuses a request, and the errors that they are here.

use ringwatch::codec::{self, MAGIC};
use ringwatch::storage::{ContinueTokenError, StorageError};
use serde::Deserialize;

use super::upstream::WholeAnswer;

/// Maximum number of bytes of a body that is no Status which are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// The retry delay where the upstream gives none, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A Status, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: String,
    pub(crate) message: String,
    metadata: StatusMetadata,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusMetadata {
    #[serde(rename = "continue")]
    continue_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Vec<Cause>,
    retry_after_seconds: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

/// A request that was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusedRequest<'a> {
    /// The object under a key.
    Object(&'a str),
    /// A list, continued or not.
    List { continued: bool },
    /// A watch.
    Watch,
}

impl Refusal {
    /// Reads a body, whatever it is.
    pub(crate) fn read(body: &[u8]) -> Self {
        let json = match body.starts_with(&MAGIC) {
            true => codec::to_json(body, ("", "")).unwrap_or_default().into(),
            false => std::borrow::Cow::Borrowed(body),
        };
        serde_json::from_slice(&json).unwrap_or_else(|_| {
            let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]);
            Self {
                message: shown.split_whitespace().collect::<Vec<_>>().join(" "),
                ..Self::default()
            }
        })
    }

    /// Reads a refusal with the status of its answer.
    pub(crate) fn answer(answer: &WholeAnswer) -> Self {
        let read = Self::read(&answer.body);
        Self {
            code: answer.status.as_u16(),
            ..read
        }
    }

    /// Returns true if the object is there already.
    pub(crate) fn already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Returns true if a precondition or a version in the request is outdated.
    pub(crate) fn conflicts(&self) -> bool {
        self.reason == "Conflict"
    }

    /// Returns the error of a request that was refused so.
    pub(crate) fn error(self, asked: RefusedRequest<'_>) -> StorageError {
        let too_large = self.details.causes.iter().find(|it| {
            // The reason is missing in answers of servers before 1.20, and of some that relay them.
            it.reason == "ResourceVersionTooLarge" || it.message == "Too large resource version"
        });
        if too_large.is_some() {
            let (requested, current) = self.versions();
            return StorageError::TooLargeResourceVersion {
                requested,
                current,
                retry_after_seconds: self.details.retry_after_seconds,
            };
        }
        match (self.code, asked) {
            (404, RefusedRequest::Object(key)) => StorageError::KeyNotFound {
                key: key.to_owned(),
                revision: 0,
            },
            (410, RefusedRequest::List { .. }) if !self.metadata.continue_token.is_empty() => {
                StorageError::ContinueExpired {
                    token: self.metadata.continue_token,
                }
            }
            (410, RefusedRequest::List { .. }) => StorageError::ListExpired,
            (410, RefusedRequest::Watch) => StorageError::WatchExpired,
            (400, RefusedRequest::List { continued: true }) => {
                StorageError::InvalidContinue(ContinueTokenError(self.message))
            }
            (413, _) => StorageError::TooLarge {
                message: self.message,
            },
            (429 | 503, _) => StorageError::NotReady {
                retry_after_seconds: self.details.retry_after_seconds.max(RETRY_AFTER_SECONDS),
                reason: Some(format!("the upstream says: {}", self.message)),
            },
            (504, _) => StorageError::Timeout {
                message: self.message,
            },
            (code, _) => StorageError::Internal {
                message: format!("the upstream refused with {code}: {}", self.message),
            },
        }
    }

    /// Returns the versions in the message about one that is too large: the requested and the current one.
    fn versions(&self) -> (u64, u64) {
        let mut numbers = self.message.split(|it: char| !it.is_ascii_digit());
        let mut number = || numbers.find_map(|it| it.parse().ok()).unwrap_or_default();
        (number(), number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(code: u16, rest: serde_json::Value) -> Refusal {
        let mut status = rest;
        status["kind"] = json!("Status");
        status["apiVersion"] = json!("v1");
        status["code"] = json!(code);
        let kind = codec::kind("v1", "Status").expect("a kind");
        let binary = Refusal::read(&codec::encode(kind, &status));
        let text = Refusal::read(status.to_string().as_bytes());
        assert_eq!(format!("{binary:?}"), format!("{text:?}"));
        text
    }

    #[test]
    fn refusals_become_errors() {
        const LIST: RefusedRequest<'_> = RefusedRequest::List { continued: false };
        let gone = || json!({"reason": "Expired", "message": "m"});
        let error = refusal(410, gone()).error(RefusedRequest::Watch);
        assert!(matches!(error, StorageError::WatchExpired), "{error:?}");
        let error = refusal(410, gone()).error(LIST);
        assert!(matches!(error, StorageError::ListExpired), "{error:?}");
        let with_token = json!({"reason": "Expired", "metadata": {"continue": "t"}});
        let error = refusal(410, with_token).error(LIST);
        assert!(
            matches!(&error, StorageError::ContinueExpired { token } if token == "t"),
            "{error:?}"
        );
        let future = json!({"reason": "Timeout", "message": "Too large resource version: 9, current: 7",
            "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1}});
        let error = refusal(504, future).error(LIST);
        let expected = "Too large resource version: 9, current: 7";
        assert_eq!(error.to_string(), expected);
        let busy = json!({"reason": "TooManyRequests", "message": "later"});
        let error = refusal(429, busy).error(LIST).to_string();
        assert!(error.ends_with("the upstream says: later"), "{error}");
    }

    #[test]
    fn any_body_is_a_refusal() {
        let text = Refusal::read(b"404 page\nnot found\n").error(RefusedRequest::Watch);
        assert_eq!(
            text.to_string(),
            "the upstream refused with 0: 404 page not found"
        );
        Refusal::read(b"k8s\0\xff\xff").error(RefusedRequest::Watch);
    }
}

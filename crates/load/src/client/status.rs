//! Reads the refusal of a server: a Status, in JSON or protobuf, or just text.

use serde::Deserialize;

use super::ClientError;
use super::protobuf::{StatusMessage, decode_enveloped};

/// The most bytes that are shown of a message that is no Status.
const SHOWN_BYTES_MAX: usize = 200;

/// A Status, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusFailure {
    pub(crate) code: u16,
    pub(crate) message: String,
    pub(crate) reason: String,
    pub(crate) details: Details,
}

/// The object that a Status is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Details {
    pub(crate) name: String,
}

impl StatusFailure {
    /// Reads a body, whatever it is.
    pub(crate) fn read(body: &[u8]) -> Self {
        if let Some(status) = decode_enveloped::<StatusMessage>(body) {
            return Self {
                code: status.code.try_into().unwrap_or_default(),
                message: status.message,
                reason: status.reason,
                details: Details {
                    name: status.details.unwrap_or_default().name,
                },
            };
        }
        serde_json::from_slice(body).unwrap_or_else(|_| {
            let shown = &body[..body.len().min(SHOWN_BYTES_MAX)];
            let shown = String::from_utf8_lossy(shown);
            Self {
                message: shown.split_whitespace().collect::<Vec<_>>().join(" "),
                ..Self::default()
            }
        })
    }

    /// Returns it as an error. The status' own code wins over `code`, that of the answer.
    pub(crate) fn into_error(self, code: u16) -> ClientError {
        ClientError::Refused {
            code: if self.code == 0 { code } else { self.code },
            message: self.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protobuf::{StatusDetails, envelope};

    #[test]
    fn refusals_are_read_in_every_form() {
        let json =
            StatusFailure::read(br#"{"kind":"Status","message":"no","reason":"Gone","code":410}"#);
        assert_eq!((json.code, json.message.as_str()), (410, "no"));
        let status = StatusMessage {
            message: "no".to_owned(),
            reason: "NotFound".to_owned(),
            details: Some(StatusDetails {
                name: "n".to_owned(),
            }),
            code: 410,
        };
        let binary = StatusFailure::read(&envelope("v1", "Status", &status));
        assert_eq!((binary.code, binary.message.as_str()), (410, "no"));
        assert_eq!(
            (binary.reason.as_str(), binary.details.name.as_str()),
            ("NotFound", "n")
        );
        let text = StatusFailure::read(b"too many\nrequests\n");
        assert_eq!(text.message, "too many requests");
        assert_eq!(text.into_error(429).to_string(), "429 too many requests");
    }
}

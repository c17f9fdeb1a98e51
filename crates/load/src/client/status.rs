//! Reads the refusal of a server: a Status, in JSON or protobuf, or just text.

use serde::Deserialize;

use super::{ClientError, protobuf};

/// The fields of a Status in protobuf.
const STATUS_MESSAGE: u32 = 3;
const STATUS_REASON: u32 = 4;
const STATUS_DETAILS: u32 = 5;
const STATUS_CODE: u32 = 6;
const DETAILS_NAME: u32 = 1;
/// How much of a message that is no Status is shown.
const SHOWN_BYTES_MAX: usize = 200;

/// A Status, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Failure {
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

impl Failure {
    /// Reads a body, whatever it is.
    pub(crate) fn read(body: &[u8]) -> Self {
        if let Some(status) = protobuf::unwrap_envelope(body) {
            let code = protobuf::number(status, STATUS_CODE).and_then(|code| code.try_into().ok());
            let text = |field| protobuf::text(status, field).unwrap_or_default().to_owned();
            let details = protobuf::bytes(status, STATUS_DETAILS).unwrap_or_default();
            let name = protobuf::text(details, DETAILS_NAME).unwrap_or_default();
            return Self {
                code: code.unwrap_or_default(),
                message: text(STATUS_MESSAGE),
                reason: text(STATUS_REASON),
                details: Details {
                    name: name.to_owned(),
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

    #[test]
    fn refusals_are_read_in_every_form() {
        let json = Failure::read(br#"{"kind":"Status","message":"no","reason":"Gone","code":410}"#);
        assert_eq!((json.code, json.message.as_str()), (410, "no"));
        let mut status = Vec::new();
        protobuf::put(&mut status, STATUS_MESSAGE, b"no");
        protobuf::put(&mut status, STATUS_REASON, b"NotFound");
        let mut details = Vec::new();
        protobuf::put(&mut details, DETAILS_NAME, b"n");
        protobuf::put(&mut status, STATUS_DETAILS, &details);
        status.extend_from_slice(&[0x30, 0x9a, 0x03]);
        let binary = Failure::read(&protobuf::envelope("v1", "Status", &status));
        assert_eq!((binary.code, binary.message.as_str()), (410, "no"));
        assert_eq!(
            (binary.reason.as_str(), binary.details.name.as_str()),
            ("NotFound", "n")
        );
        let text = Failure::read(b"too many\nrequests\n");
        assert_eq!(text.message, "too many requests");
        assert_eq!(text.into_error(429).to_string(), "429 too many requests");
    }
}

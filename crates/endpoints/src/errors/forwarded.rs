//! Errors of requests that are forwarded to another server.

use ringwatch::meta::Status;

use super::{Failure, internal, named, unknown};

impl Failure {
    /// Returns the failure for an error that kube-apiserver does not translate: 500 without a reason.
    pub(crate) fn untranslated(message: impl Into<String>) -> Self {
        unknown(message.into())
    }

    /// Returns the 503 for a backend that cannot be reached.
    pub(crate) fn service_unavailable(message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(
            503,
            "ServiceUnavailable",
            message,
        )))
    }

    /// Translates the refusal of a backend that this server asked on the client's behalf.
    pub(crate) fn from_backend(code: u16, text: &str, resource: &str, name: &str) -> Self {
        let (reason, message) = match code {
            400 => return Self::bad_request(text),
            500 => return internal(text),
            401 => (
                "Unauthorized",
                "the server has asked for the client to provide credentials".to_owned(),
            ),
            403 => ("Forbidden", text.to_owned()),
            404 => (
                "NotFound",
                "the server could not find the requested resource".to_owned(),
            ),
            405 => (
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource".to_owned(),
            ),
            429 => (
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later"
                    .to_owned(),
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request".to_owned(),
            ),
            501.. => (
                "InternalError",
                format!(
                    "an error on the server ({text:?}) has prevented the request from succeeding"
                ),
            ),
            _ => (
                "",
                format!(
                    "the server responded with the status code {code} but did not return more \
                     information"
                ),
            ),
        };
        // The verb is not known where kube-apiserver puts the message together.
        let message = format!("{message} ( {resource} {name})");
        named(code, reason, message, resource, name)
    }
}

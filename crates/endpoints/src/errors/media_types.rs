//! Failures to find a media type that client and server share.

use ringwatch::meta::Status;

use super::Failure;

impl Failure {
    /// Returns the 406 when none of the accepted media types is among those that the path produces.
    pub(crate) fn not_produced(available: &[&str]) -> Self {
        let available = available.join(", ");
        Self::plain(
            406,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {available}"),
        )
    }

    /// Returns the 406 for a known media type whose parameters cannot be honoured.
    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        Self(Box::new(Status::failure(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {accepted}"),
        )))
    }

    /// Returns the 406 for an object that cannot be shown in the requested form.
    pub(crate) fn not_convertible(message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(406, "NotAcceptable", message)))
    }

    /// Returns the 415 for a body of a media type that is never read here.
    pub(crate) fn unsupported_media_type() -> Self {
        Self::plain(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    /// Returns the 415 for a body of a media type that objects cannot be read from.
    pub(crate) fn unknown_format(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        Self(Box::new(Status::failure(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 {accepted}"
            ),
        )))
    }
}

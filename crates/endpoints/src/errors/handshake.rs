//! The refusal of a WebSocket.

use ringwatch::meta::Status;

use super::Failure;

impl Failure {
    /// Returns the 403 for an opening handshake of a WebSocket that is not acceptable.
    pub(crate) fn handshake(message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(403, "Forbidden", message)))
    }

    /// Returns the 405 for an opening handshake of a WebSocket by another method than GET.
    pub(crate) fn handshake_method() -> Self {
        let status = Status::failure(405, "MethodNotAllowed", "bad method");
        Self(Box::new(status))
    }
}

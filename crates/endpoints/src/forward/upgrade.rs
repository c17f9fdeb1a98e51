//! Forwards a request to upgrade the connection to another protocol.

use http::{Request, Response};
use ringwatch_http::client::{Backend, BackendAnswer, ExchangeError, exchange};
use ringwatch_http::{RequestBody, ResponseBody, Tunnel, full};

use super::headers::{strip, strip_for_upgrade, strip_switched};

/// The failure of an upgrade.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpgradeError {
    /// The backend cannot be reached.
    #[error("error dialing backend: {0}")]
    Unreachable(ExchangeError),
    /// The response is not HTTP.
    #[error("{0}")]
    Http(ExchangeError),
    /// The backend responds with this status instead of 101.
    #[error("invalid upgrade response: status code {0}")]
    NotUpgraded(u16),
}

/// Requests the upgrade from the backend, and has both connections joined if it accepts. A refusal is returned to the
/// client as it is.
///
/// # Errors
/// [`UpgradeError`] if the backend cannot be reached or does not switch protocols.
pub(crate) async fn upgrade(
    backend: &Backend,
    mut request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, UpgradeError> {
    strip_for_upgrade(request.headers_mut());
    match exchange(backend, request).await {
        Ok(BackendAnswer::Switched(mut head, switched)) => {
            strip_switched(head.headers_mut());
            let mut response = head.map(|()| full(""));
            response.extensions_mut().insert(Tunnel::new(switched));
            Ok(response)
        }
        Ok(BackendAnswer::Answered(mut answer)) if answer.status().as_u16() >= 400 => {
            strip(answer.headers_mut());
            Ok(answer)
        }
        Ok(BackendAnswer::Answered(answer)) => {
            Err(UpgradeError::NotUpgraded(answer.status().as_u16()))
        }
        Err(error @ ExchangeError::Http(_)) => Err(UpgradeError::Http(error)),
        Err(error) => Err(UpgradeError::Unreachable(error)),
    }
}

//! Recognises requests that ask to switch their connection to another protocol.
//!
//! Ported from Kubernetes 1.36, `IsUpgradeRequest` and `IsWebSocketRequest` of k8s.io/streaming/pkg/httpstream.

use http::HeaderMap;
use http::header::{CONNECTION, UPGRADE};

/// Returns true if the client wants to switch to another protocol, which only HTTP/1.1 can do.
#[must_use]
pub fn is_upgrade(headers: &HeaderMap) -> bool {
    let options = headers.get_all(CONNECTION).into_iter();
    let mut options = options.filter_map(|value| value.to_str().ok());
    options.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Returns true if the client wants to switch to WebSockets.
#[must_use]
pub fn is_web_socket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE);
    let named = upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    named && is_upgrade(headers)
}

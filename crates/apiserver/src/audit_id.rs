//! The audit id of a request, which its answer has too: kube-apiserver's `WithAuditInit`.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of audit ids.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Maximum number of bytes of a client's audit id; the rest is cut off.
const AUDIT_ID_BYTES_MAX: usize = 64;

/// Returns the client's audit id, cut to 64 bytes, or a new UUID if there is none.
pub(crate) fn audit_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(AUDIT_ID).map(HeaderValue::as_bytes);
    let id = match given.filter(|id| !id.is_empty()) {
        Some(id) => HeaderValue::from_bytes(&id[..id.len().min(AUDIT_ID_BYTES_MAX)]),
        None => HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()),
    };
    // Neither a UUID nor the beginning of a header's value is refused as a header's value.
    id.unwrap_or(HeaderValue::from_static("-"))
}

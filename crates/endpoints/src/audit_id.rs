//! The audit id of a request, which its answer has too: `WithAuditInit` of Kubernetes 1.36.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of audit ids.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Returns the client's audit id as it is, or a new UUID if there is none.
pub fn audit_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(AUDIT_ID).filter(|id| !id.is_empty()) {
        Some(id) => id.clone(),
        None => {
            let id = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string());
            // A UUID is not refused as a header's value.
            id.unwrap_or(HeaderValue::from_static("-"))
        }
    }
}

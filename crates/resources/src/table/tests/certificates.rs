//! Tests of the table of CertificateSigningRequests.

use serde_json::json;

use super::cells;

#[test]
fn requests_show_who_signs_and_whether_it_is_done() {
    let request = json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": {"certificate": "eA==", "conditions": [{"type": "Approved"}]}});
    assert_eq!(
        cells("certificates.k8s.io", "CertificateSigningRequest", request),
        json!(["s", "u", "60m", "Approved,Issued"])
    );
}

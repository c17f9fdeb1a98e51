//! Refuses requests for certificates of the group `system:masters`. Kubernetes' CertificateSubjectRestriction plugin.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::text;
use ringwatch_registry::{Operation, Request};
use ringwatch_resources::SigningRequest;
use serde_json::Value;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

/// The plugin, which checks the subject of CertificateSigningRequests.
#[derive(Debug)]
pub struct CertificateSubjects;

#[async_trait]
impl Plugin for CertificateSubjects {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let is_meant = request.is_of("certificates.k8s.io", "certificatesigningrequests")
            && request.operation == Operation::Create
            && text(object, "spec.signerName") == CLIENT_SIGNER;
        if !is_meant {
            return Ok(());
        }
        let pem = STANDARD
            .decode(text(object, "spec.request"))
            .unwrap_or_default();
        let request_in_pem = match SigningRequest::read(&pem) {
            Ok(request_in_pem) => request_in_pem,
            Err(why) => return Err(request.forbid(object, format!("failed to parse CSR: {why}"))),
        };
        if request_in_pem
            .organizations()
            .iter()
            .any(|it| it == MASTERS)
        {
            let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            return Err(request.forbid(object, why));
        }
        Ok(())
    }
}

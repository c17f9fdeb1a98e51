//! The right to approve and to sign CertificateSigningRequests of a signer. Kubernetes' CertificateApproval and
//! CertificateSigning plugins.

use async_trait::async_trait;
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, text};
use ringwatch_authorization::Attributes;
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

const GROUP: &str = "certificates.k8s.io";
const SIGNER: &str = "spec.signerName";
/// The fields that a signer writes.
const SIGNED: [&str; 2] = ["status.certificate", "status.conditions"];

/// The plugin that checks the permission for writes of a subresource of CertificateSigningRequests.
#[derive(Debug)]
pub struct CertificateSigners {
    name: &'static str,
    subresource: &'static str,
    verb: &'static str,
}

impl CertificateSigners {
    /// The plugin that checks the verb `approve` on `signers`.
    pub const APPROVAL: Self = Self {
        name: "CertificateApproval",
        subresource: "approval",
        verb: "approve",
    };
    /// The plugin that checks the verb `sign` on `signers`.
    pub const SIGNING: Self = Self {
        name: "CertificateSigning",
        subresource: "status",
        verb: "sign",
    };

    /// Returns true if the user has the verb for this signer, or for all signers of its domain.
    async fn allows(&self, request: &Request<'_>, signer: &str) -> bool {
        let Some(authorizer) = &request.context.authorizer else {
            return true;
        };
        let domain = signer.split('/').next().unwrap_or_default();
        for name in [signer, &format!("{domain}/*")] {
            let user = &request.context.user;
            let attributes = Attributes {
                name,
                ..Attributes::of_resource(user, self.verb, GROUP, "signers")
            };
            if authorizer.decide(&attributes).await.allowed {
                return true;
            }
        }
        false
    }
}

#[async_trait]
impl Plugin for CertificateSigners {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let resource = request.resource;
        let is_meant = resource.plural == "certificatesigningrequests"
            && resource.group_version.group == GROUP
            && request.subresource() == self.subresource
            && request.operation == Operation::Update;
        let Some(old) = request.old.filter(|_| is_meant) else {
            return Ok(());
        };
        let idle = SIGNED
            .iter()
            .all(|path| get(object, path) == get(old, path));
        let signer = text(old, SIGNER);
        if (idle && self.verb == "sign") || self.allows(request, signer).await {
            return Ok(());
        }
        let verb = self.verb;
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(request.forbid(object, why))
    }
}

//! Client certificates: the common name is the user, the organisations are the groups.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::registry::User;

/// The extra that says which certificate identified the user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Judges client certificates.
#[derive(Clone, Debug)]
pub struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
}

/// A user who showed a good certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedUser {
    /// Who it is.
    pub user: User,
    /// Until when the certificate is good, in seconds since the epoch.
    pub valid_until_seconds: i64,
}

impl CertifiedUser {
    /// Whether the certificate is still good; connections may outlive it.
    #[must_use]
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        now.as_second() <= self.valid_until_seconds
    }
}

impl ClientCertificates {
    /// Accepts the certificates of these authorities.
    ///
    /// # Errors
    /// There is no usable authority among them.
    pub fn new(authorities: RootCertStore) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider)
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { verifier })
    }

    /// What checks chains and signatures.
    #[must_use]
    pub fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.verifier)
    }

    /// The user of a chain that a client has shown, if it is good.
    #[must_use]
    pub fn identify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Option<CertifiedUser> {
        let (leaf, intermediates) = chain.split_first()?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        if let Err(error) = self.verifier.verify_client_cert(leaf, intermediates, time) {
            tracing::info!(%error, "a client certificate is not good");
            return None;
        }
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        let user = user_of(&certificate, leaf)?;
        Some(CertifiedUser {
            user,
            valid_until_seconds: certificate.validity().not_after.timestamp(),
        })
    }
}

/// Nobody if the certificate has no common name.
fn user_of(certificate: &X509Certificate<'_>, der: &[u8]) -> Option<User> {
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok())
        .map(String::from)
        .collect();
    let digest: String = Sha256::digest(der)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let extra = [(
        CREDENTIAL_ID.to_owned(),
        vec![format!("X509SHA256={digest}")],
    )];
    (!name.is_empty()).then(|| User {
        name: name.to_owned(),
        groups,
        extra: extra.into(),
        ..User::default()
    })
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::server::certificates::Certificates;

    fn certificates() -> Certificates {
        let directory = tempfile::tempdir().expect("a directory");
        Certificates::load_or_generate(directory.path(), &["localhost".to_owned()], now())
            .expect("certificates")
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().expect("a time")
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
    }

    fn judge(authority: &str) -> ClientCertificates {
        let mut roots = RootCertStore::empty();
        roots.add(der(authority)).expect("an authority");
        ClientCertificates::new(roots).expect("authorities")
    }

    #[test]
    fn the_subject_names_user_and_groups() {
        let certificates = certificates();
        let chain = [der(&certificates.admin.certificate)];
        let certified = judge(&certificates.authority)
            .identify(&chain, now())
            .expect("a user");
        assert_eq!(certified.user.name, "kubernetes-admin");
        assert_eq!(certified.user.groups, ["system:masters"]);
        assert!(certified.user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
        assert!(certified.is_valid_at(now()));
    }

    #[test]
    fn certificates_that_are_not_good_name_nobody() {
        let ours = certificates();
        let theirs = certificates();
        let judge = judge(&ours.authority);
        assert_eq!(
            judge.identify(&[der(&theirs.admin.certificate)], now()),
            None
        );
        assert_eq!(
            judge.identify(&[der(&ours.server.certificate)], now()),
            None
        );
        let later = "2030-01-01T00:00:00Z".parse().expect("a time");
        assert_eq!(judge.identify(&[der(&ours.admin.certificate)], later), None);
        assert_eq!(judge.identify(&[], now()), None);
    }
}

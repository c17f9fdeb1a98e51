//! Client certificates: the common name is the user, the organisations are the groups.

use std::sync::Arc;

use jiff::Timestamp;
use ringwatch_apimachinery::User;
use ringwatch_tls::client_verifier::{ClientVerifier, subject};
use ringwatch_tls::verifiers::Authorities;
use rustls::DistinguishedName;
use rustls::pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The key of the user's extra that identifies the certificate.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Verifies the certificates of clients, and derives users from them.
#[derive(Clone, Debug)]
pub struct ClientCertificates {
    verifier: Arc<ClientVerifier>,
    proxies: Option<Proxies>,
}

/// The front proxies, whose requests may name their user in headers.
#[derive(Clone, Debug)]
struct Proxies {
    verifier: Arc<ClientVerifier>,
    /// The common names that they may have; any if there is none.
    names: Vec<String>,
}

/// The result of checking a client's certificate chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// True if the client has shown a certificate that no authority of users vouches for.
    pub is_refused: bool,
    /// The user that the certificate names; `None` without a verified certificate.
    pub user: Option<CertifiedUser>,
    /// The expiry of a front proxy's certificate, in seconds since the epoch: until then its requests may name their
    /// user in headers.
    pub front_proxy_until_seconds: Option<i64>,
}

/// A user who presented a verified certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedUser {
    /// The user that the certificate's subject names.
    pub user: User,
    /// The expiry of the certificate, in seconds since the epoch.
    pub valid_until_seconds: i64,
}

impl CertifiedUser {
    /// Returns true if the certificate has not expired; connections may outlive it.
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
    pub fn new(authorities: Authorities) -> Result<Self, rustls::Error> {
        Ok(Self {
            verifier: Arc::new(ClientVerifier::trusting(authorities)?),
            proxies: None,
        })
    }

    /// Adds front proxies: clients with a certificate of these authorities, under one of these common names or, if
    /// there is none, any. Their requests may name the user in headers.
    ///
    /// # Errors
    /// There is no usable authority among them.
    pub fn with_proxies(
        self,
        authorities: Authorities,
        names: Vec<String>,
    ) -> Result<Self, rustls::Error> {
        let verifier = Arc::new(ClientVerifier::trusting(authorities)?);
        Ok(Self {
            proxies: Some(Proxies { verifier, names }),
            ..self
        })
    }

    /// Returns the names of all authorities, by which clients choose their certificate.
    #[must_use]
    pub fn authorities(&self) -> Vec<DistinguishedName> {
        let proxies = self.proxies.as_ref().map(|it| &it.verifier);
        let all = std::iter::once(&self.verifier).chain(proxies);
        all.flat_map(|it| it.names()).cloned().collect()
    }

    /// Checks the chain that a client has presented.
    #[must_use]
    pub fn identify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Peer {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Peer::default();
        };
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
            tracing::warn!("a client certificate cannot be read");
            return Peer {
                is_refused: true,
                ..Peer::default()
            };
        };
        let valid_until_seconds = certificate.validity().not_after.timestamp();
        let is_good = |verifier: &Arc<ClientVerifier>| verifier.verify(leaf, intermediates, time);
        let proxy = self.proxies.as_ref();
        let proxy = proxy.filter(|it| it.knows(&certificate) && is_good(&it.verifier).is_ok());
        let verified = is_good(&self.verifier);
        let is_refused = verified.is_err();
        let user = match verified {
            Ok(()) => user_of(&certificate, leaf),
            Err(error) if proxy.is_none() => {
                let subject = subject(leaf);
                tracing::warn!(%error, subject, "a client certificate is invalid");
                None
            }
            Err(_) => None,
        };
        Peer {
            is_refused,
            user: user.map(|user| CertifiedUser {
                user,
                valid_until_seconds,
            }),
            front_proxy_until_seconds: proxy.map(|_| valid_until_seconds),
        }
    }
}

impl Peer {
    /// Returns true if its requests may name their user; connections may outlive the certificate.
    #[must_use]
    pub fn is_front_proxy_at(&self, now: Timestamp) -> bool {
        let until = self.front_proxy_until_seconds;
        until.is_some_and(|until| now.as_second() <= until)
    }
}

impl Proxies {
    fn knows(&self, certificate: &X509Certificate<'_>) -> bool {
        let names = certificate.subject().iter_common_name();
        let name = names.last().and_then(|it| it.as_str().ok());
        self.names.is_empty() || self.names.iter().any(|known| Some(known.as_str()) == name)
    }
}

/// Returns the user of a certificate; `None` if it has no common name.
fn user_of(certificate: &X509Certificate<'_>, der: &[u8]) -> Option<User> {
    let subject = certificate.subject();
    // Of several names the last counts, as in Go, by which others judge what is signed.
    let name = subject.iter_common_name().last()?.as_str().ok()?;
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
    use ringwatch_tls::certificates::{Certificates, Serving};
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn certificates() -> Certificates {
        let directory = tempfile::tempdir().expect("a directory");
        let serving = Serving {
            directory: directory.path(),
            subjects: &["localhost".to_owned()],
        };
        Certificates::load_or_generate(directory.path(), Some(serving), now())
            .expect("certificates")
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().expect("a time")
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
    }

    fn judge(authority: &str) -> ClientCertificates {
        let mut roots = Authorities::default();
        roots.add(der(authority)).expect("an authority");
        ClientCertificates::new(roots).expect("authorities")
    }

    #[test]
    fn the_subject_names_user_and_groups() {
        let certificates = certificates();
        let chain = [der(&certificates.admin.certificate)];
        let certified = judge(&certificates.authority)
            .identify(&chain, now())
            .user
            .expect("a user");
        assert_eq!(certified.user.name, "kubernetes-admin");
        assert_eq!(certified.user.groups, ["system:masters"]);
        assert!(certified.user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
        assert!(certified.is_valid_at(now()));
    }

    #[test]
    fn of_several_names_the_last_counts_and_all_organizations() {
        let mut parameters = rcgen::CertificateParams::default();
        let names = &mut parameters.distinguished_name;
        names.push(rcgen::DnType::CommonName, "system:node:a");
        names.push(rcgen::DnType::OrganizationName, "a");
        names.push(rcgen::DnType::CustomDnType(vec![2, 5, 4, 10]), "b");
        names.push(
            rcgen::DnType::CustomDnType(vec![2, 5, 4, 3]),
            "system:node:b",
        );
        let key = rcgen::KeyPair::generate().expect("a key");
        let signed = parameters.self_signed(&key).expect("a certificate");
        let (_, certificate) = X509Certificate::from_der(signed.der()).expect("DER");
        let user = user_of(&certificate, signed.der()).expect("a user");
        assert_eq!(user.name, "system:node:b");
        assert_eq!(user.groups, ["a", "b"]);
    }

    #[test]
    fn certificates_that_are_not_good_name_nobody() {
        let ours = certificates();
        let theirs = certificates();
        let judge = judge(&ours.authority);
        let refused = Peer {
            is_refused: true,
            ..Peer::default()
        };
        let server = ours.server.expect("a certificate");
        for certificate in [&theirs.admin.certificate, &server.certificate] {
            assert_eq!(judge.identify(&[der(certificate)], now()), refused);
        }
        let later = "2030-01-01T00:00:00Z".parse().expect("a time");
        let admin = der(&ours.admin.certificate);
        assert_eq!(judge.identify(&[admin], later), refused);
        assert_eq!(judge.identify(&[], now()), Peer::default());
    }

    #[test]
    fn only_known_proxies_say_who_asks() {
        let (ours, theirs) = (certificates(), certificates());
        let with = |names: &[&str]| {
            let mut roots = Authorities::default();
            roots.add(der(&theirs.authority)).expect("an authority");
            let names = names.iter().map(ToString::to_string).collect();
            let judge = judge(&ours.authority).with_proxies(roots, names);
            judge.expect("authorities")
        };
        let (own, other) = (der(&ours.admin.certificate), der(&theirs.admin.certificate));
        let peer = with(&[]).identify(std::slice::from_ref(&other), now());
        assert!(peer.is_front_proxy_at(now()) && peer.user.is_none());
        let later = "2030-01-01T00:00:00Z".parse().expect("a time");
        assert!(!peer.is_front_proxy_at(later));
        let peer = with(&["x", "kubernetes-admin"]).identify(std::slice::from_ref(&other), now());
        assert!(peer.is_front_proxy_at(now()));
        let refused = Peer {
            is_refused: true,
            ..Peer::default()
        };
        assert_eq!(with(&["x"]).identify(&[other], now()), refused);
        let peer = with(&[]).identify(&[own], now());
        assert!(!peer.is_front_proxy_at(now()) && peer.user.is_some());
        assert_eq!(with(&[]).authorities().len(), 2);
    }

    #[test]
    fn certificates_of_version_1_name_users() {
        use ringwatch_testing::certificates::{AUTHORITY, SHA_1, VERSION_1};
        let now = "2030-01-01T00:00:00Z".parse().expect("a time");
        let judge = judge(AUTHORITY);
        let user = judge
            .identify(&[der(VERSION_1.0)], now)
            .user
            .expect("a user")
            .user;
        assert_eq!(
            (&*user.name, &*user.groups),
            ("ann", &["devs".to_owned()][..])
        );
        assert!(judge.identify(&[der(SHA_1)], now).is_refused);
    }
}

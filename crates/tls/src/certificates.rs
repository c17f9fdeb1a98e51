//! The certificates of a server that was given none: an authority, the server's, the admin's.
//!
//! All keys are ECDSA P-256. What is there is used again, so that a kubeconfig stays good across
//! restarts. A leaf is made anew when it is about to expire, does not come from the authority, or
//! does not name an address that is served. The authority is made anew only when it has expired;
//! if it cannot be read the server does not start, since replacing it would lock every client out.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use super::error::StartError;
use super::private_file::{Access, create_directory, replace};

/// How many days an authority's certificate is valid.
const AUTHORITY_DAYS: i64 = 3650;
/// How many days a leaf certificate is valid.
const LEAF_DAYS: i64 = 365;
/// A certificate that is valid for fewer days is replaced at start.
const RENEWAL_DAYS: i64 = 30;
/// How many hours before now certificates become valid, for clients whose clocks are behind.
const BACKDATE_HOURS: i64 = 1;

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate; intermediates may follow it.
    pub certificate: String,
    /// The private key of the certificate.
    pub key: String,
}

/// The generated certificates of a server that is given none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The authority's certificate, in PEM.
    pub authority: String,
    /// The serving certificate and its key.
    pub server: Identity,
    /// The admin's identity, in group `system:masters`.
    pub admin: Identity,
}

/// Keeps the key out of logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The description of a certificate to be signed by the authority.
struct Leaf {
    /// The files' name without extension.
    name: &'static str,
    common_name: &'static str,
    organisation: Option<&'static str>,
    /// The subject alternative names: DNS names and IP addresses.
    subjects: Vec<String>,
    usage: ExtendedKeyUsagePurpose,
}

impl Certificates {
    /// Reads the certificates in a directory and makes those that are missing or no longer good.
    /// `subjects` are the names and addresses under which the server is reached.
    ///
    /// # Errors
    /// The directory cannot be used, or the authority in it cannot be read.
    pub fn load_or_generate(
        directory: &Path,
        subjects: &[String],
        now: Timestamp,
    ) -> Result<Self, StartError> {
        create_directory(directory).map_err(|error| cannot_write(directory, error))?;
        let authority = Authority::load_or_generate(directory, now)?;
        let server = Leaf {
            name: "apiserver",
            common_name: "ringwatch",
            organisation: None,
            subjects: subjects.to_vec(),
            usage: ExtendedKeyUsagePurpose::ServerAuth,
        };
        let admin = Leaf {
            name: "admin",
            common_name: "kubernetes-admin",
            organisation: Some("system:masters"),
            subjects: Vec::new(),
            usage: ExtendedKeyUsagePurpose::ClientAuth,
        };
        Ok(Self {
            server: authority.leaf(directory, &server, now)?,
            admin: authority.leaf(directory, &admin, now)?,
            authority: authority.certificate,
        })
    }
}

/// The names of the Service `kubernetes`, by which programs in the cluster reach the server.
const SERVICE_NAMES: [&str; 3] = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// Returns the names and addresses of a server for its certificate: those of this machine, the addresses that clients are
/// told, and the host name.
#[must_use]
pub fn subjects(addresses: &[IpAddr], host_name: Option<String>) -> Vec<String> {
    let local = ["localhost", "127.0.0.1", "::1"].map(String::from);
    let addresses = addresses.iter().filter(|address| !address.is_unspecified());
    let mut subjects = Vec::new();
    for subject in local
        .into_iter()
        .chain(SERVICE_NAMES.map(String::from))
        .chain(addresses.map(ToString::to_string))
        .chain(host_name)
    {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects
}

/// The certificate authority of this server, which signs its leaf certificates.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn load_or_generate(directory: &Path, now: Timestamp) -> Result<Self, StartError> {
        let path = directory.join("ca.crt");
        let broken = |why: String| {
            StartError::new(
                format!("use the certificate authority {}", path.display()),
                why,
                format!(
                    "restore ca.crt and ca.key, or delete {} for new ones and a new kubeconfig",
                    directory.display()
                ),
            )
        };
        match stored(directory, "ca") {
            Ok(None) => Self::generate(directory, now),
            Err(error) => Err(broken(error)),
            Ok(Some(identity)) => {
                let facts = Facts::read(&identity).map_err(&broken)?;
                if facts.expires_within_days(now, 0) {
                    tracing::warn!(path = %path.display(), "the certificate authority has expired; generating a new one");
                    return Self::generate(directory, now);
                }
                Self::new(identity).map_err(|error| broken(error.to_string()))
            }
        }
    }

    fn new(identity: Identity) -> Result<Self, rcgen::Error> {
        let key = KeyPair::from_pem(&identity.key)?;
        Ok(Self {
            issuer: Issuer::from_ca_cert_pem(&identity.certificate, key)?,
            certificate: identity.certificate,
        })
    }

    fn generate(directory: &Path, now: Timestamp) -> Result<Self, StartError> {
        let make = || {
            let mut params = params(Vec::new(), "ringwatch-ca", None)?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![
                KeyUsagePurpose::KeyCertSign,
                KeyUsagePurpose::CrlSign,
                KeyUsagePurpose::DigitalSignature,
            ];
            set_validity(&mut params, now, AUTHORITY_DAYS);
            let key = KeyPair::generate()?;
            Ok(Identity {
                certificate: params.self_signed(&key)?.pem(),
                key: key.serialize_pem(),
            })
        };
        let identity = make().map_err(|error| cannot_make("ca", &error))?;
        store(directory, "ca", &identity)?;
        Self::new(identity).map_err(|error| cannot_make("ca", &error))
    }

    /// Returns the stored leaf if it is still good, or else makes a new one.
    fn leaf(&self, directory: &Path, leaf: &Leaf, now: Timestamp) -> Result<Identity, StartError> {
        if let Ok(Some(identity)) = stored(directory, leaf.name) {
            match self.why_not_good(&identity, leaf, now) {
                None => return Ok(identity),
                Some(why) => tracing::info!(certificate = leaf.name, why, "generating a new one"),
            }
        }
        let identity = self
            .sign(leaf, now)
            .map_err(|error| cannot_make(leaf.name, &error))?;
        store(directory, leaf.name, &identity)?;
        Ok(identity)
    }

    fn why_not_good(&self, identity: &Identity, leaf: &Leaf, now: Timestamp) -> Option<String> {
        let facts = match Facts::read(identity) {
            Ok(facts) => facts,
            Err(why) => return Some(why),
        };
        if facts.expires_within_days(now, RENEWAL_DAYS) {
            return Some("it expires soon".to_owned());
        }
        if facts.issuer_key.as_deref() != Facts::key_id(&self.certificate).as_deref() {
            return Some("another authority signed it".to_owned());
        }
        leaf.subjects
            .iter()
            .find(|subject| !facts.subjects.contains(*subject))
            .map(|subject| format!("it does not name {subject}"))
    }

    fn sign(&self, leaf: &Leaf, now: Timestamp) -> Result<Identity, rcgen::Error> {
        let mut params = params(leaf.subjects.clone(), leaf.common_name, leaf.organisation)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![leaf.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, LEAF_DAYS);
        let key = KeyPair::generate()?;
        Ok(Identity {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// The facts about a certificate that decide whether it is replaced.
struct Facts {
    not_after_seconds: i64,
    subjects: Vec<String>,
    issuer_key: Option<Vec<u8>>,
}

impl Facts {
    /// Reads a certificate and checks that the key is its own.
    fn read(identity: &Identity) -> Result<Self, String> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(identity.certificate.as_bytes())
            .map_err(|error| format!("the certificate is not PEM: {error}"))?;
        let (_, certificate) = X509Certificate::from_der(&pem.contents)
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        let key = KeyPair::from_pem(&identity.key)
            .map_err(|error| format!("the key cannot be read: {error}"))?;
        if certificate.public_key().raw != key.subject_public_key_info() {
            return Err("the key is not the certificate's".to_owned());
        }
        let issuer_key = certificate
            .extensions()
            .iter()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref(),
                _ => None,
            })
            .map(|id| id.0.to_vec());
        Ok(Self {
            not_after_seconds: certificate.validity().not_after.timestamp(),
            subjects: alternative_names(&certificate),
            issuer_key,
        })
    }

    /// Returns the id by which the certificates of an authority name its key.
    fn key_id(certificate: &str) -> Option<Vec<u8>> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).ok()?;
        let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
        certificate
            .extensions()
            .iter()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            })
    }

    fn expires_within_days(&self, now: Timestamp, days: i64) -> bool {
        self.not_after_seconds <= now.as_second() + days * 24 * 3600
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes)
                    .ok()
                    .map(|it| IpAddr::from(it).to_string()),
                _ => <[u8; 16]>::try_from(*bytes)
                    .ok()
                    .map(|it| IpAddr::from(it).to_string()),
            },
            _ => None,
        })
        .collect()
}

fn params(
    subjects: Vec<String>,
    common_name: &str,
    organisation: Option<&str>,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(subjects)?;
    let mut name = DistinguishedName::new();
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    Ok(params)
}

fn set_validity(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let from = now - SignedDuration::from_hours(BACKDATE_HOURS);
    let to = now + SignedDuration::from_hours(24 * days);
    for (field, time) in [(&mut params.not_before, from), (&mut params.not_after, to)] {
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        *field = epoch + std::time::Duration::from_secs(time.as_second().unsigned_abs());
    }
}

fn paths(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    (
        directory.join(format!("{name}.crt")),
        directory.join(format!("{name}.key")),
    )
}

/// Reads the identity in a directory; `None` if there is not even a part of it.
fn stored(directory: &Path, name: &str) -> Result<Option<Identity>, String> {
    let (certificate, key) = paths(directory, name);
    if !certificate.exists() && !key.exists() {
        return Ok(None);
    }
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(Some(Identity {
        certificate: read(&certificate)?,
        key: read(&key)?,
    }))
}

/// Writes the key and then the certificate: a certificate without its key would be the worse half.
fn store(directory: &Path, name: &str, identity: &Identity) -> Result<(), StartError> {
    let (certificate, key) = paths(directory, name);
    replace(&key, identity.key.as_bytes(), Access::Owner)
        .map_err(|error| cannot_write(&key, error))?;
    replace(
        &certificate,
        identity.certificate.as_bytes(),
        Access::Everybody,
    )
    .map_err(|error| cannot_write(&certificate, error))
}

fn cannot_write(path: &Path, error: std::io::Error) -> StartError {
    StartError::new(
        format!("write {}", path.display()),
        error,
        "choose another directory with --data-dir or --cert-dir, or make this one writable",
    )
}

fn cannot_make(name: &str, error: &rcgen::Error) -> StartError {
    StartError::new(
        format!("make the certificate {name}"),
        error,
        "give one with --tls-cert-file and --tls-private-key-file",
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().expect("a time")
    }

    fn generate(directory: &Path, now: Timestamp) -> Certificates {
        let subjects = subjects(&[IpAddr::from([127, 0, 0, 1])], Some("host".to_owned()));
        Certificates::load_or_generate(directory, &subjects, now).expect("certificates")
    }

    #[test]
    fn certificates_are_used_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let second = generate(directory.path(), now());
        assert_eq!(first.authority, second.authority);
        assert_eq!(first.server.certificate, second.server.certificate);
        assert_eq!(first.admin.certificate, second.admin.certificate);
        for name in ["ca.key", "apiserver.key", "admin.key"] {
            let metadata = fs::metadata(directory.path().join(name)).expect("a key");
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn leaves_that_expire_soon_are_renewed_by_the_same_authority() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let later = now() + SignedDuration::from_hours(24 * (LEAF_DAYS - RENEWAL_DAYS));
        let second = generate(directory.path(), later);
        assert_eq!(first.authority, second.authority);
        assert_ne!(first.server.certificate, second.server.certificate);
        assert_ne!(first.admin.certificate, second.admin.certificate);
    }

    #[test]
    fn an_expired_authority_is_replaced_with_its_leaves() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let later = now() + SignedDuration::from_hours(24 * AUTHORITY_DAYS);
        let second = generate(directory.path(), later);
        assert_ne!(first.authority, second.authority);
        assert_ne!(first.server.certificate, second.server.certificate);
    }

    #[test]
    fn a_new_address_needs_a_new_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let subjects = subjects(&[IpAddr::from([10, 1, 2, 3])], None);
        let second = Certificates::load_or_generate(directory.path(), &subjects, now())
            .expect("certificates");
        assert_ne!(first.server.certificate, second.server.certificate);
        assert_eq!(first.admin.certificate, second.admin.certificate);
    }

    #[test]
    fn a_broken_authority_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        generate(directory.path(), now());
        fs::write(directory.path().join("ca.key"), "nonsense").expect("written");
        let error = Certificates::load_or_generate(directory.path(), &[], now());
        let text = error.expect_err("a broken key").to_string();
        assert!(
            text.contains("cannot use the certificate authority"),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn a_key_of_another_certificate_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        fs::copy(
            directory.path().join("apiserver.key"),
            directory.path().join("admin.key"),
        )
        .expect("copied");
        let second = generate(directory.path(), now());
        assert_ne!(first.admin.certificate, second.admin.certificate);
    }
}

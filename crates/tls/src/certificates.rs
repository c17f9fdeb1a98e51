//! The certificates of a server that was given none: an authority, the server's, the admin's.
//!
//! All keys are ECDSA P-256. What is there is used again, so that a kubeconfig stays good across
//! restarts. A leaf's certificate is made anew, for the key that is there, when it is about to expire, does not come
//! from the authority, or does not name an address that is served; the authority's only when it has expired. If the
//! authority cannot be read the server does not start, since replacing it would lock every client out. What others
//! have put into the directory is never written over.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use super::error::StartError;
pub use super::pair_files::Identity;
use super::pair_files::{AUTHORITY_NAME, CertificateSubject, PairFiles, StoredPair};
use super::private_file::create_directory;

/// The number of days for which an authority's certificate is valid.
const AUTHORITY_DAYS: i64 = 3650;
/// The number of days for which a leaf certificate is valid.
const LEAF_DAYS: i64 = 365;
/// A certificate that is valid for fewer days is replaced at start.
const RENEWAL_DAYS: i64 = 30;
/// The number of hours before now from which on certificates are valid, for clients whose clocks are behind.
const BACKDATE_HOURS: i64 = 1;

/// The name of a server's certificate and key among generated ones; kube-apiserver's name for them.
const SERVING_NAME: &str = "apiserver";
const SERVING_SUBJECT: CertificateSubject = CertificateSubject {
    common_name: "ringwatch",
    organisation: None,
};
const ADMIN_SUBJECT: CertificateSubject = CertificateSubject {
    common_name: "kubernetes-admin",
    organisation: Some("system:masters"),
};
const AUTHORITY_SUBJECT: CertificateSubject = CertificateSubject {
    common_name: AUTHORITY_NAME,
    organisation: None,
};

/// The generated certificates of a server that is given none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The authority's certificate, in PEM.
    pub authority: String,
    /// The serving certificate and its key; `None` for a server that is given its own.
    pub server: Option<Identity>,
    /// The admin's identity, in group `system:masters`.
    pub admin: Identity,
}

/// A certificate to be generated for a server.
#[derive(Clone, Copy, Debug)]
pub struct Serving<'a> {
    /// The directory of the certificate and its key.
    pub directory: &'a Path,
    /// The names and addresses under which the server is reached.
    pub subjects: &'a [String],
}

/// The description of a certificate to be signed by the authority.
struct Leaf<'a> {
    /// The files' name without extension.
    name: &'static str,
    directory: &'a Path,
    subject: CertificateSubject,
    /// The subject alternative names: DNS names and IP addresses.
    alternatives: &'a [String],
    usage: ExtendedKeyUsagePurpose,
}

impl Certificates {
    /// Reads the certificates in a directory, and that for a server in its own, and makes those that are missing or no
    /// longer good.
    ///
    /// # Errors
    /// A directory cannot be used, the authority cannot be read, or a file of others would have to be written over.
    pub fn load_or_generate(
        directory: &Path,
        serving: Option<Serving<'_>>,
        now: Timestamp,
    ) -> Result<Self, StartError> {
        for directory in [Some(directory), serving.map(|it| it.directory)] {
            let Some(directory) = directory else { continue };
            create_directory(directory).map_err(|error| cannot_create(directory, error))?;
        }
        let authority = Authority::load_or_generate(directory, now)?;
        let server = serving.map(|serving| Leaf {
            name: SERVING_NAME,
            directory: serving.directory,
            subject: SERVING_SUBJECT,
            alternatives: serving.subjects,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
        });
        let admin = Leaf {
            name: "admin",
            directory,
            subject: ADMIN_SUBJECT,
            alternatives: &[],
            usage: ExtendedKeyUsagePurpose::ClientAuth,
        };
        // First, so that a server whose own certificate cannot be renewed goes on to renew this one.
        let admin = authority.leaf(&admin, now)?;
        Ok(Self {
            server: server.map(|it| authority.leaf(&it, now)).transpose()?,
            admin,
            authority: authority.certificate,
        })
    }
}

/// Returns the paths of a certificate and its key that others have put into the directory of serving certificates, with
/// which a server serves. Follows `MaybeDefaultWithSelfSignedCerts`.
///
/// # Errors
/// A file cannot be read, or one is without the other.
pub fn given_pair(directory: &Path) -> Result<Option<(PathBuf, PathBuf)>, StartError> {
    let files = PairFiles::new(directory, SERVING_NAME, SERVING_SUBJECT);
    match files.read() {
        Ok(StoredPair::Foreign) => Ok(Some((files.certificate, files.key))),
        Ok(StoredPair::Missing | StoredPair::Made(_)) => Ok(None),
        Err(why) => Err(StartError::new(
            format!("use the server's certificate in {}", directory.display()),
            why,
            "give both, or move the one away for a generated pair",
        )),
    }
}

/// Returns the paths of the certificate and the key that are generated for a server in its directory.
#[must_use]
pub fn generated_pair(directory: &Path) -> (PathBuf, PathBuf) {
    let files = PairFiles::new(directory, SERVING_NAME, SERVING_SUBJECT);
    (files.certificate, files.key)
}

/// Returns true if a certificate is one that this program makes for its servers.
#[must_use]
pub fn is_generated_for_a_server(certificate: &str) -> bool {
    PairFiles::new(Path::new(""), SERVING_NAME, SERVING_SUBJECT).is_made(certificate)
}

/// Returns true if a directory has an authority that this program made, as earlier versions did in that of
/// `--cert-dir`, or one that cannot be read. It may lack its key: only a start there tells what is wrong.
#[must_use]
pub fn has_generated_authority(directory: &Path) -> bool {
    PairFiles::new(directory, "ca", AUTHORITY_SUBJECT).may_be_made()
}

/// The names of the Service `kubernetes`, by which programs in the cluster reach the server.
const SERVICE_NAMES: [&str; 3] = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// Returns the names and addresses of a server for its certificate: those of this machine, the addresses that clients
/// are told, and the host name.
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
        let files = PairFiles::new(directory, "ca", AUTHORITY_SUBJECT);
        let broken = |why: String| {
            StartError::new(
                format!(
                    "use the certificate authority {}",
                    files.certificate.display()
                ),
                why,
                format!(
                    "restore ca.crt and ca.key, or delete {} for new ones and a new kubeconfig",
                    directory.display()
                ),
            )
        };
        if let Some(key) = files.key_alone().map_err(&broken)? {
            tracing::info!("the certificate authority has a key alone; making its certificate");
            let key = KeyPair::from_pem(&key)
                .map_err(|error| broken(format!("the key cannot be read: {error}")))?;
            return Self::generate(&files, &key, now);
        }
        match files.read().map_err(&broken)? {
            StoredPair::Missing if files.certificate.exists() => {
                Err(broken("its key is missing".to_owned()))
            }
            StoredPair::Missing => {
                let key = KeyPair::generate().map_err(|error| cannot_make("ca", &error))?;
                Self::generate(&files, &key, now)
            }
            StoredPair::Foreign => Err(StartError::new(
                format!(
                    "use the certificate authority {}",
                    files.certificate.display()
                ),
                "ringwatch did not make it",
                "move it away with its key for a generated one, and name authorities of clients with --client-ca-file",
            )),
            StoredPair::Made(identity) => {
                let facts = Facts::read(&identity).map_err(&broken)?;
                if facts.expires_within_days(now, 0) {
                    let path = files.certificate.display();
                    tracing::warn!(%path, "the certificate authority has expired; generating a new one");
                    return Self::generate(&files, &facts.key, now);
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

    fn generate(files: &PairFiles, key: &KeyPair, now: Timestamp) -> Result<Self, StartError> {
        let make = || {
            let mut params = CertificateParams::default();
            params.distinguished_name = AUTHORITY_SUBJECT.name();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![
                KeyUsagePurpose::KeyCertSign,
                KeyUsagePurpose::CrlSign,
                KeyUsagePurpose::DigitalSignature,
            ];
            set_validity(&mut params, now, AUTHORITY_DAYS);
            Ok(Identity {
                certificate: params.self_signed(key)?.pem(),
                key: key.serialize_pem(),
            })
        };
        let identity = make().map_err(|error| cannot_make("ca", &error))?;
        files.write_key(&identity.key)?;
        files.write(&identity)?;
        Self::new(identity).map_err(|error| cannot_make("ca", &error))
    }

    /// Returns the stored leaf if it is still good, or else makes a new one for its key.
    fn leaf(&self, leaf: &Leaf<'_>, now: Timestamp) -> Result<Identity, StartError> {
        let files = PairFiles::new(leaf.directory, leaf.name, leaf.subject);
        let unusable = |why: String| {
            let what = format!("use the certificate {}", files.certificate.display());
            StartError::new(what, why, "move it away with its key for new ones")
        };
        let key = match files.read().map_err(&unusable)? {
            StoredPair::Foreign => return Err(files.would_overwrite()),
            StoredPair::Missing => {
                KeyPair::generate().map_err(|error| cannot_make(leaf.name, &error))?
            }
            StoredPair::Made(identity) => match self.why_not_good(&identity, leaf, now) {
                None => return Ok(identity),
                Some(why) => {
                    tracing::info!(certificate = leaf.name, why, "generating a new one");
                    KeyPair::from_pem(&identity.key)
                        .map_err(|error| unusable(format!("the key cannot be read: {error}")))?
                }
            },
        };
        let identity = self
            .sign(leaf, &key, now)
            .map_err(|error| cannot_make(leaf.name, &error))?;
        files.write(&identity)?;
        Ok(identity)
    }

    fn why_not_good(&self, identity: &Identity, leaf: &Leaf<'_>, now: Timestamp) -> Option<String> {
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
        leaf.alternatives
            .iter()
            .find(|subject| !facts.subjects.contains(*subject))
            .map(|subject| format!("it does not name {subject}"))
    }

    fn sign(
        &self,
        leaf: &Leaf<'_>,
        key: &KeyPair,
        now: Timestamp,
    ) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::new(leaf.alternatives)?;
        params.distinguished_name = leaf.subject.name();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![leaf.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, LEAF_DAYS);
        Ok(Identity {
            certificate: params.signed_by(key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// The facts about a certificate that decide whether it is replaced.
struct Facts {
    not_after_seconds: i64,
    subjects: Vec<String>,
    issuer_key: Option<Vec<u8>>,
    key: KeyPair,
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
            key,
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

fn set_validity(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let from = now - SignedDuration::from_hours(BACKDATE_HOURS);
    let to = now + SignedDuration::from_hours(24 * days);
    for (field, time) in [(&mut params.not_before, from), (&mut params.not_after, to)] {
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        *field = epoch + std::time::Duration::from_secs(time.as_second().unsigned_abs());
    }
}

fn cannot_create(directory: &Path, error: std::io::Error) -> StartError {
    StartError::new(
        format!("create {}", directory.display()),
        error,
        "choose another directory with --data-dir or --cert-dir",
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().expect("a time")
    }

    fn load(
        directory: &Path,
        subjects: &[String],
        now: Timestamp,
    ) -> Result<Certificates, StartError> {
        let serving = Serving {
            directory,
            subjects,
        };
        Certificates::load_or_generate(directory, Some(serving), now)
    }

    fn generate(directory: &Path, now: Timestamp) -> Certificates {
        let subjects = subjects(&[IpAddr::from([127, 0, 0, 1])], Some("host".to_owned()));
        load(directory, &subjects, now).expect("certificates")
    }

    /// Returns the content of all files of a directory by their names.
    fn content(directory: &Path) -> std::collections::BTreeMap<String, String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let entries = entries.map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            (name, fs::read_to_string(entry.path()).expect("a file"))
        });
        entries.collect()
    }

    /// Returns a certificate that others have made, and its key.
    fn foreign(names: &[String], common_name: &str) -> Identity {
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, common_name);
        let key = KeyPair::generate().expect("a key");
        Identity {
            certificate: params.self_signed(&key).expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    fn put(directory: &Path, name: &str, identity: &Identity) {
        for (extension, text) in [("crt", &identity.certificate), ("key", &identity.key)] {
            fs::write(directory.join(format!("{name}.{extension}")), text).expect("written");
        }
    }

    #[test]
    fn certificates_are_used_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let second = generate(directory.path(), now());
        assert_eq!(first.authority, second.authority);
        assert_eq!(first.server, second.server);
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
        assert_ne!(first.server, second.server);
        assert_ne!(first.admin.certificate, second.admin.certificate);
    }

    #[test]
    fn an_expired_authority_is_replaced_with_its_leaves() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let later = now() + SignedDuration::from_hours(24 * AUTHORITY_DAYS);
        let second = generate(directory.path(), later);
        assert_ne!(first.authority, second.authority);
        assert_ne!(first.server, second.server);
    }

    #[test]
    fn a_new_address_needs_a_new_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let subjects = subjects(&[IpAddr::from([10, 1, 2, 3])], None);
        let second = load(directory.path(), &subjects, now()).expect("certificates");
        assert_ne!(first.server, second.server);
        assert_eq!(first.admin.certificate, second.admin.certificate);
    }

    #[test]
    fn a_broken_authority_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        generate(directory.path(), now());
        fs::write(directory.path().join("ca.key"), "nonsense").expect("written");
        let error = load(directory.path(), &[], now());
        let text = error.expect_err("a broken key").to_string();
        assert!(
            text.contains("cannot use the certificate authority"),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn a_start_that_is_killed_at_any_file_leaves_a_directory_that_starts() {
        let whole = tempfile::tempdir().expect("a directory");
        generate(whole.path(), now());
        let written = [
            "ca.key",
            "ca.crt",
            "admin.crt",
            "admin.key",
            "apiserver.crt",
            "apiserver.key",
        ];
        assert_eq!(content(whole.path()).len(), written.len());
        for killed_after in 0..=written.len() {
            let directory = tempfile::tempdir().expect("a directory");
            for name in &written[..killed_after] {
                fs::copy(whole.path().join(name), directory.path().join(name)).expect("copied");
            }
            let there = content(directory.path());
            generate(directory.path(), now());
            let after = content(directory.path());
            assert_eq!(after.len(), written.len());
            let mut keys = there.iter().filter(|(name, _)| name.ends_with(".key"));
            assert!(
                keys.all(|(name, key)| after[name] == *key),
                "{killed_after}"
            );
        }
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("ca.crt");
        std::os::unix::fs::symlink("nowhere", link).expect("a link");
        load(directory.path(), &[], now()).expect_err("no certificate can be written");
        assert!(directory.path().join("ca.key").exists(), "the key is first");
        fs::remove_file(whole.path().join("ca.key")).expect("removed");
        let lost = load(whole.path(), &[], now()).expect_err("a lost key");
        assert!(lost.to_string().contains("its key is missing"), "{lost}");
    }

    #[test]
    fn a_new_certificate_is_for_the_key_that_is_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = generate(directory.path(), now());
        let other = KeyPair::generate().expect("a key").serialize_pem();
        fs::write(directory.path().join("admin.key"), &other).expect("written");
        let second = generate(directory.path(), now());
        assert_ne!(first.admin.certificate, second.admin.certificate);
        assert_eq!(second.admin.key, other);
        Facts::read(&second.admin).expect("a certificate of the key");
        let before = content(directory.path());
        generate(
            directory.path(),
            now() + SignedDuration::from_hours(24 * LEAF_DAYS),
        );
        let after = content(directory.path());
        for key in ["ca.key", "apiserver.key", "admin.key"] {
            assert_eq!(before[key], after[key], "{key}");
        }
        assert_ne!(before["admin.crt"], after["admin.crt"]);
    }

    #[test]
    fn files_of_others_are_never_written_over() {
        let names = ["localhost".to_owned()];
        let own = tempfile::tempdir().expect("a directory");
        let ours = generate(own.path(), now());
        let chain = Identity {
            certificate: ours.admin.certificate.clone() + &ours.authority,
            key: ours.admin.key.clone(),
        };
        for (name, identity) in [
            ("apiserver", foreign(&names, "ringwatch")),
            ("admin", foreign(&names, "kubernetes-admin")),
            ("admin", chain),
            ("ca", foreign(&names, "kubernetes-ca")),
        ] {
            for later in [0, LEAF_DAYS, AUTHORITY_DAYS] {
                let directory = tempfile::tempdir().expect("a directory");
                put(directory.path(), name, &identity);
                let there = content(directory.path());
                let later = now() + SignedDuration::from_hours(24 * later);
                let error = load(directory.path(), &names, later)
                    .expect_err(name)
                    .to_string();
                assert!(error.contains("ringwatch did not make"), "{error}");
                assert!(error.contains("move it away"), "{error}");
                let after = content(directory.path());
                assert!(
                    there.iter().all(|(file, text)| after[file] == *text),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_pair_of_others_is_given_and_half_of_one_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let [certificate, key] =
            ["apiserver.crt", "apiserver.key"].map(|it| directory.path().join(it));
        assert_eq!(given_pair(directory.path()), Ok(None));
        generate(directory.path(), now());
        assert_eq!(given_pair(directory.path()), Ok(None));
        fs::remove_file(&key).expect("removed");
        assert_eq!(
            given_pair(directory.path()),
            Ok(None),
            "a crash came between"
        );
        generate(directory.path(), now());
        put(directory.path(), SERVING_NAME, &foreign(&[], "other"));
        assert_eq!(
            given_pair(directory.path()),
            Ok(Some((certificate.clone(), key.clone())))
        );
        for missing in [&key, &certificate] {
            put(directory.path(), SERVING_NAME, &foreign(&[], "other"));
            fs::remove_file(missing).expect("removed");
            let error = given_pair(directory.path())
                .expect_err("half a pair")
                .to_string();
            let words = format!(
                "error reading {}, certificate and key must be supplied as a pair",
                missing.display()
            );
            assert!(error.contains(&words), "{error}");
        }
    }

    #[test]
    fn a_given_server_needs_no_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let made = Certificates::load_or_generate(directory.path(), None, now());
        assert_eq!(made.expect("certificates").server, None);
        assert!(has_generated_authority(directory.path()));
        let files = content(directory.path());
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["admin.crt", "admin.key", "ca.crt", "ca.key"]);
    }
}

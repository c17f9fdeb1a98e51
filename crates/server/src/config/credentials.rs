//! The server's certificate, and the authorities of client certificates: read from files at start, and again when they
//! change.
//!
//! Generated certificates are checked from time to time and renewed before they expire. A change of any file is
//! validated together with the others; while it is invalid, the previous credentials stay in effect. New connections
//! use the newest. Open connections keep their TLS session, but their client certificates are verified by the newest
//! authorities at each request.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_authentication::ClientCertificates;
use ringwatch_endpoints::current_credentials::{Credentials, CurrentCredentials};
use ringwatch_http::tls::ServingTls;
use ringwatch_tls::certificates::{Certificates, Identity, Serving, given_pair};
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use ringwatch_tls::pem::FlagFile;
use ringwatch_tls::protocol::TlsProtocol;
use ringwatch_tls::served_certificates::{NamedCertificate, ServedCertificates};
use ringwatch_tls::verifiers::Authorities;
use ringwatch_tls::watched_file::{WatchedFiles, next_look};
use tokio::sync::watch;

use super::flags::{RequestHeaderFlags, ServeFlags, TlsFlags};

/// Period of the checks if a generated certificate expires soon.
const RENEWAL_PERIOD: Duration = Duration::from_secs(60);

const CLIENT_CA_FLAG: &str = "--client-ca-file";
const PROXY_CA_FLAG: &str = "--requestheader-client-ca-file";

/// The files, and the credentials that are made of them.
#[derive(Debug)]
pub(crate) struct CredentialFiles {
    /// The server's own certificate and key.
    serving: Option<WatchedFiles<2>>,
    /// The certificates for certain names, with their keys.
    named: Vec<WatchedFiles<2>>,
    client_ca: Option<WatchedFiles<1>>,
    proxy_ca: Option<WatchedFiles<1>>,
    source: Source,
}

/// The inputs of the credentials, and the channel on which the newest are published.
#[derive(Debug)]
struct Source {
    parts: Mutex<Parts>,
    flags: RequestHeaderFlags,
    protocol: TlsProtocol,
    generated: GeneratedFiles,
    current: watch::Sender<Arc<Credentials>>,
}

/// The generated certificates and their directories.
#[derive(Clone, Debug)]
struct GeneratedFiles {
    /// The directory of the authority and of the admin's certificate.
    directory: PathBuf,
    /// The directory of the server's certificate, and the names and addresses in it; `None` for a server that is given
    /// its own.
    serving: Option<(PathBuf, Vec<String>)>,
}

impl GeneratedFiles {
    fn load(&self, now: Timestamp) -> Result<Certificates, StartError> {
        let serving = self.serving.as_ref().map(|(directory, subjects)| Serving {
            directory,
            subjects,
        });
        Certificates::load_or_generate(&self.directory, serving, now)
    }
}

/// The path of a certificate, and its content.
type CertificateFile = (PathBuf, Identity);

/// The files of a certificate for certain names, and what they have.
type SniFiles = (WatchedFiles<2>, (PathBuf, NamedCertificate));

/// The contents of the files, in PEM.
#[derive(Clone, Debug)]
struct Parts {
    generated: Certificates,
    /// The path of the certificate, and the files that replace the generated one.
    serving: Option<CertificateFile>,
    /// The certificates for certain names, each with the path of its file.
    named: Vec<(PathBuf, NamedCertificate)>,
    client_ca: Option<String>,
    proxy_ca: Option<String>,
}

impl CredentialFiles {
    /// Reads the files that the flags name, and generates the missing ones. `subjects` are the names of the server.
    ///
    /// # Errors
    /// A file cannot be read, written or understood.
    pub(crate) fn load(
        flags: &ServeFlags,
        subjects: Vec<String>,
        clock: &Clock,
    ) -> Result<Self, StartError> {
        let (serving_files, serving) = serving(flags)?.unzip();
        let generated_files = GeneratedFiles {
            directory: flags.pki_dir(),
            serving: serving.is_none().then(|| (flags.cert_dir(), subjects)),
        };
        let generated = generated_files.load(clock.wall())?;
        let (named_files, named_certificates) = sni(&flags.tls)?.into_iter().unzip();
        let client_ca = flags.identity.client_ca_file.as_deref();
        let (client_files, client_ca) = named(client_ca, CLIENT_CA_FLAG)?.unzip();
        let proxy_ca = flags
            .aggregation
            .request_header
            .requestheader_client_ca_file
            .as_deref();
        let (proxy_files, proxy_ca) = named(proxy_ca, PROXY_CA_FLAG)?.unzip();
        let parts = Parts {
            generated,
            serving,
            named: named_certificates,
            client_ca,
            proxy_ca,
        };
        let protocol = flags.tls.protocol(flags.serving.disable_http2_serving);
        let credentials = parts.credentials(&flags.aggregation.request_header, &protocol)?;
        Ok(Self {
            serving: serving_files,
            named: named_files,
            client_ca: client_files,
            proxy_ca: proxy_files,
            source: Source {
                parts: Mutex::new(parts),
                flags: flags.aggregation.request_header.clone(),
                protocol,
                generated: generated_files,
                current: watch::Sender::new(Arc::new(credentials)),
            },
        })
    }

    /// Returns the credentials, which are updated while [`Self::follow`] runs.
    #[must_use]
    pub(crate) fn current(&self) -> CurrentCredentials {
        self.source.current.subscribe()
    }

    /// Follows the files, and renews generated certificates, until it is dropped.
    pub(crate) async fn follow(self, clock: Clock) {
        let Self {
            serving,
            named,
            client_ca,
            proxy_ca,
            source,
        } = self;
        let source = &source;
        let serving = follow(serving, &clock, |[certificate, key]| {
            source.change("the server's certificate", |parts| {
                if let Some((_, identity)) = &mut parts.serving {
                    *identity = Identity { certificate, key };
                }
            });
        });
        let named = named.into_iter().enumerate().map(|(place, files)| {
            follow(Some(files), &clock, move |[certificate, key]| {
                source.change("a certificate of --tls-sni-cert-key", |parts| {
                    if let Some((_, named)) = parts.named.get_mut(place) {
                        named.identity = Identity { certificate, key };
                    }
                });
            })
        });
        let named = join_all(named);
        let client_ca = follow(client_ca, &clock, |[text]| {
            source.change(CLIENT_CA_FLAG, |parts| parts.client_ca = Some(text));
        });
        let proxy_ca = follow(proxy_ca, &clock, |[text]| {
            source.change(PROXY_CA_FLAG, |parts| parts.proxy_ca = Some(text));
        });
        tokio::join!(serving, named, client_ca, proxy_ca, source.renew(&clock));
    }
}

/// Calls `changed` with the contents of files whenever they have changed; never completes.
async fn follow<const N: usize>(
    files: Option<WatchedFiles<N>>,
    clock: &Clock,
    changed: impl Fn([String; N]),
) {
    let Some(mut files) = files else { return };
    loop {
        let texts = files.changed(clock).await;
        changed(texts.clone());
        files.used(texts);
    }
}

impl Source {
    /// Applies a change, and publishes the resulting credentials; if they are invalid, nothing changes.
    fn change(&self, what: &str, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = parts.clone();
        change(&mut changed);
        match changed.credentials(&self.flags, &self.protocol) {
            Ok(credentials) => {
                *parts = changed;
                self.current.send_replace(Arc::new(credentials));
                tracing::info!("{what} has changed");
            }
            Err(error) => {
                tracing::warn!(%error, "{what} has changed and is invalid; the previous one is used");
            }
        }
    }

    /// Renews generated certificates before they expire.
    async fn renew(&self, clock: &Clock) {
        let mut failure = String::new();
        loop {
            next_look(RENEWAL_PERIOD, clock).await;
            let (generated, now) = (self.generated.clone(), clock.wall());
            let renewed = tokio::task::spawn_blocking(move || generated.load(now));
            let renewed = renewed.await.map_err(|error| error.to_string());
            match renewed.and_then(|it| it.map_err(|error| error.to_string())) {
                Ok(generated) => {
                    failure.clear();
                    self.take_generated(generated);
                }
                Err(error) if error == failure => {}
                Err(error) => {
                    tracing::warn!(error, "generated certificates cannot be renewed");
                    failure = error;
                }
            }
        }
    }

    fn take_generated(&self, generated: Certificates) {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let same = parts.generated == generated;
        drop(parts);
        if !same {
            self.change("a generated certificate", |parts| {
                parts.generated = generated;
            });
        }
    }
}

impl Parts {
    fn credentials(
        &self,
        flags: &RequestHeaderFlags,
        protocol: &TlsProtocol,
    ) -> Result<Credentials, StartError> {
        let own = &self.generated;
        let clients = self.clients(flags)?;
        let certificates = self.certificates()?;
        let tls = ServingTls::new(&certificates, protocol, clients.authorities())?;
        let client_ca = self.client_ca.as_deref().unwrap_or_default();
        let published = format!("{}\n{client_ca}", own.authority);
        Ok(Credentials {
            tls,
            serving_expiries: certificates.expiries(),
            clients,
            // Whoever signed it, a client that trusts this very certificate can verify it.
            authority: match &self.serving {
                Some((_, identity)) => identity.certificate.clone(),
                None => own.authority.clone(),
            },
            admin: own.admin.clone(),
            extension: flags.extension_authentication(published, self.proxy_ca.as_deref()),
        })
    }

    /// Returns the certificates of the server.
    fn certificates(&self) -> Result<ServedCertificates, StartError> {
        let wrong = |path: &Path, why: String| {
            StartError::new(
                format!("use the server's certificate {}", path.display()),
                why,
                "give a certificate and its key in PEM",
            )
        };
        let own = |identity| (Path::new("that is generated"), identity);
        let given = self.serving.as_ref();
        let (path, identity) = given
            .map(|(path, identity)| (path.as_path(), identity))
            .or_else(|| self.generated.server.as_ref().map(own))
            .ok_or_else(|| wrong(Path::new("of this server"), "there is none".to_owned()))?;
        let served = ServedCertificates::new(identity).map_err(|why| wrong(path, why))?;
        let (paths, named): (Vec<&PathBuf>, Vec<NamedCertificate>) = self
            .named
            .iter()
            .map(|(path, named)| (path, named.clone()))
            .unzip();
        served.with_named(&named).map_err(|(place, why)| {
            let path = paths.get(place).map_or(path, |it| it.as_path());
            wrong(path, format!("failed to load SNI cert and key: {why}"))
        })
    }

    fn clients(&self, flags: &RequestHeaderFlags) -> Result<ClientCertificates, StartError> {
        let advice = "give a file of certificates in PEM";
        let wrong = |flag: &str, why: String| {
            StartError::new(format!("use the authorities of {flag}"), why, advice)
        };
        let mut roots = Authorities::default();
        let own = &self.generated.authority;
        add(&mut roots, own).map_err(|why| {
            StartError::new(
                "use the generated authority",
                why,
                "delete the pki directory",
            )
        })?;
        if let Some(client_ca) = &self.client_ca {
            add(&mut roots, client_ca).map_err(|why| wrong(CLIENT_CA_FLAG, why))?;
        }
        let clients = ClientCertificates::new(roots);
        let clients = clients.map_err(|error| wrong(CLIENT_CA_FLAG, error.to_string()))?;
        let Some(proxy_ca) = &self.proxy_ca else {
            return Ok(clients);
        };
        let mut roots = Authorities::default();
        add(&mut roots, proxy_ca).map_err(|why| wrong(PROXY_CA_FLAG, why))?;
        let clients = clients.with_proxies(roots, flags.allowed_names());
        clients.map_err(|error| wrong(PROXY_CA_FLAG, error.to_string()))
    }
}

fn add(roots: &mut Authorities, pem: &str) -> Result<(), String> {
    for certificate in pem::certificates(pem)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reads the server's certificate and key, if flags name them, or if others have put them into the directory of
/// `--cert-dir`.
fn serving(flags: &ServeFlags) -> Result<Option<(WatchedFiles<2>, CertificateFile)>, StartError> {
    let tls = &flags.tls;
    let named = tls
        .tls_cert_file
        .clone()
        .zip(tls.tls_private_key_file.clone());
    let (paths, names) = match named {
        Some(paths) => (paths, ["--tls-cert-file", "--tls-private-key-file"]),
        None => match given_pair(&flags.cert_dir())? {
            Some(paths) => (paths, ["--cert-dir"; 2]),
            None => return Ok(None),
        },
    };
    let (path, key_path) = paths;
    let [flag, key_flag] = names;
    let certificate = FlagFile { path: &path, flag };
    let key = FlagFile {
        path: &key_path,
        flag: key_flag,
    };
    let (files, identity) = pair(certificate, key)?;
    Ok(Some((files, (path, identity))))
}

/// Reads the certificates and keys for certain names.
fn sni(flags: &TlsFlags) -> Result<Vec<SniFiles>, StartError> {
    let file = |path| FlagFile {
        path,
        flag: "--tls-sni-cert-key",
    };
    let pairs = flags.tls_sni_cert_key.iter().map(|named| {
        let (files, identity) = pair(file(&named.certificate), file(&named.key))?;
        let names = named.names.clone();
        let certificate = NamedCertificate { identity, names };
        Ok((files, (named.certificate.clone(), certificate)))
    });
    pairs.collect()
}

/// Reads a certificate and its key.
fn pair(
    certificate: FlagFile<'_>,
    key: FlagFile<'_>,
) -> Result<(WatchedFiles<2>, Identity), StartError> {
    let paths = [certificate, key].map(|file| file.path.to_path_buf());
    let identity = Identity {
        certificate: pem::read(certificate.path, certificate.flag)?,
        key: pem::read(key.path, key.flag)?,
    };
    let texts = [identity.certificate.clone(), identity.key.clone()];
    Ok((WatchedFiles::new(paths, texts), identity))
}

/// Reads a file of authorities, if a flag names one.
fn named(path: Option<&Path>, flag: &str) -> Result<Option<(WatchedFiles<1>, String)>, StartError> {
    let Some(path) = path else { return Ok(None) };
    let text = pem::read(path, flag)?;
    let files = WatchedFiles::new([path.to_path_buf()], [text.clone()]);
    Ok(Some((files, text)))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests {
    use std::fs;

    use clap::Parser;
    use ringwatch_filters::testing::certificates;
    use tokio::task::JoinSet;
    use tokio::time::advance;

    use super::*;

    /// Longer than it takes to look at all files, in the time of the test.
    const LOOK: Duration = Duration::from_secs(5);

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        flags: ServeFlags,
    }

    fn load(folder: &Path, flags: &[(&str, &str)], clock: &Clock) -> CredentialFiles {
        try_load(folder, flags, clock).expect("credentials")
    }

    fn try_load(
        folder: &Path,
        flags: &[(&str, &str)],
        clock: &Clock,
    ) -> Result<CredentialFiles, StartError> {
        let data_dir = format!("--data-dir={}", folder.display());
        let named = flags
            .iter()
            .map(|(flag, file)| format!("{flag}={}", folder.join(file).display()));
        let line = ["serve".to_owned(), data_dir].into_iter().chain(named);
        let flags = Line::try_parse_from(line).expect("flags").flags;
        let subjects = vec!["localhost".to_owned()];
        CredentialFiles::load(&flags, subjects, clock)
    }

    /// The user that a client's certificate names.
    fn user(credentials: &CurrentCredentials, identity: &Identity) -> Option<String> {
        let chain = pem::certificates(&identity.certificate).expect("a certificate");
        let clients = &credentials.borrow().clients;
        let peer = clients.identify(&chain, Clock::real().wall());
        peer.user.map(|it| it.user.name)
    }

    #[tokio::test(start_paused = true)]
    async fn authorities_of_clients_follow_their_file_while_it_can_be_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca");
        let [one, two] = [certificates(), certificates()];
        fs::write(&path, &one.authority).expect("written");
        let files = load(folder.path(), &[("--client-ca-file", "ca")], &Clock::real());
        let current = files.current();
        let mut following = JoinSet::new();
        following.spawn(files.follow(Clock::real()));
        let both = format!("{}{}", one.authority, two.authority);
        let cut = &both[..both.len() - 100];
        for (text, first, second) in [
            ("", true, false),
            (cut, true, false),
            (both.as_str(), true, true),
            ("nonsense", true, true),
            (&two.authority, false, true),
        ] {
            fs::write(&path, text).expect("written");
            tokio::time::sleep(LOOK).await;
            assert_eq!(user(&current, &one.admin).is_some(), first, "{text}");
            assert_eq!(user(&current, &two.admin).is_some(), second, "{text}");
            let published = &current.borrow().extension.authorities[0].1;
            assert_eq!(published.contains(&two.authority), second, "{text}");
            let own = current.borrow().admin.clone();
            assert!(user(&current, &own).is_some(), "the generated one counts");
        }
        fs::remove_file(&path).expect("removed");
        tokio::time::sleep(LOOK).await;
        assert!(user(&current, &two.admin).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_serving_certificate_changes_with_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("written");
        };
        let [one, two] = [(); 2].map(|()| certificates().server.expect("a certificate"));
        write("crt", &one.certificate);
        write("key", &one.key);
        let flags = [
            ("--tls-cert-file", "crt"),
            ("--tls-private-key-file", "key"),
        ];
        let files = load(folder.path(), &flags, &Clock::real());
        let current = files.current();
        let mut following = JoinSet::new();
        following.spawn(files.follow(Clock::real()));
        for (name, text, expected) in [
            ("key", &two.key, &one),
            ("crt", &two.certificate, &two),
            ("key", &one.key, &two),
            ("crt", &one.certificate, &one),
        ] {
            write(name, text);
            tokio::time::sleep(LOOK).await;
            assert_eq!(current.borrow().authority, expected.certificate, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_generated_is_renewed_before_it_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let begin: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let clock = Clock::stepped(begin);
        let files = load(folder.path(), &[], &clock);
        let mut current = files.current();
        let first = Arc::clone(&current.borrow());
        let serving = || fs::read(folder.path().join("pki/apiserver.crt")).expect("a certificate");
        let first_serving = serving();
        let mut following = JoinSet::new();
        following.spawn(files.follow(clock.clone()));
        advance(Duration::from_hours(24 * 300)).await;
        tokio::time::sleep(2 * RENEWAL_PERIOD).await;
        assert!(!current.has_changed().expect("a server"));
        advance(Duration::from_hours(24 * 40)).await;
        current.changed().await.expect("a server");
        let renewed = Arc::clone(&current.borrow());
        assert_eq!(renewed.authority, first.authority);
        assert_ne!(renewed.admin, first.admin);
        assert_ne!(serving(), first_serving);
        // The authority ends with all that it signed.
        advance(Duration::from_hours(24 * 3650)).await;
        current.changed().await.expect("a server");
        let renewed = Arc::clone(&current.borrow());
        assert_ne!(renewed.authority, first.authority);
        let published = &renewed.extension.authorities[0].1;
        assert!(published.contains(&renewed.authority));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pair_that_others_put_into_the_directory_is_served_and_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("certificates");
        fs::create_dir(&directory).expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text).expect("written");
        };
        let [one, two] = [(); 2].map(|()| {
            let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
            let signed = signed.expect("a certificate");
            (signed.cert.pem(), signed.signing_key.serialize_pem())
        });
        for name in ["ca.crt", "ca.key", "admin.crt", "admin.key", "sa.key"] {
            write(name, "of others");
        }
        write("apiserver.crt", &one.0);
        write("apiserver.key", &one.1);
        let flags = [("--cert-dir", "certificates")];
        let files = load(folder.path(), &flags, &Clock::real());
        let current = files.current();
        let mut following = JoinSet::new();
        following.spawn(files.follow(Clock::real()));
        assert_eq!(current.borrow().authority, one.0);
        write("apiserver.crt", &two.0);
        write("apiserver.key", &two.1);
        tokio::time::sleep(LOOK).await;
        assert_eq!(current.borrow().authority, two.0);
        tokio::time::sleep(2 * RENEWAL_PERIOD).await;
        for (name, text) in [
            ("ca.crt", "of others"),
            ("ca.key", "of others"),
            ("admin.crt", "of others"),
            ("admin.key", "of others"),
            ("sa.key", "of others"),
            ("apiserver.crt", &two.0),
            ("apiserver.key", &two.1),
        ] {
            let there = fs::read_to_string(directory.join(name)).expect("a file");
            assert_eq!(there, text, "{name}");
        }
        assert_eq!(fs::read_dir(&directory).expect("a folder").count(), 7);
        assert!(folder.path().join("pki/admin.crt").exists());
    }

    #[test]
    fn a_named_certificate_leaves_its_folder_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let pki = folder.path().join("pki");
        fs::create_dir(&pki).expect("a folder");
        let given = certificates().server.expect("a certificate");
        fs::write(pki.join("apiserver.crt"), &given.certificate).expect("written");
        fs::write(pki.join("apiserver.key"), &given.key).expect("written");
        let flags = [
            ("--tls-cert-file", "pki/apiserver.crt"),
            ("--tls-private-key-file", "pki/apiserver.key"),
        ];
        let files = load(folder.path(), &flags, &Clock::real());
        assert_eq!(files.current().borrow().authority, given.certificate);
        let there = fs::read_to_string(pki.join("apiserver.crt")).expect("a file");
        assert_eq!(there, given.certificate);
    }

    #[test]
    fn what_an_earlier_version_generated_in_the_directory_is_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("certificates");
        let serving = Serving {
            directory: &directory,
            subjects: &["localhost".to_owned()],
        };
        let now = Clock::real().wall();
        let earlier = Certificates::load_or_generate(&directory, Some(serving), now);
        let earlier = earlier.expect("certificates");
        let flags = [("--cert-dir", "certificates")];
        let files = load(folder.path(), &flags, &Clock::real());
        assert_eq!(files.current().borrow().authority, earlier.authority);
        assert_eq!(files.current().borrow().admin, earlier.admin);
        fs::remove_file(directory.join("ca.key")).expect("removed");
        let refused = try_load(folder.path(), &flags, &Clock::real());
        let refused = refused.err().map(|error| error.to_string());
        assert!(
            refused.is_some_and(|it| it.contains("its key is missing")),
            "no other authority takes its place"
        );
        assert!(!folder.path().join("pki").exists());
    }
}

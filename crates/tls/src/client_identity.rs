//! The client certificate by which this server authenticates itself to others; it follows its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use ringwatch::clock::Clock;
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureScheme};

use super::error::StartError;
use super::handshake_signature::public_key;
use super::pem::{self, FlagFile};
use super::watched_file::WatchedFiles;

/// A client certificate and its key, which may be replaced. Clones change together, and with them the configurations
/// made of them.
#[derive(Clone, Debug)]
pub struct ClientIdentity(Arc<IdentitySource>);

#[derive(Debug)]
struct IdentitySource(ArcSwap<CertifiedKey>);

impl ResolvesClientCert for IdentitySource {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ClientIdentity {
    /// Reads a certificate and its key from PEM.
    ///
    /// # Errors
    /// A line that says why they cannot be used.
    pub fn read(certificate: &str, key: &[u8]) -> Result<Self, String> {
        let key = Arc::new(certified_key(certificate, key)?);
        Ok(Self(Arc::new(IdentitySource(ArcSwap::new(key)))))
    }

    /// Returns rustls's view of the identity, which presents the newest certificate on each connection.
    pub(super) fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::clone(&self.0) as Arc<dyn ResolvesClientCert>
    }
}

/// Reads a certificate with intermediates and its key from PEM, and checks that they belong together.
///
/// # Errors
/// A line that says why they cannot be used.
pub(super) fn certified_key(certificate: &str, key: &[u8]) -> Result<CertifiedKey, String> {
    let chain = pem::certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("the key cannot be read: {error}"))?;
    certified(chain, key).map_err(|error| error.to_string())
}

/// Joins a chain and the key of its first certificate. `CertifiedKey::from_der` takes certificates of version 3 alone.
fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, Error> {
    let provider = aws_lc_rs::default_provider();
    let key = provider.key_provider.load_private_key(key)?;
    let leaf = chain.first().ok_or(Error::NoCertificatesPresented)?;
    let own = public_key(leaf)?;
    // A key that does not tell its public key is believed, as by rustls.
    if key.public_key().is_some_and(|it| it != own) {
        return Err(InconsistentKeys::KeyMismatch.into());
    }
    Ok(CertifiedKey::new(chain, key))
}

/// Watches the files of a client certificate and its key.
#[derive(Debug)]
pub struct IdentityFiles {
    certificate: PathBuf,
    files: WatchedFiles<2>,
    identity: ClientIdentity,
}

impl IdentityFiles {
    /// Reads a certificate and its key from files that flags name.
    ///
    /// # Errors
    /// A file cannot be read or understood, or the key is not the certificate's.
    pub fn load(certificate: FlagFile<'_>, key: FlagFile<'_>) -> Result<Self, StartError> {
        let paths = [certificate, key].map(|file| file.path.to_path_buf());
        let texts = [
            pem::read(certificate.path, certificate.flag)?,
            pem::read(key.path, key.flag)?,
        ];
        let identity = ClientIdentity::read(&texts[0], texts[1].as_bytes()).map_err(|why| {
            StartError::new(
                format!("use the client certificate {}", certificate.path.display()),
                why,
                "give a certificate and its key in PEM",
            )
        })?;
        Ok(Self {
            certificate: certificate.path.to_path_buf(),
            files: WatchedFiles::new(paths, texts),
            identity,
        })
    }

    /// Reads a certificate and its key, each of which is given with the flag that may name it; `None` unless both are
    /// named.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_named(
        certificate: (Option<&Path>, &'static str),
        key: (Option<&Path>, &'static str),
    ) -> Result<Option<Self>, StartError> {
        let file = |(path, flag): (Option<_>, _)| path.map(|path| FlagFile { path, flag });
        let pair = file(certificate).zip(file(key));
        pair.map(|(certificate, key)| Self::load(certificate, key))
            .transpose()
    }

    /// Returns the identity, which follows the files while [`Self::follow`] runs.
    #[must_use]
    pub fn identity(&self) -> ClientIdentity {
        self.identity.clone()
    }

    /// Has the identity follow the files until it is dropped. What cannot be used changes nothing.
    pub async fn follow(mut self, clock: Clock) {
        loop {
            let texts = self.files.changed(&clock).await;
            let path = self.certificate.display();
            match certified_key(&texts[0], texts[1].as_bytes()) {
                Ok(key) => {
                    tracing::info!(%path, "a client certificate has changed");
                    self.identity.0.0.store(Arc::new(key));
                }
                Err(error) => tracing::warn!(
                    error,
                    %path,
                    "a client certificate or its key is invalid; the previous one is used"
                ),
            }
            self.files.used(texts);
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::certificates::{Certificates, Identity};

    /// More than a look at the files takes, in the time of the test.
    const LOOK: Duration = Duration::from_millis(1_500);

    fn certificates() -> Certificates {
        let folder = tempfile::tempdir().expect("a directory");
        let now = Clock::real().wall();
        Certificates::load_or_generate(folder.path(), None, now).expect("certificates")
    }

    #[test]
    fn an_identity_may_be_of_version_1() {
        use ringwatch_testing::certificates::{RSA_2048, VERSION_1};
        for (certificate, key) in [RSA_2048, VERSION_1] {
            ClientIdentity::read(certificate, key.as_bytes()).expect("an identity");
        }
        let error = ClientIdentity::read(VERSION_1.0, RSA_2048.1.as_bytes());
        let error = error.expect_err("the key of another");
        assert!(error.contains("KeyMismatch"), "{error}");
    }

    fn write(folder: &Path, certificate: &str, key: &str) {
        fs::write(folder.join("crt"), certificate).expect("written");
        fs::write(folder.join("key"), key).expect("written");
    }

    #[tokio::test(start_paused = true)]
    async fn an_identity_follows_its_files_while_they_can_be_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let [Identity { certificate, key }, other] =
            [certificates(), certificates()].map(|it| it.admin);
        write(folder.path(), &certificate, &key);
        let (crt, pem) = (folder.path().join("crt"), folder.path().join("key"));
        let file = |path, flag| FlagFile { path, flag };
        let files = IdentityFiles::load(file(&crt, "--crt"), file(&pem, "--key"));
        let files = files.expect("an identity");
        let resolver = files.identity().resolver();
        let shown = || resolver.resolve(&[], &[]).expect("a certificate").cert[0].to_vec();
        let der = |pem: &str| pem::certificates(pem).expect("a certificate")[0].to_vec();
        let mut following = tokio::task::JoinSet::new();
        following.spawn(files.follow(Clock::real()));
        for (written, expected) in [
            ((&*other.certificate, &*key), &certificate),
            (("", ""), &certificate),
            ((&*other.certificate, &*other.key), &other.certificate),
            ((&certificate[..100], &*key), &other.certificate),
            ((&*certificate, &*key), &certificate),
        ] {
            write(folder.path(), written.0, written.1);
            for _ in 0..4 {
                tokio::time::sleep(LOOK).await;
            }
            assert_eq!(shown(), der(expected));
        }
    }
}

//! The kubeconfig of a relay's upstream, whose credentials follow the file and the files that it names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch_relay::Upstream;
use ringwatch_tls::error::StartError;
use ringwatch_tls::kubeconfig::{Kubeconfig, KubeconfigError};
use ringwatch_tls::watched_file::{RELOAD_PERIOD, next_look};

/// A kubeconfig, and the credentials that were used last.
#[derive(Debug)]
pub(crate) struct KubeconfigFile {
    path: PathBuf,
    used: Credentials,
}

/// The certificate authority, the token, the client certificate and its key; each is `None` where there is none.
#[derive(PartialEq, Eq)]
struct Credentials([Option<Vec<u8>>; 4]);

/// Secrets are not for logs.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .finish_non_exhaustive()
    }
}

impl KubeconfigFile {
    /// Reads a kubeconfig, and creates the client of its server.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub(crate) fn load(path: &Path, clock: &Clock) -> Result<(Self, Upstream), StartError> {
        let wrong = |error: String| {
            StartError::new(
                format!("use the kubeconfig {}", path.display()),
                error,
                "give --kubeconfig a file with a server, and a token or a client certificate for it",
            )
        };
        let (kubeconfig, used) = read(path).map_err(|error| wrong(error.to_string()))?;
        let upstream = Upstream::new(&kubeconfig, clock.clone());
        let upstream = upstream.map_err(|error| wrong(error.to_string()))?;
        let path = path.to_owned();
        Ok((Self { path, used }, upstream))
    }

    /// Has the upstream's credentials follow the files until it is dropped. Files that cannot be used change nothing.
    pub(super) async fn follow(mut self, upstream: Arc<Upstream>, clock: Clock) {
        loop {
            next_look(RELOAD_PERIOD, &clock).await;
            let path = self.path.clone();
            // They may lie on a disk that is slow.
            let contents = tokio::task::spawn_blocking(move || read(&path)).await;
            let path = self.path.display();
            let (kubeconfig, credentials) = match contents {
                Ok(Ok(contents)) => contents,
                Ok(Err(error)) => {
                    // One may be about to be replaced.
                    tracing::debug!(%error, %path, "a kubeconfig cannot be read");
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "reading a kubeconfig failed");
                    continue;
                }
            };
            if credentials == self.used {
                continue;
            }
            match upstream.use_credentials(&kubeconfig) {
                Ok(()) => tracing::info!(%path, "the credentials for the upstream have changed"),
                Err(error) => tracing::warn!(
                    %error, %path,
                    "the credentials for the upstream have changed and cannot be used; the previous ones are used"
                ),
            }
            self.used = credentials;
        }
    }
}

/// Reads a kubeconfig, and the files that its current context names.
fn read(path: &Path) -> Result<(Kubeconfig, Credentials), KubeconfigError> {
    let kubeconfig = Kubeconfig::read(path)?;
    let selection = kubeconfig.select(None)?;
    let credentials = Credentials([
        selection.certificate_authority()?,
        selection.token()?.map(String::into_bytes),
        selection.client_certificate()?,
        selection.client_key()?,
    ]);
    Ok((kubeconfig, credentials))
}

//! The kubeconfig of a relay's upstream, whose credentials follow the file and the files that it names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_relay::{Upstream, UpstreamError};
use ringwatch_tls::error::StartError;
use ringwatch_tls::kubeconfig::{Kubeconfig, KubeconfigError};
use ringwatch_tls::watched_file::{RELOAD_PERIOD, next_look};

/// A kubeconfig, and what it had when it was looked at last.
#[derive(Debug)]
pub(crate) struct UpstreamKubeconfig {
    path: PathBuf,
    seen: Contents,
}

/// The server and the credentials of a kubeconfig, and of the files that it names.
#[derive(PartialEq, Eq)]
struct Contents {
    server: String,
    /// The name in the server's certificate, if it is not the host's.
    tls_server_name: Option<String>,
    /// The certificate authority, the token, the client certificate and its key; each is `None` where there is none.
    credentials: [Option<Vec<u8>>; 4],
}

/// Secrets are not for logs.
impl std::fmt::Debug for Contents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Contents")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl UpstreamKubeconfig {
    /// Reads a kubeconfig, and creates the client of its server, whose lists count in the memory budget.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub(crate) fn load(
        path: &Path,
        memory: &Ledger,
        clock: &Clock,
    ) -> Result<(Self, Upstream), StartError> {
        let wrong = |error: String| {
            StartError::new(
                format!("use the kubeconfig {}", path.display()),
                error,
                "give --kubeconfig a file with a server, and a token or a client certificate for it",
            )
        };
        let (kubeconfig, seen) = read(path).map_err(|error| wrong(error.to_string()))?;
        let upstream = Upstream::new(&kubeconfig, memory.clone(), clock.clone());
        let upstream = upstream.map_err(|error| wrong(error.to_string()))?;
        let path = path.to_owned();
        Ok((Self { path, seen }, upstream))
    }

    /// Has the upstream's credentials follow the files until it is dropped. Files that cannot be used change nothing.
    pub(crate) async fn follow(mut self, upstream: Arc<Upstream>, clock: Clock) {
        loop {
            next_look(RELOAD_PERIOD, &clock).await;
            let path = self.path.clone();
            // They may lie on a disk that is slow.
            let contents = tokio::task::spawn_blocking(move || read(&path)).await;
            let (kubeconfig, contents) = match contents {
                Ok(Ok(contents)) => contents,
                Ok(Err(error)) => {
                    // One may be about to be replaced.
                    tracing::debug!(%error, path = %self.path.display(), "a kubeconfig cannot be read");
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "reading a kubeconfig failed");
                    continue;
                }
            };
            let used = self.use_changed(&kubeconfig, contents, &upstream);
            let path = self.path.display();
            match used {
                None => {}
                Some(Ok(())) => {
                    tracing::info!(%path, "the credentials for the upstream have changed");
                }
                Some(Err(error)) => tracing::warn!(
                    %error, %path,
                    "the server or the credentials of the kubeconfig have changed and cannot be used; the previous ones are used"
                ),
            }
        }
    }

    /// Has the upstream use a kubeconfig if it has changed; `None` if it has not since the last call, whether or not it
    /// could be used then.
    fn use_changed(
        &mut self,
        kubeconfig: &Kubeconfig,
        contents: Contents,
        upstream: &Upstream,
    ) -> Option<Result<(), UpstreamError>> {
        if contents == self.seen {
            return None;
        }
        self.seen = contents;
        Some(upstream.use_credentials(kubeconfig))
    }
}

/// Reads a kubeconfig, and the files that its current context names.
fn read(path: &Path) -> Result<(Kubeconfig, Contents), KubeconfigError> {
    let kubeconfig = Kubeconfig::read(path)?;
    let selection = kubeconfig.select(None)?;
    let contents = Contents {
        server: selection.cluster.server.clone(),
        tls_server_name: selection.cluster.tls_server_name.clone(),
        credentials: [
            selection.certificate_authority()?,
            selection.token()?.map(String::into_bytes),
            selection.client_certificate()?,
            selection.client_key()?,
        ],
    };
    Ok((kubeconfig, contents))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: &Path, server: &str, token: &str) {
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: a, user: {{token: {token}}}}}]\n"
        );
        fs::write(path, text).expect("written");
    }

    #[test]
    fn another_server_is_refused_once_and_the_same_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        let (one, other) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        write(&path, one, "first");
        let (mut file, upstream) =
            UpstreamKubeconfig::load(&path, &Ledger::unlimited(), &Clock::real()).expect("one");
        let mut look = |server, token| {
            write(&path, server, token);
            let (kubeconfig, contents) = read(&path).expect("a kubeconfig");
            file.use_changed(&kubeconfig, contents, &upstream)
        };
        assert!(look(one, "first").is_none());
        assert!(matches!(
            look(other, "first"),
            Some(Err(UpstreamError::OtherServer))
        ));
        assert!(look(other, "first").is_none(), "it is told once");
        assert!(matches!(look(other, "second"), Some(Err(_))));
        // What was refused together with another server is used with this one.
        assert!(matches!(look(one, "second"), Some(Ok(()))));
    }
}

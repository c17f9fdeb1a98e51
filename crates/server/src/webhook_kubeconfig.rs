//! The kubeconfig by which a webhook is reached that a file names: a server, its authorities, and perhaps a token or a
//! certificate.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch_apimachinery::webhook_client::{ClientConfig, ClientPair, Target};
use ringwatch_tls::client_identity::ClientIdentity;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// A file cannot be read.
    #[error("{}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// It is no kubeconfig, or one that names nothing that can be used.
    #[error("{0}")]
    Unusable(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Kubeconfig {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    current_context: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    exec: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

/// Reads how the webhook of the current context is reached.
///
/// # Errors
/// [`KubeconfigError`]
pub fn read(path: &Path) -> Result<ClientConfig, KubeconfigError> {
    let text = read_file(path)?;
    let text = String::from_utf8_lossy(&text);
    let config: Kubeconfig =
        serde_saphyr::from_str(&text).map_err(|error| unusable(&error.to_string()))?;
    let current = &config.current_context;
    let context = config.contexts.iter().find(|it| it.name == *current);
    let context = &context
        .ok_or_else(|| unusable("it has no current context"))?
        .context;
    let cluster = config.clusters.iter().find(|it| it.name == context.cluster);
    let cluster = &cluster
        .ok_or_else(|| unusable("the cluster of the context is not there"))?
        .cluster;
    if !cluster.server.starts_with("https://") || cluster.insecure_skip_tls_verify {
        return Err(unusable(
            "the server must be an https URL, and prove who it is",
        ));
    }
    let user = config
        .users
        .iter()
        .find(|it| it.name == context.user)
        .map(|it| &it.user);
    if user.is_some_and(|user| user.exec.is_some()) {
        return Err(unusable(
            "a webhook is shown a token or a certificate: other credentials are not supported",
        ));
    }
    Ok(ClientConfig {
        target: Target::Url(cluster.server.clone()),
        ca_bundle: content(
            path,
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
        )?,
        token: user.and_then(|user| user.token.clone()),
        pair: user.map_or(Ok(None), |user| pair(path, user))?,
    })
}

/// Returns the client certificate and key of the user, which must fit together.
fn pair(kubeconfig: &Path, user: &User) -> Result<Option<ClientPair>, KubeconfigError> {
    let certificate = content(
        kubeconfig,
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )?;
    let key = content(
        kubeconfig,
        user.client_key_data.as_deref(),
        user.client_key.as_deref(),
    )?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let text = String::from_utf8_lossy(&certificate);
            ClientIdentity::read(&text, &key).map_err(|why| unusable(&why))?;
            Ok(Some(ClientPair { certificate, key }))
        }
        _ => Err(unusable("a client certificate and its key go together")),
    }
}

/// Returns data of a kubeconfig, given in it or in a file whose path is relative to it.
fn content(
    kubeconfig: &Path,
    data: Option<&str>,
    path: Option<&Path>,
) -> Result<Option<Vec<u8>>, KubeconfigError> {
    if let Some(data) = data {
        let pem = STANDARD
            .decode(data)
            .map_err(|error| unusable(&error.to_string()))?;
        return Ok(Some(pem));
    }
    let Some(path) = path else {
        return Ok(None);
    };
    let folder = kubeconfig.parent().unwrap_or_else(|| Path::new("."));
    read_file(&folder.join(path)).map(Some)
}

fn read_file(path: &Path) -> Result<Vec<u8>, KubeconfigError> {
    std::fs::read(path).map_err(|error| KubeconfigError::Read {
        path: path.to_owned(),
        error,
    })
}

fn unusable(why: &str) -> KubeconfigError {
    KubeconfigError::Unusable(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_shown_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
        std::fs::write(
            folder.path().join("client.key"),
            made.signing_key.serialize_pem(),
        )
        .unwrap();
        let certificate = STANDARD.encode(made.cert.pem());
        let file = folder.path().join("config");
        let read_with = |user: &str| {
            let text = format!(
                "current-context: c\ncontexts: [{{name: c, context: {{cluster: w, user: u}}}}]\n\
                 clusters: [{{name: w, cluster: {{server: 'https://localhost'}}}}]\n\
                 users: [{{name: u, user: {{{user}}}}}]"
            );
            std::fs::write(&file, text).unwrap();
            read(&file).map_err(|error| error.to_string())
        };
        let both = format!("client-certificate-data: {certificate}, client-key: client.key");
        let pair = read_with(&both).unwrap().pair.expect("a certificate");
        assert_eq!(pair.certificate, made.cert.pem().as_bytes());
        assert_eq!(read_with("token: t").unwrap().pair, None);
        for wrong in [
            format!("client-certificate-data: {certificate}"),
            format!("client-certificate-data: {certificate}, client-key-data: eA=="),
            "exec: {}".to_owned(),
        ] {
            assert!(read_with(&wrong).is_err(), "{wrong}");
        }
    }
}

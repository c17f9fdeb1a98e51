//! The kubeconfig by which a webhook is reached that a file names: a server, its authorities, and perhaps a token.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::registry::webhook_client::{ClientConfig, Target};

/// Why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// A file cannot be read.
    #[error("{}: {error}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
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
    client_certificate: Option<IgnoredAny>,
    client_certificate_data: Option<IgnoredAny>,
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
    let others = |user: &User| {
        user.client_certificate.is_some()
            || user.client_certificate_data.is_some()
            || user.exec.is_some()
    };
    if user.is_some_and(others) {
        return Err(unusable(
            "a webhook is shown a token or nothing: other credentials are not supported",
        ));
    }
    Ok(ClientConfig {
        target: Target::Url(cluster.server.clone()),
        ca_bundle: authorities(path, cluster)?,
        token: user.and_then(|user| user.token.clone()),
    })
}

/// A path in a kubeconfig begins where that is.
fn authorities(kubeconfig: &Path, cluster: &Cluster) -> Result<Option<Vec<u8>>, KubeconfigError> {
    if let Some(data) = &cluster.certificate_authority_data {
        let pem = STANDARD
            .decode(data)
            .map_err(|error| unusable(&error.to_string()))?;
        return Ok(Some(pem));
    }
    let Some(path) = &cluster.certificate_authority else {
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

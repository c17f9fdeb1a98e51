//! The parts of a kubeconfig that are needed to reach one server as one user.
//!
//! Only what is understood is used: a user who signs in with a program, or in another way that this
//! client does not know, is refused in one line rather than tried without credentials.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::credentials::{Credentials, read as read_file};
use super::{TargetError, TargetFlags};

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
#[serde(default)]
struct NamedUser {
    name: String,
    user: Option<User>,
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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    tls_server_name: Option<String>,
    insecure_skip_tls_verify: bool,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    username: Option<String>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
}

/// The server's URL, the credentials, and the name in its certificate if that is another.
pub(super) fn read(
    flags: &TargetFlags,
) -> Result<(String, Credentials, Option<String>), TargetError> {
    let path = match &flags.kubeconfig {
        Some(path) => path.clone(),
        None => default_path().ok_or(TargetError::NoKubeconfig)?,
    };
    let bytes = read_file(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    let config: Kubeconfig = serde_saphyr::from_str(&text).map_err(|error| TargetError::Read {
        path: path.clone(),
        why: first_line(&error.to_string()),
    })?;
    config.select(flags.context.as_deref(), flags.token.is_some(), &path)
}

/// `$KUBECONFIG`, the first of several that exists, else `~/.kube/config`.
fn default_path() -> Option<PathBuf> {
    if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        let paths: Vec<PathBuf> = std::env::split_paths(&list).collect();
        let existing = paths.iter().find(|path| path.exists());
        return existing.or_else(|| paths.first()).cloned();
    }
    let home = PathBuf::from(std::env::var_os("HOME")?);
    Some(home.join(".kube/config")).filter(|path| path.exists())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

impl Kubeconfig {
    /// Returns the named or current context. Another token replaces the user's own credentials.
    fn select(
        self,
        context: Option<&str>,
        has_token: bool,
        path: &Path,
    ) -> Result<(String, Credentials, Option<String>), TargetError> {
        let missing = |what: String| TargetError::Kubeconfig {
            path: path.to_owned(),
            what,
        };
        let name = context.unwrap_or(&self.current_context);
        if name.is_empty() {
            return Err(missing("there is no current-context".to_owned()));
        }
        let named = self.contexts.iter().find(|it| it.name == name);
        let context = named.ok_or_else(|| missing(format!("there is no context {name:?}")))?;
        let Context { cluster, user } = &context.context;
        let named = self.clusters.iter().find(|it| it.name == *cluster);
        let cluster = named.ok_or_else(|| missing(format!("there is no cluster {cluster:?}")))?;
        let cluster = &cluster.cluster;
        if cluster.proxy_url.is_some() {
            let what = "there is a proxy-url, which is not supported".to_owned();
            return Err(missing(what));
        }
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut credentials = Credentials::default();
        if !has_token {
            let found = self.users.iter().find(|it| it.name == *user);
            let found = found.ok_or_else(|| missing(format!("there is no user {user:?}")))?;
            if let Some(details) = &found.user {
                details.add_to(&mut credentials, user, folder)?;
            }
        }
        credentials.authorities = either(
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
            "certificate-authority-data",
            folder,
        )?;
        credentials.trusts_anybody = cluster.insecure_skip_tls_verify;
        let server_name = cluster.tls_server_name.clone();
        Ok((cluster.server.clone(), credentials, server_name))
    }
}

impl User {
    fn add_to(
        &self,
        credentials: &mut Credentials,
        user: &str,
        folder: &Path,
    ) -> Result<(), TargetError> {
        let unsupported = |what| TargetError::Unsupported {
            user: user.to_owned(),
            what,
        };
        if self.exec.is_some() {
            return Err(unsupported("an exec plugin"));
        }
        if self.auth_provider.is_some() {
            return Err(unsupported("an auth-provider"));
        }
        if self.username.is_some() {
            return Err(unsupported("a password"));
        }
        credentials.token = match (&self.token, &self.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => {
                let token = read_file(&folder.join(file))?;
                Some(String::from_utf8_lossy(&token).trim().to_owned())
            }
            (None, None) => None,
        };
        let certificate = either(
            self.client_certificate_data.as_deref(),
            self.client_certificate.as_deref(),
            "client-certificate-data",
            folder,
        )?;
        let key = either(
            self.client_key_data.as_deref(),
            self.client_key.as_deref(),
            "client-key-data",
            folder,
        )?;
        credentials.certificate = certificate.zip(key);
        Ok(())
    }
}

/// Data in the kubeconfig, or in a file beside it.
fn either(
    data: Option<&str>,
    file: Option<&Path>,
    what: &'static str,
    folder: &Path,
) -> Result<Option<Vec<u8>>, TargetError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let decoded = STANDARD.decode(data.trim());
        return decoded.map(Some).map_err(|error| TargetError::Credentials {
            what,
            why: error.to_string(),
        });
    }
    file.filter(|file| !file.as_os_str().is_empty())
        .map(|file| read_file(&folder.join(file)))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "
clusters:
- name: c
  cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: Y2E=}
contexts:
- {name: one, context: {cluster: c, user: u}}
- {name: two, context: {cluster: d, user: u}}
current-context: one
";

    fn select(
        users: &str,
        context: Option<&str>,
        has_token: bool,
    ) -> Result<(String, Credentials, Option<String>), String> {
        let config: Kubeconfig =
            serde_saphyr::from_str(&format!("{HEAD}{users}")).expect("a kubeconfig");
        let selected = config.select(context, has_token, Path::new("/k/config"));
        selected.map_err(|error| error.to_string())
    }

    #[test]
    fn tokens_and_certificates_are_found() {
        let users = "users: [{name: u, user: {token: secret}}]";
        let (url, credentials, _) = select(users, None, false).expect("a target");
        assert_eq!(url, "https://127.0.0.1:1");
        assert_eq!(credentials.token.as_deref(), Some("secret"));
        assert_eq!(credentials.authorities.as_deref(), Some(&b"ca"[..]));
        let users =
            "users: [{name: u, user: {client-certificate-data: Yw==, client-key-data: aw==}}]";
        let (_, credentials, _) = select(users, None, false).expect("a target");
        let pair = (b"c".to_vec(), b"k".to_vec());
        assert_eq!(credentials.certificate, Some(pair));
    }

    #[test]
    fn an_exec_plugin_is_refused_unless_a_token_is_given() {
        let users = "users: [{name: u, user: {exec: {command: aws, args: [eks]}}}]";
        let why = select(users, None, false).expect_err("refused");
        assert!(why.contains("exec plugin"), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
        assert!(select(users, None, true).is_ok());
    }

    #[test]
    fn what_is_missing_is_named() {
        let users = "users: []";
        for (context, words) in [
            (None, "user \"u\""),
            (Some("two"), "cluster \"d\""),
            (Some("three"), "context \"three\""),
        ] {
            let why = select(users, context, false).expect_err("refused");
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let users = "users: [{name: u, user: {token: secret}}]";
        let (_, credentials, _) = select(users, None, false).expect("a target");
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}

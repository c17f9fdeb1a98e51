//! The parts of a kubeconfig that are needed to reach one server as one user.
//!
//! Only what is understood is used: a user who signs in with a program, or in another way that this
//! client does not know, is refused in one line rather than tried without credentials.

use std::path::{Path, PathBuf};

use ringwatch_tls::kubeconfig::{Kubeconfig, KubeconfigError, UnreadSignIn};

use super::credentials::Credentials;
use super::{RemoteFlags, TargetError};

/// Reads the server's URL, the credentials, and the name in its certificate if that is another.
pub(super) fn read(
    flags: &RemoteFlags,
) -> Result<(String, Credentials, Option<String>), TargetError> {
    let path = match &flags.kubeconfig {
        Some(path) => path.clone(),
        None => default_path().ok_or(TargetError::NoKubeconfig)?,
    };
    let config = Kubeconfig::read(&path).map_err(|error| in_file(&path, error))?;
    select(
        &config,
        flags.context.as_deref(),
        flags.token.is_some(),
        &path,
    )
}

/// Returns the path in `$KUBECONFIG`, of several the first that exists, else `~/.kube/config` if that exists.
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

/// Converts the error of a kubeconfig to one of this client.
fn in_file(path: &Path, error: KubeconfigError) -> TargetError {
    match error {
        KubeconfigError::Read { path, error } => TargetError::Read {
            path,
            why: error.to_string(),
        },
        KubeconfigError::Syntax { why } => TargetError::Read {
            path: path.to_owned(),
            why: first_line(&why),
        },
        KubeconfigError::Data { field, why } => TargetError::Credentials { what: field, why },
        KubeconfigError::NoCurrentContext
        | KubeconfigError::NoContext(_)
        | KubeconfigError::NoCluster(_) => TargetError::Kubeconfig {
            path: path.to_owned(),
            what: error.to_string(),
        },
    }
}

/// Returns the named or current context. Another token replaces the user's own credentials.
fn select(
    config: &Kubeconfig,
    context: Option<&str>,
    has_token: bool,
    path: &Path,
) -> Result<(String, Credentials, Option<String>), TargetError> {
    let wrong = |error| in_file(path, error);
    let missing = |what: String| TargetError::Kubeconfig {
        path: path.to_owned(),
        what,
    };
    let selection = config.select(context).map_err(wrong)?;
    let cluster = selection.cluster;
    if cluster.proxy_url.is_some() {
        let what = "there is a proxy-url, which is not supported".to_owned();
        return Err(missing(what));
    }
    let mut credentials = Credentials::default();
    if !has_token {
        let name = selection.user_name;
        let user = selection.user;
        let user = user.ok_or_else(|| missing(format!("there is no user {name:?}")))?;
        if let Some(sign_in) = user.unread_sign_in() {
            return Err(unsupported(name, sign_in));
        }
        credentials.token = selection.token().map_err(wrong)?;
        let certificate = selection.client_certificate().map_err(wrong)?;
        let key = selection.client_key().map_err(wrong)?;
        credentials.certificate = certificate.zip(key);
    }
    credentials.authorities = selection.certificate_authority().map_err(wrong)?;
    credentials.trusts_anybody = cluster.insecure_skip_tls_verify;
    let server_name = cluster.tls_server_name.clone();
    Ok((cluster.server.clone(), credentials, server_name))
}

fn unsupported(user: &str, sign_in: UnreadSignIn) -> TargetError {
    TargetError::Unsupported {
        user: user.to_owned(),
        what: match sign_in {
            UnreadSignIn::Exec => "an exec plugin",
            UnreadSignIn::AuthProvider => "an auth-provider",
            UnreadSignIn::Password => "a password",
        },
    }
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
        let path = Path::new("/k/config");
        let config = Kubeconfig::parse(&format!("{HEAD}{users}"), path).expect("a kubeconfig");
        let selected = super::select(&config, context, has_token, path);
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

//! Reader of kubeconfig files: the cluster and the user of a context, with certificates and keys that are in the file
//! or in files beside it.
//!
//! The caller decides which credentials and servers are acceptable; this reader does not log in or connect.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The failure to read a kubeconfig, or to find something in it.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The kubeconfig or a file that it names cannot be read; its path or its rights are to be corrected.
    #[error("{}: {error}", .path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is no YAML or JSON, or its members are of other types than a kubeconfig's.
    #[error("{why}")]
    Syntax {
        /// The parser's message, which may have several lines.
        why: String,
    },
    /// No context was asked for, and the file has no current one.
    #[error("there is no current-context")]
    NoCurrentContext,
    /// The file has no context of this name.
    #[error("there is no context {0:?}")]
    NoContext(String),
    /// The file has no cluster of the name that the context has.
    #[error("there is no cluster {0:?}")]
    NoCluster(String),
    /// Data in the file is not in base64.
    #[error("{field} cannot be used: {why}")]
    Data {
        /// The member, such as `client-key-data`.
        field: &'static str,
        /// The base64 decoder's message.
        why: String,
    },
}

/// A kubeconfig file, parsed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    current_context: String,
    /// The folder that relative paths start from.
    #[serde(skip)]
    folder: PathBuf,
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

/// A server, and how it proves its identity.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Cluster {
    /// The server's URL, with scheme `https` or `http`.
    pub server: String,
    /// The name in the server's certificate, if it is not the URL's host.
    pub tls_server_name: Option<String>,
    /// True if the server's certificate is not verified.
    pub insecure_skip_tls_verify: bool,
    /// The proxy by which the server is reached.
    pub proxy_url: Option<String>,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
}

/// The credentials of a user entry; at most a token and a client certificate are read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct User {
    /// The bearer token that the kubeconfig has itself; [`Selection::token`] looks into the token's file too.
    pub token: Option<String>,
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

/// Secrets are not for logs.
impl fmt::Debug for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("User").finish_non_exhaustive()
    }
}

/// A method of authentication that the reader does not support; it only notices that the user has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadSignIn {
    /// A program that prints credentials.
    Exec,
    /// A plugin of the client.
    AuthProvider,
    /// A user name and a password for HTTP basic authentication.
    Password,
}

impl User {
    /// Returns the user's unsupported method of authentication, if there is one.
    #[must_use]
    pub fn unread_sign_in(&self) -> Option<UnreadSignIn> {
        if self.exec.is_some() {
            Some(UnreadSignIn::Exec)
        } else if self.auth_provider.is_some() {
            Some(UnreadSignIn::AuthProvider)
        } else if self.username.is_some() {
            Some(UnreadSignIn::Password)
        } else {
            None
        }
    }
}

/// The cluster and the user of one context.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// The cluster that the context names.
    pub cluster: &'a Cluster,
    /// The name that the context has for its user.
    pub user_name: &'a str,
    /// The user's credentials; `None` if the file has no user of that name. A user without credentials has none of
    /// them.
    pub user: Option<&'a User>,
    folder: &'a Path,
}

/// A user without credentials.
static NOBODY: User = User {
    token: None,
    token_file: None,
    client_certificate: None,
    client_certificate_data: None,
    client_key: None,
    client_key_data: None,
    username: None,
    exec: None,
    auth_provider: None,
};

impl Kubeconfig {
    /// Reads a file. Files that it names are not read before they are asked for.
    ///
    /// # Errors
    /// [`KubeconfigError::Read`] if the file cannot be read, [`KubeconfigError::Syntax`] if it is no kubeconfig.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let content = read_file(path)?;
        Self::parse(&String::from_utf8_lossy(&content), path)
    }

    /// Parses the content of a file of this path, which relative paths in it start beside.
    ///
    /// # Errors
    /// [`KubeconfigError::Syntax`] if the text is no kubeconfig.
    pub fn parse(text: &str, path: &Path) -> Result<Self, KubeconfigError> {
        let parsed: Self =
            serde_saphyr::from_str(text).map_err(|error| KubeconfigError::Syntax {
                why: error.to_string(),
            })?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        Ok(Self {
            folder: folder.to_owned(),
            ..parsed
        })
    }

    /// Returns the cluster and the user of a context, or of the current one.
    ///
    /// # Errors
    /// [`KubeconfigError::NoCurrentContext`], [`KubeconfigError::NoContext`] and [`KubeconfigError::NoCluster`]
    pub fn select(&self, context: Option<&str>) -> Result<Selection<'_>, KubeconfigError> {
        let name = context.unwrap_or(&self.current_context);
        if name.is_empty() {
            return Err(KubeconfigError::NoCurrentContext);
        }
        let context = self.contexts.iter().find(|it| it.name == name);
        let Context { cluster, user } = match context {
            Some(found) => &found.context,
            None => return Err(KubeconfigError::NoContext(name.to_owned())),
        };
        let found = self.clusters.iter().find(|it| it.name == *cluster);
        let found = found.ok_or_else(|| KubeconfigError::NoCluster(cluster.clone()))?;
        let named = self.users.iter().find(|it| it.name == *user);
        Ok(Selection {
            cluster: &found.cluster,
            user_name: user,
            user: named.map(|it| it.user.as_ref().unwrap_or(&NOBODY)),
            folder: &self.folder,
        })
    }
}

impl Selection<'_> {
    /// Returns the authorities of the server's certificate, in PEM.
    ///
    /// # Errors
    /// [`KubeconfigError::Read`] if the file cannot be read, [`KubeconfigError::Data`] if the data is not in base64.
    pub fn certificate_authority(&self) -> Result<Option<Vec<u8>>, KubeconfigError> {
        let cluster = self.cluster;
        self.content(
            "certificate-authority-data",
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
        )
    }

    /// Returns the user's bearer token, from the kubeconfig or else from the file that it names.
    ///
    /// # Errors
    /// [`KubeconfigError::Read`] if the token's file cannot be read.
    pub fn token(&self) -> Result<Option<String>, KubeconfigError> {
        let user = self.user.unwrap_or(&NOBODY);
        match (&user.token, &user.token_file) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(file)) => {
                let token = read_file(&self.folder.join(file))?;
                Ok(Some(String::from_utf8_lossy(&token).trim().to_owned()))
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns the user's certificate, in PEM.
    ///
    /// # Errors
    /// [`KubeconfigError::Read`] if the file cannot be read, [`KubeconfigError::Data`] if the data is not in base64.
    pub fn client_certificate(&self) -> Result<Option<Vec<u8>>, KubeconfigError> {
        let user = self.user.unwrap_or(&NOBODY);
        self.content(
            "client-certificate-data",
            user.client_certificate_data.as_deref(),
            user.client_certificate.as_deref(),
        )
    }

    /// Returns the key of the user's certificate, in PEM.
    ///
    /// # Errors
    /// [`KubeconfigError::Read`] if the file cannot be read, [`KubeconfigError::Data`] if the data is not in base64.
    pub fn client_key(&self) -> Result<Option<Vec<u8>>, KubeconfigError> {
        let user = self.user.unwrap_or(&NOBODY);
        self.content(
            "client-key-data",
            user.client_key_data.as_deref(),
            user.client_key.as_deref(),
        )
    }

    /// Returns data that is in the kubeconfig, or else in a file whose path is relative to it. Empty members count as
    /// absent, as in client-go.
    fn content(
        &self,
        field: &'static str,
        data: Option<&str>,
        file: Option<&Path>,
    ) -> Result<Option<Vec<u8>>, KubeconfigError> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let decoded = STANDARD.decode(data.trim());
            return decoded.map(Some).map_err(|error| KubeconfigError::Data {
                field,
                why: error.to_string(),
            });
        }
        file.filter(|file| !file.as_os_str().is_empty())
            .map(|file| read_file(&self.folder.join(file)))
            .transpose()
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, KubeconfigError> {
    fs::read(path).map_err(|error| KubeconfigError::Read {
        path: path.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
clusters:
- name: c
  cluster: {server: 'https://localhost', certificate-authority-data: Y2E=, certificate-authority: absent}
users:
- {name: filed, user: {tokenFile: token, client-certificate-data: '', client-certificate: crt, client-key-data: '?'}}
- {name: empty}
- {name: password, user: {username: u, password: secret}}
contexts:
- {name: filed, context: {cluster: c, user: filed}}
- {name: empty, context: {cluster: c, user: empty}}
- {name: unknown, context: {cluster: c, user: unknown}}
- {name: password, context: {cluster: c, user: password}}
";

    #[test]
    fn data_comes_before_files_and_files_are_beside_the_kubeconfig() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in [("config", TEXT), ("token", "t\n"), ("crt", "pem")] {
            fs::write(folder.path().join(name), content).expect("written");
        }
        let config = Kubeconfig::read(&folder.path().join("config")).expect("a kubeconfig");
        let filed = config.select(Some("filed")).expect("a context");
        let authority = filed.certificate_authority().expect("data");
        assert_eq!(authority.as_deref(), Some(&b"ca"[..]));
        assert_eq!(filed.token().expect("a file").as_deref(), Some("t"));
        let certificate = filed.client_certificate().expect("a file");
        assert_eq!(certificate.as_deref(), Some(&b"pem"[..]));
        let error = filed.client_key().expect_err("no base64").to_string();
        assert!(
            error.starts_with("client-key-data cannot be used"),
            "{error}"
        );
        fs::remove_file(folder.path().join("token")).expect("removed");
        assert!(matches!(filed.token(), Err(KubeconfigError::Read { .. })));
    }

    #[test]
    fn a_user_may_have_no_credentials_or_be_missing() {
        let config = Kubeconfig::parse(TEXT, Path::new("/k/config")).expect("a kubeconfig");
        let empty = config.select(Some("empty")).expect("a context");
        assert!(empty.user.is_some());
        assert_eq!(empty.token().expect("nothing"), None);
        assert_eq!(empty.client_key().expect("nothing"), None);
        let unknown = config.select(Some("unknown")).expect("a context");
        assert!(unknown.user.is_none());
        assert_eq!(unknown.user_name, "unknown");
        let password = config.select(Some("password")).expect("a context");
        let password = password.user.expect("a user");
        assert_eq!(password.unread_sign_in(), Some(UnreadSignIn::Password));
        assert!(!format!("{password:?}").contains("secret"));
        let error = config.select(None).expect_err("none is current");
        assert_eq!(error.to_string(), "there is no current-context");
    }
}

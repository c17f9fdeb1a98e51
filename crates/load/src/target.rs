//! The target: the server that is loaded and the credentials for it, if loading it is allowed.

mod credentials;
mod guard;
mod kubeconfig;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use thiserror::Error;

pub(crate) use credentials::Credentials;

/// The flags that say how to reach the server that is loaded.
#[derive(Args, Clone, Debug)]
pub(crate) struct TargetFlags {
    #[command(flatten)]
    pub(crate) remote: RemoteFlags,

    /// The URL of another server of the same cluster. May be given more than once. Connections go to all servers in
    /// turn.
    #[arg(
        long = "also-server",
        global = true,
        value_name = "URL",
        help_heading = "Target"
    )]
    pub(crate) also_servers: Vec<String>,

    /// Load a server outside this machine. Do that only to a cluster that is yours, and that nobody
    /// depends on.
    #[arg(long, global = true, help_heading = "Target")]
    pub(crate) i_own_this_cluster: bool,
}

/// The flags that say how to reach a server.
#[derive(Args, Clone, Debug)]
pub struct RemoteFlags {
    /// The kubeconfig to use. The default is $KUBECONFIG, else ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Target")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig. The default is its current one.
    #[arg(long, global = true, value_name = "NAME", help_heading = "Target")]
    pub(crate) context: Option<String>,

    /// The server's URL, in the place of a kubeconfig.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Target",
        conflicts_with_all = ["kubeconfig", "context"]
    )]
    pub(crate) server: Option<String>,

    /// The bearer token to show; it wins over what the kubeconfig has.
    #[arg(long, global = true, value_name = "TOKEN", help_heading = "Target")]
    pub(crate) token: Option<String>,

    /// The authority that the server's certificate is checked against. The default is the kubeconfig's,
    /// else those that this machine trusts.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Target")]
    pub(crate) certificate_authority: Option<PathBuf>,

    /// Do not check the server's certificate.
    #[arg(long, global = true, help_heading = "Target")]
    pub(crate) insecure_skip_tls_verify: bool,
}

/// A server that may be loaded.
#[derive(Clone, Debug)]
pub(crate) struct LoadTarget {
    /// The address of the server. It is resolved once, so that what was allowed is what is connected to.
    pub(crate) address: SocketAddr,
    /// Host and port as requests name them.
    pub(crate) authority: String,
    /// The name that its certificate must have.
    pub(crate) server_name: String,
    /// True if it is reached by TLS.
    pub(crate) tls: bool,
    pub(crate) credentials: Credentials,
}

/// The reason why no server can be loaded, as one line for the user.
#[derive(Debug, Error)]
pub enum TargetError {
    #[error("there is no kubeconfig: name one with --kubeconfig, or a server with --server")]
    NoKubeconfig,
    #[error("cannot read {}: {why}", path.display())]
    Read { path: PathBuf, why: String },
    #[error("{what} in {}", path.display())]
    Kubeconfig { path: PathBuf, what: String },
    #[error(
        "user {user:?} of the kubeconfig signs in with {what}, which is not supported; use a token \
         (--token) or a client certificate"
    )]
    Unsupported { user: String, what: &'static str },
    #[error("{url:?} is no server's URL; it should look like https://127.0.0.1:6443")]
    Url { url: String },
    #[error("of the servers of a cluster all must have https URLs, or none")]
    Schemes,
    #[error("cannot resolve {host:?}: {why}")]
    Resolve { host: String, why: String },
    #[error(
        "{host} is {address}, which is not this machine; add --i-own-this-cluster if you may load it"
    )]
    NotLoopback { host: String, address: SocketAddr },
    #[error(
        "nothing says whose certificate to trust, and this machine has no authorities; use \
         --certificate-authority, or --insecure-skip-tls-verify"
    )]
    NoAuthority,
    #[error("{what} cannot be used: {why}")]
    Credentials { what: &'static str, why: String },
}

impl LoadTarget {
    /// Finds the servers that the flags name, if they may be loaded: one, and the others of its cluster.
    ///
    /// # Errors
    /// One line that says what is wrong and what to do.
    pub(crate) async fn find(flags: &TargetFlags) -> Result<(Self, Vec<Self>), TargetError> {
        let anywhere = flags.i_own_this_cluster;
        Self::reach(&flags.remote, &flags.also_servers, anywhere).await
    }

    /// Finds the server that the flags name, wherever it is, for a client that only reads a little.
    ///
    /// # Errors
    /// One line that says what is wrong and what to do.
    pub(crate) async fn find_anywhere(flags: &RemoteFlags) -> Result<Self, TargetError> {
        let (target, _) = Self::reach(flags, &[], true).await?;
        Ok(target)
    }

    async fn reach(
        flags: &RemoteFlags,
        also_servers: &[String],
        anywhere: bool,
    ) -> Result<(Self, Vec<Self>), TargetError> {
        let (url, mut credentials, server_name) = match &flags.server {
            Some(url) => (url.clone(), Credentials::default(), None),
            None => kubeconfig::read(flags)?,
        };
        credentials.overrule(flags)?;
        let at = async |url: &str| {
            let place = guard::ServerUrl::parse(url)?;
            let address = place.resolve(anywhere).await?;
            Ok::<_, TargetError>(Self {
                address,
                authority: place.authority,
                server_name: server_name.clone().unwrap_or(place.host),
                tls: place.tls,
                credentials: credentials.clone(),
            })
        };
        let first = at(&url).await?;
        let mut others = Vec::new();
        for url in also_servers {
            others.push(at(url).await?);
        }
        if others.iter().any(|other| other.tls != first.tls) {
            return Err(TargetError::Schemes);
        }
        Ok((first, others))
    }

    /// Returns a server that connections of the caller's making lead to, without TLS.
    pub(crate) fn unnamed(token: String) -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            authority: "localhost".to_owned(),
            server_name: "localhost".to_owned(),
            tls: false,
            credentials: Credentials {
                token: Some(token),
                ..Credentials::default()
            },
        }
    }
}

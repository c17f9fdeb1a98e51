//! The errors of invalid tokens. The words are kube-apiserver's: token reviews show them.

use ringwatch_apimachinery::Error;

use super::oidc::OidcError;
use super::web_socket_token::WebSocketTokenError;

/// The reason why a token is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// No authenticator knows the token.
    #[error("invalid bearer token")]
    Unknown,
    /// None of the server's keys has the id that the token names.
    #[error("invalid signature, no keys found")]
    UnknownKey,
    /// None of the keys has signed the token, or not with the key's algorithm.
    #[error("invalid signature")]
    WrongSignature,
    /// The token is for other audiences.
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quoted(.token),
        quoted(.wanted)
    )]
    WrongAudience {
        /// The audiences of the token.
        token: Vec<String>,
        /// The audiences that are accepted.
        wanted: Vec<String>,
    },
    /// The token has expired, or is not valid yet.
    #[error("{0}")]
    Untimely(&'static str),
    /// The service account does not exist.
    #[error("serviceaccounts {0:?} not found")]
    NoAccount(String),
    /// The service account is being deleted.
    #[error("service account {0} has been deleted")]
    AccountDeleted(String),
    /// The service account has been replaced by another of the same name.
    #[error("service account UID ({uid}) does not match claim ({claimed})")]
    OtherAccount {
        /// The uid of the service account that exists.
        uid: String,
        /// The uid in the token.
        claimed: String,
    },
    /// The object that the token is bound to is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// The object that the token is bound to has been replaced by another one.
    #[error("{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})")]
    OtherObject {
        /// The kind of the object that it is bound to.
        kind: &'static str,
        /// The uid of the object that exists.
        uid: String,
        /// The uid in the token.
        claimed: String,
    },
    /// The token is from an OpenID Connect provider, and invalid.
    #[error("oidc: {0}")]
    Oidc(#[from] OidcError),
    /// The token is that of a Secret, and invalid.
    #[error("{0}")]
    Legacy(String),
    /// The webhook for tokens cannot be asked, or says that the token is invalid.
    #[error("{0}")]
    Webhook(String),
    /// The token among the subprotocols of a WebSocket cannot be read.
    #[error("{0}")]
    WebSocket(#[from] WebSocketTokenError),
    /// Several authenticators refuse the token.
    #[error("[{}]", .0.iter().map(Self::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<Self>),
    /// The account or object cannot be read from its store; the client may retry.
    #[error("{0}")]
    Lookup(Error),
}

/// Quotes a list as Go does.
fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

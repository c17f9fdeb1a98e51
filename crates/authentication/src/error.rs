//! Why a token is not good. The words are kube-apiserver's: token reviews show them.

use ringwatch_apimachinery::Error;

use super::oidc::OidcError;

/// Why a token is not good.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// No authenticator knows it.
    #[error("invalid bearer token")]
    Unknown,
    /// None of the keys is the one that the token names.
    #[error("invalid signature, no keys found")]
    UnknownKey,
    /// None of the keys has signed it, or not in the way of its keys.
    #[error("invalid signature")]
    WrongSignature,
    /// It is for others.
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quoted(.token),
        quoted(.wanted)
    )]
    WrongAudience {
        /// For whom it is.
        token: Vec<String>,
        /// For whom it should be.
        wanted: Vec<String>,
    },
    /// It does not count now.
    #[error("{0}")]
    Untimely(&'static str),
    /// There is no such account any more.
    #[error("serviceaccounts {0:?} not found")]
    NoAccount(String),
    /// The account is about to go.
    #[error("service account {0} has been deleted")]
    AccountDeleted(String),
    /// The account of that name is another.
    #[error("service account UID ({uid}) does not match claim ({claimed})")]
    OtherAccount {
        /// That of the account.
        uid: String,
        /// That in the token.
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
        /// The uid of what there is.
        uid: String,
        /// That in the token.
        claimed: String,
    },
    /// It is the OpenID provider's.
    #[error("oidc: {0}")]
    Oidc(#[from] OidcError),
    /// It cannot be told.
    #[error("{0}")]
    Lookup(Error),
}

/// Quotes a list as Go does.
fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

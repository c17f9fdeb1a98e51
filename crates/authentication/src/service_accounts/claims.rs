//! The claims of a service account token.

use serde::{Deserialize, Serialize};

use crate::jwt::{Audiences, Seconds, Times};

/// The claims of a service account token, in the order in which kube-apiserver writes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AccountClaims {
    #[serde(default)]
    pub(super) aud: Audiences,
    pub(super) exp: Option<Seconds>,
    pub(super) iat: Option<Seconds>,
    pub(super) iss: String,
    #[serde(default)]
    pub(super) jti: String,
    #[serde(rename = "kubernetes.io", default)]
    pub(super) kubernetes: Kubernetes,
    pub(super) nbf: Option<Seconds>,
    #[serde(default)]
    pub(super) sub: String,
}

impl AccountClaims {
    pub(super) fn times(&self) -> Times {
        Times {
            expires: self.exp,
            not_before: self.nbf,
            issued_at: self.iat,
        }
    }
}

/// The private claims of service account tokens, under `kubernetes.io`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Kubernetes {
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Reference>,
    #[serde(default)]
    pub(super) serviceaccount: Reference,
    /// The time from which on the token is still valid, but should have been replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warnafter: Option<Seconds>,
}

/// A reference to an object by its name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The object's name.
    #[serde(default)]
    pub name: String,
    /// The object's uid; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// The object with whose deletion a token becomes invalid, besides its account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BoundObject {
    /// No object but the account.
    #[default]
    Account,
    /// A pod, which may be on a node.
    Pod {
        /// The pod that the token is mounted into.
        pod: Reference,
        /// The pod's node, for information: the token stays valid without it.
        node: Option<Reference>,
    },
    /// The secret that holds the token.
    Secret(Reference),
    /// The node that the token is for.
    Node(Reference),
}

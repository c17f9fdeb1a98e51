//! Authenticated users, as `user.Info` in Go.

use std::collections::BTreeMap;

/// An authenticated user, as authorization, admission and audit see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, such as `system:admin`; empty for the server itself.
    pub name: String,
    /// The uid, if the authenticator knows one.
    pub uid: String,
    /// The groups of which the user is a member.
    pub groups: Vec<String>,
    /// Additional attributes from the authenticator, by their keys.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The prefix of the names that service accounts have as users.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Returns the namespace and name of the service account that has this name as a user.
#[must_use]
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    whole.then_some((namespace, name))
}

//! Authenticated users, as `user.Info` in Go.

use std::collections::BTreeMap;

use super::validation::formats;

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

/// Returns the namespace and name of the service account that has this name as a user. Only its form is looked at:
/// [`valid_service_account`] checks both parts as well.
#[must_use]
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    whole.then_some((namespace, name))
}

/// Returns the namespace and name of the service account that has this name as a user, if accounts may be called so.
///
/// `SplitUsername` of Kubernetes 1.36 (`apiserver/pkg/authentication/serviceaccount/util.go`).
#[must_use]
pub fn valid_service_account(user: &str) -> Option<(&str, &str)> {
    service_account(user).filter(|(namespace, name)| {
        formats::dns_label(namespace).is_empty() && formats::dns_subdomain(name).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_have_names_of_their_form() {
        for (user, by_form, valid) in [
            ("system:serviceaccount:ns:robot", true, true),
            ("system:serviceaccount:ns:robot.v1", true, true),
            ("system:serviceaccount:ns:Not_Valid", true, false),
            ("system:serviceaccount:n.s:robot", true, false),
            ("system:serviceaccount:ns:ro/bot", true, false),
            ("system:serviceaccount:ns:", false, false),
            ("system:serviceaccount::robot", false, false),
            ("system:serviceaccount:ns", false, false),
            ("system:serviceaccount:ns:robot:x", false, false),
            ("system:serviceaccounts:ns:robot", false, false),
        ] {
            assert_eq!(service_account(user).is_some(), by_form, "{user}");
            assert_eq!(valid_service_account(user).is_some(), valid, "{user}");
        }
        let robot = valid_service_account("system:serviceaccount:ns:robot");
        assert_eq!(robot, Some(("ns", "robot")));
    }
}

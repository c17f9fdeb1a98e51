//! The user whose request it is, as far as limits of each user go.

use std::sync::Arc;

use super::user::{SERVICE_ACCOUNT_PREFIX, User, service_account};

/// The group of administrators.
const ADMINISTRATORS: &str = "system:masters";

/// The group of kubelets.
const NODES: &str = "system:nodes";

/// A kind of users. The requests of one kind take no room from those of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Members of `system:masters`.
    Administrators,
    /// Kubelets, which are the members of `system:nodes`.
    Nodes,
    /// Everybody else.
    #[default]
    Others,
}

impl From<&User> for Lane {
    fn from(user: &User) -> Self {
        let is_member = |group: &str| user.groups.iter().any(|it| it == group);
        if is_member(ADMINISTRATORS) {
            Self::Administrators
        } else if is_member(NODES) {
            Self::Nodes
        } else {
            Self::Others
        }
    }
}

/// The user whose request it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requester {
    /// The user's kind.
    pub lane: Lane,
    /// The user's name. All service accounts of a namespace count as one: whoever may make one has as many as they
    /// like.
    pub name: Arc<str>,
}

impl From<&User> for Requester {
    fn from(user: &User) -> Self {
        let name = match service_account(&user.name) {
            Some((namespace, _)) => format!("{SERVICE_ACCOUNT_PREFIX}{namespace}").into(),
            None => user.name.as_str().into(),
        };
        Self {
            lane: Lane::from(user),
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requester(name: &str, groups: &[&str]) -> Requester {
        Requester::from(&User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        })
    }

    #[test]
    fn service_accounts_of_a_namespace_are_one_user() {
        let x = requester("system:serviceaccount:a:x", &[]);
        assert_eq!(&*x.name, "system:serviceaccount:a");
        assert_eq!(x, requester("system:serviceaccount:a:y", &[]));
        assert_ne!(x, requester("system:serviceaccount:b:x", &[]));
        assert_eq!(&*requester("ann", &[]).name, "ann");
    }

    #[test]
    fn administrators_and_kubelets_have_lanes_of_their_own() {
        let lane = |groups: &[&str]| requester("a", groups).lane;
        assert_eq!(lane(&["system:authenticated"]), Lane::Others);
        assert_eq!(lane(&["system:authenticated", "system:nodes"]), Lane::Nodes);
        assert_eq!(
            lane(&["system:nodes", "system:masters"]),
            Lane::Administrators
        );
    }
}

//! The types of requesters, without how they are read.

use std::sync::Arc;

/// A kind of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Administrators.
    Administrators,
    /// Kubelets.
    Nodes,
    /// Everybody else.
    Others,
}

/// The user whose request it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requester {
    /// The user's kind.
    pub lane: Lane,
    /// The user's name.
    pub name: Arc<str>,
}

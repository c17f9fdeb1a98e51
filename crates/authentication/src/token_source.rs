//! The one from whom a token comes, as far as limits go.

use std::net::IpAddr;

use ringwatch_apimachinery::{Network, Requester};

/// The one from whom a token comes: calls of a webhook about tokens are shared among these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenSource {
    /// A client of this network, who may be a stranger. All of unknown origin count as one.
    Client(Option<Network>),
    /// A user who asks about the token in a TokenReview.
    Reviewer(Requester),
}

impl From<Option<IpAddr>> for TokenSource {
    fn from(address: Option<IpAddr>) -> Self {
        Self::Client(address.map(Network::from))
    }
}

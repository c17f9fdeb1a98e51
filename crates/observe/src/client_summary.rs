//! Summaries of connected clients for the status document.

use std::net::SocketAddr;

use http::{HeaderMap, header};

use crate::shortened_text::shortened;

/// A client of a request or watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSummary {
    /// The start of the user's name.
    pub user: Box<str>,
    /// The start of the header `User-Agent`; empty without one.
    pub user_agent: Box<str>,
    /// The address of the client, or of the last proxy before this server; `None` if it is not known.
    pub address: Option<SocketAddr>,
}

impl ClientSummary {
    /// Returns the summary of the client of a user's request with these headers.
    #[must_use]
    pub fn new(user: &str, headers: &HeaderMap, address: Option<SocketAddr>) -> Self {
        let agent = headers.get(header::USER_AGENT);
        let agent = agent.and_then(|it| it.to_str().ok()).unwrap_or_default();
        Self {
            user: shortened(user),
            user_agent: shortened(agent),
            address,
        }
    }
}

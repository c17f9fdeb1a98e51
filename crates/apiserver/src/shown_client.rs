//! Clients, as those see them who look at the server.

use std::net::SocketAddr;

use http::{HeaderMap, Request, header};
use ringwatch_apimachinery::User;

use crate::client_side::ClientSide;
use crate::shown_text::start_of;

/// A client of a request or watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownClient {
    /// The start of the user's name.
    pub user: Box<str>,
    /// The start of the header `User-Agent`; empty without one.
    pub user_agent: Box<str>,
    /// The address of the client, or of the last proxy before this server; `None` if it is not known.
    pub address: Option<SocketAddr>,
}

impl ShownClient {
    /// Returns the client of a request of a user.
    pub(crate) fn of<B>(request: &Request<B>, user: &User) -> Self {
        let side = request.extensions().get::<ClientSide>();
        let address = side.and_then(|it| it.address);
        Self::new(&user.name, request.headers(), address)
    }

    pub(crate) fn new(user: &str, headers: &HeaderMap, address: Option<SocketAddr>) -> Self {
        let agent = headers.get(header::USER_AGENT);
        let agent = agent.and_then(|it| it.to_str().ok()).unwrap_or_default();
        Self {
            user: start_of(user),
            user_agent: start_of(agent),
            address,
        }
    }
}

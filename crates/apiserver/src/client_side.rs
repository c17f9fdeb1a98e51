//! The client's side of a connection, which requests that come over it carry.

use std::net::SocketAddr;

use http::Request;
use ringwatch_apimachinery::User;
use ringwatch_observe::ClientSummary;

/// The client's side of a connection, in the extensions of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientSide {
    /// The address of the client, or of the last proxy before this server.
    pub(crate) address: Option<SocketAddr>,
    /// True if it has shown a certificate, valid or not.
    pub(crate) shows_certificate: bool,
}

/// Returns the summary of the client of a user's request.
pub(crate) fn client_summary<B>(request: &Request<B>, user: &User) -> ClientSummary {
    let side = request.extensions().get::<ClientSide>();
    let address = side.and_then(|it| it.address);
    ClientSummary::new(&user.name, request.headers(), address)
}

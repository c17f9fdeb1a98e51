//! The client's side of a connection, which requests that come over it carry.

use std::net::SocketAddr;

/// The client's side of a connection, in the extensions of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientSide {
    /// The address of the client, or of the last proxy before this server.
    pub(crate) address: Option<SocketAddr>,
    /// True if it has shown a certificate, valid or not.
    pub(crate) shows_certificate: bool,
}

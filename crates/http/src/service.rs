//! The side of the transport that faces up: the service that answers requests, and the client that they come from.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response};
use rustls::pki_types::CertificateDer;

use super::body::{Body, RequestBody};
use super::unauthenticated::{ClientStanding, Judgement};

/// Answers the requests of one connection.
#[async_trait]
pub trait Service: Send + Sync {
    /// Answers a request of the connection's client. Each request is judged, by [`Peer::judge`], before its answer is
    /// returned: as long as no client has been authenticated, little is read from its connection, and after a refusal
    /// a connection of HTTP/2 ends.
    ///
    /// The answer of a watch has an [`EventStream`](crate::EventStream) among its extensions, and the answer of a
    /// switch of protocols a [`Tunnel`](crate::Tunnel). The header `Connection` closes the connection after
    /// the answer.
    async fn answer(&self, request: Request<RequestBody>, peer: &Peer) -> Response<Body>;
}

/// Makes the service of a connection once its client is known, and before its first request. It may judge the client by
/// its certificates.
pub type NewService = Arc<dyn Fn(&Peer) -> Arc<dyn Service> + Send + Sync>;

/// The client of a connection.
#[derive(Debug)]
pub struct Peer {
    /// The address of the client, or of the last proxy before this server; `None` for a connection without a socket.
    pub address: Option<SocketAddr>,
    /// The certificates that it has shown, verified or not, its own first; empty if it has shown none.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The standing of its connection.
    pub(super) standing: ClientStanding,
}

impl Peer {
    /// Records the outcome of a request's authentication.
    pub fn judge(&self, outcome: Judgement) {
        self.standing.judge(outcome);
    }
}

//! HTTP for an API server, from the listening socket up to the service that answers, and a client of other servers.
//!
//! ```text
//!   accept --> TLS --> HTTP/1.1 or HTTP/2 by hyper --request--> Service --> Body
//!                 \--- joined writes <--- watches, written without hyper <---/
//! ```
//!
//! The crate knows nothing of what is served: paths, users and encodings are the [`Service`]'s, which is made for each
//! connection and gets its requests one by one. It is told who the client is as far as TLS tells, and tells in turn how
//! each request was authenticated, since what a connection may take before its client is known is bounded
//! ([`unauthenticated`]).
//!
//! A connection's writes are joined, so that many small frames of watches go out as few TLS records; see `outgoing` and
//! `joined_io`. Watches are most of what such a server sends, so they are written without hyper, over HTTP/1.1
//! (`event_stream`) and between the frames of h2 (`watch_streams`).
//!
//! # Example
//!
//! A server of one answer, to whoever asks:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use async_trait::async_trait;
//! use http::{Request, Response};
//! use ringwatch::budget::Ledger;
//! use ringwatch::clock::Clock;
//! use ringwatch_http::client::{Backend, fetch};
//! use ringwatch_http::unauthenticated::{ConnectionLimits, UnauthenticatedConnections};
//! use ringwatch_http::{
//!     Body, CancellationFlag, Connections, Judgement, Peer, Protocol, RequestBody, Service, full,
//! };
//! use tokio::net::TcpListener;
//!
//! struct Greeting;
//!
//! #[async_trait]
//! impl Service for Greeting {
//!     async fn answer(&self, request: Request<RequestBody>, peer: &Peer) -> Response<Body> {
//!         peer.judge(Judgement::Authenticated);
//!         let greeting = format!("{} says hello", request.uri().path());
//!         Response::new(full(greeting).into())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::real();
//! let connections = Connections {
//!     service: Arc::new(|_| Arc::new(Greeting)),
//!     request_timeout: Duration::from_secs(60),
//!     streams_max: 0,
//!     ledger: Ledger::unlimited(),
//!     unauthenticated: UnauthenticatedConnections::new(ConnectionLimits::for_files(100), &clock),
//!     handshake_errors: Default::default(),
//!     closing: CancellationFlag::default(),
//!     end_of_watches: CancellationFlag::default(),
//!     clock: clock.clone(),
//! };
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let port = listener.local_addr()?.port();
//! let server = async {
//!     let (tcp, _) = listener.accept().await.expect("a client");
//!     connections.serve_http(tcp, Protocol::Http1).await;
//! };
//! let client = async {
//!     let backend = Backend {
//!         host: "127.0.0.1".to_owned(),
//!         port,
//!         tls: None,
//!         name: "localhost".to_owned(),
//!         may_be_local: true,
//!         connect_timeout: Duration::from_secs(5),
//!         bytes_per_second: None,
//!         kept: None,
//!         clock: clock.clone(),
//!     };
//!     let request = Request::get("/hill").body(full(""))?;
//!     Ok::<_, Box<dyn std::error::Error>>(fetch(&backend, request, 100).await?)
//! };
//! let (_, answer) = tokio::join!(server, client);
//! assert_eq!(answer?.into_body(), "/hill says hello");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Listener`] accepts such connections over TLS, and gives each of them a place among those whose client is not
//! known.

mod body;
mod cancellation;
pub mod client;
mod connection;
mod doorbell;
mod event_stream;
mod head_refusal;
mod http2_frames;
mod joined_io;
mod layered_io;
pub mod listener;
pub mod open_files;
mod outgoing;
mod preface;
mod request_head;
mod service;
#[cfg(test)]
mod testing;
pub mod tls;
mod tunnel;
pub mod unauthenticated;
mod unread_body;
mod watch_streams;

pub use body::{
    Body, BodyGuard, BoxError, EventStream, LeadingEvents, RequestBody, ResponseBody, SharedEvents,
    full, streamed,
};
pub use cancellation::{CancellationFlag, Cancelled};
pub use connection::{Connections, Protocol, handshake_errors};
pub use listener::Listener;
pub use service::{NewService, Peer, Service};
pub use tunnel::{Duplex, ProtocolEnd, Tunnel, UpgradedProtocol};
pub use unauthenticated::Judgement;

/// The target of this crate's log lines, which requests of clients cause.
pub const LOG_TARGET: &str = module_path!();

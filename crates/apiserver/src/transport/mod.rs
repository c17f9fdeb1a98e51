//! The HTTP transport: the listener, TLS, connections over HTTP/1.1 and HTTP/2, and the clients that speak to other
//! servers.
//!
//! A connection's writes are joined, so that many small frames of watches go out as few TLS records; see `outgoing` and
//! `joined_io`. What a connection may take before its client is known is bounded in [`unauthenticated`].

pub mod connection;
pub mod current_credentials;
mod doorbell;
mod event_stream;
mod http2_frames;
pub mod https_get;
mod joined_io;
mod layered_io;
pub mod listener;
pub mod open_files;
mod outgoing;
mod preface;
mod request_head;
mod shown_certificate;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;
pub mod unauthenticated;
mod unread_body;
mod watch_streams;

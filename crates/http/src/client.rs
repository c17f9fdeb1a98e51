//! The client of HTTP/1.1: one request to another server, over a connection of its own or one that is kept.
//!
//! Nothing is spawned. The connection is part of the response body, or of the stream after an upgrade, and is polled by
//! the task that reads it. So it ends with its reader, and is read only as fast as that.

mod address;
mod backend;
mod error;
mod exchange;
pub mod https_get;
mod kept;
mod switched;
mod throttle;

pub use address::is_proxyable;
pub use backend::Backend;
pub use error::ExchangeError;
pub use exchange::{BackendAnswer, exchange, fetch, fetch_stream, probe};
pub use kept::{BackendStream, KeptConnections};
pub use switched::SwitchedConnection;
pub use throttle::Throttle;

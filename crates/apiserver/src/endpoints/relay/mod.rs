//! Relays requests that others answer: the kubelet of a node, the server of an aggregated API, or a proxied pod or
//! service.
//!
//! ```text
//!   client --request--> handler: which node, which path?
//!                          |
//!                       Backend: address and port of the node's status, TLS
//!                          |                              +-- answered: the body flows as it is read
//!                       exchange ---- kubelet's head? ----+
//!                                                         +-- 101: both connections become a Tunnel
//! ```
//!
//! Nothing is spawned. The connection to the kubelet is part of the response body, or of the tunnel, and is polled by
//! the task that writes to the client. So it ends with the client, and is read only as fast as the client reads. The
//! bytes after an upgrade, SPDY or WebSocket, are not interpreted here; [`super::translation`] translates some of them.

mod backend;
pub(crate) mod exchange;
mod headers;
mod kept;
mod kubelets;
mod pass_on;
mod switched;
mod throttle;
pub(crate) mod upgrade;

pub use backend::{Backend, RelayError};
pub(super) use exchange::{Relayed, exchange};
pub use exchange::{fetch, fetch_stream, probe};
pub(super) use headers::{FORWARDED_URI, passed_on, strip, strip_answer};
pub use kept::KeptConnections;
pub(super) use kubelets::is_proxyable;
pub use kubelets::{KubeletTls, Kubelets, PROXY_CONNECT_TIMEOUT};
pub use pass_on::{NotPassedOn, ProxiedResponse, pass_on};
pub(super) use switched::Switched;
pub(super) use throttle::Throttle;
pub(super) use upgrade::upgrade;

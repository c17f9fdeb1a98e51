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
//! Nothing is spawned. The connection to the kubelet lies in the body of the answer, or in the
//! tunnel, and is driven by whoever writes to the client; so it goes when the client goes, and it is
//! read only as fast as the client reads. What is said after an upgrade, SPDY or WebSocket, is
//! not looked at.

mod backend;
pub(crate) mod exchange;
mod headers;
mod kubelets;
mod tunnel;
pub(crate) mod upgrade;

pub use backend::{Backend, RelayError};
pub(super) use exchange::{Relayed, exchange};
pub use exchange::{fetch, probe};
pub(super) use headers::{is_upgrade, passed_on, strip, strip_answer};
pub(super) use kubelets::is_proxyable;
pub use kubelets::{KubeletTls, Kubelets, PROXY_CONNECT_TIMEOUT};
pub use tunnel::{Switched, Tunnel};
pub(super) use upgrade::upgrade;

//! Forwards requests that others answer: the kubelet of a node, the server of an aggregated API, or a proxied pod or
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
//! Nothing is spawned ([`ringwatch_http::client`]): the task that writes to the client polls the connection to the
//! kubelet. So that ends with the client, and is read only as fast as the client reads. The bytes after an upgrade,
//! SPDY or WebSocket, are not interpreted here; [`super::translation`] translates some of them.

mod exchange;
mod headers;
mod kubelets;
pub(crate) mod upgrade;

pub use exchange::{ForwardError, ProxiedResponse, forward};
pub(super) use headers::{FORWARDED_URI, forwarded, strip, strip_answer};
pub use kubelets::{KubeletTls, Kubelets, PROXY_CONNECT_TIMEOUT};
pub(super) use upgrade::upgrade;

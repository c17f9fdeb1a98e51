//! The filters that every request passes before the API, in kube-apiserver's order.
//!
//! ```text
//! audit id, the end of serving -> 429, Strict-Transport-Security, Cache-Control, GOAWAY, panic -> 500
//!   CORS -> 204
//!     a bad time limit -> 400, the end of the time -> 504
//!       authentication -> 401
//!         the span of the request, the start -> 503
//!           audit -> 500
//!             impersonation -> 403
//!               a turn among all users, in flight, watches -> 429
//!                 authorization -> 403
//!                   health and metrics, or the API, large work on threads of its own
//! ```
//!
//! The end of the time is found in two places: around authentication, and within audit, which records it.

mod answer;
mod audit;
mod audited_body;
mod body_guards;
mod chain;
mod cors;
mod deadline;
mod drain;
mod goaway;
mod handler;
mod impersonation;
mod in_flight;
mod large_work;
mod outer;
mod service;
mod shown_certificate;
mod start;
mod traced;
mod transport_security;

pub use chain::{Authentication, Filters, Limits, OnAuthentication};
pub use cors::AllowedOrigin;
pub use drain::Drain;
pub use goaway::GoawayChance;
pub use handler::{Credentials, Handler, OwnPaths};
pub use in_flight::{InFlight, Permit};
pub use large_work::{Answering, LargeWork};
pub use outer::Outer;
pub use service::service;
pub use start::Start;
pub use transport_security::TransportSecurity;

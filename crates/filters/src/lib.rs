//! The filters that every request passes before the API, in kube-apiserver's order.
//!
//! Requests of authenticated users are answered behind them, by `ringwatch-endpoints`. Rules of kinds do not belong
//! here, nor tasks that follow stored objects, which are in `ringwatch-controllers`. `ringwatch-server` composes a
//! server.
//!
//! `chain.rs` has them in one array. Each is a function of a file of its own, which gets the server's parts
//! ([`Filters`]), the state of the request (`RequestState`) and the way to the next one (`Next`); `endpoint.rs` is
//! behind the last. The other modules are what filters use: the limits, the threads for large work, the settings that
//! flags have.

mod allowed_origin;
mod answer;
mod chain;
mod client_certificate;
mod drain;
mod endpoint;
mod goaway_chance;
mod in_flight;
mod large_work;
mod next;
mod request_state;
mod service;
mod settings;
mod start_steps;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
mod transport_security;

pub use allowed_origin::AllowedOrigin;
pub use drain::Drain;
pub use goaway_chance::GoawayChance;
pub use in_flight::{InFlight, Permit};
pub use large_work::{AnswerFuture, LargeWork};
pub use request_state::{Authentication, ClientSide, OnAuthentication};
pub use service::service;
pub use settings::{Filters, Limits, Outer};
pub use start_steps::Start;
pub use transport_security::TransportSecurity;

/// The target of this crate's log lines, which requests of clients cause.
pub const LOG_TARGET: &str = module_path!();

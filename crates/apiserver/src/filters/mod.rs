//! The filters that every request passes before the API, in kube-apiserver's order.
//!
//! ```text
//! audit id, panic -> 500, Cache-Control
//!   authentication -> 401
//!     the start -> 503
//!       audit -> 500
//!         impersonation -> 403
//!           deadline -> 504
//!             a turn among all users, in flight, watches -> 429
//!               authorization -> 403
//!                 health and metrics, or the API, large work on threads of its own
//! ```

mod answer;
mod audit;
mod audited_body;
mod chain;
mod deadline;
mod held_body;
mod in_flight;
mod large_work;
mod start;

pub use audit::ClientSide;
pub use chain::{Filters, Handler, Limits, OnAuthentication, OwnPaths};
pub use held_body::HeldBody;
pub use in_flight::{InFlight, Permit};
pub use large_work::{Answering, LargeWork, Requester};
pub use start::Start;

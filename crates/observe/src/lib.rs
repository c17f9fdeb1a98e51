//! The state of a server for operators, beside its metrics: open watches, running requests, busy clients, called
//! webhooks, and the status document that is made of them.
//!
//! Each part notes a figure where it arises, at the cost of a lock of its own or an atomic, and keeps no more than a
//! named bound. Adding up happens when somebody looks. Gathering the document does not belong here, which
//! `ringwatch-server` does.

mod client_summary;
mod last_minute;
mod observed_request;
pub mod open_watches;
pub mod running_requests;
mod sharded_registry;
mod shortened_text;
pub mod status;
pub mod traffic;
pub mod webhook_calls;

pub use self::client_summary::ClientSummary;
pub use self::observed_request::{ObservedRequest, ObservedResource};

//! Audit: which requests are recorded, what is recorded about them, and where it goes.
//!
//! ```text
//!   request --Policy--> level, stages --Recording--> Event --Queue--> LogWriter      a file or standard output
//!                                                          \-Queue--> WebhookSender  a webhook
//! ```
//!
//! The filter that follows a request through its stages is in `ringwatch-filters`, and what admission annotates comes
//! through the request's [`Recording`]. Flags, threads and tasks do not belong here: `ringwatch-server` runs the
//! backends, each of which is a future.
//!
//! The hard part is that objects and bodies may be large, and backends slow. A recording keeps bodies as the bytes that
//! were sent, counted in the memory budget; they become JSON in the backend, away from the workers that serve. Every
//! queue is bounded by its number of events and by the budget.

mod auditor;
pub mod backend;
mod body;
mod event;
mod held_event;
mod level;
mod metrics;
mod policy;
mod recorder;
mod recording;
mod rendering;

pub use auditor::{Auditor, RequestHead};
pub use body::{AuditBody, Encoding};
pub use event::{AuditEvent, ObjectReference, Response};
pub use held_event::NotStored;
pub use level::{Level, Stage, Stages};
pub use metrics::Metrics;
pub use policy::{AuditDecision, Policy, PolicyError};
pub use recording::Recording;

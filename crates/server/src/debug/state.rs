//! `/debug/ui/state` and what belongs to it: what the server does now, for its live page and `ringwatch top`.
//!
//! ```text
//!   /debug/ui/state, /debug/ui/watchers --asks--> [Sampler, a task on the background threads] --answers-->
//!   /debug/ui/stream  <--newest document, each second while somebody reads-- [Sampler]
//! ```
//!
//! The documents take time that grows with the watchers, so one task makes them, one after the other, on threads that
//! serve nobody. All readers of the stream are sent the same bytes. A reader that is slow misses documents.

mod caches;
mod documents;
mod gather;
mod lagging;
mod requests;
mod sampler;
mod types;

pub(crate) use self::caches::CachesSource;
pub(crate) use self::documents::DebugState;
pub(crate) use self::gather::{Sources, StatusInputs};

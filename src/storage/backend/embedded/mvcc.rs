//! The core: every key at every revision since the compacted one.
//!
//! A [`State`] is a snapshot made of persistent maps, so that a copy costs three reference counts.
//! The writer changes its own copy; readers and watches keep the published one for as long as
//! they need it and lock nothing.

mod compact;
mod events;
mod range;
mod record;
mod records;
mod state;

pub(super) use record::{KeyVersion, Record, RevisionChange};
pub(super) use state::{REVISION_EMPTY, State};

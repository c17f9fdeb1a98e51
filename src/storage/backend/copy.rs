//! Copying the content of one store into another, from either kind to either kind.
//!
//! A copy is made in passes. A pass reads the source at one revision, page by page, beside the keys of the target, and
//! writes only what differs: so an interrupted copy goes on where it was, and a source that was written to meanwhile
//! costs what changed. [`prepare`] makes one pass and leaves the copy unfinished, while the source is still served.
//! [`complete`] makes passes until one finds the source unchanged at its end, reads everything back, and finishes the
//! copy.
//!
//! # Revisions
//!
//! The resource version that a client has is a revision of the source, at most R, its newest at the end. No such
//! version may stand for something else in the target. A [`CopyTarget`] sees to that in one of two ways:
//!
//! - It keeps the revisions: every key has the revisions and the version that it has in the source, the store's
//!   revision is R, and it is compacted at R. A client that has seen R goes on as if nothing had happened, and an older
//!   version has been compacted. The file of an embedded store can be written so (`embedded::maintenance::CopyFile`).
//! - It has its own ([`BackendTarget`]): the revision is first raised to R + 2 at least by writes to a key of the copy,
//!   and every key is written after that, those that an earlier pass left at R or before once more. At last the store
//!   is compacted at its newest revision, X > R + 1. A read at a version up to R and a watch from one (which begins at
//!   most at R + 1) find their history compacted, and no key has a revision that a client could compare with
//!   successfully.
//!
//! # Marker
//!
//! An unfinished copy has the key [`MARKER_KEY`], which names the source and the newest revision that was copied from
//! it. It is written before all else and only to a store without keys, and removed last, by the commit that makes the
//! copy whole or, in a store with revisions of its own, after the compaction. So a store with that key is no copy yet,
//! and one that has other keys without it is never written to. Where several processes can open the target the marker
//! has the number of the run that began last too, and an earlier run ends as soon as it sees that.
//!
//! # Leases
//!
//! Leases have the same numbers in the target, and the time that they have left in the source, or their whole time if
//! the source does not tell. A key whose lease has ended since the pass read it is missing rightly, and counted.

mod backend_source;
mod backend_target;
mod error;
mod leases;
mod marker;
mod merge;
mod pages;
mod pass;
mod progress;
mod source;
mod steps;
mod target;

pub use backend_source::BackendSource;
pub use backend_target::BackendTarget;
pub use error::CopyError;
pub use leases::NumberedLeases;
pub use marker::{MARKER_KEY, Marker};
pub use pages::{KeyPage, Pages};
pub use progress::{CopyPhase, CopyProgress};
pub use source::CopySource;
pub use steps::{FinishedCopy, PassResult, complete, prepare};
pub use target::{CopyTarget, TargetChange};

//! The revision up to which the caches have applied all changes, and the reads that wait for one.

pub(crate) mod feed_revision;
pub(crate) mod revision_probe;
pub(crate) mod waiting_reads;

//! loom's primitives under the names of the production crate's `sync`.

pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

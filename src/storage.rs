//! Stores of objects: the [`Interface`], its options, its errors.
//!
//! [`etcd3::Store`] implements it over a key-value [`backend`], [`cacher`] in memory in front of another
//! implementation. The two modules do not import each other.

pub mod backend;
pub mod cacher;
mod changes;
mod continue_token;
mod delegate;
pub mod encryption;
mod error;
pub mod etcd3;
mod interface;
mod key;
mod media_type;
mod options;
mod preconditions;
mod predicate;
mod versioner;
mod watch_stream;

pub use crate::codec::ObjectError;
pub use changes::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, RawObject,
};
pub use continue_token::{ContinueToken, ContinueTokenError};
pub use delegate::Delegate;
pub use error::{CORRUPT_KEYS_MAX, Rejection, StorageError, corrupt_object};
pub use interface::{DeletionCheck, Interface, List, NextContent, NoCheck, Stats, TryUpdate};
pub use key::{InvalidKey, has_path_prefix, prepare_key};
pub use media_type::StorageMediaType;
pub use options::{
    DeleteOptions, GetOptions, ListOptions, UpdateOptions, WatchLag, WatchObserver, WatchProgress,
};
pub use preconditions::Preconditions;
pub use predicate::SelectionPredicate;
pub use versioner::{Completion, Versioner};
pub(crate) use watch_stream::FollowableWatch;
pub use watch_stream::{FollowOutcome, WatchStream};

//! The store's interface and the cacher, without the stores.

#[path = "../../../src/storage/cacher/mod.rs"]
pub mod cacher;
#[path = "../../../src/storage/changes.rs"]
mod changes;
#[path = "../../../src/storage/continue_token.rs"]
mod continue_token;
#[path = "../../../src/storage/error.rs"]
mod error;
#[path = "../../../src/storage/interface.rs"]
mod interface;
#[path = "../../../src/storage/key.rs"]
mod key;
#[path = "../../../src/storage/media_type.rs"]
mod media_type;
#[path = "../../../src/storage/options.rs"]
mod options;
#[path = "../../../src/storage/preconditions.rs"]
mod preconditions;
#[path = "../../../src/storage/predicate.rs"]
mod predicate;
#[path = "../../../src/storage/versioner.rs"]
mod versioner;

pub use changes::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, RawObject,
};
pub use continue_token::{ContinueToken, ContinueTokenError};
pub use error::{CORRUPT_KEYS_MAX, Rejection, StorageError, corrupt_object};
pub use interface::{
    DeletionCheck, Interface, List, NextContent, NoCheck, Stats, TryUpdate, WatchStream,
};
pub use key::{InvalidKey, has_path_prefix, prepare_key};
pub use media_type::StorageMediaType;
pub use options::{
    DeleteOptions, GetOptions, ListOptions, UpdateOptions, WatchLag, WatchObserver, WatchProgress,
};
pub use preconditions::Preconditions;
pub use predicate::SelectionPredicate;
pub use versioner::Versioner;

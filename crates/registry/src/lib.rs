//! Reads and writes of API objects with defaulting, validation and admission: Kubernetes' generic registry store.
//!
//! A [`Resource`] describes a type as served in one version; its [`Strategy`] prepares and checks what is written; a
//! [`Store`] runs every write through them in kube-apiserver's order and keeps the result in a
//! [`ringwatch::storage::Interface`]. No kind belongs here, and no HTTP: kinds are in `ringwatch-resources`, custom
//! ones in `ringwatch-apiextensions`, and admission and allocation join by the traits [`Admission`] and [`Allocator`].

pub mod admission;
mod allocator;
pub mod context;
mod defaults_on_read;
mod deletion_settings;
mod function_update;
pub mod human_duration;
pub mod informer;
mod json_path;
pub mod object_counts;
mod object_names;
mod options;
pub mod printer_columns;
mod resource;
pub mod storage_factory;
pub mod store;
mod stores;
mod strategy;
pub mod subresource;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod traced_storage;
pub mod watch_cache_sizes;
mod write_guard;

pub use self::admission::{Admission, Operation, Request};
pub use self::printer_columns::PrinterColumns;

pub use allocator::{Allocation, Allocator, WriteResult};

pub use context::RequestContext;
pub use defaults_on_read::DefaultsOnRead;
pub use deletion_settings::DeletionSettings;
pub use function_update::FunctionUpdate;
pub use informer::{Informer, ListWatch};

pub use object_names::check_names;
pub use options::{
    CreateOptions, DeleteOptions, IGNORE_STORE_READ_ERROR, PropagationPolicy, UpdateOptions,
    orphaned_twice,
};

pub use resource::{Resource, ScalePaths, SelectorForm, ServedBy, Subresource, Verb};

pub use store::{DeletionResult, Store, SubresourceCall, UpdatedObject};
pub use stores::Stores;
pub use strategy::{GarbageCollection, Graceful, Strategy};

pub use write_guard::WriteGuard;

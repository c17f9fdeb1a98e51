//! The filling of the caches from the store: lists, changes, values that wait for decryption.

pub(crate) mod backoff;
pub(crate) mod cache_writer;
pub(crate) mod decryption_request;
pub(crate) mod feed_shared;
pub(crate) mod followed_types;
pub(crate) mod list_decryption;
pub(crate) mod listing;
pub(crate) mod pending_changes;
pub(crate) mod ready_changes;
pub(crate) mod reflector;
pub(crate) mod shrink_windows;
pub(crate) mod value_requests;

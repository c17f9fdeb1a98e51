//! The content of an object before it is changed.

use std::sync::Arc;

use bytes::Bytes;

use super::request_metrics::BackendOperation;
use super::store::Store;
use crate::meta::Object;
use crate::storage::StorageError;
use crate::storage::backend::{KeyValue, RangeRequest};

/// The content on which a change is decided, and its provenance.
#[derive(Debug)]
pub(super) struct State {
    /// The object; `None` if there is none and that is no error.
    pub(super) object: Option<Arc<Object>>,
    /// The revision that wrote it; 0 if there is none.
    pub(super) revision: u64,
    /// Its stored form, byte for byte and decrypted; empty if there is none.
    pub(super) stored: Bytes,
    /// True if the value would be encrypted in another way today, so that it is written even if nothing changes.
    pub(super) stale: bool,
    /// True if it was read from the backend rather than a cache.
    pub(super) current: bool,
}

impl State {
    /// Returns a cached state; `None` if the object was never stored.
    pub(super) fn cached(object: Option<Arc<Object>>) -> Option<Self> {
        let object = object.filter(|object| object.revision() > 0)?;
        Some(Self {
            revision: object.revision(),
            stored: object.stored().clone(),
            object: Some(object),
            stale: false,
            current: false,
        })
    }

    /// Reads the state from the backend.
    pub(super) async fn read(
        store: &Store,
        key: &str,
        ignore_not_found: bool,
    ) -> Result<Self, StorageError> {
        let read = store.backend().range(RangeRequest::key(key));
        let response = store.requests().count(BackendOperation::Get, read).await?;
        let found = response.kvs.into_iter().next();
        Self::from_response(store, key, found, response.revision, ignore_not_found).await
    }

    /// Returns the state that the backend found at `revision`.
    pub(super) async fn from_response(
        store: &Store,
        key: &str,
        found: Option<KeyValue>,
        revision: u64,
        ignore_not_found: bool,
    ) -> Result<Self, StorageError> {
        let Some(kv) = found else {
            if !ignore_not_found {
                let key = key.to_owned();
                return Err(StorageError::KeyNotFound { key, revision });
            }
            return Ok(Self {
                object: None,
                revision: 0,
                stored: Bytes::new(),
                stale: false,
                current: true,
            });
        };
        let values = store.values().reader([&kv]).await;
        let plain = values.open(&kv)?;
        let object = values.read(&kv, &plain)?;
        Ok(Self {
            object: Some(Arc::new(object)),
            revision: kv.mod_revision,
            stored: plain.bytes,
            stale: plain.stale,
            current: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::meta::FieldSchema;

    #[test]
    fn an_object_that_was_never_stored_is_no_state() {
        let object = |revision| {
            let value = json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}});
            let object = Object::from_value(&value, revision, &FieldSchema::default());
            Some(Arc::new(object.expect("an object")))
        };
        assert!(State::cached(None).is_none());
        assert!(State::cached(object(0)).is_none());
        let state = State::cached(object(5)).expect("a state");
        assert_eq!((state.revision, state.current), (5, false));
    }
}

//! Short requests to a backend, for tests.

use bytes::Bytes;
use ringwatch::storage::backend::{
    Backend, BackendError, Compare, KeyRange, LeaseId, Op, RangeRequest, Txn, TxnResponse,
    WatchRequest,
};

/// Returns a transaction whose comparison does not matter.
pub(super) fn whatever(then: Op) -> Txn {
    Txn {
        compare: Compare::Version("/never".to_owned(), 0),
        then,
        otherwise: None,
    }
}

pub(super) fn put_op(key: &str, value: &str, lease: Option<LeaseId>) -> Op {
    Op::Put {
        key: key.to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
        lease,
    }
}

/// Writes a key and returns the revision.
pub(super) async fn put(store: &dyn Backend, key: &str, value: &str) -> u64 {
    put_leased(store, key, value, None).await.unwrap().revision
}

pub(super) async fn put_leased(
    store: &dyn Backend,
    key: &str,
    value: &str,
    lease: Option<LeaseId>,
) -> Result<TxnResponse, BackendError> {
    store.txn(whatever(put_op(key, value, lease))).await
}

/// Deletes a key and returns the revision.
pub(super) async fn delete(store: &dyn Backend, key: &str) -> u64 {
    let op = Op::Delete {
        key: key.to_owned(),
    };
    store.txn(whatever(op)).await.unwrap().revision
}

/// Returns all keys and their values as text.
pub(super) async fn all(store: &dyn Backend) -> Vec<(String, String)> {
    let everything = RangeRequest::all(KeyRange::prefix("/"));
    let response = store.range(everything).await.unwrap();
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    response
        .kvs
        .into_iter()
        .map(|kv| (kv.key, text(&kv.value)))
        .collect()
}

/// Returns a watch of everything that reports progress.
pub(super) fn from(start_revision: u64) -> WatchRequest {
    WatchRequest {
        range: KeyRange::prefix("/"),
        start_revision,
        previous: false,
        progress: true,
    }
}

//! Copies of stores through their interface: between backends in memory, into files, and to and from a real etcd.

mod etcd;
mod faulty;
mod files;
mod held;
mod random;
mod refusals;
mod resumed;

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;
use ringwatch::storage::backend::copy::{CopyPhase, CopyProgress, MARKER_KEY};
use ringwatch::storage::backend::{
    Backend, BackendError, Compare, KeyRange, KeyValue, LeaseId, Op, RangeRequest, Txn,
    WatchRequest,
};

/// A key's value and its lease.
type Content = BTreeMap<String, (Bytes, Option<LeaseId>)>;

/// A progress that nobody looks at.
struct Unseen;

impl CopyProgress for Unseen {
    fn begin(&self, _phase: CopyPhase, _steps: u64) {}

    fn advance(&self, _steps: u64) {}
}

async fn keys(backend: &dyn Backend) -> Vec<KeyValue> {
    let all = KeyRange::Span("\0".to_owned(), char::MAX.to_string());
    backend.range(RangeRequest::all(all)).await.unwrap().kvs
}

/// Returns the keys of a store, without its marker.
async fn content(backend: &dyn Backend) -> Content {
    let keys = keys(backend).await.into_iter();
    keys.filter(|kv| kv.key != MARKER_KEY)
        .map(|kv| (kv.key, (kv.value, kv.lease)))
        .collect()
}

async fn revision(backend: &dyn Backend) -> u64 {
    let read = backend.range(RangeRequest::key("/none")).await;
    read.unwrap().revision
}

async fn write(backend: &dyn Backend, key: &str, then: Op) -> Result<u64, BackendError> {
    let read = backend.range(RangeRequest::key(key)).await?;
    let written = read.kvs.first().map_or(0, |kv| kv.mod_revision);
    let txn = Txn {
        compare: Compare::ModRevision(key.to_owned(), written),
        then,
        otherwise: None,
    };
    Ok(backend.txn(txn).await?.revision)
}

async fn put(backend: &dyn Backend, key: &str, value: &str, lease: Option<LeaseId>) -> u64 {
    let then = Op::Put {
        key: key.to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
        lease,
    };
    write(backend, key, then).await.unwrap()
}

async fn delete(backend: &dyn Backend, key: &str) {
    let then = Op::Delete {
        key: key.to_owned(),
    };
    write(backend, key, then).await.unwrap();
}

/// Asserts that a store with revisions of its own is a whole copy of a source at a revision: nothing that a client
/// knows of the source can be read or watched from, and no key has a revision of the source.
async fn assert_past(target: &dyn Backend, source_revision: u64) {
    let found = keys(target).await;
    assert!(
        found.iter().all(|kv| kv.key != MARKER_KEY),
        "there is a marker"
    );
    for kv in found {
        assert!(kv.mod_revision > source_revision, "{kv:?}");
    }
    let at_newest = RangeRequest {
        revision: source_revision,
        ..RangeRequest::key("/none")
    };
    let read = target.range(at_newest).await.expect_err("it is compacted");
    assert!(matches!(read, BackendError::Compacted { .. }), "{read}");
    let request = WatchRequest {
        range: KeyRange::prefix("/"),
        start_revision: source_revision + 1,
        previous: false,
        progress: false,
    };
    let mut watch = target.watch(request).await.unwrap();
    let first = watch
        .next()
        .await
        .expect("a response")
        .expect_err("it is compacted");
    assert!(matches!(first, BackendError::Compacted { .. }), "{first}");
}

//! The keys of a store in their order, read a page at a time.

use std::collections::VecDeque;
use std::fmt::Debug;

use async_trait::async_trait;

use super::marker::MARKER_KEY;
use crate::storage::backend::{
    Backend, BackendError, KeyRange, KeyValue, RangeContent, RangeRequest,
};

/// Maximum number of keys of a page.
const PAGE_KEYS_MAX: u64 = 1_000;
/// The number of bytes of values that a page is to have. The next one has fewer keys if this one had more bytes, so a page
/// exceeds it only where small objects are followed by large ones.
const PAGE_BYTES: usize = 4 << 20;

/// Some keys of a store, in their order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The keys.
    pub keys: Vec<KeyValue>,
    /// True if there are more after them.
    pub more: bool,
}

/// A store that is read in pages.
#[async_trait]
pub trait Pages: Send + Sync + Debug {
    /// Returns at most `limit` keys that come after a key, as they are at a revision; 0 for the newest.
    ///
    /// # Errors
    /// Those of [`Backend::range`].
    async fn page(&self, after: &str, limit: u64, revision: u64) -> Result<Page, BackendError>;
}

/// Reads a page of a backend.
pub(super) async fn page_of(
    backend: &dyn Backend,
    after: &str,
    limit: u64,
    revision: u64,
) -> Result<Page, BackendError> {
    let request = RangeRequest {
        revision,
        limit,
        ..RangeRequest::all(keys_after(after))
    };
    let response = backend.range(request).await?;
    Ok(Page {
        keys: response.kvs,
        more: response.more,
    })
}

/// Returns the number of keys at a revision.
pub(super) async fn count(backend: &dyn Backend, revision: u64) -> Result<u64, BackendError> {
    let request = RangeRequest {
        revision,
        content: RangeContent::Count,
        ..RangeRequest::all(keys_after(""))
    };
    Ok(backend.range(request).await?.count)
}

/// Returns the range of all keys that are text and come after a key.
fn keys_after(after: &str) -> KeyRange {
    KeyRange::Span(format!("{after}\0"), char::MAX.to_string())
}

/// A position among the keys of a store. The marker is left out.
#[derive(Debug)]
pub(super) struct Keys {
    revision: u64,
    /// Keys that were read and not taken.
    waiting: VecDeque<KeyValue>,
    /// The last key that was read.
    after: String,
    more: bool,
    limit: u64,
}

impl Keys {
    /// Begins before the first key, at a revision; 0 for the newest.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            revision,
            waiting: VecDeque::new(),
            after: String::new(),
            more: true,
            limit: PAGE_KEYS_MAX,
        }
    }

    /// Returns the next key of the store, which stays the next; `None` after the last.
    ///
    /// # Errors
    /// The error of the store.
    pub(super) async fn peek(
        &mut self,
        store: &dyn Pages,
    ) -> Result<Option<&KeyValue>, BackendError> {
        while self.waiting.is_empty() && self.more {
            let page = store.page(&self.after, self.limit, self.revision).await?;
            self.more = page.more && !page.keys.is_empty();
            if let Some(last) = page.keys.last() {
                self.after.clone_from(&last.key);
            }
            self.limit = next_limit(self.limit, &page.keys);
            let keys = page.keys.into_iter().filter(|it| it.key != MARKER_KEY);
            self.waiting.extend(keys);
        }
        Ok(self.waiting.front())
    }

    /// Takes the key that was returned last.
    pub(super) fn take(&mut self) -> Option<KeyValue> {
        self.waiting.pop_front()
    }
}

/// Returns the limit of the page after this one.
fn next_limit(limit: u64, keys: &[KeyValue]) -> u64 {
    let bytes: usize = keys.iter().map(|kv| kv.value.len()).sum();
    let fitting = match bytes {
        0 => PAGE_KEYS_MAX,
        bytes => (PAGE_BYTES * keys.len() / bytes) as u64,
    };
    fitting.clamp(1, limit.saturating_mul(2).min(PAGE_KEYS_MAX))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn keys(count: usize, bytes: usize) -> Vec<KeyValue> {
        let kv = KeyValue {
            key: "/a".to_owned(),
            value: Bytes::from(vec![0; bytes]),
            create_revision: 1,
            mod_revision: 1,
            version: 1,
            lease: None,
        };
        vec![kv; count]
    }

    #[test]
    fn pages_of_large_objects_have_few_keys() {
        assert_eq!(next_limit(1_000, &keys(1_000, 100)), 1_000);
        assert_eq!(next_limit(1_000, &keys(100, 1 << 20)), 4);
        assert_eq!(next_limit(4, &keys(4, 100 << 20)), 1);
        assert_eq!(next_limit(4, &keys(4, 0)), 8);
        assert_eq!(next_limit(1, &[]), 2);
    }
}

//! The keys of a store in their order, read a page at a time.

use std::collections::VecDeque;
use std::fmt::Debug;

use async_trait::async_trait;

use super::marker::MARKER_KEY;
use crate::storage::backend::{
    Backend, BackendError, KeyRange, KeyValue, RangeContent, RangeRequest,
};

/// Maximum number of keys of a page. A store answers a page with one message, which has at most so many of its largest
/// values, where small objects are followed by large ones.
const PAGE_KEYS_MAX: u64 = 100;
/// The number of keys of the first page, of which nothing is known.
const PAGE_KEYS_FIRST: u64 = 16;
/// The number of bytes of values that a page is to have. The next page has fewer keys if this one had more bytes. One
/// that the store cannot answer, as it is too large or takes too long, is read again with half the keys, down to one.
const PAGE_BYTES: usize = 4 << 20;

/// Some keys of a store, in their order.
#[derive(Clone, Debug, Default)]
pub struct KeyPage {
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
    async fn page(&self, after: &str, limit: u64, revision: u64) -> Result<KeyPage, BackendError>;
}

/// Reads a page of a backend.
pub(super) async fn page_of(
    backend: &dyn Backend,
    after: &str,
    limit: u64,
    revision: u64,
) -> Result<KeyPage, BackendError> {
    let request = RangeRequest {
        revision,
        limit,
        ..RangeRequest::all(keys_after(after))
    };
    let response = backend.range(request).await?;
    Ok(KeyPage {
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
            limit: PAGE_KEYS_FIRST,
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
            let page = store.page(&self.after, self.limit, self.revision).await;
            let page = match page {
                Err(error) if self.limit > 1 && may_be_too_large(&error) => {
                    self.limit /= 2;
                    continue;
                }
                page => page?,
            };
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

/// Returns true if a page of fewer keys may be read after an error.
fn may_be_too_large(error: &BackendError) -> bool {
    matches!(
        error,
        BackendError::TooLarge(_) | BackendError::Timeout(_) | BackendError::Other(_)
    )
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
        assert_eq!(next_limit(16, &keys(16, 100)), 32);
        assert_eq!(next_limit(100, &keys(100, 100)), 100);
        assert_eq!(next_limit(100, &keys(100, 1 << 20)), 4);
        assert_eq!(next_limit(4, &keys(4, 100 << 20)), 1);
        assert_eq!(next_limit(4, &keys(4, 0)), 8);
        assert_eq!(next_limit(1, &[]), 2);
    }

    /// A store of keys "00" to "59" that answers pages of so many keys at most.
    #[derive(Debug)]
    struct Narrow {
        at_most: u64,
        error: BackendError,
    }

    #[async_trait]
    impl Pages for Narrow {
        async fn page(&self, after: &str, limit: u64, _: u64) -> Result<KeyPage, BackendError> {
            if limit > self.at_most {
                return Err(self.error.clone());
            }
            let first = after.parse().map_or(0, |after: u64| after + 1);
            let numbers = first..(first + limit).min(60);
            let mut page = KeyPage {
                more: numbers.end < 60,
                ..KeyPage::default()
            };
            for number in numbers {
                let mut kv = keys(1, 0).remove(0);
                kv.key = format!("{number:02}");
                page.keys.push(kv);
            }
            Ok(page)
        }
    }

    async fn read(store: &Narrow) -> Result<Vec<String>, BackendError> {
        let (mut position, mut read) = (Keys::new(0), Vec::new());
        while position.peek(store).await?.is_some() {
            read.extend(position.take().map(|it| it.key));
        }
        Ok(read)
    }

    #[tokio::test]
    async fn a_page_that_is_too_large_is_read_with_fewer_keys() {
        let text = "large".to_owned();
        let errors = [
            BackendError::Timeout(text.clone()),
            BackendError::TooLarge(text.clone()),
            BackendError::Other(text.clone()),
        ];
        for error in errors {
            for at_most in [1, 3, 16, 50] {
                let error = error.clone();
                let read = read(&Narrow { at_most, error }).await.expect("all keys");
                assert_eq!(
                    read,
                    (0..60).map(|it| format!("{it:02}")).collect::<Vec<_>>()
                );
            }
            let at_most = 0;
            let refused = read(&Narrow {
                at_most,
                error: error.clone(),
            })
            .await;
            assert_eq!(refused, Err(error));
        }
        let error = BackendError::Unavailable(text);
        let refused = read(&Narrow {
            at_most: 1,
            error: error.clone(),
        })
        .await;
        assert_eq!(refused, Err(error));
    }
}

//! Listing: one read, or pages that are pinned to the revision of the first.
//!
//! With selectors a page of the backend may contain few selected objects or none, so the pages grow until the caller's
//! limit is reached: a rare object costs few reads. A list that must stay within the memory budget is read in pages
//! whose memory is admitted first, see [`super::list_memory`].

use std::sync::Arc;

use super::decode::{CorruptKeys, ValueReader};
use super::list_memory::ListMemory;
use super::list_metrics::ListCost;
use super::request_metrics::BackendOperation;
use super::store::{Store, check_minimum};
use crate::meta::{ResourceVersion, VersionMatch};
use crate::storage::backend::{
    BackendError, KeyRange, RangeContent, RangeRequest, RangeResponse, prefix_end,
};
use crate::storage::{ContinueToken, List, ListOptions, SelectionPredicate, StorageError};

/// The largest page, in objects, up to which pages grow while selectors drop most of them.
const PAGE_OBJECTS_MAX: u64 = 10_000;

/// The first key and the revision of a list.
struct Start {
    /// The first key, if the list continues an earlier page.
    from: Option<String>,
    /// The revision to read at; 0 for the newest.
    revision: u64,
}

/// See [`crate::storage::Interface::get_list`].
pub(super) async fn get_list(
    store: &Store,
    key: &str,
    options: &ListOptions,
) -> Result<List, StorageError> {
    let prefix = store.full_key(key, options.recursive)?;
    let start = start(&prefix, options)?;
    let predicate = &options.predicate;
    let bucket = usize::try_from(predicate.limit).unwrap_or(usize::MAX);
    let mut request = RangeRequest {
        range: range(&prefix, start.from.as_deref(), options.recursive),
        revision: start.revision,
        limit: 0,
        content: RangeContent::Values,
    };
    let operation = if options.recursive {
        BackendOperation::List
    } else {
        BackendOperation::Get
    };
    let mut memory = ListMemory::new(options.memory.as_ref(), store.object_size());
    let mut wanted = predicate.limit;
    let mut list = List {
        shard: predicate.shard.clone(),
        ..List::default()
    };
    let mut corrupt = CorruptKeys::default();
    let mut cost = ListCost::default();
    loop {
        request.limit = memory.admit_page(wanted)?;
        let read = store.backend().range(request.clone());
        let page = match store.requests().count(operation, read).await {
            Ok(page) => page,
            Err(error) => return Err(explain(store, &prefix, options, &request, error).await),
        };
        memory.read(&page);
        check_minimum(options.resource_version, page.revision)?;
        if request.revision == 0 {
            request.revision = page.revision;
        }
        list.revision = request.revision;
        let before = list.items.len();
        let values = store.values().reader(&page.kvs).await;
        let taken = take(&values, options, &page, bucket, &mut list, &mut corrupt)?;
        memory.keep(&list.items[before..]);
        cost.fetched += page.kvs.len();
        cost.evaluated += taken.objects;
        let last_key = taken.last_key(&page);
        let more = taken.more(&page);
        let Some(last_key) = last_key.filter(|_| more) else {
            break;
        };
        if bucket > 0 && list.items.len() >= bucket {
            let token = ContinueToken::after(last_key, request.revision);
            list.continue_token = Some(token.encode(&prefix)?);
            if predicate.is_everything() {
                list.remaining_item_count = page.count.checked_sub(taken.objects as u64);
            }
            break;
        }
        let from = format!("{last_key}\0");
        request.range = range(&prefix, Some(&from), true);
        wanted = next_page(predicate, wanted, list.items.len());
    }
    if options.skip_corrupt {
        list.corrupt = corrupt.into_keys();
    } else {
        corrupt.finish()?;
    }
    cost.returned = list.items.len();
    store.lists().count(cost);
    list.memory = memory.held();
    Ok(list)
}

/// Returns how many objects to read in the next page, after one of `wanted` objects; 0 for all.
fn next_page(predicate: &SelectionPredicate, wanted: u64, listed: usize) -> u64 {
    if predicate.is_everything() {
        return predicate.limit.saturating_sub(listed as u64);
    }
    let twice = wanted.saturating_mul(2).min(PAGE_OBJECTS_MAX);
    wanted.max(twice)
}

/// Returns the keys of a list, or of its rest from a key on.
pub(super) fn range(prefix: &str, from: Option<&str>, recursive: bool) -> KeyRange {
    if recursive {
        KeyRange::Span(from.unwrap_or(prefix).to_owned(), prefix_end(prefix))
    } else {
        KeyRange::Key(prefix.to_owned())
    }
}

/// Returns the start of a list, given its options.
fn start(prefix: &str, options: &ListOptions) -> Result<Start, StorageError> {
    let version = options.resource_version.filter(|version| !version.is_any());
    let predicate = &options.predicate;
    if options.recursive && !predicate.continue_token.is_empty() {
        let token = ContinueToken::decode(&predicate.continue_token, prefix)?;
        if version.is_some() {
            return Err(StorageError::ContinueWithVersion);
        }
        return Ok(Start {
            from: Some(token.start),
            revision: token.revision.unwrap_or_default(),
        });
    }
    let exact = match options.version_match {
        Some(VersionMatch::Exact) => true,
        Some(VersionMatch::NotOlderThan) => false,
        None => options.recursive && predicate.limit > 0,
    };
    Ok(Start {
        from: None,
        revision: version.filter(|_| exact).map_or(0, |version| version.0),
    })
}

/// The outcome of reading a page's objects.
struct PageRead {
    objects: usize,
}

impl PageRead {
    fn last_key<'a>(&self, page: &'a RangeResponse) -> Option<&'a str> {
        let last = self.objects.checked_sub(1)?;
        page.kvs.get(last).map(|kv| &*kv.key)
    }

    fn more(&self, page: &RangeResponse) -> bool {
        page.more || self.objects < page.kvs.len()
    }
}

/// Moves the selected objects of a page into the list, until it has as many as the limit (0: all).
fn take(
    values: &ValueReader,
    options: &ListOptions,
    page: &RangeResponse,
    bucket: usize,
    list: &mut List,
    corrupt: &mut CorruptKeys,
) -> Result<PageRead, StorageError> {
    for (index, kv) in page.kvs.iter().enumerate() {
        if bucket > 0 && list.items.len() >= bucket {
            return Ok(PageRead { objects: index });
        }
        match values.decode(kv) {
            Ok(object) if options.predicate.matches(object.attributes()) => {
                list.items.push(Arc::new(object));
            }
            Ok(_) => {}
            Err(error) => {
                if !corrupt.note(error)? && !options.skip_corrupt {
                    std::mem::take(corrupt).finish()?;
                }
            }
        }
    }
    Ok(PageRead {
        objects: page.kvs.len(),
    })
}

/// Converts the error of a failed read of a list.
async fn explain(
    store: &Store,
    prefix: &str,
    options: &ListOptions,
    request: &RangeRequest,
    error: BackendError,
) -> StorageError {
    match error {
        BackendError::FutureRevision { .. } => StorageError::TooLargeResourceVersion {
            requested: request.revision,
            current: store.current_revision().await.unwrap_or_default(),
            retry_after_seconds: 0,
        },
        BackendError::Compacted { .. } if !options.predicate.continue_token.is_empty() => {
            let KeyRange::Span(from, _) = &request.range else {
                return StorageError::ListExpired;
            };
            let token = ContinueToken {
                start: from.clone(),
                revision: None,
            };
            token
                .encode(prefix)
                .map_or(StorageError::ListExpired, |token| {
                    StorageError::ContinueExpired { token }
                })
        }
        other => other.into(),
    }
}

/// Reads one page of the initial state of a watch, at `revision` (0: the newest). A version that the store has not
/// reached is an error with a retry delay.
pub(super) async fn initial_page(
    store: &Store,
    range: KeyRange,
    revision: u64,
    wanted: Option<ResourceVersion>,
) -> Result<RangeResponse, StorageError> {
    let request = RangeRequest {
        range,
        revision,
        limit: PAGE_OBJECTS_MAX,
        content: RangeContent::Values,
    };
    let read = store.backend().range(request);
    let page = match store.requests().count(BackendOperation::List, read).await {
        Err(BackendError::Compacted { .. }) => return Err(StorageError::WatchExpired),
        outcome => outcome?,
    };
    check_minimum(wanted, page.revision).map_err(|error| match error {
        StorageError::TooLargeResourceVersion {
            requested, current, ..
        } => StorageError::TooLargeResourceVersion {
            requested,
            current,
            retry_after_seconds: rand::random_range(RETRY_AFTER_SECONDS),
        },
        other => other,
    })?;
    Ok(page)
}

/// The retry delays of watches of a version that the store has not reached, in seconds: random, so that they do not all
/// retry at once.
const RETRY_AFTER_SECONDS: std::ops::RangeInclusive<u32> = 1..=3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::LabelSelector;

    #[test]
    fn pages_grow_while_selectors_drop_objects() {
        let everything = SelectionPredicate {
            limit: 500,
            ..SelectionPredicate::default()
        };
        assert_eq!(next_page(&everything, 500, 120), 380);
        let selecting = SelectionPredicate {
            label: LabelSelector::parse("app=x").expect("a selector"),
            ..everything
        };
        assert_eq!(next_page(&selecting, 500, 120), 1_000);
        assert_eq!(next_page(&selecting, 8_000, 120), PAGE_OBJECTS_MAX);
        assert_eq!(next_page(&selecting, 20_000, 120), 20_000);
    }
}

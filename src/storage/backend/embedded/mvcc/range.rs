//! Reading keys at a revision.

use std::ops::Bound;
use std::sync::Arc;

use super::record::KeyVersion;
use super::state::State;
use crate::storage::backend::{BackendError, KeyRange, RangeContent, RangeRequest, RangeResponse};

impl State {
    /// Reads keys at a revision, the newest if it is 0.
    ///
    /// # Errors
    /// [`BackendError::Compacted`] or [`BackendError::FutureRevision`].
    pub(crate) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, BackendError> {
        let at = self.readable(request.revision)?;
        let limit = match request.limit {
            0 => usize::MAX,
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let mut kvs = Vec::new();
        let mut count: u64 = 0;
        let mut more = false;
        for version in self.versions_at(&request.range, at) {
            count += 1;
            match request.content {
                RangeContent::Count => {}
                _ if kvs.len() == limit => more = true,
                RangeContent::Keys => kvs.push(version.to_key_only()),
                RangeContent::Values => kvs.push(version.to_kv()),
            }
        }
        Ok(RangeResponse {
            revision: self.revision,
            kvs,
            more,
            count,
        })
    }

    /// Returns the revision to read at.
    fn readable(&self, revision: u64) -> Result<u64, BackendError> {
        if revision == 0 {
            return Ok(self.revision);
        }
        if revision > self.revision {
            return Err(BackendError::FutureRevision {
                current: self.revision,
            });
        }
        if revision < self.compacted {
            return Err(BackendError::Compacted {
                compact_revision: self.compacted,
            });
        }
        Ok(revision)
    }

    /// Returns the versions that were current at a revision, in key order: of today's, those that existed already, and
    /// of former ones, those that had begun and not ended. No key is in both.
    fn versions_at(&self, range: &KeyRange, at: u64) -> impl Iterator<Item = &Arc<KeyVersion>> {
        let (start, end) = bounds(range);
        let from: Arc<str> = Arc::from(start);
        let to: Arc<str> = Arc::from(end.as_ref());
        // No past version is valid at the newest revision.
        let past = (at < self.revision && from < to)
            .then(|| self.past.range((from, 0)..(to, 0)))
            .into_iter()
            .flatten();
        let mut past = past
            .filter(move |((_, ended), version)| version.mod_revision <= at && at < *ended)
            .map(|(_, version)| version)
            .peekable();
        let live = (start < end.as_ref())
            .then(|| {
                let bounds = (Bound::Included(start), Bound::Excluded(end.as_ref()));
                self.live.range::<_, str>(bounds)
            })
            .into_iter()
            .flatten();
        let mut live = live
            .map(|(_, version)| version)
            .filter(move |version| version.mod_revision <= at)
            .peekable();
        std::iter::from_fn(move || match (live.peek(), past.peek()) {
            (Some(is), Some(was)) if was.key < is.key => past.next(),
            (Some(_), _) => live.next(),
            (None, _) => past.next(),
        })
    }
}

/// Returns the first key of a range and the first key after it.
fn bounds(range: &KeyRange) -> (&str, std::borrow::Cow<'_, str>) {
    match range {
        KeyRange::Key(key) => (key, format!("{key}\0").into()),
        KeyRange::Span(start, end) => (start, end.into()),
    }
}

/// Returns true if a key lies in a range.
pub(super) fn contains(range: &KeyRange, key: &str) -> bool {
    match range {
        KeyRange::Key(only) => only == key,
        KeyRange::Span(start, end) => start.as_str() <= key && key < end.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// /a: 2 to 4, again from 6; /b: 3, overwritten at 5; /c: 7.
    fn state() -> State {
        let mut state = State::new();
        let value = |text: &'static str| Bytes::from_static(text.as_bytes());
        state.put("/a", value("a2"), None);
        state.put("/b", value("b3"), None);
        state.delete(["/a"]);
        state.put("/b", value("b5"), None);
        state.put("/a", value("a6"), None);
        state.put("/c", value("c7"), None);
        state
    }

    fn read(state: &State, revision: u64) -> Vec<Bytes> {
        let request = RangeRequest {
            revision,
            ..RangeRequest::all(KeyRange::prefix("/"))
        };
        let response = state.range(&request).unwrap();
        response.kvs.into_iter().map(|kv| kv.value).collect()
    }

    #[test]
    fn a_past_revision_shows_what_was_then() {
        let state = state();
        assert!(read(&state, 1).is_empty());
        assert_eq!(read(&state, 2), ["a2"]);
        assert_eq!(read(&state, 3), ["a2", "b3"]);
        assert_eq!(read(&state, 4), ["b3"]);
        assert_eq!(read(&state, 5), ["b5"]);
        assert_eq!(read(&state, 6), ["a6", "b5"]);
        assert_eq!(read(&state, 0), ["a6", "b5", "c7"]);
    }

    #[test]
    fn former_and_newest_versions_are_read_in_the_order_of_keys() {
        let mut state = State::new();
        for key in ["/a", "/b", "/c", "/d", "/e"] {
            state.put(key, Bytes::from_static(key.as_bytes()), None);
        }
        state.put("/b", Bytes::from_static(b"later"), None);
        state.delete(["/a"]);
        state.delete(["/e"]);
        assert_eq!(read(&state, 6), ["/a", "/b", "/c", "/d", "/e"]);
        assert_eq!(read(&state, 8), ["later", "/c", "/d", "/e"]);
        let turned_round = RangeRequest {
            revision: 6,
            ..RangeRequest::all(KeyRange::Span("/c".into(), "/a".into()))
        };
        assert!(state.range(&turned_round).unwrap().kvs.is_empty());
    }

    #[test]
    fn the_limit_cuts_what_is_returned_and_not_the_count() {
        let state = state();
        let mut request = RangeRequest {
            limit: 2,
            ..RangeRequest::all(KeyRange::prefix("/"))
        };
        let response = state.range(&request).unwrap();
        assert_eq!(
            (response.kvs.len(), response.more, response.count),
            (2, true, 3)
        );
        request.limit = 3;
        assert!(!state.range(&request).unwrap().more);
        request.content = RangeContent::Count;
        let response = state.range(&request).unwrap();
        assert_eq!((response.kvs.len(), response.count), (0, 3));
    }

    #[test]
    fn a_range_is_its_keys_and_no_other() {
        let state = state();
        let read = |range| {
            let response = state.range(&RangeRequest::all(range)).unwrap();
            response
                .kvs
                .into_iter()
                .map(|kv| kv.key)
                .collect::<Vec<_>>()
        };
        assert_eq!(read(KeyRange::Key("/b".into())), ["/b"]);
        assert_eq!(read(KeyRange::Span("/a".into(), "/c".into())), ["/a", "/b"]);
        assert!(read(KeyRange::Span("/c".into(), "/a".into())).is_empty());
        assert!(contains(&KeyRange::Span("/a".into(), "/c".into()), "/b"));
        assert!(!contains(&KeyRange::Span("/a".into(), "/c".into()), "/c"));
    }

    #[test]
    fn a_future_revision_is_refused() {
        let request = RangeRequest {
            revision: 8,
            ..RangeRequest::key("/a")
        };
        let refused = state().range(&request).unwrap_err();
        assert_eq!(refused, BackendError::FutureRevision { current: 7 });
    }
}

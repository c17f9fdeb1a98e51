//! The routing of reads: which the cache answers and how, in one table for each verb.
//!
//! | GET | |
//! |---|---|
//! | no version | the store |
//! | `0` | the cache, as it is |
//! | n | the cache, at or after n |
//!
//! | LIST | |
//! |---|---|
//! | no version | the cache, as new as the store was when the list began |
//! | `0` | the cache, as it is; the limit is ignored |
//! | n | the cache, at or after n |
//! | n with a limit, or `Exact` | the cache, at n; a single key: the store |
//! | continued at n | the cache, at n; a single key: the store |
//! | continued, inconsistently | the cache, as new as the store |
//!
//! | WATCH | version | begins |
//! |---|---|---|
//! | `sendInitialEvents` | none | with the state, as new as the store |
//! | | `0` | with the state, as it is |
//! | | n | with the state, at or after n |
//! | not `sendInitialEvents` | none | after the store's revision |
//! | | `0` | after what the cache has |
//! | | n | after n |
//! | neither | none, `0` | with the state, as it is |
//! | | n | after n |
//!
//! Requests that the cache then finds it cannot answer go to the store, except watches: a value that cannot be decoded,
//! a revision that has left the window, a cache that did not become fresh in time for a read without a version or for a
//! list that is continued. Lists of revisions that the store has compacted also go there, even if the cache still has
//! them. Where the feed may not come to the newest revision soon, so does every read of a revision that the cache has
//! not reached, and watches that begin with so new a state begin with the store's.

use crate::meta::VersionMatch;
use crate::storage::{ContinueToken, GetOptions, ListOptions, StorageError};

/// The freshness that a read demands of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// The cache as it is, however old.
    Any,
    /// At least this revision.
    NotOlderThan(u64),
    /// The revision that the store has when the read begins.
    MostRecent,
}

/// A list that the cache answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListPlan {
    /// The freshness that the cache must have to answer the list.
    pub(super) fresh: Fresh,
    /// The revision of the list, rather than the newest.
    pub(super) exact: Option<u64>,
    /// The key at which to continue; `None` from the beginning.
    pub(super) start: Option<String>,
    /// Maximum number of objects to return; 0 for all.
    pub(super) limit: u64,
}

/// The revision or state with which a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchPlan {
    /// The watch begins with the state of a cache that is so fresh.
    State(Fresh),
    /// The watch begins after this revision.
    After(u64),
    /// The watch begins after the revision that the store has now.
    AfterNewest,
    /// The watch begins after the newest revision of the cache.
    Now,
}

/// Returns the freshness that a GET demands of the cache; `None` if the store answers it.
pub(super) fn get(options: GetOptions) -> Option<Fresh> {
    match options.resource_version?.0 {
        0 => Some(Fresh::Any),
        revision => Some(Fresh::NotOlderThan(revision)),
    }
}

/// Returns the plan by which the cache answers a LIST; `None` if the store answers it.
///
/// # Errors
/// [`StorageError`] for a continue token that cannot be decoded, or that comes with a version.
pub(super) fn list(key: &str, options: &ListOptions) -> Result<Option<ListPlan>, StorageError> {
    let version = options.resource_version.map(|version| version.0);
    let limit = options.predicate.limit;
    let token = &options.predicate.continue_token;
    if !token.is_empty() {
        return continued(key, options, token, version.unwrap_or_default());
    }
    let plan = |fresh, exact, limit| ListPlan {
        fresh,
        exact,
        start: None,
        limit,
    };
    let exact = match options.version_match {
        Some(VersionMatch::Exact) => true,
        Some(VersionMatch::NotOlderThan) => false,
        None => limit > 0,
    };
    Ok(match version {
        None => Some(plan(Fresh::MostRecent, None, limit)),
        Some(0) => Some(plan(Fresh::Any, None, 0)),
        Some(n) if exact => options
            .recursive
            .then(|| plan(Fresh::NotOlderThan(n), Some(n), limit)),
        Some(n) => Some(plan(Fresh::NotOlderThan(n), None, limit)),
    })
}

fn continued(
    key: &str,
    options: &ListOptions,
    token: &str,
    version: u64,
) -> Result<Option<ListPlan>, StorageError> {
    if !options.recursive {
        return Ok(None);
    }
    let token = ContinueToken::decode(token, &folder(key))?;
    if version > 0 {
        return Err(StorageError::ContinueWithVersion);
    }
    let ignore_limit = options.resource_version.is_some();
    Ok(Some(ListPlan {
        fresh: token
            .revision
            .map_or(Fresh::MostRecent, Fresh::NotOlderThan),
        exact: token.revision,
        start: Some(token.start),
        limit: if ignore_limit {
            0
        } else {
            options.predicate.limit
        },
    }))
}

/// Returns the plan of a WATCH.
pub(super) fn watch(options: &ListOptions) -> WatchPlan {
    let version = options.resource_version.map(|version| version.0);
    match (options.send_initial_events, version) {
        (Some(true), None) => WatchPlan::State(Fresh::MostRecent),
        (Some(true) | None, Some(0)) | (None, None) => WatchPlan::State(Fresh::Any),
        (Some(true), Some(n)) => WatchPlan::State(Fresh::NotOlderThan(n)),
        (Some(false), None) => WatchPlan::AfterNewest,
        (Some(false), Some(0)) => WatchPlan::Now,
        (Some(false) | None, Some(n)) => WatchPlan::After(n),
    }
}

/// Returns the key of a recursive list with a slash at its end.
pub(super) fn folder(key: &str) -> String {
    if key.ends_with('/') {
        key.to_owned()
    } else {
        format!("{key}/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::ResourceVersion;
    use crate::storage::SelectionPredicate;

    fn options(
        version: Option<u64>,
        version_match: Option<VersionMatch>,
        limit: u64,
    ) -> ListOptions {
        ListOptions {
            resource_version: version.map(ResourceVersion),
            version_match,
            recursive: true,
            predicate: SelectionPredicate {
                limit,
                ..SelectionPredicate::default()
            },
            ..ListOptions::default()
        }
    }

    #[test]
    fn lists_follow_the_table() {
        use Fresh::{Any, MostRecent, NotOlderThan};
        use VersionMatch::{Exact, NotOlderThan as Newer};
        let rows = [
            (None, None, 0, MostRecent, None, 0),
            (None, None, 5, MostRecent, None, 5),
            (Some(0), None, 0, Any, None, 0),
            (Some(0), None, 5, Any, None, 0),
            (Some(0), Some(Newer), 5, Any, None, 0),
            (Some(7), None, 0, NotOlderThan(7), None, 0),
            (Some(7), None, 5, NotOlderThan(7), Some(7), 5),
            (Some(7), Some(Newer), 5, NotOlderThan(7), None, 5),
            (Some(7), Some(Exact), 0, NotOlderThan(7), Some(7), 0),
            (Some(7), Some(Exact), 5, NotOlderThan(7), Some(7), 5),
        ];
        for (version, version_match, limit_option, fresh, exact, limit) in rows {
            let options = options(version, version_match, limit_option);
            let plan = list("/pods/", &options).expect("no token").expect("cached");
            assert_eq!(
                (plan.fresh, plan.exact, plan.limit),
                (fresh, exact, limit),
                "{options:?}"
            );
        }
    }

    #[test]
    fn exact_and_continued_lists_of_a_single_key_are_the_stores() {
        let mut options = options(Some(7), Some(VersionMatch::Exact), 0);
        options.recursive = false;
        assert_eq!(list("/pods/a/b", &options).expect("no token"), None);
    }

    #[test]
    fn a_token_brings_its_revision_and_forbids_another() {
        let token = ContinueToken {
            start: "/pods/a/b\0".to_owned(),
            revision: Some(9),
        };
        let mut options = options(None, None, 5);
        options.predicate.continue_token = token.encode("/pods/").expect("a token");
        let plan = list("/pods/", &options).expect("a token").expect("cached");
        let expected = ListPlan {
            fresh: Fresh::NotOlderThan(9),
            exact: Some(9),
            start: Some(token.start),
            limit: 5,
        };
        assert_eq!(plan, expected);
        options.resource_version = Some(ResourceVersion(3));
        let error = list("/pods/", &options).expect_err("both");
        assert!(matches!(error, StorageError::ContinueWithVersion));
        options.predicate.continue_token = "x".to_owned();
        let error = list("/pods/", &options).expect_err("no token");
        assert!(matches!(error, StorageError::InvalidContinue(_)));
    }

    #[test]
    fn watches_follow_the_table() {
        use WatchPlan::{After, AfterNewest, Now, State};
        let rows = [
            (Some(true), None, State(Fresh::MostRecent)),
            (Some(true), Some(0), State(Fresh::Any)),
            (Some(true), Some(7), State(Fresh::NotOlderThan(7))),
            (Some(false), None, AfterNewest),
            (Some(false), Some(0), Now),
            (Some(false), Some(7), After(7)),
            (None, None, State(Fresh::Any)),
            (None, Some(0), State(Fresh::Any)),
            (None, Some(7), After(7)),
        ];
        for (send_initial_events, version, plan) in rows {
            let options = ListOptions {
                send_initial_events,
                ..options(version, None, 0)
            };
            assert_eq!(watch(&options), plan, "{options:?}");
        }
    }
}

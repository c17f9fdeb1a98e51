//! Namespaces in which an admission plugin has found nothing a moment ago.
//!
//! Plugins read limit ranges and quotas from the watch cache, which may be behind a write that the client has seen
//! succeed. Where the cache has nothing they look in the store, as kube-apiserver's LimitRanger and ResourceQuota do,
//! and for a while not again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringwatch::clock::Instant;

/// Time for which it is remembered that a namespace has none, as in kube-apiserver's `liveTTL`.
const REMEMBERED: Duration = Duration::from_secs(30);

/// Maximum number of namespaces that are remembered, as in kube-apiserver's `liveLookupCache`.
const NAMESPACES_MAX: usize = 10_000;

/// The namespaces, with the times when nothing was found in them.
#[derive(Debug, Default)]
pub(super) struct EmptyNamespaces(Mutex<HashMap<String, Instant>>);

impl EmptyNamespaces {
    fn found_empty(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if nothing was found in the namespace a moment ago.
    pub(super) fn contains(&self, namespace: &str, now: Instant) -> bool {
        let found = self.found_empty().get(namespace).copied();
        found.is_some_and(|at| now.saturating_duration_since(at) < REMEMBERED)
    }

    /// Remembers that the store has nothing in a namespace.
    pub(super) fn insert(&self, namespace: &str, now: Instant) {
        let mut found = self.found_empty();
        if found.len() >= NAMESPACES_MAX {
            found.retain(|_, at| now.saturating_duration_since(*at) < REMEMBERED);
        }
        if found.len() < NAMESPACES_MAX {
            found.insert(namespace.to_owned(), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    #[test]
    fn a_namespace_is_remembered_for_a_while() {
        let now = Clock::real().now();
        let namespaces = EmptyNamespaces::default();
        assert!(!namespaces.contains("a", now));
        namespaces.insert("a", now);
        assert!(namespaces.contains("a", now + REMEMBERED / 2));
        assert!(!namespaces.contains("a", now + REMEMBERED));
    }

    #[test]
    fn as_many_are_remembered_as_may_be() {
        let now = Clock::real().now();
        let namespaces = EmptyNamespaces::default();
        for number in 0..=NAMESPACES_MAX {
            namespaces.insert(&number.to_string(), now);
        }
        assert!(!namespaces.contains(&NAMESPACES_MAX.to_string(), now));
        let later = now + REMEMBERED;
        namespaces.insert("a", later);
        assert!(namespaces.contains("a", later));
    }
}

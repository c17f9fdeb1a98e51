//! A bounded cache of compiled patterns, which all definitions and expressions share, since the same patterns are
//! common.

use std::collections::hash_map::RandomState;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::{PatternError, Program};

/// Maximum number of bytes of compiled patterns that the process keeps.
pub(super) const CACHE_BYTES_MAX: usize = 64 << 20;

/// A cache of compiled patterns, which drops the least recently used when it is over its bound.
#[derive(Debug)]
pub(super) struct PatternCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Clients choose the patterns, and shall not choose the places of their hashes.
    programs: LruCache<Arc<str>, CachedPattern, RandomState>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedPattern {
    program: Arc<Program>,
    bytes: usize,
}

impl PatternCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            inner: Mutex::new(Inner {
                programs: LruCache::unbounded_with_hasher(RandomState::new()),
                bytes: 0,
            }),
        }
    }

    /// Returns the program of a pattern, and true if it was compiled just now.
    ///
    /// # Errors
    /// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
    pub(super) fn get(&self, pattern: &str) -> Result<(Arc<Program>, bool), PatternError> {
        if let Some(program) = self.inner().get(pattern) {
            return Ok((program, false));
        }
        // The lock is not held while compiling; at worst two threads compile the same pattern.
        let program = Arc::new(Program::compile(pattern)?);
        self.inner().add(pattern, &program, self.bytes_max);
        Ok((program, true))
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn get(&mut self, pattern: &str) -> Option<Arc<Program>> {
        let cached = self.programs.get(pattern)?;
        Some(Arc::clone(&cached.program))
    }

    fn add(&mut self, pattern: &str, program: &Arc<Program>, bytes_max: usize) {
        if self.programs.contains(pattern) {
            return;
        }
        let bytes = program.bytes() + pattern.len();
        self.bytes += bytes;
        while self.bytes > bytes_max {
            let Some((_, forgotten)) = self.programs.pop_lru() else {
                // This pattern alone exceeds the bound.
                self.bytes -= bytes;
                return;
            };
            self.bytes -= forgotten.bytes;
        }
        let program = Arc::clone(program);
        self.programs
            .put(pattern.into(), CachedPattern { program, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let one = Program::compile("a").expect("a pattern").bytes() + 1;
        let cache = PatternCache::new(2 * one);
        let is_new = |pattern: &str| cache.get(pattern).expect("a pattern").1;
        assert!(is_new("a") && is_new("b"));
        assert!(!is_new("a"));
        assert!(is_new("c"));
        assert!(!is_new("a") && is_new("b"));
        let inner = cache.inner();
        assert!(inner.bytes <= 2 * one);
        assert_eq!(inner.programs.len(), 2);
    }

    #[test]
    fn thousands_of_usual_patterns_are_kept() {
        let pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
        let one = Program::compile(pattern).expect("a pattern").bytes() + pattern.len();
        assert!(one < 8 << 10, "{one}");
        assert!(CACHE_BYTES_MAX / one > 8_000);
    }

    #[test]
    fn thousands_of_large_patterns_stay_within_the_bound() {
        let cache = PatternCache::new(4 << 20);
        for number in 0..200 {
            cache
                .get(&format!(r"\pL{{20}}{number}"))
                .expect("a pattern");
            assert!(cache.inner().bytes <= 4 << 20);
        }
        assert!(cache.inner().programs.len() > 5);
    }
}

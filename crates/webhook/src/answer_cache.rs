//! Remembers the answers of a webhook for a short time.
//!
//! Answers that grant something and all others are bounded apart from each other: strangers can make up any number of
//! questions, but the answers to these are refusals, which push out no more than other refusals.
//!
//! Follows apiserver/pkg/authentication/token/cache of Kubernetes 1.36, whose cache has no bound of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use ringwatch::clock::Instant;
use sha2::{Digest, Sha256};

/// The most bytes that the answers that grant something may take; beyond that the oldest are evicted.
const GRANTED_BYTES_MAX: usize = 8 << 20;
/// The most bytes that all other answers may take.
const REFUSED_BYTES_MAX: usize = 2 << 20;
/// The most bytes that an answer may take to be kept.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// The bytes of an answer besides itself: its question, its place in the order, and the share of empty places in the
/// map.
const ENTRY_BYTES: usize = 200;

/// The newest answers to questions, each for a time.
#[derive(Debug)]
pub struct AnswerCache<A> {
    /// Makes questions with chosen digests impossible.
    key: [u8; 32],
    answers: Mutex<CachedAnswers<A>>,
}

/// The digest of a question, from which the question cannot be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuestionDigest([u8; 32]);

/// An answer that can be remembered.
pub trait CacheableAnswer: Clone {
    /// Returns true if the answer grants something, so that it must not be pushed out by refusals.
    fn grants(&self) -> bool;

    /// Returns the number of bytes that the answer keeps alive besides its own size.
    fn heap_bytes(&self) -> usize;
}

#[derive(Debug)]
struct CachedAnswers<A> {
    granted: BoundedAnswers<A>,
    refused: BoundedAnswers<A>,
}

/// Answers up to a number of bytes.
#[derive(Debug)]
struct BoundedAnswers<A> {
    bytes_max: usize,
    bytes: usize,
    /// In the order in which they came.
    answers: LruCache<QuestionDigest, CachedAnswer<A>>,
}

#[derive(Debug)]
struct CachedAnswer<A> {
    until: Instant,
    answer: A,
    bytes: usize,
}

impl<A> Default for AnswerCache<A> {
    fn default() -> Self {
        Self {
            key: rand::random(),
            answers: Mutex::new(CachedAnswers {
                granted: BoundedAnswers::new(GRANTED_BYTES_MAX),
                refused: BoundedAnswers::new(REFUSED_BYTES_MAX),
            }),
        }
    }
}

impl<A: CacheableAnswer> AnswerCache<A> {
    /// Returns the digest of the question that has these parts.
    pub fn question<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> QuestionDigest {
        let mut digest = Sha256::new_with_prefix(self.key);
        for part in parts {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        QuestionDigest(digest.finalize().into())
    }

    /// Returns a remembered answer that has not expired.
    pub fn get(&self, question: &QuestionDigest, now: Instant) -> Option<A> {
        let cached = self.cached();
        // Only peeked at, since an answer grows old however often it is used.
        let entry = cached.granted.answers.peek(question);
        let entry = entry.or_else(|| cached.refused.answers.peek(question))?;
        (now < entry.until).then(|| entry.answer.clone())
    }

    /// Keeps an answer for some time; a large one is not kept.
    pub fn put(&self, question: QuestionDigest, answer: &A, ttl: Duration, now: Instant) {
        let bytes = ENTRY_BYTES + size_of::<A>() + answer.heap_bytes();
        let mut cached = self.cached();
        let CachedAnswers { granted, refused } = &mut *cached;
        granted.remove(&question);
        refused.remove(&question);
        if ttl.is_zero() || bytes > ANSWER_BYTES_MAX {
            return;
        }
        let its = if answer.grants() { granted } else { refused };
        its.add(question, answer.clone(), now + ttl, bytes);
    }

    fn cached(&self) -> MutexGuard<'_, CachedAnswers<A>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> BoundedAnswers<A> {
    fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            answers: LruCache::unbounded(),
        }
    }

    fn add(&mut self, question: QuestionDigest, answer: A, until: Instant, bytes: usize) {
        let entry = CachedAnswer {
            until,
            answer,
            bytes,
        };
        self.answers.put(question, entry);
        self.bytes += bytes;
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.answers.pop_lru()
        {
            self.bytes -= oldest.bytes;
        }
    }

    fn remove(&mut self, question: &QuestionDigest) {
        if let Some(entry) = self.answers.pop(question) {
            self.bytes -= entry.bytes;
        }
    }
}

/// Returns the bytes of texts on the heap, with those of the list that has them.
pub fn texts_bytes<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    let texts = texts.into_iter();
    texts.map(|text| size_of::<String>() + text.len()).sum()
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Grants with texts that begin with "yes".
    impl CacheableAnswer for String {
        fn grants(&self) -> bool {
            self.starts_with("yes")
        }

        fn heap_bytes(&self) -> usize {
            self.len()
        }
    }

    fn cache() -> (AnswerCache<String>, Instant) {
        (AnswerCache::default(), Clock::real().now())
    }

    #[test]
    fn answers_count_for_a_time_and_large_ones_are_not_kept() {
        let (cache, now) = cache();
        let [first, second, third] = ["a", "b", "c"].map(|text| cache.question([text]));
        let answer = "no".to_owned();
        cache.put(first, &answer, MINUTE, now);
        assert_eq!(cache.get(&first, now), Some(answer.clone()));
        assert_eq!(cache.get(&first, now + MINUTE), None);
        cache.put(second, &answer, Duration::ZERO, now);
        cache.put(third, &"x".repeat(ANSWER_BYTES_MAX), MINUTE, now);
        assert_eq!(cache.get(&second, now), None);
        assert_eq!(cache.get(&third, now), None);
        let later = "yes".to_owned();
        cache.put(first, &later, MINUTE, now);
        assert_eq!(cache.get(&first, now), Some(later), "the newest counts");
        cache.put(first, &answer, MINUTE, now);
        assert_eq!(cache.get(&first, now), Some(answer), "whichever it is");
    }

    #[test]
    fn questions_differ_where_their_parts_do() {
        let (cache, _) = cache();
        assert_eq!(cache.question(["ab", "c"]), cache.question(["ab", "c"]));
        assert_ne!(cache.question(["ab", "c"]), cache.question(["a", "bc"]));
        let (other, _) = self::cache();
        assert_ne!(cache.question(["a"]), other.question(["a"]));
    }

    #[test]
    fn refusals_push_out_other_refusals_alone() {
        let (cache, now) = cache();
        let good = cache.question(["good"]);
        cache.put(good, &"yes".to_owned(), MINUTE, now);
        let (answer, count) = ("no".to_owned(), 2 * REFUSED_BYTES_MAX / ENTRY_BYTES);
        let numbered = |number: usize| cache.question([&*number.to_string()]);
        for number in 0..count {
            cache.put(numbered(number), &answer, MINUTE, now);
        }
        assert_eq!(cache.get(&good, now).as_deref(), Some("yes"));
        assert_eq!(cache.get(&numbered(0), now), None, "the oldest is gone");
        assert!(cache.get(&numbered(count - 1), now).is_some());
        let cached = cache.cached();
        assert!(cached.refused.bytes <= REFUSED_BYTES_MAX);
    }

    #[test]
    fn grants_are_bounded_by_their_bytes() {
        let (cache, now) = cache();
        let large = "yes".to_owned() + &"x".repeat(ANSWER_BYTES_MAX / 2);
        for number in 0..4 * GRANTED_BYTES_MAX / ANSWER_BYTES_MAX {
            cache.put(cache.question([&*number.to_string()]), &large, MINUTE, now);
        }
        let cached = cache.cached();
        assert!(cached.granted.bytes <= GRANTED_BYTES_MAX);
        assert!(cached.granted.bytes > GRANTED_BYTES_MAX - ANSWER_BYTES_MAX);
        let counted: usize = cached.granted.answers.iter().map(|it| it.1.bytes).sum();
        assert_eq!(cached.granted.bytes, counted);
    }
}

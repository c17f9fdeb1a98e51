//! Remembers the answers of a webhook for a short time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringwatch::clock::Instant;

/// How many answers are kept; then the oldest is evicted.
const ANSWERS_MAX: usize = 8192;
/// How long a question may be in bytes to be kept, so that nobody fills the memory with them.
const QUESTION_BYTES_MAX: usize = 10_000;

/// The newest answers to questions, each for a time.
#[derive(Debug)]
pub struct AnswerCache<A>(Mutex<Kept<A>>);

#[derive(Debug)]
struct Kept<A> {
    answers: HashMap<String, (Instant, A)>,
    /// The questions, the oldest first, each once.
    order: VecDeque<String>,
}

/// An answer that can be remembered.
pub trait Answer: Clone {
    /// How many bytes the texts of an answer may have for it to be kept.
    const TEXT_BYTES_MAX: usize;

    /// Returns the number of bytes of the texts in the answer.
    fn text_bytes(&self) -> usize;
}

impl<A> Default for AnswerCache<A> {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            answers: HashMap::new(),
            order: VecDeque::new(),
        }))
    }
}

impl<A: Answer> AnswerCache<A> {
    /// Returns a remembered answer that has not expired.
    pub fn get(&self, question: &str, now: Instant) -> Option<A> {
        let kept = self.kept();
        let (until, answer) = kept.answers.get(question)?;
        (now < *until).then(|| answer.clone())
    }

    /// Keeps an answer for some time; a long one, or one to a long question, is not kept.
    pub fn put(&self, question: String, answer: &A, ttl: Duration, now: Instant) {
        let is_long =
            question.len() > QUESTION_BYTES_MAX || answer.text_bytes() > A::TEXT_BYTES_MAX;
        if ttl.is_zero() || is_long {
            return;
        }
        let mut kept = self.kept();
        let value = (now + ttl, answer.clone());
        if kept.answers.insert(question.clone(), value).is_some() {
            kept.order.retain(|known| *known != question);
        }
        kept.order.push_back(question);
        if kept.order.len() > ANSWERS_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.answers.remove(&oldest);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    impl Answer for String {
        const TEXT_BYTES_MAX: usize = 10;

        fn text_bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn answers_count_for_a_time_and_there_are_not_too_many() {
        let (cache, now) = (AnswerCache::default(), Clock::real().now());
        let minute = Duration::from_secs(60);
        let answer = "no".to_owned();
        cache.put("a".to_owned(), &answer, minute, now);
        assert_eq!(cache.get("a", now), Some(answer.clone()));
        assert_eq!(cache.get("a", now + minute), None);
        cache.put("b".to_owned(), &answer, Duration::ZERO, now);
        cache.put("x".repeat(QUESTION_BYTES_MAX + 1), &answer, minute, now);
        cache.put("c".to_owned(), &"x".repeat(11), minute, now);
        assert_eq!(cache.kept().answers.len(), 1);
        for number in 0..2 * ANSWERS_MAX {
            cache.put(number.to_string(), &answer, minute, now);
        }
        let kept = cache.kept();
        assert_eq!(
            (kept.answers.len(), kept.order.len()),
            (ANSWERS_MAX, ANSWERS_MAX)
        );
    }
}

//! Remembers the answers of a webhook for a short time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringwatch::clock::Instant;

use super::Answer;

/// How many answers are kept; then the oldest is evicted.
const ANSWERS_MAX: usize = 8192;
/// How long a question may be in bytes to be kept, so that nobody fills the memory with them.
const QUESTION_BYTES_MAX: usize = 10_000;
/// How long a reason may be in bytes to be kept.
const REASON_BYTES_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<String, (Instant, Answer)>,
    /// The questions, the oldest first, each once.
    order: VecDeque<String>,
}

impl Cache {
    /// Returns a remembered answer that has not expired.
    pub(super) fn get(&self, question: &str, now: Instant) -> Option<Answer> {
        let kept = self.kept();
        let (until, answer) = kept.answers.get(question)?;
        (now < *until).then(|| answer.clone())
    }

    /// Keeps an answer for some time.
    pub(super) fn put(&self, question: String, answer: &Answer, ttl: Duration, now: Instant) {
        let (Answer::Allowed(reason) | Answer::Denied(reason) | Answer::NoOpinion(reason)) = answer;
        if ttl.is_zero() || question.len() > QUESTION_BYTES_MAX || reason.len() > REASON_BYTES_MAX {
            return;
        }
        let mut kept = self.kept();
        let value = (now + ttl, answer.clone());
        if kept.answers.insert(question.clone(), value).is_none() {
            kept.order.push_back(question);
        }
        if kept.order.len() > ANSWERS_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.answers.remove(&oldest);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    #[test]
    fn answers_count_for_a_time_and_there_are_not_too_many() {
        let (cache, now) = (Cache::default(), Clock::real().now());
        let minute = Duration::from_secs(60);
        let answer = Answer::Denied("no".to_owned());
        cache.put("a".to_owned(), &answer, minute, now);
        assert_eq!(cache.get("a", now), Some(answer.clone()));
        assert_eq!(cache.get("a", now + minute), None);
        cache.put("b".to_owned(), &answer, Duration::ZERO, now);
        cache.put("x".repeat(QUESTION_BYTES_MAX + 1), &answer, minute, now);
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

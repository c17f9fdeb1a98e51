//! The calls of webhooks that run, and those of the last minute.

use std::fmt::Display;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use ringwatch::clock::{Clock, Instant};
use ringwatch::sync::{Mutex, MutexGuard};

use crate::last_minute::LastMinute;
use crate::sharded_registry::ShardedRegistry;
use crate::shortened_text::shortened;

/// Maximum number of webhooks whose ended calls are kept. Calls of more webhooks are shown while they run.
const WEBHOOKS_MAX: usize = 256;

/// The time that a call takes at least to have failed when whoever waited for it goes away: before it, that is no fault
/// of the webhook.
const ABANDONED_MIN: Duration = Duration::from_secs(1);

/// The calls of webhooks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct WebhookCalls(Arc<CallTable>);

#[derive(Debug, Default)]
struct CallTable {
    running: ShardedRegistry<CallRecord>,
    ended: Mutex<IndexMap<Webhook, LastMinute<EndedCalls>>>,
}

/// A webhook, by the name in its configuration and by its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Webhook {
    /// The name in its configuration.
    pub name: Box<str>,
    /// The address.
    pub target: Box<str>,
}

#[derive(Debug)]
struct CallRecord {
    webhook: Webhook,
    since: Instant,
}

/// Sums over calls that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedCalls {
    /// The number of calls.
    pub calls: u64,
    /// The number of those without an answer of success.
    pub failed: u64,
    /// The time that they took.
    pub took: Duration,
    /// The time that the longest took.
    pub longest: Duration,
}

/// The calls of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookFigures {
    /// The webhook.
    pub webhook: Webhook,
    /// The number of calls that run.
    pub running: u64,
    /// The time for which the first of them has run; 0 if none runs.
    pub running_for: Duration,
    /// The calls that ended within the last minute.
    pub ended: EndedCalls,
}

/// A call that runs, until this is dropped.
struct RunningCall<'a> {
    all: &'a CallTable,
    id: u64,
    call: Arc<CallRecord>,
    /// True if it succeeded, false if it failed; `None` if nobody waits for the answer any more.
    succeeded: Option<bool>,
    clock: &'a Clock,
}

impl WebhookCalls {
    /// Makes a call of the webhook of a name and an address, and counts it.
    ///
    /// # Errors
    /// That of the call.
    pub async fn counted<T, E>(
        &self,
        name: &str,
        target: &impl Display,
        clock: &Clock,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let (id, running) = self.0.running.add(|_| CallRecord {
            webhook: Webhook {
                name: shortened(name),
                target: shortened(&target.to_string()),
            },
            since: clock.now(),
        });
        let mut running = RunningCall {
            all: &self.0,
            id,
            call: running,
            succeeded: None,
            clock,
        };
        let answer = call.await;
        running.succeeded = Some(answer.is_ok());
        answer
    }

    /// Returns the webhooks that are called or were within the last minute: those first whose calls have run longest.
    #[must_use]
    pub fn figures(&self, now: Instant) -> Vec<WebhookFigures> {
        let mut all: IndexMap<Webhook, WebhookFigures> = IndexMap::new();
        for call in self.0.running.all() {
            let of_one = figures_of(&mut all, &call.webhook);
            of_one.running += 1;
            let running_for = now.saturating_duration_since(call.since);
            of_one.running_for = of_one.running_for.max(running_for);
        }
        for (webhook, minute) in &*self.0.ended() {
            if !minute.is_idle(now) {
                let of_one = figures_of(&mut all, webhook);
                minute.parts(now).for_each(|part| of_one.ended.add(part));
            }
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.sort_by_key(|it| std::cmp::Reverse((it.running_for, it.ended.failed, it.ended.took)));
        all
    }
}

fn figures_of<'a>(
    all: &'a mut IndexMap<Webhook, WebhookFigures>,
    webhook: &Webhook,
) -> &'a mut WebhookFigures {
    all.entry(webhook.clone())
        .or_insert_with_key(|it| WebhookFigures {
            webhook: it.clone(),
            running: 0,
            running_for: Duration::ZERO,
            ended: EndedCalls::default(),
        })
}

impl CallTable {
    fn ended(&self) -> MutexGuard<'_, IndexMap<Webhook, LastMinute<EndedCalls>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.all.running.remove(self.id);
        let now = self.clock.now();
        let took = now.saturating_duration_since(self.call.since);
        let mut ended = self.all.ended();
        if !ended.contains_key(&self.call.webhook) && ended.len() >= WEBHOOKS_MAX {
            ended.retain(|_, minute| !minute.is_idle(now));
            if ended.len() >= WEBHOOKS_MAX {
                return;
            }
        }
        let minute = ended.entry(self.call.webhook.clone()).or_default();
        minute.part(now).add(&EndedCalls {
            calls: 1,
            failed: u64::from(!self.succeeded.unwrap_or(took < ABANDONED_MIN)),
            took,
            longest: took,
        });
    }
}

impl EndedCalls {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.took += other.took;
        self.longest = self.longest.max(other.longest);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    /// The address of each webhook.
    const TARGET: &str = "https://127.0.0.1:1/";

    #[tokio::test(start_paused = true)]
    async fn calls_are_shown_while_they_run_and_for_a_minute() {
        let (calls, clock) = (WebhookCalls::default(), Clock::real());
        let answer = async {
            clock.sleep(Duration::from_secs(1)).await;
            Ok::<_, ()>(())
        };
        calls
            .counted("good", &TARGET, &clock, answer)
            .await
            .expect("answer");
        {
            let mut hangs = pin!(calls.counted(
                "bad",
                &TARGET,
                &clock,
                std::future::pending::<Result<(), ()>>()
            ));
            assert!(futures::poll!(&mut hangs).is_pending());
            clock.sleep(Duration::from_secs(2)).await;
            let figures = calls.figures(clock.now());
            assert_eq!(&*figures[0].webhook.name, "bad");
            let running = (figures[0].running, figures[0].running_for);
            assert_eq!(running, (1, Duration::from_secs(2)));
            assert_eq!(figures[0].ended, EndedCalls::default());
            assert_eq!((figures[1].ended.calls, figures[1].ended.failed), (1, 0));
            assert_eq!(figures[1].ended.longest, Duration::from_secs(1));
        }
        // Whoever waited for it has gone.
        let figures = calls.figures(clock.now());
        assert_eq!((figures[0].running, figures[0].ended.failed), (0, 1));
        clock.sleep(Duration::from_secs(80)).await;
        assert_eq!(calls.figures(clock.now()), []);
    }

    #[tokio::test(start_paused = true)]
    async fn webhooks_that_are_called_no_more_make_room() {
        let (calls, clock) = (WebhookCalls::default(), Clock::real());
        let call = async |name: String| {
            let answer = std::future::ready(Ok::<_, ()>(()));
            let called = calls.counted(&name, &TARGET, &clock, answer).await;
            called.expect("an answer");
        };
        for number in 0..=WEBHOOKS_MAX {
            call(number.to_string()).await;
        }
        assert_eq!(calls.figures(clock.now()).len(), WEBHOOKS_MAX);
        clock.sleep(Duration::from_secs(80)).await;
        call("new".to_owned()).await;
        assert_eq!(calls.figures(clock.now()).len(), 1);
        assert_eq!(calls.0.ended().len(), 1);
    }
}

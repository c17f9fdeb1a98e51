//! The time since a source of changes has lost its upstream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::ChangeStream;

/// The contact of a source with its upstream. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Contact {
    /// The time at which it was lost; `None` while there is one.
    lost: Arc<Mutex<Option<Instant>>>,
    clock: Clock,
}

/// Contact for as long as this is held.
struct UpstreamContact(Contact);

impl Contact {
    /// Creates the contact of a source that has none yet.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            lost: Arc::new(Mutex::new(Some(clock.now()))),
            clock: clock.clone(),
        }
    }

    /// Returns for how long there has been no contact; `None` while there is.
    pub(crate) fn lost_for(&self) -> Option<Duration> {
        let lost = *self.lock();
        lost.map(|lost| self.clock.now().saturating_duration_since(lost))
    }

    /// Counts a stream of changes as contact, from now until it ends or is dropped.
    pub(crate) fn through(&self, changes: ChangeStream) -> ChangeStream {
        *self.lock() = None;
        let held = UpstreamContact(self.clone());
        let changes = changes.map(move |change| {
            let _ = &held;
            change
        });
        changes.boxed()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UpstreamContact {
    fn drop(&mut self) {
        *self.0.lock() = Some(self.0.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use ringwatch::storage::ChangeBatch;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn contact_lasts_as_long_as_the_stream() {
        let clock = Clock::real();
        let contact = Contact::new(&clock);
        clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(contact.lost_for(), Some(Duration::from_secs(2)));
        let changes = contact.through(stream::pending().boxed());
        clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(contact.lost_for(), None);
        drop(changes);
        clock.sleep(Duration::from_secs(3)).await;
        assert_eq!(contact.lost_for(), Some(Duration::from_secs(3)));
        let ended = stream::iter([Ok(ChangeBatch {
            changes: Vec::new(),
            revision: 1,
        })])
        .boxed();
        let mut changes = contact.through(ended);
        while changes.next().await.is_some() {}
        drop(changes);
        assert_eq!(contact.lost_for(), Some(Duration::ZERO));
    }
}

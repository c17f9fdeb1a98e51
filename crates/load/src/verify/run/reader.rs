//! Clients that list in every way there is, one way after the other, and read single objects between the lists.

use std::ops::Range;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use super::journal::Journal;
use super::reconnecting::{ListRequest, RETRY_PAUSE, ReconnectingConnection, SelectedObjects};
use crate::client::{ClientError, Encoding};
use crate::time::{Instant, now};
use crate::verify::history::{ObjectKey, RevisionMatch, Selector};

/// The pause between two lists of a reader.
const PAUSE: Duration = Duration::from_millis(50);
/// A list of an older state goes back so many revisions at most.
const BACK_MAX: u64 = 200;
/// The ways to list, which come in turn.
pub(super) const WAYS: u64 = 6;
/// A page has so many objects at most.
const PAGE_OBJECTS_MAX: usize = 9;

/// A client that lists in every way, one list after the other, and reads an object after each.
#[derive(Debug)]
pub(super) struct ReadingClient<'a> {
    pub(super) scope: &'a SelectedObjects,
    pub(super) selectors: &'a [Selector],
    pub(super) encodings: &'a [Encoding],
    /// The objects of the run.
    pub(super) keys: Range<u32>,
    pub(super) journal: &'a Journal,
    pub(super) connection: ReconnectingConnection,
    pub(super) random: StdRng,
}

impl ReadingClient<'_> {
    /// Reads until the given time. Returns the errors of reads that failed.
    pub(super) async fn run(mut self, until: Instant) -> Vec<ClientError> {
        let (mut newest, mut failed) = (0, Vec::new());
        for turn in 0_u64.. {
            if now() >= until {
                break;
            }
            let listed = self.list(turn, newest).await;
            newest = newest.max(*listed.as_ref().unwrap_or(&0));
            let key = ObjectKey(self.random.random_range(self.keys.clone()));
            let encoding = self.encoding();
            let connection = &mut self.connection;
            let got = connection
                .get(self.journal, self.scope, key, encoding)
                .await;
            // A server may be away, or have forgotten the revision.
            for error in [listed.err(), got.err()].into_iter().flatten() {
                failed.push(error);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
        failed
    }

    async fn list(&mut self, turn: u64, newest: u64) -> Result<u64, ClientError> {
        let back = self.random.random_range(0..BACK_MAX);
        let older = newest.saturating_sub(back);
        let is_known = newest > 0;
        let (revision_match, limit) = match turn % WAYS {
            0 => (RevisionMatch::Any, None),
            1 if is_known => (RevisionMatch::Exact(older.max(1)), None),
            2 if is_known => (RevisionMatch::NotOlderThan(newest), None),
            3 | 4 => {
                let limit = self.random.random_range(1..=PAGE_OBJECTS_MAX);
                (RevisionMatch::Newest, Some(limit))
            }
            _ => (RevisionMatch::Newest, None),
        };
        let selector = self.random.random_range(0..self.selectors.len());
        let encoding = self.encoding();
        let request = ListRequest {
            scope: self.scope,
            selector: &self.selectors[selector],
            revision_match,
            limit,
            encoding,
        };
        let (_, read) = self.connection.list(self.journal, &request).await?;
        Ok(read.revision())
    }

    /// Draws the form of an answer.
    fn encoding(&mut self) -> Encoding {
        self.encodings[self.random.random_range(0..self.encodings.len())]
    }
}

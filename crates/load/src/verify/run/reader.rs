//! Clients that list in every way there is, one way after the other.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use crate::client::{ClientError, Encoding};
use crate::time::{Instant, now};
use crate::verify::history::{RevisionMatch, Selector};

use super::journal::Journal;
use super::reconnecting::{ListRequest, RETRY_PAUSE, ReconnectingConnection, Scope};

/// Between two lists of a reader.
const PAUSE: Duration = Duration::from_millis(50);
/// A list of an older state goes back so many revisions at most.
const BACK_MAX: u64 = 200;
/// The ways to list, which come in turn.
pub(super) const WAYS: u64 = 6;
/// A page has so many objects at most.
const PAGE_OBJECTS_MAX: usize = 9;

/// A client that lists in every way, one list after the other.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) scope: &'a Scope,
    pub(super) selectors: &'a [Selector],
    pub(super) encodings: &'a [Encoding],
    pub(super) journal: &'a Journal,
    pub(super) connection: ReconnectingConnection,
    pub(super) random: StdRng,
}

impl Reader<'_> {
    /// Lists until the given time. Returns the errors of lists that failed.
    pub(super) async fn run(mut self, until: Instant) -> Vec<ClientError> {
        let (mut newest, mut failed) = (0, Vec::new());
        for turn in 0_u64.. {
            if now() >= until {
                break;
            }
            match self.list(turn, newest).await {
                Ok(revision) => newest = newest.max(revision),
                // A server may be away, or have forgotten the revision.
                Err(error) => {
                    failed.push(error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
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
        let encoding = self.encodings[self.random.random_range(0..self.encodings.len())];
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
}

//! The two moments at which all watchers are waited for: before the first write and after the last.

use std::time::Duration;

use super::journal::Journal;
use super::reconnecting::{ListRequest, ReconnectingConnection, SelectedObjects};
use crate::client::Encoding;
use crate::time::now;
use crate::verify::checks::difference;
use crate::verify::history::{History, RevisionMatch, Selector, WatchEnd};

/// All watches must be open within this time.
const OPEN_MAX: Duration = Duration::from_secs(30);
/// All watchers must have seen everything so long after the last write. A server that was just
/// restarted may need some of it to come back.
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// The time between two looks at the watchers.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The result of the end of a run.
#[derive(Debug)]
pub(super) struct SettledRun {
    /// The place of the list that shows the final state.
    pub(super) place: Option<usize>,
    /// The reasons why there is none, or why not everybody is there to see it.
    pub(super) trouble: Vec<String>,
}

/// Waits until every watcher has a watch.
pub(super) async fn all_watch(journal: &Journal) -> Result<(), String> {
    let deadline = now() + OPEN_MAX;
    loop {
        let Some(absent) = absent(&journal.history()) else {
            return Ok(());
        };
        if now() >= deadline {
            return Err(format!(
                "{absent} has no watch after {OPEN_MAX:?}; nothing was written"
            ));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Lists until every watcher has what the list shows. What was never answered may still happen
/// meanwhile, so the list is a new one each time.
pub(super) async fn settle(
    journal: &Journal,
    mut connection: ReconnectingConnection,
    scope: &SelectedObjects,
) -> SettledRun {
    let deadline = now() + SETTLE_MAX;
    let request = ListRequest {
        scope,
        selector: &Selector::Everything,
        revision_match: RevisionMatch::Newest,
        limit: None,
        encoding: Encoding::Json,
    };
    let mut place = None;
    loop {
        let trouble = match connection.list(journal, &request).await {
            Ok((newest, list)) => {
                place = Some(newest);
                let history = journal.history();
                let mut watchers = history.watchers.iter();
                let differs = watchers.any(|it| difference(it, &list).is_some());
                match absent(&history) {
                    None if !differs => None,
                    // Who differs is for the checks to say.
                    None => Some(Vec::new()),
                    Some(absent) => Some(vec![format!(
                        "{absent} has no watch {SETTLE_MAX:?} after the last write"
                    )]),
                }
            }
            Err(error) => Some(vec![format!("the final state cannot be read: {error}")]),
        };
        match trouble {
            None => {
                let trouble = Vec::new();
                return SettledRun { place, trouble };
            }
            Some(trouble) if now() >= deadline => return SettledRun { place, trouble },
            Some(_) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// Returns the name of a watcher without an open watch.
fn absent(history: &History) -> Option<String> {
    let mut watchers = history.watchers.iter();
    let absent = watchers.find(|it| it.sessions.last().is_none_or(|it| it.end != WatchEnd::Open));
    absent.map(|it| format!("watcher {}", it.name))
}

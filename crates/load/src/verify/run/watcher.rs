//! Clients that watch, each in its own way, come back when a watch ends, and write down all they see.

use std::time::Duration;

use clap::ValueEnum;
use rand::Rng;
use rand::rngs::StdRng;
use serde::Serialize;
use tokio::sync::watch;

use super::journal::Journal;
use super::objects;
use super::reconnecting::{ListRequest, RETRY_PAUSE, ReconnectingConnection, SelectedObjects};
use crate::client::{Client, ClientError, Encoding, EventKind, OwnedEvent, Watch};
use crate::verify::history::{ChangeKind, Item, Nanos, RevisionMatch, Selector, Start, WatchEnd};

/// The server ends a watch after this time.
const WATCH_SECONDS: u64 = 300;
/// A watch that has to be resumed all the time ends after this time. Before its end comes a bookmark.
const SHORT_WATCH_SECONDS: u64 = 3;
/// A watcher that leaves does so after a time in this range.
const STAY_MIN: Duration = Duration::from_millis(200);
const STAY_MAX: Duration = Duration::from_secs(2);
/// A watch must be opened within this time, and have ended so long after it should have.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// The phase of a run, which all watchers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunPhase {
    /// Clients write.
    Running,
    /// Nobody writes any more, and no watcher leaves.
    Settling,
    /// Everybody has had the time to see everything.
    Over,
}

/// The way in which a client watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Lists once and watches from there.
    Follow,
    /// Leaves again and again and goes on where it was.
    Leave,
    /// Has watches that the server ends soon.
    Short,
    /// Leaves, and begins with initial events every other time.
    InitialEvents { any: bool },
}

/// The ways of the plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// List once and watch from there.
    Follow,
    /// Leave again and again and resume.
    Leave,
    /// Have watches that the server ends soon, and resume.
    Short,
    /// Leave, and begin with initial events every other time.
    WatchList,
}

impl Plan {
    pub(super) fn way(self) -> Way {
        match self {
            Self::Follow => Way::Follow,
            Self::Leave => Way::Leave,
            Self::Short => Way::Short,
            Self::InitialEvents { .. } => Way::WatchList,
        }
    }

    /// Returns the longest time between two resumes, if the plan resumes.
    pub(super) fn resumes_every(self) -> Option<Duration> {
        match self {
            Self::Follow => None,
            Self::Leave => Some(STAY_MAX),
            Self::Short => Some(Duration::from_secs(SHORT_WATCH_SECONDS)),
            Self::InitialEvents { .. } => self.begins_every(),
        }
    }

    /// Returns the longest time between two beginnings with initial events, if the plan has them.
    pub(super) fn begins_every(self) -> Option<Duration> {
        // In between is one watch that goes on.
        matches!(self, Self::InitialEvents { .. }).then_some(STAY_MAX * 2)
    }
}

/// A client that follows a selection, over as many watches as it takes.
#[derive(Debug)]
pub(super) struct Follower<'a> {
    /// Its place among the watchers of the history.
    pub(super) place: usize,
    pub(super) plan: Plan,
    pub(super) scope: SelectedObjects,
    pub(super) selector: Selector,
    pub(super) encoding: Encoding,
    pub(super) client: Client,
    pub(super) connection: ReconnectingConnection,
    pub(super) journal: &'a Journal,
    pub(super) phase: watch::Receiver<RunPhase>,
    pub(super) random: StdRng,
}

impl Follower<'_> {
    /// Watches until all is over.
    pub(super) async fn run(mut self) {
        let mut position = None;
        while self.phase() != RunPhase::Over {
            // A server may be away for a while. If it stays away, the run is never settled.
            match self.session(position).await {
                Ok(next) => position = next,
                Err(error) => {
                    if error.is_gone() {
                        position = None;
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    fn phase(&self) -> RunPhase {
        *self.phase.borrow()
    }

    /// Opens a watch at a position and reads it to its end. Gives the position that it came to;
    /// `None` if there is none to go on from.
    async fn session(&mut self, position: Option<u64>) -> Result<Option<u64>, ClientError> {
        let start = self.start(position).await?;
        let opened = self.journal.now();
        let path = self.path(&start);
        let opening = self.client.watch(&path, self.encoding);
        // Dropped, it ends; nobody can mistake it for one that goes on.
        let opening = tokio::time::timeout(OPEN_MAX, opening).await;
        let watch = opening.unwrap_or(Err(ClientError::Timeout(OPEN_MAX)))?;
        Ok(self.read(watch, opened, start).await)
    }

    async fn start(&mut self, position: Option<u64>) -> Result<Start, ClientError> {
        if let Some(after) = position {
            return Ok(Start::Resume { after });
        }
        if let Plan::InitialEvents { any } = self.plan {
            return Ok(Start::InitialEvents { any });
        }
        let request = ListRequest {
            scope: &self.scope,
            selector: &self.selector,
            revision_match: RevisionMatch::Newest,
            limit: None,
            encoding: self.encoding,
        };
        let (_, list) = self.connection.list(self.journal, &request).await?;
        Ok(Start::List {
            revision: list.revision(),
            objects: list.objects().copied().collect(),
        })
    }

    fn path(&self, start: &Start) -> String {
        let path = self.scope.path(&self.selector);
        let seconds = self.seconds();
        let path = format!("{path}&watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        match start {
            Start::List { revision, .. } => format!("{path}&resourceVersion={revision}"),
            Start::Resume { after } => format!("{path}&resourceVersion={after}"),
            Start::InitialEvents { any } => {
                let version = if *any { "&resourceVersion=0" } else { "" };
                format!("{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan{version}")
            }
        }
    }

    fn seconds(&self) -> u64 {
        if self.plan == Plan::Short && self.phase() == RunPhase::Running {
            SHORT_WATCH_SECONDS
        } else {
            WATCH_SECONDS
        }
    }

    /// Reads a watch to its end and takes it down.
    async fn read(&mut self, mut watch: Watch, opened: Nanos, start: Start) -> Option<u64> {
        let mut position = match start {
            Start::List { revision, .. } => Some(revision),
            Start::Resume { after } => Some(after),
            Start::InitialEvents { .. } => None,
        };
        let is_initial = position.is_none();
        self.journal.open(self.place, opened, start);
        let longest = Duration::from_secs(self.seconds()) + OPEN_MAX;
        let stay = self.stay();
        let leave = tokio::time::sleep(stay.unwrap_or(longest));
        tokio::pin!(leave);
        let mut phase = self.phase.clone();
        let end = loop {
            tokio::select! {
                biased;
                _ = phase.wait_for(|phase| *phase == RunPhase::Over) => break WatchEnd::Settled,
                () = &mut leave => match stay {
                    Some(_) if self.phase() == RunPhase::Running => break WatchEnd::Left,
                    Some(_) => leave.set(tokio::time::sleep(longest)),
                    None => break WatchEnd::Broken("the watch does not end".to_owned()),
                },
                event = watch.next() => match self.see(event, &mut position) {
                    Ok(()) => {}
                    Err(end) => break end,
                },
            }
        };
        let lost = end == WatchEnd::Expired;
        // Every other watch of this plan begins with initial events.
        let begins_anew = matches!(self.plan, Plan::InitialEvents { .. }) && !is_initial;
        self.journal.end(self.place, end);
        position.filter(|_| !lost && !begins_anew)
    }

    /// Returns how long it stays on a watch, if it leaves by itself.
    fn stay(&mut self) -> Option<Duration> {
        let leaves = matches!(self.plan, Plan::Leave | Plan::InitialEvents { .. });
        leaves.then(|| self.random.random_range(STAY_MIN..STAY_MAX))
    }

    fn see(
        &self,
        event: Result<Option<OwnedEvent>, ClientError>,
        position: &mut Option<u64>,
    ) -> Result<(), WatchEnd> {
        let event = match event {
            Ok(Some(event)) => event,
            Ok(None) => return Err(WatchEnd::Closed),
            Err(error) if error.is_gone() => return Err(WatchEnd::Expired),
            Err(error) => return Err(WatchEnd::Broken(error.to_string())),
        };
        let Some(item) = item(&event).map_err(|why| WatchEnd::Broken(why.to_owned()))? else {
            return Ok(());
        };
        self.journal.see(self.place, item);
        let completes = matches!(item, Item::Bookmark { ends_initial, .. } if ends_initial);
        // Initial events have the versions of their objects, which are no position.
        if position.is_some() || completes {
            *position = Some(item.revision());
        }
        Ok(())
    }
}

/// Converts an event; `None` if it is about an object that is not ours.
fn item(event: &OwnedEvent) -> Result<Option<Item>, &'static str> {
    let kind = match event.kind {
        EventKind::Added => ChangeKind::Added,
        EventKind::Modified => ChangeKind::Modified,
        EventKind::Deleted => ChangeKind::Deleted,
        EventKind::Bookmark => {
            return Ok(Some(Item::Bookmark {
                revision: event.revision,
                ends_initial: event.ends_initial_events,
            }));
        }
        EventKind::Error => return Err("an error"),
    };
    let object = objects::object(&event.object, event.encoding)?;
    Ok(object.map(|object| Item::Event { kind, object }))
}

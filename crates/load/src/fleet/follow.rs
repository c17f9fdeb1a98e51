//! One watcher, from its first request to its end; again and again if its group resumes.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::group::{GroupMode, WatcherGroup};
use super::shared_connections::SharedConnections;
use crate::client::{Client, ClientError, Watch};
use crate::time::wall_nanos;

/// The time that a watcher waits before it tries again to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A watcher of a group: a task that opens a watch, reads it, and opens it anew when its group resumes.
pub(super) struct Follower {
    pub(super) client: Client,
    pub(super) group: Arc<WatcherGroup>,
    pub(super) watcher: usize,
    /// The connections of the group and the number of its own among them, if it shares one.
    pub(super) shared: Option<(Arc<SharedConnections>, usize)>,
    pub(super) opening: Arc<Semaphore>,
}

/// The reason why a watch ended, which says what its watcher does next.
enum FollowEnd {
    /// The group went away; wait until it comes back.
    Away,
    /// The position is gone, so the watcher ends.
    Over,
    /// The connection or the watch broke; resume if the group does.
    Broken(String),
}

impl Follower {
    /// Watches until it is dropped or cannot go on.
    pub(super) async fn run(self) {
        let group = &self.group;
        loop {
            let mut changed = pin!(group.mode_changed().notified());
            changed.as_mut().enable();
            if group.mode() == GroupMode::Away {
                changed.await;
                continue;
            }
            let (end, was_open) = match self.open().await {
                Ok(watch) => {
                    group.answered();
                    let end = self.read(watch).await;
                    group.ended();
                    (end, true)
                }
                Err(error) if error.is_gone() => {
                    group.count_gone();
                    group.fault(format!("watcher {}: {error}", self.watcher));
                    (FollowEnd::Over, false)
                }
                Err(error) => (FollowEnd::Broken(error.to_string()), false),
            };
            match end {
                FollowEnd::Over => return,
                FollowEnd::Away => {}
                FollowEnd::Broken(why) if !group.spec.resumes => {
                    return group.fault(format!("watcher {}: {why}", self.watcher));
                }
                FollowEnd::Broken(_) if was_open => group.count_resumed(),
                FollowEnd::Broken(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }

    async fn open(&self) -> Result<Watch, ClientError> {
        let _turn = self.opening.acquire().await;
        let Self { client, group, .. } = self;
        let path = group.path(self.watcher);
        let encoding = group.spec.encoding;
        match &self.shared {
            _ if group.has_small_buffers() => {
                client.watch_with_small_buffers(&path, encoding).await
            }
            Some((connections, number)) => {
                connections.watch(*number, client, &path, encoding).await
            }
            None => client.watch(&path, encoding).await,
        }
    }

    /// Reads events until the watch ends or its group goes away.
    async fn read(&self, mut watch: Watch) -> FollowEnd {
        let group = &self.group;
        let mut changed = pin!(group.mode_changed().notified());
        changed.as_mut().enable();
        loop {
            match group.mode() {
                GroupMode::Reads => {}
                GroupMode::Away => return FollowEnd::Away,
                GroupMode::Stalls => {
                    changed.as_mut().await;
                    changed.set(group.mode_changed().notified());
                    changed.as_mut().enable();
                    continue;
                }
            }
            let mut now = None;
            let mut flow = ControlFlow::Continue(());
            let take = watch.read(|event| {
                if flow.is_continue() {
                    let now = *now.get_or_insert_with(wall_nanos);
                    flow = group.take(self.watcher, &event, now);
                }
            });
            let read = tokio::select! {
                biased;
                () = changed.as_mut() => None,
                read = take => Some(read),
            };
            if flow.is_break() {
                return FollowEnd::Over;
            }
            match read {
                None => {
                    changed.set(group.mode_changed().notified());
                    changed.as_mut().enable();
                }
                Some(Ok(true)) => {}
                Some(Ok(false)) => return FollowEnd::Broken("the watch ended".to_owned()),
                Some(Err(error)) => return FollowEnd::Broken(error.to_string()),
            }
        }
    }
}

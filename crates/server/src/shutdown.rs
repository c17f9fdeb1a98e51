//! Shuts the server down: in order, within bounds, and at once after a second signal.
//!
//! ```text
//! signal            /readyz says no, the server's address is withdrawn, everything else goes on
//! ... the delay     load balancers look elsewhere
//! drain             with --shutdown-send-retry-after all requests are turned away, and the server waits until those
//!                   in progress are answered and watches have ended one by one; else new watches may be turned away
//! stop accepting    watches that have not ended yet do so one by one, if they are given time for that
//!                   watch caches send a last bookmark and end the watches that are left
//! end of watches    watches that are left are ended
//! requests finish   or are cut off when their time is over
//! ```

use std::future::Future;
use std::io;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_filters::Drain;
use ringwatch_http::CancellationFlag;
use ringwatch_http::listener::finish;
use ringwatch_tls::watched_file;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Maximum time for watches to send their last bookmark.
const LAST_BOOKMARKS_MILLISECONDS_MAX: u64 = 2_000;
/// Maximum time for requests in progress to finish, as in kube-apiserver.
const REQUESTS_SECONDS_MAX: u64 = 60;

/// A stream of the signals that end the server, SIGTERM and SIGINT. While it is waited for, SIGHUP has the files that
/// the server follows read at once.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// The steps of a shutdown, as cancellation tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// A signal has come.
    pub(crate) shutting_down: CancellationToken,
    /// No connection is accepted any more.
    pub(crate) stop_accepting: CancellationToken,
    /// Connections end when their requests are answered.
    pub(crate) closing: CancellationFlag,
    /// Watches end with a last bookmark.
    pub(crate) end_of_watches: CancellationFlag,
    /// Turns requests away, and ends watches one by one, if that is wanted.
    pub(crate) drain: Drain,
}

impl Signals {
    /// Installs handlers for the signals.
    ///
    /// # Errors
    /// The error of the operating system, which lets no handler be installed.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one that ends the server.
    pub(crate) async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::info!("SIGHUP: files that are followed are read now");
                    watched_file::look_now();
                }
            }
        }
    }
}

impl Steps {
    /// Ends serving. `withdrawal` removes the server's address, and is waited for as the delay is; `listener` gives the
    /// open connections once it has stopped accepting; `end_watches` has the watch caches send last bookmarks and end
    /// their watches.
    pub(crate) async fn take(
        &self,
        delay: Duration,
        withdrawal: impl Future<Output = ()>,
        listener: JoinHandle<JoinSet<()>>,
        end_watches: impl Future<Output = ()>,
        clock: &Clock,
    ) {
        self.shutting_down.cancel();
        tracing::info!(?delay, "shutting down");
        tokio::join!(clock.sleep(delay), withdrawal);
        self.drain.begin();
        let one_by_one = self.drain.watches_grace();
        if self.drain.sends_retry_after() {
            let answered = clock.timeout(
                Duration::from_secs(REQUESTS_SECONDS_MAX),
                self.drain.requests_answered(),
            );
            let (answered, ()) = tokio::join!(answered, self.end_watches_in_turn(clock));
            if answered.is_err() {
                tracing::warn!("requests in progress were not answered in time");
            }
        }
        self.stop_accepting.cancel();
        let connections = listener.await.unwrap_or_default();
        self.closing.cancel();
        let last_bookmarks = Duration::from_millis(LAST_BOOKMARKS_MILLISECONDS_MAX);
        let requests = Duration::from_secs(REQUESTS_SECONDS_MAX) + one_by_one;
        let watches = async {
            self.end_watches_in_turn(clock).await;
            if clock.timeout(last_bookmarks, end_watches).await.is_err() {
                tracing::warn!("watch caches did not end their watches in time");
            }
            clock.sleep(last_bookmarks).await;
            self.end_of_watches.cancel();
            std::future::pending::<()>().await;
        };
        let left = tokio::select! {
            left = finish(connections, requests, clock) => left,
            () = watches => 0,
        };
        if left > 0 {
            tracing::warn!(
                connections = left,
                "cut off connections that did not end in time"
            );
        }
    }

    /// Ends watches one by one, if they are given time for that; there are none left the second time.
    async fn end_watches_in_turn(&self, clock: &Clock) {
        if !self.drain.watches_grace().is_zero() {
            self.drain.end_watches(clock).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::pin::pin;

    use futures::poll;
    use jiff::Timestamp;
    use ringwatch_tls::watched_file::WatchedFiles;
    use rustix::process::{Signal as Number, getpid, kill_process};

    use super::*;

    /// The most time for which a signal is waited for.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// The clock stands still, so that the period at which files are looked at never ends.
    #[tokio::test]
    async fn files_are_read_on_sighup_rather_than_at_the_end_of_the_period() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.crt");
        fs::write(&path, "new").expect("written");
        let files = WatchedFiles::new([path], ["old".to_owned()]);
        let (clock, patience) = (Clock::manual(Timestamp::UNIX_EPOCH), Clock::real());
        let mut signals = Signals::new().expect("handlers");
        let mut changed = pin!(files.changed(&clock));
        assert!(poll!(&mut changed).is_pending());
        kill_process(getpid(), Number::HUP).expect("a signal");
        tokio::select! {
            () = signals.next() => panic!("SIGHUP ends the server"),
            texts = &mut changed => assert_eq!(texts, ["new"]),
            () = patience.sleep(PATIENCE) => panic!("the file is not read"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_goes_first_and_watches_end_last() {
        let steps = Steps::default();
        let watch = {
            let steps = steps.clone();
            async move {
                steps.closing.cancelled().await;
                steps.end_of_watches.cancelled().await;
            }
        };
        let mut spawned = JoinSet::new();
        let stop = steps.stop_accepting.clone();
        let listener = tokio::runtime::Handle::current().spawn(async move {
            stop.cancelled().await;
            let mut open = JoinSet::new();
            open.spawn(watch);
            open
        });
        let observed = steps.clone();
        spawned.spawn(async move {
            observed.shutting_down.cancelled().await;
            let accepting = !observed.stop_accepting.is_cancelled();
            observed.end_of_watches.cancelled().await;
            accepting && observed.closing.is_cancelled()
        });
        let drained = CancellationToken::new();
        let drain = async { drained.cancel() };
        let (delay, clock) = (Duration::from_secs(30), Clock::real());
        let none = std::future::ready(());
        steps.take(delay, none, listener, drain, &clock).await;
        assert!(drained.is_cancelled());
        let in_order = spawned
            .join_next()
            .await
            .expect("a task")
            .expect("no panic");
        assert!(in_order);
    }

    #[tokio::test(start_paused = true)]
    async fn the_listener_stops_once_requests_are_answered() {
        let steps = Steps {
            drain: Drain::new(true, Duration::ZERO),
            ..Steps::default()
        };
        let (uri, headers) = (http::Uri::from_static("/api"), http::HeaderMap::new());
        let request = steps.drain.request(&uri, &headers);
        let stop = steps.stop_accepting.clone();
        let listener = tokio::runtime::Handle::current().spawn(async move {
            stop.cancelled().await;
            JoinSet::new()
        });
        let clock = Clock::real();
        let none = std::future::ready(());
        let mut ending = Box::pin(steps.take(Duration::ZERO, none, listener, async {}, &clock));
        tokio::select! {
            () = &mut ending => panic!("a request is in progress"),
            () = clock.sleep(Duration::from_secs(REQUESTS_SECONDS_MAX / 2)) => {}
        }
        assert!(!steps.stop_accepting.is_cancelled());
        drop(request);
        ending.await;
        assert!(steps.stop_accepting.is_cancelled());
    }

    #[tokio::test]
    async fn readiness_does_not_wait_for_the_withdrawal_and_the_listener_does() {
        let steps = Steps::default();
        let stop = steps.stop_accepting.clone();
        let listener = tokio::runtime::Handle::current().spawn(async move {
            stop.cancelled().await;
            JoinSet::new()
        });
        let (withdrawn, withdrawal) = tokio::sync::oneshot::channel::<()>();
        let withdrawal = async {
            let _ = withdrawal.await;
        };
        let clock = Clock::real();
        let mut ending =
            Box::pin(steps.take(Duration::ZERO, withdrawal, listener, async {}, &clock));
        while !steps.shutting_down.is_cancelled() {
            assert!(futures::poll!(&mut ending).is_pending());
        }
        assert!(futures::poll!(&mut ending).is_pending());
        assert!(!steps.stop_accepting.is_cancelled());
        withdrawn.send(()).expect("it is waited for");
        ending.await;
        assert!(steps.stop_accepting.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_ends_is_cut_off() {
        let steps = Steps::default();
        let listener = tokio::runtime::Handle::current().spawn(async {
            let mut open = JoinSet::new();
            open.spawn(std::future::pending());
            open
        });
        let clock = Clock::real();
        let started = clock.now();
        let never = std::future::pending();
        let none = std::future::ready(());
        steps
            .take(Duration::ZERO, none, listener, never, &clock)
            .await;
        assert_eq!(started.elapsed().as_secs(), REQUESTS_SECONDS_MAX);
    }
}

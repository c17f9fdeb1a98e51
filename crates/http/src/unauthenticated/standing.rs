//! The standing of one connection: whether its client has been authenticated, and how long it has made the server wait.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ringwatch::clock::Instant;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::ConnectionSlot;

/// The standing of a connection's client. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(crate) struct ClientStanding(Arc<StandingCell>);

#[derive(Debug)]
pub(super) struct StandingCell {
    /// Set once, when a request has been authenticated and there was a place for the connection.
    authenticated: AtomicBool,
    /// The place among the unauthenticated connections; `None` for a connection that no limit counts.
    place: Option<ConnectionSlot>,
    state: Mutex<StandingState>,
    /// Notified when a request has been authenticated or refused. For one waiting task, the connection's.
    judged: Notify,
}

#[derive(Debug, Default)]
struct StandingState {
    /// True once a request has been authenticated or refused.
    judged: bool,
    /// True once a request came without valid credentials, after which an HTTP/2 connection ends.
    refused: bool,
    /// True once the connection has been closed to make room.
    shed: bool,
    /// The time that the server has waited for the client in all, before the present wait.
    waited: Duration,
    /// The beginning of the present wait; `None` while the server has something to do for the client.
    waiting_since: Option<Instant>,
    /// The number of requests that are being answered. While one is, the client waits for the server, although its next
    /// may be read.
    answering: usize,
    /// True if the socket has become ready since it was last polled.
    ready: bool,
    /// The task that reads from the socket, which is woken when the socket is ready.
    reader: Option<Waker>,
    /// The task that writes to the socket, likewise. Both may be the connection's, under different wakers.
    writer: Option<Waker>,
    /// The task that reads on once a request has been judged.
    held: Option<Waker>,
    /// The place among the authenticated connections.
    authenticated_place: Option<OwnedSemaphorePermit>,
}

/// The outcome of a request's authentication, as far as its connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The client is known.
    Authenticated,
    /// The request has no credentials, or wrong ones.
    Refused,
    /// The request is answered before anybody looked at its credentials.
    Skipped,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Bytes from the client.
    In,
    /// Bytes to the client.
    Out,
}

impl ClientStanding {
    /// Returns the standing of a connection that no limit counts, such as one within the process.
    #[must_use]
    pub(crate) fn uncounted() -> Self {
        Self::new(None)
    }

    pub(super) fn new(place: Option<ConnectionSlot>) -> Self {
        Self(Arc::new(StandingCell {
            authenticated: AtomicBool::new(false),
            place,
            state: Mutex::default(),
            judged: Notify::new(),
        }))
    }

    /// Returns true once a request of the connection has been authenticated.
    #[must_use]
    pub(crate) fn is_authenticated(&self) -> bool {
        // Relaxed: nothing else is read that was written before.
        self.0.authenticated.load(Ordering::Relaxed)
    }

    /// Records the outcome of a request's authentication. A request that was answered without it counts as one without
    /// credentials, unless another has shown some.
    pub(crate) fn judge(&self, outcome: Judgement) {
        match outcome {
            Judgement::Authenticated => self.authenticate(),
            Judgement::Skipped if self.is_authenticated() => {}
            Judgement::Refused | Judgement::Skipped => self.refuse(),
        }
    }

    /// Notes that a request has been authenticated. If there are too many authenticated connections, this one goes on
    /// among the others, which are closed first.
    pub(crate) fn authenticate(&self) {
        if self.is_authenticated() {
            return;
        }
        let place = match &self.0.place {
            None => None,
            Some(place) => match place.leave() {
                Some(permit) => Some(permit),
                None => return self.change(|_| {}),
            },
        };
        self.change(|state| {
            state.authenticated_place = place;
            // Relaxed: as in `is_authenticated`.
            self.0.authenticated.store(true, Ordering::Relaxed);
        });
    }

    /// Records that a request had no valid credentials.
    pub(crate) fn refuse(&self) {
        self.change(|state| state.refused = true);
    }

    /// Returns true once a request has been authenticated or refused.
    #[must_use]
    pub(crate) fn is_judged(&self) -> bool {
        self.lock().judged
    }

    /// Returns true once a request came without valid credentials.
    #[must_use]
    pub(crate) fn is_refused(&self) -> bool {
        self.lock().refused
    }

    /// Completes when a request has been authenticated or refused since the last call. For one waiting task.
    pub(crate) async fn judged(&self) {
        self.0.judged.notified().await;
    }

    /// Completes when a request has been authenticated or refused. For one waiting task, the one that reads.
    pub(super) fn poll_judged(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.judged {
            return Poll::Ready(());
        }
        state.held = Some(context.waker().clone());
        Poll::Pending
    }

    fn change(&self, change: impl FnOnce(&mut StandingState)) {
        let mut state = self.lock();
        state.judged = true;
        change(&mut state);
        let held = state.held.take();
        drop(state);
        held.into_iter().for_each(Waker::wake);
        self.0.judged.notify_one();
    }

    /// Records that a request is being answered, until the returned guard is dropped.
    #[must_use]
    pub(crate) fn answer(&self) -> OpenAnswer {
        let mut state = self.lock();
        state.answering += 1;
        if let Some(place) = &self.0.place {
            state.end_wait(place.now());
        }
        drop(state);
        OpenAnswer(self.clone())
    }

    /// Polls the socket for what comes from the client or goes to it, and notes whether the client is waited for.
    ///
    /// # Errors
    /// Those of the socket, and when the connection has been closed to make room.
    pub(super) fn poll_socket<R>(
        &self,
        direction: Direction,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let place = match &self.0.place {
            Some(place) if !self.is_authenticated() => place,
            _ => return poll(context),
        };
        {
            let mut state = self.lock();
            if state.shed {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            state.ready = false;
            let task = match direction {
                Direction::In => &mut state.reader,
                Direction::Out => &mut state.writer,
            };
            *task = Some(context.waker().clone());
        }
        let waker = Waker::from(Arc::clone(&self.0));
        let polled = poll(&mut Context::from_waker(&waker));
        let now = place.now();
        let mut state = self.lock();
        match (direction, &polled) {
            (_, Poll::Pending) if !state.ready && state.answering == 0 => {
                state.waiting_since.get_or_insert(now);
            }
            (Direction::In, Poll::Ready(_)) => state.end_wait(now),
            // A successful write says nothing about a pending read.
            _ => {}
        }
        polled
    }

    /// Returns how long the server has waited for the client in all; `None` while it does not wait.
    pub(super) fn waited(&self, now: Instant) -> Option<Duration> {
        let state = self.lock();
        let since = state.waiting_since?;
        Some(state.waited + now.saturating_duration_since(since))
    }

    /// Releases all places: the connection is over.
    pub(super) fn end(&self) {
        if let Some(place) = &self.0.place {
            place.give_back();
        }
        self.lock().authenticated_place = None;
    }

    /// Closes the connection to make room for another.
    pub(super) fn shed(&self) {
        let mut state = self.lock();
        state.shed = true;
        let tasks = state.tasks();
        drop(state);
        tasks.for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, StandingState> {
        self.0.lock()
    }
}

/// A request that is being answered; while one is, the client waits for the server.
#[derive(Debug)]
pub(crate) struct OpenAnswer(ClientStanding);

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        self.0.lock().answering -= 1;
    }
}

impl StandingCell {
    fn lock(&self) -> MutexGuard<'_, StandingState> {
        // A state is whole after each of its changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StandingState {
    /// Returns the tasks that wait for the socket. It wakes both, since it does not say in which direction it is ready.
    fn tasks(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.reader.take().into_iter().chain(self.writer.take())
    }

    fn end_wait(&mut self, now: Instant) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

impl Wake for StandingCell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Notes that the socket is ready, since from now on the client waits for the server, and wakes the connection's
    /// task.
    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        state.ready = true;
        if let Some(place) = &self.place {
            state.end_wait(place.now());
        }
        let tasks = state.tasks();
        drop(state);
        tasks.for_each(Waker::wake);
    }
}

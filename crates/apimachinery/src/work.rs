//! Moves a request off the worker on which it began before it does work whose cost its client chooses.
//!
//! ```text
//!   worker that serves others:  poll ... leave(kind) -> Pending, noted
//!   thread for large work:      arrive -> poll ... -> answer
//! ```
//!
//! Reading, patching, checking and converting what a client sends is synchronous, and no worker can do anything else
//! meanwhile. So a request asks to leave before such work: [`at_size`] where the work grows with bytes, [`leave`] where
//! bytes do not tell its cost. The [`Movable`] that polls the request then moves it whole, and it stays where it was
//! moved to. Small requests never move: up to [`LARGE_BYTES`] the work is shorter than the move is worth.
//!
//! Outside of a request, such as in the server's own tasks, nothing is moved.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use memchr::memchr_iter;
use ringwatch::sync::{Arc, Mutex, MutexGuard};

/// Work on so many bytes is done where the request is.
pub const LARGE_BYTES: usize = 16 << 10;

/// Bytes of memory for a byte of content: the tree that it is read into, its copies, and the bytes of the result.
const BYTE_FACTOR: u64 = 16;

/// Bytes of memory for a map in the content, measured with `containers: [{},{},...]`: what a map takes however little
/// it holds, what its kind's defaults add, and what validation says of it.
const MAP_BYTES: u64 = 2_400;

/// Bytes of memory for a value of a list in the content, besides those for its bytes: a list is copied while it grows to twice
/// its length.
const VALUE_BYTES: u64 = 64;

/// Bytes of memory for a byte of a body in protobuf. Nothing in its bytes tells how many messages it holds; five make
/// one.
const PROTOBUF_FACTOR: u64 = 128;

tokio::task_local! {
    /// The request that is being polled.
    static PLACE: Arc<Place>;
}

/// A kind of work whose cost a client chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Decoding a body, and all that follows from what it holds.
    Body,
    /// The same for a body in protobuf.
    ProtobufBody,
    /// Changing or converting a stored object.
    Object,
    /// Compiling or running expressions and patterns.
    Expressions,
    /// Looking through many roles, or comparing them.
    Permissions,
}

/// The reason for which a request is moved to other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The kind of work that it is about to do.
    pub work: Work,
    /// The bytes of content that it keeps while it waits; 0 where others have them as well.
    pub bytes: usize,
    /// The bytes of memory that it may take; `None` where no content tells.
    pub memory: Option<u64>,
}

/// Moves the request if what it is about to do is work on content of more than [`LARGE_BYTES`].
pub async fn at_size(work: Work, content: &[u8]) {
    if content.len() > LARGE_BYTES {
        let bytes = match work {
            Work::Body | Work::ProtobufBody => content.len(),
            // The cache has the object.
            Work::Object | Work::Expressions | Work::Permissions => 0,
        };
        let memory = Some(memory_for(work, content));
        depart(Departure {
            work,
            bytes,
            memory,
        })
        .await;
    }
}

/// Moves the request before work whose cost its size does not tell.
pub async fn leave(work: Work) {
    depart(Departure {
        work,
        bytes: 0,
        memory: None,
    })
    .await;
}

/// Returns the bytes of memory that work on this content may take at once.
#[must_use]
pub fn memory_for(work: Work, content: &[u8]) -> u64 {
    let bytes = content.len() as u64;
    if work == Work::ProtobufBody {
        return bytes.saturating_mul(PROTOBUF_FACTOR);
    }
    // A serving thread counts before the request is moved, so this is to be as fast as reading.
    let count = |mark| memchr_iter(mark, content).count() as u64;
    // A map of JSON has a brace, one of YAML a colon.
    let maps = count(b'{').max(count(b':'));
    // A value of JSON ends with a comma, one of YAML with its line.
    let values = count(b',').max(count(b'\n'));
    bytes
        .saturating_mul(BYTE_FACTOR)
        .saturating_add(maps.saturating_mul(MAP_BYTES))
        .saturating_add(values.saturating_mul(VALUE_BYTES))
}

/// Returns true if nobody waits for the answer of this request any more: its deadline is over or its client is gone.
///
/// Long synchronous work asks this now and then and ends early, with whatever result.
#[must_use]
pub fn is_abandoned() -> bool {
    let abandoned = PLACE.try_with(|place| place.state().abandoned);
    abandoned.unwrap_or(false)
}

async fn depart(departure: Departure) {
    let Ok(place) = PLACE.try_with(Arc::clone) else {
        return;
    };
    poll_fn(|context| place.poll_departure(departure, context.waker())).await;
}

/// The state of a movable request, shared by the request and what polls it.
#[derive(Debug, Default)]
struct Place(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The kind of work because of which the request waits to be moved.
    wanted: Option<Departure>,
    /// True once it has been moved.
    moved: bool,
    /// True once nobody waits for its answer any more.
    abandoned: bool,
    /// Wakes the parts of the request that wait to be moved.
    waiting: Vec<Waker>,
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn poll_departure(&self, departure: Departure, waker: &Waker) -> Poll<()> {
        let mut state = self.state();
        if state.moved {
            return Poll::Ready(());
        }
        state.wanted = Some(departure);
        state.waiting.push(waker.clone());
        Poll::Pending
    }
}

/// A request that may ask to be moved while it is polled.
pub struct Movable<T> {
    place: Arc<Place>,
    request: Pin<Box<dyn Future<Output = T> + Send>>,
}

/// The outcome of polling a request where it began.
#[derive(Debug)]
pub enum Progress<T> {
    /// The request has been answered.
    Answered(T),
    /// The request waits to be moved, since its next step is not done where it began.
    Leaves(Departure, Movable<T>),
}

/// Tells a moved request, when dropped, that nobody waits for its answer any more.
#[derive(Debug)]
pub struct Audience(Arc<Place>);

impl<T> fmt::Debug for Movable<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Movable").finish_non_exhaustive()
    }
}

impl<T> Movable<T> {
    /// Makes a request that has not begun.
    #[must_use]
    pub fn new(request: Pin<Box<dyn Future<Output = T> + Send>>) -> Self {
        Self {
            place: Arc::default(),
            request,
        }
    }

    /// Runs the request until it has its answer or asks to leave.
    pub async fn begin(mut self) -> Progress<T> {
        let departure = poll_fn(|context| match self.poll(context) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => match self.place.state().wanted {
                Some(departure) => Poll::Ready(Err(departure)),
                None => Poll::Pending,
            },
        });
        match departure.await {
            Ok(answer) => Progress::Answered(answer),
            Err(departure) => Progress::Leaves(departure, self),
        }
    }

    /// Gives the handle to hold for as long as somebody waits for the answer.
    #[must_use]
    pub fn audience(&self) -> Audience {
        Audience(Arc::clone(&self.place))
    }

    /// Runs the rest of the request, where it has been moved to.
    pub async fn arrive(mut self) -> T {
        let waiting = {
            let mut state = self.place.state();
            state.moved = true;
            std::mem::take(&mut state.waiting)
        };
        // Of parts that wait side by side only those that were woken may be polled.
        waiting.into_iter().for_each(Waker::wake);
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        let request = &mut self.request;
        PLACE.sync_scope(Arc::clone(&self.place), || request.as_mut().poll(context))
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.0.state().abandoned = true;
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::{FuturesUnordered, StreamExt};

    use super::*;

    static CONTENT: [u8; LARGE_BYTES + 2] = [b'x'; LARGE_BYTES + 2];

    #[test]
    fn memory_grows_with_bytes_maps_and_values() {
        for (work, content, memory) in [
            (Work::Body, "[0,0]", 5 * 16 + 64),
            (Work::Body, "[{},{}]", 7 * 16 + 2 * 2_400 + 64),
            (Work::Body, "- a: 0\n- b: 0\n", 14 * 16 + 2 * 2_400 + 2 * 64),
            (Work::ProtobufBody, "k8s\0{}:", 7 * 128),
        ] {
            assert_eq!(memory_for(work, content.as_bytes()), memory, "{content:?}");
        }
    }

    #[tokio::test]
    async fn a_request_leaves_once_before_large_work() {
        let request = Movable::new(Box::pin(async {
            at_size(Work::Body, &CONTENT[..LARGE_BYTES]).await;
            at_size(Work::Object, &CONTENT[..=LARGE_BYTES]).await;
            at_size(Work::Body, &CONTENT).await;
            leave(Work::Expressions).await;
            "done"
        }));
        let Progress::Leaves(departure, rest) = request.begin().await else {
            panic!("it did large work where it began");
        };
        let expected = Departure {
            work: Work::Object,
            bytes: 0,
            memory: Some(BYTE_FACTOR * (LARGE_BYTES as u64 + 1)),
        };
        assert_eq!(departure, expected);
        assert_eq!(rest.arrive().await, "done");
    }

    #[tokio::test]
    async fn a_small_request_stays() {
        let request = Movable::new(Box::pin(async {
            tokio::task::yield_now().await;
            at_size(Work::Body, &CONTENT[..LARGE_BYTES]).await;
        }));
        assert!(matches!(request.begin().await, Progress::Answered(())));
    }

    #[tokio::test]
    async fn a_part_that_is_polled_only_when_woken_goes_on() {
        let request = Movable::new(Box::pin(async {
            let mut parts = FuturesUnordered::new();
            parts.push(leave(Work::Expressions));
            parts.push(leave(Work::Body));
            parts.next().await;
            parts.next().await;
        }));
        let Progress::Leaves(_, rest) = request.begin().await else {
            panic!("it stayed");
        };
        rest.arrive().await;
    }

    #[tokio::test]
    async fn what_is_no_request_is_not_moved() {
        leave(Work::Expressions).await;
        assert!(!is_abandoned());
    }

    #[tokio::test]
    async fn a_moved_request_learns_that_nobody_waits() {
        let request = Movable::new(Box::pin(async {
            leave(Work::Expressions).await;
            is_abandoned()
        }));
        let Progress::Leaves(_, rest) = request.begin().await else {
            panic!("it stayed");
        };
        drop(rest.audience());
        assert!(rest.arrive().await);
    }
}

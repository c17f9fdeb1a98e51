//! Watches that follow each other, against what each would be written alone.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::body::Frame;
use proptest::prelude::*;
use ringwatch::storage::FollowOutcome;

use super::*;
use crate::body::{LeadingEvents, SharedEvents};

/// Maximum number of watches of a case.
const WATCHES_MAX: usize = 8;
/// The number of classes of watches, each of which has events of its own.
const CLASSES: usize = 2;
/// Maximum number of turns until all is written that may be.
const TURNS_MAX: usize = 1_000;
/// The bytes that are written in a turn.
const TURN_BYTES: usize = 1 << 14;
/// A grant that is larger than all events.
const ENOUGH: u32 = 1 << 28;

#[derive(Clone, Debug)]
enum Step {
    /// A watch of a class begins.
    Begin { class: usize },
    /// A class has chunks of these lengths.
    Events { class: usize, lengths: Vec<usize> },
    /// The client grants bytes to a watch, or to the connection.
    Grant { watch: Option<usize>, bytes: u32 },
    /// A watch comes to its end, so that it takes over.
    EndSoon { watch: usize },
    /// All watches of a class end, after what has come.
    End { class: usize },
    /// The client resets the stream of a watch.
    Reset { watch: usize },
}

/// Steps, each with the number of turns after it.
fn steps() -> impl Strategy<Value = Vec<(Step, usize)>> {
    let class = 0..CLASSES;
    // The longest take more frames than a leader may write at once.
    let length =
        prop_oneof![12 => 1..2_000_usize, 3 => 1..40_000_usize, 1 => 500_000..700_000_usize];
    let granted = prop_oneof![2 => 1..60_000_u32, 1 => Just(1 << 22)];
    let step = prop_oneof![
        4 => class.clone().prop_map(|class| Step::Begin { class }),
        1 => class.clone().prop_map(|class| Step::End { class }),
        12 => (class, proptest::collection::vec(length, 1..5))
            .prop_map(|(class, lengths)| Step::Events { class, lengths }),
        4 => (proptest::option::of(0..WATCHES_MAX), granted)
            .prop_map(|(watch, bytes)| Step::Grant { watch, bytes }),
        1 => (0..WATCHES_MAX).prop_map(|watch| Step::EndSoon { watch }),
        1 => (0..WATCHES_MAX).prop_map(|watch| Step::Reset { watch }),
    ];
    let turns = prop_oneof![2 => 0..4_usize, 1 => Just(TURNS_MAX)];
    proptest::collection::vec((step, turns), 1..80)
}

/// The chunks of a class, in the order in which its watches are to get them.
#[derive(Clone, Debug, Default)]
struct Chunks(Arc<Mutex<ChunksState>>);

#[derive(Debug, Default)]
struct ChunksState {
    all: Vec<Bytes>,
    ended: bool,
    waiting: Vec<Waker>,
}

impl Chunks {
    fn push(&self, length: usize) {
        self.change(|state| {
            let number = state.all.len() as u8;
            if !state.ended {
                state.all.push(vec![number; length].into());
            }
        });
    }

    fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut ChunksState)) {
        let mut state = lock(&self.0);
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the chunk at a position; `None` at the end. Wakes the task later if it has not come.
    fn poll(&self, position: &mut usize, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = lock(&self.0);
        let Some(chunk) = state.all.get(*position).cloned() else {
            if state.ended {
                return Poll::Ready(None);
            }
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        };
        *position += 1;
        Poll::Ready(Some(chunk))
    }

    fn len(&self) -> usize {
        lock(&self.0).all.len()
    }

    /// Returns the bytes of all chunks from a position on.
    fn from(&self, position: usize) -> Vec<u8> {
        lock(&self.0).all[position..].concat()
    }
}

/// A watch of a class.
#[derive(Debug)]
struct Watch {
    class: u64,
    chunks: Chunks,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    position: usize,
    follows: bool,
    ends_soon: bool,
    told_to_end: bool,
    task: Option<Waker>,
}

#[derive(Debug)]
struct Leader {
    class: u64,
    chunks: Chunks,
    position: usize,
}

impl Watch {
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = lock(&self.state);
        state.task = Some(context.waker().clone());
        let chunk = if state.follows {
            Poll::Pending
        } else {
            self.chunks.poll(&mut state.position, context)
        };
        if chunk.is_pending() && state.told_to_end {
            return Poll::Ready(None);
        }
        chunk.map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    /// Changes the state, and wakes the watch.
    fn change(&self, change: impl FnOnce(&mut WatchState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        let task = state.task.take();
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }
}

impl SharedEvents for Watch {
    fn class(&self) -> u64 {
        self.class
    }

    fn leader(&self) -> Option<Box<dyn LeadingEvents>> {
        let state = lock(&self.state);
        (!state.ends_soon).then(|| {
            Box::new(Leader {
                class: self.class,
                chunks: self.chunks.clone(),
                position: state.position,
            }) as _
        })
    }

    fn follow(&self, leader: &mut dyn LeadingEvents) -> FollowOutcome {
        let leader: &mut dyn Any = leader;
        let leader = leader.downcast_mut::<Leader>().expect("one of these");
        assert_eq!(leader.class, self.class);
        let mut state = lock(&self.state);
        assert!(!state.follows, "it follows once");
        if state.ends_soon || state.position != leader.position {
            return FollowOutcome::NotLevel;
        }
        state.follows = true;
        FollowOutcome::Follows
    }

    fn wants_own(&self) -> bool {
        let state = lock(&self.state);
        state.ends_soon && state.follows
    }

    fn take_over(&self, leader: &dyn LeadingEvents) {
        let leader: &dyn Any = leader;
        let leader = leader.downcast_ref::<Leader>().expect("one of these");
        let mut state = lock(&self.state);
        assert!(state.follows, "it follows");
        (state.follows, state.position) = (false, leader.position);
    }
}

impl LeadingEvents for Leader {
    fn poll_chunk(&mut self, context: &mut Context<'_>, followers: usize) -> Poll<Option<Bytes>> {
        assert!(followers > 0, "somebody follows");
        self.chunks.poll(&mut self.position, context)
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A watch, and what its client has got.
struct Opened {
    watch: Arc<Watch>,
    /// The number of chunks that came before it began.
    from: usize,
    got: Vec<u8>,
    /// hyper's body; `None` once the stream is reset.
    body: Option<body::StreamBody>,
}

struct Model {
    outgoing: Outgoing,
    handovers: Handovers,
    watches: ConnectionWatches,
    classes: [Chunks; CLASSES],
    opened: Vec<Opened>,
}

impl Model {
    fn new() -> Self {
        let (handovers, watches) = with_window();
        Self {
            outgoing: Outgoing::new(&Ledger::unlimited()),
            handovers,
            watches,
            classes: Default::default(),
            opened: Vec::new(),
        }
    }

    fn step(&mut self, step: Step, turns: usize) {
        match step {
            Step::Begin { class } if self.opened.len() < WATCHES_MAX => self.begin(class),
            Step::Begin { .. } => {}
            Step::Events { class, lengths } => {
                for length in lengths {
                    self.classes[class].push(length);
                }
            }
            Step::Grant { watch, bytes } => {
                let stream = watch.map_or(0, stream_of);
                self.grant(stream, bytes);
            }
            Step::EndSoon { watch } => {
                if let Some(opened) = self.opened.get(watch) {
                    opened.watch.change(|it| it.ends_soon = true);
                }
            }
            Step::End { class } => self.classes[class].end(),
            Step::Reset { watch } => {
                if let Some(opened) = self.opened.get_mut(watch)
                    && opened.body.take().is_some()
                {
                    let reset = frame(RST_STREAM, 0, stream_of(watch), &[0, 0, 0, 8]);
                    let received = self.watches.receive(&reset, &mut Vec::new());
                    received.expect("frames");
                }
            }
        }
        self.write(turns);
    }

    fn begin(&mut self, class: usize) {
        let stream = stream_of(self.opened.len());
        let chunks = self.classes[class].clone();
        let from = chunks.len();
        let watch = Arc::new(Watch {
            class: class as u64,
            chunks,
            state: Mutex::new(WatchState {
                position: from,
                ..WatchState::default()
            }),
        });
        let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, b"");
        let received = self.watches.receive(&request, &mut Vec::new());
        received.expect("frames");
        let own = Arc::clone(&watch);
        let frames = futures::stream::poll_fn(move |context: &mut Context<'_>| own.poll(context));
        let content = http_body_util::StreamBody::new(frames).boxed_unsync();
        let counted = self.outgoing.begin().count(content.into());
        let counted = counted.sharing(Some(Arc::clone(&watch) as _));
        let mut body = self.handovers.watch(counted);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
        let empty = frame(DATA, 0, stream, b"");
        self.watches.pass(&empty, &mut Vec::new(), TURN_BYTES);
        self.opened.push(Opened {
            watch,
            from,
            got: Vec::new(),
            body: Some(body),
        });
    }

    fn grant(&mut self, stream: u32, bytes: u32) {
        let update = frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
        let received = self.watches.receive(&update, &mut Vec::new());
        received.expect("frames");
    }

    /// Has so many turns, or fewer if nothing is left that the windows allow.
    fn write(&mut self, turns: usize) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..turns {
            let mut out = Vec::new();
            let progress = self.watches.write(&mut context, &mut out, TURN_BYTES);
            assert!(out.len() <= TURN_BYTES, "no more than fits");
            for (stream, bytes) in frames(&out) {
                let opened = &mut self.opened[stream as usize / 2];
                assert!(opened.body.is_some(), "nothing comes after a reset");
                opened.got.extend(bytes);
            }
            if progress == FrameProgress::Done && !self.handovers.ready().has_entries() {
                return;
            }
        }
        assert!(turns < TURNS_MAX, "it never ends");
    }

    /// Checks that each client has got its events in their order, and all of them if its stream is open.
    fn check(&self, all: bool) {
        for opened in &self.opened {
            let expected = opened.watch.chunks.from(opened.from);
            assert!(expected.starts_with(&opened.got), "in their order");
            if all && opened.body.is_some() {
                assert_eq!(opened.got.len(), expected.len(), "all of them");
            }
        }
    }
}

fn stream_of(watch: usize) -> u32 {
    2 * watch as u32 + 1
}

/// Returns the bytes of each stream's DATA frames.
fn frames(mut out: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let mut frames: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut position = FramePosition::default();
    while !out.is_empty() {
        let (taken, header) = position.take_header(out);
        let header = header.expect("whole frames");
        let (payload, rest) = out[taken..].split_at(header.length);
        position.take_payload(payload);
        frames.entry(header.stream).or_default().extend(payload);
        out = rest;
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However watches begin, follow, run out of windows and end, each client gets what it would get alone.
    #[test]
    fn each_watch_is_written_what_it_would_be_alone(steps in steps()) {
        let mut model = Model::new();
        for (step, turns) in steps {
            model.step(step, turns);
            model.check(false);
        }
        for watch in 0..model.opened.len() {
            model.grant(stream_of(watch), ENOUGH);
        }
        model.grant(0, ENOUGH);
        model.write(TURNS_MAX);
        model.check(true);
    }
}

/// Without this the property could hold because nobody follows.
#[test]
fn an_event_is_asked_for_once_for_all_watches_of_a_class() {
    let mut model = Model::new();
    for _ in 0..3 {
        model.step(Step::Begin { class: 0 }, TURNS_MAX);
    }
    model.step(Step::Begin { class: 1 }, TURNS_MAX);
    let follow = || {
        let follows = |it: &Opened| lock(&it.watch.state).follows;
        model.opened.iter().map(follows).collect::<Vec<_>>()
    };
    assert_eq!(follow(), [true, true, true, false]);
    let slots = model.watches.streams.values();
    let slots: Vec<_> = slots
        .filter_map(|it| it.watch.as_ref().map(Arc::downgrade))
        .collect();
    let event = Step::Events {
        class: 0,
        lengths: vec![10],
    };
    model.step(event, TURNS_MAX);
    model.check(true);
    drop(model);
    assert!(
        slots.iter().all(|it| it.upgrade().is_none()),
        "no circle is left"
    );
}

/// The end of the server is no reason to leave out what has come.
#[test]
fn a_watch_that_is_told_to_end_gets_what_its_leader_has() {
    let mut model = Model::new();
    for _ in 0..2 {
        model.step(Step::Begin { class: 0 }, TURNS_MAX);
    }
    // It is ready before its leader is.
    model.opened[0].watch.change(|it| it.told_to_end = true);
    let event = Step::Events {
        class: 0,
        lengths: vec![10],
    };
    model.step(event, TURNS_MAX);
    model.check(true);
}

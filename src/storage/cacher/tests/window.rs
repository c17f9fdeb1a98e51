//! The window against a plain deque of everything that happened: what it keeps, what it lets go, and
//! what it says of each revision.

use std::collections::VecDeque;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::clock::Instant;
use crate::meta::{FieldSchema, Object, VersionMatch};
use crate::ring::log::Slot;
use crate::storage::cacher::window::event::{CacheEvent, Current, KeptState};
use crate::storage::cacher::window::event_window::{
    STATE_EVENTS_MAX, Window, WindowWriter, window,
};
use crate::storage::cacher::window::snapshot::{Entry, SnapshotMap};
use crate::storage::cacher::window::view::CacheView;
use crate::sync::OnceLock;

/// A step of the model.
#[derive(Clone, Debug)]
enum Step {
    /// A batch of events.
    Batch(Vec<Change>),
    /// Time passes, as many seconds as this number; then the clock alone expires events.
    Wait(u8),
    /// The type is listed again.
    Reset,
}

/// An event of a batch.
#[derive(Clone, Debug)]
struct Change {
    /// The key, of a few.
    key: u8,
    content: Content,
    /// True if it shares the revision of the one before it.
    shares: bool,
    /// True if it has the state after it, though it may not be the last of its batch.
    has_state: bool,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    /// An object with so many bytes of padding.
    Padded(u16),
    Unreadable,
    /// Nothing, or an object without padding if there is nothing to delete.
    Deleted,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = prop_oneof![
        8 => (0..1_500_u16).prop_map(Content::Padded),
        1 => Just(Content::Unreadable),
        2 => Just(Content::Deleted),
    ];
    let change = (0..30_u8, content, any::<bool>(), any::<bool>());
    let change = change.prop_map(|(key, content, shares, has_state)| Change {
        key,
        content,
        shares,
        has_state,
    });
    let batch = proptest::collection::vec(change, 0..60);
    let step = prop_oneof![
        12 => batch.prop_map(Step::Batch),
        8 => (0..40_u8).prop_map(Step::Wait),
        1 => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 1..60)
}

const LIMITS: WindowLimits = WindowLimits {
    age: Duration::from_secs(75),
    events_min: 20,
    events_max: 200,
    bytes_max: 200_000,
};

/// The least number of segments of a full window.
const PARTS: usize = 16;

/// More than any event of this test keeps alive.
const EVENT_BYTES_MAX: usize = 6_000;

/// The figures by which states are told apart: bytes, keys, and keys that are unreadable.
type Figures = (u64, usize, usize);

fn figures(state: &SnapshotMap) -> Figures {
    let keys = state.under("/", "").count();
    (state.bytes(), keys, state.unreadable_in("/").count())
}

struct Model {
    clock: Clock,
    writer: WindowWriter,
    window: Window,
    /// The events that are kept, each with the figures of the state after it.
    events: VecDeque<(Arc<CacheEvent>, Figures)>,
    /// The number of the first one.
    first: u64,
    /// The revision before them, and the figures of the state.
    base: (u64, Figures),
    revision: u64,
    state: SnapshotMap,
}

impl Model {
    fn new() -> Self {
        let (writer, window) = window(LIMITS);
        Self {
            clock: Clock::stepped(Timestamp::UNIX_EPOCH),
            writer,
            window,
            events: VecDeque::new(),
            first: 0,
            base: (0, figures(&SnapshotMap::default())),
            revision: 0,
            state: SnapshotMap::default(),
        }
    }

    fn batch(&mut self, changes: Vec<Change>) {
        self.revision += 1;
        let last = changes.len().saturating_sub(1);
        for (at, change) in changes.into_iter().enumerate() {
            self.revision += u64::from(!change.shares);
            let has_state = change.has_state || at == last;
            self.event(change.key, change.content, has_state);
        }
        self.writer.publish();
        self.evict();
    }

    /// Appends an event.
    fn event(&mut self, key: u8, content: Content, has_state: bool) {
        let key: Arc<str> = format!("/pods/d/{key}").into();
        let previous = self.state.get(&key).and_then(Entry::object).cloned();
        let is_there = self.state.get(&key).is_some();
        let current = match content {
            Content::Deleted if is_there => {
                self.state.remove(&key);
                Current::Deleted
            }
            Content::Unreadable => {
                let last = previous.clone();
                let entry = Entry::Unreadable { last };
                self.state.insert(Arc::clone(&key), entry);
                Current::Unreadable
            }
            Content::Padded(_) | Content::Deleted => {
                let bytes = match content {
                    Content::Padded(bytes) => bytes,
                    Content::Unreadable | Content::Deleted => 0,
                };
                let value = json!({"kind": "Pod", "apiVersion": "v1",
                    "metadata": {"name": "a", "namespace": "d"},
                    "spec": {"padding": "x".repeat(bytes.into())}});
                let object = Object::from_value(&value, self.revision, &FieldSchema::default());
                let object = Arc::new(object.expect("an object"));
                let entry = Entry::Readable(Arc::clone(&object));
                self.state.insert(Arc::clone(&key), entry);
                Current::Object(object)
            }
        };
        let event = Arc::new(CacheEvent {
            key,
            revision: self.revision,
            current,
            previous,
            state: match has_state {
                true => KeptState::new(self.state.clone()),
                false => KeptState::default(),
            },
            received: self.clock.now(),
            removed: OnceLock::new(),
        });
        self.writer.append(Arc::clone(&event));
        self.events.push_back((event, figures(&self.state)));
    }

    /// Lets the window evict, and checks that it evicted what it had to and not much more.
    fn evict(&mut self) {
        let now = self.clock.now();
        self.writer.evict(now);
        let view = self.window.view();
        let mut before_its_time = false;
        while self.first < view.first() {
            let (gone, after) = self.events.pop_front().expect("only what was there goes");
            self.base = (gone.revision, after);
            self.first += 1;
            before_its_time |= !is_aged(&gone, now) || self.events.len() < LIMITS.events_min;
        }
        let (events, bytes) = (self.events.len(), self.bytes());
        assert_eq!(events, self.writer.len());
        assert!(events < LIMITS.events_max + LIMITS.events_max / PARTS);
        assert!(bytes <= LIMITS.bytes_max);
        if before_its_time {
            let full = events >= LIMITS.events_max
                || bytes + LIMITS.bytes_max / PARTS + EVENT_BYTES_MAX >= LIMITS.bytes_max;
            assert!(full, "{events} events of {bytes} bytes are no full window");
        }
        let tolerated = LIMITS.age + LIMITS.age / u32::try_from(PARTS).expect("small");
        let too_old = |it: &&(Arc<CacheEvent>, _)| now.duration_since(it.0.received) > tolerated;
        let kept = self.events.iter().filter(too_old).count();
        assert!(
            kept < LIMITS.events_min + LIMITS.events_max / PARTS,
            "{kept} events are older than they may be"
        );
    }

    fn reset(&mut self) {
        self.revision += 10;
        self.first = self.writer.end() + 1;
        self.base = (self.revision, figures(&self.state));
        self.events.clear();
        drop(self.writer.reset(self.revision, self.state.clone()));
    }

    fn check(&self, view: &CacheView) {
        let end = self.first + self.events.len() as u64;
        assert_eq!((view.first(), view.end()), (self.first, end));
        assert_eq!(view.base_revision(), self.base.0);
        let newest = self.events.back();
        let newest = newest.map_or(self.base, |(it, after)| (it.revision, *after));
        assert_eq!((view.revision(), figures(&view.state())), newest);
        assert!(matches!(view.slot(end), Slot::Future));
        if let Some(older) = self.base.0.checked_sub(1) {
            assert_eq!(view.after(older), None, "too old");
            assert!(view.state_at(older).is_none(), "too old");
        }
        // Of each revision all events or none are before it, and none is in its state alone.
        let mut events = self.events.iter().peekable();
        let (mut next, mut state) = (self.first, self.base.1);
        for revision in self.base.0..=self.revision {
            while let Some((_, after)) = events.next_if(|(it, _)| it.revision <= revision) {
                next += 1;
                state = *after;
            }
            assert_eq!(view.after(revision), Some(next));
            let at = view.state_at(revision);
            assert_eq!(at.as_ref().map(figures), Some(state));
        }
        let middle = self.events.len() / 2;
        let later = view.events(self.first + middle as u64);
        assert!(
            later
                .map(|it| &it.key)
                .eq(self.events.range(middle..).map(|(it, _)| &it.key))
        );
    }

    fn bytes(&self) -> usize {
        self.events.iter().map(|(it, _)| it.bytes()).sum()
    }
}

fn is_aged(event: &CacheEvent, now: Instant) -> bool {
    now.duration_since(event.received) > LIMITS.age
}

/// Segments of a type that changes rarely end by their age, so that no event is kept much longer than it has to be.
#[tokio::test(start_paused = true)]
async fn rare_events_are_evicted_soon_after_their_time() {
    let limits = WindowLimits {
        events_min: 1,
        events_max: usize::MAX,
        bytes_max: usize::MAX,
        ..LIMITS
    };
    let parts = u32::try_from(PARTS).expect("small");
    let (writer, window) = window(limits);
    let mut model = Model {
        writer,
        window,
        ..Model::new()
    };
    for number in 0..20 * PARTS {
        model.revision += 1;
        let key = u8::try_from(number % 200).expect("small");
        model.event(key, Content::Padded(0), true);
        model.writer.publish();
        model.writer.evict(model.clock.now());
        let kept = model.writer.len();
        assert!(kept <= PARTS + 3, "{kept} events are kept");
        assert!(kept >= number.min(PARTS), "{kept} events are kept");
        model.clock.sleep(limits.age / parts).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_window_keeps_what_its_limits_say(steps in steps()) {
        let runtime = paused_runtime();
        let _entered = runtime.enter();
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Batch(changes) => model.batch(changes),
                Step::Wait(seconds) => {
                    let seconds = Duration::from_secs(seconds.into());
                    runtime.block_on(tokio::time::advance(seconds));
                    model.evict();
                }
                Step::Reset => model.reset(),
            }
            model.check(&model.window.view());
        }
    }
}

/// Nothing comes that could push the old events out. Their objects go, the state stays, and a watch
/// can begin at the newest revision.
#[tokio::test(start_paused = true)]
async fn a_quiet_type_expires_and_keeps_its_newest_state() {
    let limits = WindowLimits {
        events_min: 0,
        ..WindowLimits::default()
    };
    let world = World::new(limits).await;
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    let first = Arc::downgrade(&world.pods.cached("/pods/d/a").expect("cached"));
    world.script.put("/pods/d/a", "y");
    world.settle().await;
    assert!(first.strong_count() > 0, "the window keeps its history");
    world.clock.sleep(Duration::from_secs(95)).await;
    assert_eq!(first.strong_count(), 0, "it is older than the window");
    let mut late = world.watch(since(2)).await;
    let ended = "too old resource version: 2 (3) end";
    assert_eq!(next_items(&mut late, 2).await, ended);
    let exact = ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..since(3)
    };
    let list = world.list(exact).await.expect("from memory");
    assert_eq!(listed(&list), "3: a");
    let mut watch = world.watch(since(3)).await;
    world.script.put("/pods/d/b", "x");
    assert_eq!(next_item(&mut watch).await, "+b@4");
}

#[test]
fn a_window_takes_an_eighth_of_little_memory() {
    let default = WindowLimits::default();
    let limits = |memory: u64| WindowLimits::within(memory);
    assert_eq!(limits(800 << 20).bytes_max, 100 << 20);
    assert_eq!(limits(u64::MAX).bytes_max, default.bytes_max);
    let small = limits(1_000);
    assert_eq!(
        (small.bytes_max, small.events_max),
        (125, default.events_max)
    );
    assert_eq!(
        (small.age, small.events_min),
        (default.age, default.events_min)
    );
}

/// A window may hold a hundred thousand for each type.
#[test]
fn the_record_of_an_event_is_small() {
    let bytes = size_of::<CacheEvent>();
    assert!(bytes <= 104, "{bytes}");
}

/// Events that come one by one share states as those of a batch do: each state keeps nodes of the map alive.
#[test]
fn the_newest_event_has_a_state_and_few_others() {
    let mut model = Model::new();
    let before = model.window.view();
    for number in 0..200_u8 {
        let change = Change {
            key: number % 7,
            content: Content::Padded(0),
            shares: false,
            has_state: true,
        };
        let view = model.window.view();
        model.batch(vec![change]);
        // Its newest event has no state any more.
        let newest = (number > 0).then(|| model.events.len() - 2);
        let newest = newest.map_or(model.base.1, |at| model.events[at].1);
        assert_eq!(figures(&view.state()), newest);
    }
    assert_eq!(figures(&before.state()), figures(&SnapshotMap::default()));
    let with_state = |it: &&(Arc<CacheEvent>, Figures)| it.0.state.get().is_some();
    let states = model.events.iter().filter(with_state).count();
    let expected = 2 + model.events.len() / (STATE_EVENTS_MAX - 1);
    assert!(states <= expected, "{states} states");
    let (newest, _) = model.events.back().expect("an event");
    assert!(newest.state.get().is_some());
    model.check(&model.window.view());
}

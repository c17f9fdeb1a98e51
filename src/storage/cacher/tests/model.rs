//! The window, the state and the watchers against a plain list of everything that happened.

use std::collections::BTreeMap;

use futures::FutureExt;
use jiff::Timestamp;
use proptest::prelude::*;

use super::scripted::pod;
use super::*;
use crate::ring::waiters::{Publisher, published};
use crate::storage::cacher::dispatch::attachment::Attachment;
use crate::storage::cacher::dispatch::bookmark::Bookmarks;
use crate::storage::cacher::dispatch::filter::Filter;
use crate::storage::cacher::dispatch::watch_cache::WatchCache;
use crate::storage::cacher::dispatch::watcher::{CacheWatcher, StateInterval, WatchStart};
use crate::storage::cacher::fill::cache_writer::{CacheWriter, Filling};
use crate::storage::cacher::freshness::feed_revision::Freshness;
use crate::storage::{Change, ChangeKind};

/// A step of the model.
#[derive(Clone, Debug)]
enum Step {
    /// Changes that come in one batch: a key, and its new label or its deletion.
    Batch(Vec<(u8, Option<bool>)>),
    /// A watch begins so many events back, or with the state; perhaps with a selector.
    Attach { back: Option<u8>, selects: bool },
    /// A watcher reads so many items.
    Read { watcher: u8, items: u8 },
    /// Bookmarks are due.
    Bookmark,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (0..6_u8, proptest::option::weighted(0.8, any::<bool>()));
    let step = prop_oneof![
        6 => proptest::collection::vec(change, 1..60).prop_map(Step::Batch),
        2 => (proptest::option::of(0..120_u8), any::<bool>())
            .prop_map(|(back, selects)| Step::Attach { back, selects }),
        4 => (any::<u8>(), 0..150_u8).prop_map(|(watcher, items)| Step::Read { watcher, items }),
        1 => Just(Step::Bookmark),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A watch, and what the model says of it.
struct Watched {
    stream: WatchStream,
    /// The items that are still to come.
    expected: std::collections::VecDeque<String>,
    /// True if it selects by label.
    selects: bool,
    /// The revision that it has reached.
    reached: u64,
    ended: bool,
}

struct Model {
    cache: Arc<WatchCache>,
    writer: CacheWriter,
    publisher: Publisher,
    /// The label of each key.
    state: BTreeMap<String, bool>,
    /// Revision, key, label before, label after.
    log: Vec<(u64, String, Option<bool>, Option<bool>)>,
    /// The revision of each key's last write.
    written: BTreeMap<String, u64>,
    revision: u64,
    watches: Vec<Watched>,
}

/// Small enough to be passed, larger than a channel.
const LIMITS: WindowLimits = WindowLimits {
    age: Duration::from_secs(75),
    events_min: 10,
    events_max: 300,
    bytes_max: usize::MAX,
};

impl Model {
    fn new() -> Self {
        let clock = Clock::stepped(Timestamp::UNIX_EPOCH);
        let (publisher, published) = published(0);
        let (cache, window) = WatchCache::new(
            of_type("pods", "/pods/", LIMITS),
            CacheMetrics::default().of_type("", "pods"),
            clock.clone(),
            Arc::new(Freshness::new(published, clock)),
        );
        let cache = Arc::new(cache);
        let mut writer = CacheWriter::new(Arc::clone(&cache), window, &Ledger::unlimited());
        writer.replace(1, Filling::default());
        writer.serve();
        Self {
            cache,
            writer,
            publisher,
            state: BTreeMap::new(),
            log: Vec::new(),
            written: BTreeMap::new(),
            revision: 1,
            watches: Vec::new(),
        }
    }

    fn batch(&mut self, changes: Vec<(u8, Option<bool>)>) {
        let mut batch = Vec::new();
        for (number, after) in changes {
            let key = format!("/pods/d/{number}");
            let before = self.state.get(&key).copied();
            if before.is_none() && after.is_none() {
                continue;
            }
            self.revision += 1;
            let kind = match after {
                None => {
                    self.state.remove(&key);
                    ChangeKind::Delete
                }
                Some(label) => {
                    self.state.insert(key.clone(), label);
                    let value = pod(&key, if label { "x" } else { "y" });
                    ChangeKind::Put {
                        value: value.to_string().into(),
                        created: before.is_none(),
                    }
                }
            };
            self.written.insert(key.clone(), self.revision);
            for watch in &mut self.watches {
                let item = expected_item(self.revision, &key, before, after, watch.selects);
                watch
                    .expected
                    .extend(item.filter(|_| self.revision > watch.reached));
            }
            self.log.push((self.revision, key.clone(), before, after));
            batch.push(Change {
                key,
                revision: self.revision,
                kind,
            });
        }
        let applied = self.writer.apply(batch, self.revision);
        let applied = applied.expect("every change follows the one before it");
        let undispatched = self.writer.publish(applied);
        self.publisher.publish(self.revision);
        undispatched.dispatch();
        self.writer.expire_events();
    }

    fn attach(&mut self, back: Option<u8>, selects: bool) {
        let from = back.map(|back| self.revision.saturating_sub(back.into()).max(1));
        let mut options = bookmarked(from);
        if selects {
            options = labelled("x", options);
        }
        let filter = Filter::new("/pods/", true, options.predicate);
        let bookmarks = Some(Bookmarks { deadline: None });
        let attachment = Attachment::new(&self.cache, filter, bookmarks).expect("not draining");
        let (view, revision) = self.cache.current();
        let start_revision = from.unwrap_or(revision);
        let Some(cursor) = view.after(start_revision) else {
            assert!(self.log.len() > LIMITS.events_min, "refused too early");
            return;
        };
        let state = || StateInterval::new(view.state().as_ref().clone(), true);
        let start = WatchStart {
            cursor,
            start_revision,
            state: from.is_none().then(state),
        };
        let stream = WatchStream::followable(CacheWatcher::new(attachment, start));
        let mut expected = std::collections::VecDeque::new();
        if from.is_none() {
            for (key, label) in self.state.iter().filter(|(_, label)| !selects || **label) {
                let _ = label;
                expected.push_back(format!("+{}@{}", &key[8..], self.written[key]));
            }
            expected.push_back(format!("={revision}!"));
        }
        for (at, key, before, after) in self.log.iter().filter(|it| it.0 > start_revision) {
            expected.extend(expected_item(*at, key, *before, *after, selects));
        }
        self.watches.push(Watched {
            stream,
            expected,
            selects,
            reached: start_revision,
            ended: false,
        });
    }

    /// Reads from a watch and compares with what it must say.
    fn read(&mut self, index: usize, items: usize) {
        let Some(watch) = self.watches.get_mut(index) else {
            return;
        };
        for _ in 0..items {
            let Some(item) = watch.stream.next().now_or_never() else {
                assert_eq!(watch.expected.front(), None, "it says nothing");
                return;
            };
            if let Some(Ok(event)) = &item
                && matches!(
                    event,
                    WatchEvent::Bookmark {
                        initial_events_end: false,
                        ..
                    }
                )
            {
                assert!(event.revision() >= watch.reached, "a bookmark goes back");
                watch.reached = event.revision();
                let next = watch.expected.front().and_then(|it| it.split('@').nth(1));
                let next = next.map_or(u64::MAX, |it| it.parse().expect("a revision"));
                assert!(next > watch.reached, "a bookmark overtakes an event");
                continue;
            }
            let text = short(item);
            if text.starts_with("too old") || watch.ended {
                assert!(self.log.len() > LIMITS.events_min, "{text}: not passed");
                assert!(
                    watch.expected.len() > 1 || watch.ended,
                    "{text}: was current"
                );
                watch.ended = true;
                return;
            }
            assert_eq!(Some(text), watch.expected.pop_front());
        }
    }

    fn bookmarks(&mut self) {
        self.cache.send_due_bookmarks();
    }
}

/// Returns the item that a watch delivers for a change.
fn expected_item(
    revision: u64,
    key: &str,
    before: Option<bool>,
    after: Option<bool>,
    selects: bool,
) -> Option<String> {
    let passes = |label: Option<bool>| label.is_some_and(|label| label || !selects);
    let sign = match (passes(before), passes(after)) {
        (false, true) => '+',
        (true, true) => '~',
        (true, false) => '-',
        (false, false) => return None,
    };
    Some(format!("{sign}{}@{revision}", &key[8..]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Each watch says exactly what the model says, in order, without a gap and without anything
    /// twice; or it ends because the window has passed it.
    #[test]
    fn every_watch_says_what_happened(steps in steps()) {
        let runtime = paused_runtime();
        let _entered = runtime.enter();
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Batch(changes) => model.batch(changes),
                Step::Attach { back, selects } => model.attach(back, selects),
                Step::Read { watcher, items } => {
                    let count = model.watches.len().max(1);
                    model.read(usize::from(watcher) % count, items.into());
                }
                Step::Bookmark => {
                    runtime.block_on(tokio::time::advance(Duration::from_secs(61)));
                    model.bookmarks();
                }
            }
        }
        for index in 0..model.watches.len() {
            model.read(index, usize::MAX);
        }
    }
}

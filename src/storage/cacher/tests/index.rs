//! The index against asking every watcher.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::meta::{
    FieldPath, FieldSchema, FieldSelector, Object, ShardField, ShardRange, ShardSelector,
    shard_hash,
};
use crate::ring::channel::{Signal, channel};
use crate::storage::cacher::dispatch::filter::Filter;
use crate::storage::cacher::dispatch::index::{Index, WakeList};
use crate::storage::cacher::dispatch::signal_channel::Receiver;
use crate::storage::cacher::window::event::{CacheEvent, Current, KeptState};
use crate::sync::OnceLock;

/// More than an event tries.
const LABEL_NAMES: u8 = 30;

/// The uids of objects.
const UIDS: [&str; 5] = ["", "one", "two", "three", "four"];

/// The number of shards.
const SHARDS: usize = 7;

/// A step of the model.
#[derive(Clone, Debug)]
enum Step {
    /// A watcher comes: a key, its selectors, and the number of its shard.
    Enter(&'static str, String, &'static str, usize),
    /// One of those present goes.
    Leave(u8),
    /// A key's object becomes another, comes or goes, or cannot be read.
    Event(&'static str, Option<Content>, After),
}

/// The attributes by which an object is selected.
#[derive(Clone, Debug)]
struct Content {
    labels: BTreeMap<String, &'static str>,
    node: &'static str,
    uid: &'static str,
}

#[derive(Clone, Debug)]
enum After {
    Content(Content),
    Deleted,
    Unreadable,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let label = prop_oneof![
        3 => select(vec![
            "", "", "app=x", "app=y", "app in (x)", "app in (x,y)", "app!=x", "app", "!app",
            "app=x,app=y", "app=x,tier=1", "tier=1",
        ]).prop_map(str::to_owned),
        2 => (0..LABEL_NAMES, select(vec!["x", "y"])).prop_map(|(n, value)| format!("l{n}={value}")),
    ];
    let field = select(vec![
        "",
        "",
        "",
        "spec.nodeName=m",
        "spec.nodeName=n",
        "spec.nodeName=",
        "spec.nodeName!=n",
        "spec.nodeName=n,spec.nodeName!=m",
        "metadata.namespace=a",
        "metadata.namespace=a,spec.nodeName=n",
        "metadata.name=p",
        "metadata.name=q,spec.nodeName=n",
    ]);
    let scope = select(vec![
        "/pods/",
        "/pods/a/",
        "/pods/a",
        "/pods/a/p",
        "/pods/b/",
        "/",
    ]);
    let key = || select(vec!["/pods/a/p", "/pods/a/q", "/pods/b/p", "/pods/ab/p"]);
    let content = || {
        let name = prop_oneof![
            Just("app".to_owned()),
            Just("tier".to_owned()),
            (0..LABEL_NAMES).prop_map(|n| format!("l{n}")),
        ];
        let labels = prop::collection::btree_map(name, select(vec!["x", "y", "1"]), 0..5);
        let node = select(vec!["", "m", "n"]);
        let uid = select(UIDS.to_vec());
        (labels, node, uid).prop_map(|(labels, node, uid)| Content { labels, node, uid })
    };
    let after = prop_oneof![
        6 => content().prop_map(After::Content),
        1 => Just(After::Deleted),
        1 => Just(After::Unreadable),
    ];
    let step = prop_oneof![
        4 => (scope, label, field, 0..2 * SHARDS)
            .prop_map(|(scope, label, field, shard)| Step::Enter(scope, label, field, shard)),
        1 => any::<u8>().prop_map(Step::Leave),
        4 => (key(), prop::option::of(content()), after)
            .prop_map(|(key, before, after)| Step::Event(key, before, after)),
    ];
    prop::collection::vec(step, 1..120)
}

/// A watcher that is present.
struct Present {
    number: u32,
    filter: Arc<Filter>,
    receiver: Receiver,
}

#[derive(Default)]
struct Model {
    index: Index,
    present: Vec<Present>,
    free: Vec<u32>,
    next: u32,
    sequence: u64,
}

impl Model {
    fn enter(&mut self, key: &str, label: &str, field: &str, shard: usize) {
        let predicate = SelectionPredicate {
            shard: shard_selector(shard),
            label: LabelSelector::parse(label).expect("a selector"),
            field: FieldSelector::parse(field).expect("a selector"),
            ..SelectionPredicate::default()
        };
        let filter = Arc::new(Filter::new(key, key != "/pods/a/p", predicate));
        let number = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        let (sender, mut receiver) = channel();
        receiver.resume();
        self.index.insert(number, Arc::clone(&filter), sender);
        self.present.push(Present {
            number,
            filter,
            receiver,
        });
    }

    fn leave(&mut self, which: u8) {
        if self.present.is_empty() {
            return;
        }
        let which = usize::from(which) % self.present.len();
        let gone = self.present.swap_remove(which);
        self.index.remove(gone.number);
        self.index.remove(gone.number);
        self.free.push(gone.number);
    }

    /// An event is sent to the watchers that it concerns, once, and to no other. Returns how many these are.
    fn event(&mut self, event: &CacheEvent) -> usize {
        let mut reached = 0;
        self.sequence += 1;
        let mut wake = WakeList::new();
        self.index.dispatch(self.sequence, event, &mut wake);
        let mut context = Context::from_waker(Waker::noop());
        for watcher in &mut self.present {
            let concerned = watcher.filter.covers(&event.key) && watcher.filter.concerns(event);
            reached += usize::from(concerned);
            let sent = Poll::Ready(Signal::Event(self.sequence));
            let expected = if concerned { sent } else { Poll::Pending };
            let filter = &watcher.filter;
            assert_eq!(
                watcher.receiver.poll(&mut context),
                expected,
                "{filter:?} of {event:?}"
            );
            assert!(
                watcher.receiver.poll(&mut context).is_pending(),
                "sent twice"
            );
        }
        reached
    }
}

/// Returns one of several shards; everything for numbers beyond them.
fn shard_selector(number: usize) -> ShardSelector {
    let one = shard_hash(UIDS[1]);
    let middle = u64::MAX / 2;
    let (field, ranges) = match number {
        0 => (ShardField::Uid, vec![(0, middle)]),
        1 => (ShardField::Uid, vec![(middle + 1, u64::MAX)]),
        2 => (ShardField::Uid, vec![(one, one)]),
        3 => (ShardField::Uid, vec![(one + 1, u64::MAX), (0, one - 1)]),
        4 => (ShardField::Uid, vec![(0, u64::MAX)]),
        5 => (ShardField::Namespace, vec![(0, middle)]),
        6 => (ShardField::Namespace, vec![(middle + 1, u64::MAX)]),
        _ => return ShardSelector::default(),
    };
    let range = |(first, last)| ShardRange { first, last };
    let ranges: Vec<_> = ranges.into_iter().map(range).collect();
    ShardSelector::new(field, &ranges)
}

fn event(key: &str, before: Option<&Content>, after: &After) -> CacheEvent {
    let schema = FieldSchema::new([FieldPath {
        name: Cow::Borrowed("spec.nodeName"),
        default: "",
        from: &[],
        indexed: false,
    }]);
    let object = |content: &Content| {
        let (rest, name) = key.rsplit_once('/').expect("a key");
        let namespace = rest.rsplit('/').next();
        let value = json!({"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace, "uid": content.uid, "labels": content.labels},
            "spec": {"nodeName": content.node}});
        Arc::new(Object::from_value(&value, 1, &schema).expect("an object"))
    };
    CacheEvent {
        key: key.into(),
        revision: 2,
        current: match after {
            After::Content(content) => Current::Object(object(content)),
            After::Deleted => Current::Deleted,
            After::Unreadable => Current::Unreadable,
        },
        previous: before.map(object),
        state: KeptState::default(),
        received: Clock::real().now(),
        removed: OnceLock::new(),
    }
}

/// An event tries each label name that watchers of a scope use, unless these are many: then it goes by its own labels.
#[test]
fn an_event_finds_whom_it_concerns_by_its_own_labels() {
    let labelled = |labels: &[(&str, &'static str)]| Content {
        labels: labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        node: "",
        uid: "",
    };
    let mut model = Model::default();
    for number in 0..LABEL_NAMES {
        for value in ["x", "y"] {
            // Everything, and a shard in which the objects are not.
            for shard in [SHARDS, 0] {
                model.enter("/pods/", &format!("l{number}={value}"), "", shard);
            }
        }
    }
    let two = labelled(&[("l1", "x"), ("l2", "x"), ("other", "x")]);
    let changed = labelled(&[("l1", "x"), ("l2", "y")]);
    let none = labelled(&[]);
    for (before, after, reached) in [
        (None, After::Content(two.clone()), 2),
        (Some(&two), After::Content(changed.clone()), 3),
        (Some(&changed), After::Content(none.clone()), 2),
        (Some(&none), After::Content(two.clone()), 2),
        (Some(&two), After::Deleted, 2),
    ] {
        assert_eq!(model.event(&event("/pods/a/p", before, &after)), reached);
    }
}

proptest! {
    #[test]
    fn an_event_finds_whom_it_concerns(steps in steps()) {
        let mut model = Model::default();
        for step in &steps {
            match step {
                Step::Enter(key, label, field, shard) => model.enter(key, label, field, *shard),
                Step::Leave(which) => model.leave(*which),
                Step::Event(key, before, after) => {
                    model.event(&event(key, before.as_ref(), after));
                }
            }
            prop_assert_eq!(model.index.len(), model.present.len());
        }
        while !model.present.is_empty() {
            model.leave(0);
        }
        prop_assert!(model.index.is_clear(), "something stayed behind");
    }
}

//! The hottest paths, each with what it needs.

use std::hint::black_box;

use bytes::Bytes;
use ringwatch::codec;
use ringwatch::meta::{FieldSelector, LabelSelector, Object};
use ringwatch::storage::SelectionPredicate;
use ringwatch_testing::pod::pod;

use super::lease::lease;
use super::world::{World, schema, since};

/// The numbers of watchers that an event is sent to: those of a busy type, and of one that hardly anybody watches.
const WATCHERS: usize = 1_000;
const WATCHERS_FEW: usize = 2;

/// The number of pods, and of the nodes that they are on.
const PODS: usize = 10_000;
const NODES: usize = 100;

/// The number of Leases, how many are renewed at once, and how far these are apart: far enough to lie in different
/// nodes of the map.
const LEASES: usize = 10_000;
const RENEWALS: usize = 64;
const LEASES_STEP: usize = 157;

/// The number of times that a path is run: this spreads what happens only now and then, such as a new segment.
const TIMES: u64 = 20;

/// A path, and how often it is run when it is counted.
pub struct Path {
    pub name: &'static str,
    pub times: u64,
    prepare: fn() -> Box<dyn FnMut()>,
}

/// All paths that are counted.
pub const PATHS: &[Path] = &[
    Path::new("notify-1000-watchers", || notify_watchers(WATCHERS)),
    Path::new("notify-2-watchers", || notify_watchers(WATCHERS_FEW)),
    Path::new("read-stored-pod", read_stored),
    Path::new("pod-to-json", to_json),
    Path::new("pod-to-protobuf", to_protobuf),
    Path::new("pod-text-to-protobuf", text_to_protobuf),
    Path::new("pod-event-frame", event_frame),
    Path::new("select-pod", select),
    Path::new("list-pods-of-a-node", list_of_a_node),
    Path::new("renew-64-leases", renew_leases),
];

impl Path {
    const fn new(name: &'static str, prepare: fn() -> Box<dyn FnMut()>) -> Self {
        let times = TIMES;
        Self {
            name,
            times,
            prepare,
        }
    }

    /// Prepares the path, runs it once uncounted, and lets `runner` run it as often as it is counted.
    pub fn run(&self, runner: &mut dyn FnMut(&mut dyn FnMut())) {
        let mut once = (self.prepare)();
        once();
        runner(&mut || (0..self.times).for_each(|_| once()));
    }
}

/// Returns the path of a name.
pub fn named(name: &str) -> &'static Path {
    let path = PATHS.iter().find(|path| path.name == name);
    path.unwrap_or_else(|| panic!("there is no path {name}"))
}

/// Returns the path from a change of the store until every watcher has read its event in the window.
fn notify_watchers(watchers: usize) -> Box<dyn FnMut()> {
    let mut world = World::new(watchers, |_| since(1));
    Box::new(move || {
        world.write();
        world.turn();
        world.receive(1);
    })
}

/// Returns the path of decoding a stored object.
fn read_stored() -> Box<dyn FnMut()> {
    let (stored, schema) = (stored(), schema());
    Box::new(move || {
        black_box(codec::object(black_box(&stored), 7, &schema).unwrap());
    })
}

fn to_json() -> Box<dyn FnMut()> {
    let stored = stored();
    Box::new(move || {
        black_box(codec::to_json(black_box(&stored), ("", "")).unwrap());
    })
}

fn to_protobuf() -> Box<dyn FnMut()> {
    let tree = pod("web-7d4b9c6f58-x2v7k");
    Box::new(move || {
        black_box(codec::encode_value(black_box(&tree)).unwrap());
    })
}

/// Returns the path of encoding a pod that is stored as JSON for a list in protobuf.
fn text_to_protobuf() -> Box<dyn FnMut()> {
    let text = pod("web-7d4b9c6f58-x2v7k").to_string();
    Box::new(move || {
        black_box(codec::list_item_of_text(black_box(text.as_bytes())).unwrap());
    })
}

/// Returns the path of encoding an event for a watch in protobuf.
fn event_frame() -> Box<dyn FnMut()> {
    let object = object();
    Box::new(move || {
        black_box(codec::event_frame("MODIFIED", black_box(&object.bytes())));
    })
}

/// Returns the path of matching a pod against a selector by labels and by a field.
fn select() -> Box<dyn FnMut()> {
    let object = object();
    let label = "app=web,app.kubernetes.io/part-of in (shop,store),tier!=db";
    let predicate = SelectionPredicate {
        label: LabelSelector::parse(label).unwrap(),
        field: FieldSelector::parse("spec.nodeName=worker-17,metadata.namespace=shop").unwrap(),
        ..SelectionPredicate::default()
    };
    assert!(
        predicate.matches(object.attributes()),
        "the pod is selected"
    );
    Box::new(move || {
        assert!(black_box(&predicate).matches(black_box(object.attributes())));
    })
}

/// Returns the path of a list of one node's pods, out of those of all nodes.
fn list_of_a_node() -> Box<dyn FnMut()> {
    let mut world = World::new(0, |_| since(0));
    let pods = (0..PODS).map(|number| (format!("{number:05}"), format!("n{}", number % NODES)));
    world.write_pods(pods);
    world.turn();
    let mut options = since(0);
    options.predicate.field = FieldSelector::parse("spec.nodeName=n7").unwrap();
    Box::new(move || {
        let list = world.list(black_box(options.clone()));
        assert_eq!(black_box(list).items.len(), PODS / NODES);
    })
}

/// Returns the path from renewals of Leases in the store, each with a revision of its own, until readers see them.
fn renew_leases() -> Box<dyn FnMut()> {
    let mut world = World::new(0, |_| since(0));
    let key = |number| format!("/pods/kube-node-lease/node-{number:05}");
    let value = Bytes::from(codec::encode_value(&lease(0)).unwrap());
    world.write_encoded((0..LEASES).map(|number| (key(number), value.clone())));
    world.turn();
    let mut numbers = (0..LEASES).cycle().step_by(LEASES_STEP);
    Box::new(move || {
        for number in numbers.by_ref().take(RENEWALS) {
            world.write_encoded([(key(number), value.clone())]);
        }
        world.turn();
    })
}

fn object() -> Object {
    codec::object(&stored(), 7, &schema()).unwrap()
}

fn stored() -> Vec<u8> {
    codec::encode_value(&pod("web-7d4b9c6f58-x2v7k")).unwrap()
}

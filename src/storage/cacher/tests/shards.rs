//! Lists and watches of shards against filters that look at every object and every event.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::meta::{FieldSchema, Object, ShardField, ShardRange, ShardSelector, shard_hash};
use crate::storage::ContinueToken;
use crate::storage::cacher::decide::{Fresh, ListPlan};
use crate::storage::cacher::list_snapshot::list_folder;
use crate::storage::cacher::window::shard_index::SHARD_INDEXED_BYTES;
use crate::storage::cacher::window::snapshot::{Entry, SnapshotMap};

/// Maximum number of events that a watch of a test delivers.
const ITEMS_MAX: usize = 2_000;

/// Returns a pod with a uid, as JSON.
fn sharded_pod(key: &str, uid: &str) -> serde_json::Value {
    let mut pod = scripted::pod(key, "x");
    pod["metadata"]["uid"] = uid.into();
    pod["metadata"]["namespace"] = namespace(key).into();
    pod
}

fn namespace(key: &str) -> &str {
    key.split('/').nth(2).unwrap_or_default()
}

/// Divides all hashes into shards at these bounds, and deals out the parts to as many shards as there are.
fn partition(field: ShardField, bounds: &[u64], shards: usize) -> Vec<ShardSelector> {
    let mut bounds = bounds.to_vec();
    bounds.sort_unstable();
    bounds.dedup();
    bounds.retain(|it| *it > 0);
    let firsts = [0].into_iter().chain(bounds.iter().copied());
    let lasts = bounds.iter().map(|it| it - 1).chain([u64::MAX]);
    let parts: Vec<_> = firsts.zip(lasts).collect();
    let shard = |shard: usize| {
        let mine = parts.iter().skip(shard).step_by(shards);
        let ranges: Vec<_> = mine
            .map(|(first, last)| ShardRange {
                first: *first,
                last: *last,
            })
            .collect();
        ShardSelector::new(field, &ranges)
    };
    let shards: Vec<_> = (0..shards.min(parts.len())).map(shard).collect();
    shards
}

fn of_shard(shard: &ShardSelector, limit: u64) -> SelectionPredicate {
    SelectionPredicate {
        shard: shard.clone(),
        limit,
        ..SelectionPredicate::default()
    }
}

/// Returns a state of many objects, with or without indexes.
fn state_of(uids: &BTreeMap<String, String>, indexed: bool) -> SnapshotMap {
    let mut state = SnapshotMap::default().and_shards(indexed);
    for (key, uid) in uids {
        let object = Object::from_value(&sharded_pod(key, uid), 1, &FieldSchema::default());
        let object = Arc::new(object.expect("an object"));
        state.insert(key.as_str().into(), Entry::Readable(object));
    }
    state
}

/// Lists page by page, and returns the names of each page, and how many objects were looked at.
fn pages(
    state: &SnapshotMap,
    folder: &str,
    predicate: &SelectionPredicate,
) -> (Vec<Vec<String>>, u64) {
    let mut plan = ListPlan {
        fresh: Fresh::Any,
        exact: None,
        start: None,
        limit: predicate.limit,
    };
    let (mut pages, mut looked_at) = (Vec::new(), 0);
    loop {
        let page = list_folder(state, 7, folder, &plan, predicate).expect("a page");
        assert_eq!(page.list.shard, predicate.shard);
        looked_at += page.objects_read;
        let names = page
            .list
            .items
            .iter()
            .map(|it| format!("{}/{}", it.namespace(), it.name()));
        pages.push(names.collect());
        let Some(token) = page.list.continue_token else {
            return (pages, looked_at);
        };
        let token = ContinueToken::decode(&token, folder).expect("a token");
        plan.start = Some(token.start);
    }
}

fn fields() -> impl Strategy<Value = ShardField> {
    prop_oneof![3 => Just(ShardField::Uid), 1 => Just(ShardField::Namespace)]
}

/// Bounds anywhere, and bounds in the middle of the same bucket.
fn bounds() -> impl Strategy<Value = Vec<u64>> {
    let near = (0..4_u64).prop_map(|it| (0x40 << 56) + (it << 50));
    proptest::collection::vec(prop_oneof![2 => any::<u64>(), 1 => near], 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Shards by index have the same pages as shards by looking at everything, and together are the whole list.
    #[test]
    fn shards_together_are_the_whole_list(
        count in 0..1_500_u64,
        seed in any::<u64>(),
        changes in proptest::collection::vec((0..1_500_u64, any::<bool>()), 0..60),
        field in fields(),
        bounds in bounds(),
        shards in 1..9_usize,
        limit in prop_oneof![Just(0), Just(1_000), 1..90_u64],
    ) {
        let key = |number: u64| format!("/pods/n{}/{number:04}", shard_hash(&number.to_string()) % 40);
        let mut uids: BTreeMap<_, _> =
            (0..count).map(|it| (key(it), format!("{seed}-{it}"))).collect();
        let mut indexed = state_of(&uids, true);
        let before = (indexed.clone(), state_of(&uids, false));
        for (number, stays) in changes {
            let (key, uid) = (key(number), format!("{seed}-{number}-again"));
            if stays {
                let object = Object::from_value(&sharded_pod(&key, &uid), 2, &FieldSchema::default());
                let entry = Entry::Readable(Arc::new(object.expect("an object")));
                indexed.insert(key.as_str().into(), entry);
                uids.insert(key, uid);
            } else {
                indexed.remove(&key);
                uids.remove(&key);
            }
        }
        for (indexed, plain) in [before, (indexed, state_of(&uids, false))] {
            for folder in ["/pods/", "/pods/n7/"] {
                let (whole, _) = pages(&plain, folder, &SelectionPredicate::default());
                let mut all = Vec::new();
                for shard in partition(field, &bounds, shards) {
                    let predicate = of_shard(&shard, limit);
                    let (found, _) = pages(&indexed, folder, &predicate);
                    let (expected, _) = pages(&plain, folder, &predicate);
                    prop_assert_eq!(&found, &expected);
                    all.extend(found.into_iter().flatten());
                }
                all.sort_unstable();
                let mut whole = whole.concat();
                whole.sort_unstable();
                prop_assert_eq!(all, whole);
            }
        }
    }
}

/// A list of a tenth of the objects looks at a tenth and a little, in pages as well.
#[test]
fn a_shard_is_listed_without_looking_at_the_others() {
    // The hash spreads uids evenly because they are long and random.
    let uid = |it: u64| format!("{:016x}", shard_hash(&format!("{it:016}")));
    let key = |it: u64| (format!("/pods/d/{it:05}"), uid(it));
    let uids: BTreeMap<_, _> = (0..20_000).map(key).collect();
    let indexed = state_of(&uids, true);
    let shards = partition(ShardField::Uid, &[u64::MAX / 10], 2);
    for limit in [0, 500] {
        let (found, looked_at) = pages(&indexed, "/pods/", &of_shard(&shards[0], limit));
        let found = found.concat().len() as u64;
        assert!((1_800..2_200).contains(&found), "{found}");
        assert!(
            looked_at - found < 20_000 / 256 + 40,
            "{looked_at} for {found}"
        );
    }
    let plain = state_of(&uids, false);
    let (_, looked_at) = pages(&plain, "/pods/", &of_shard(&shards[0], 0));
    assert_eq!(looked_at, 20_000);
    let more = indexed.bytes() - plain.bytes();
    assert_eq!(more, 2 * SHARD_INDEXED_BYTES * 20_000);
}

/// As in kube-apiserver a page may be followed by an empty one: whether objects of the shard are left is not known
/// there.
#[test]
fn a_page_is_the_last_one_if_no_object_follows_it() {
    let key = |it: u64| (format!("/pods/d/{it:05}"), format!("uid-{it}"));
    let uids: BTreeMap<_, _> = (0..5_000).map(key).collect();
    let (indexed, plain) = (state_of(&uids, true), state_of(&uids, false));
    // The last one of its bucket, so that the index has nothing after it, but not the last one of all.
    let bucket = |it: &u64| shard_hash(&format!("uid-{it}")) >> 56;
    let number = (0..4_999).rfind(|it| bucket(it) == bucket(&100));
    let number = number.expect("itself at least");
    assert_ne!(bucket(&4_999), bucket(&100));
    let hash = shard_hash(&format!("uid-{number}"));
    let range = ShardRange {
        first: hash,
        last: hash,
    };
    let shard = ShardSelector::new(ShardField::Uid, &[range]);
    let one = vec![vec![format!("d/{number:05}")], vec![]];
    for state in [&indexed, &plain] {
        assert_eq!(pages(state, "/pods/", &of_shard(&shard, 1)).0, one);
    }
}

/// Everything that an event of a watch says.
fn seen(watch: WatchStream) -> impl Future<Output = Vec<String>> {
    let items = watch
        .take(ITEMS_MAX)
        .take_until(tokio::time::sleep(Duration::from_millis(10)));
    items.map(|item| short(Some(item))).collect()
}

/// Returns the revision in the short form of an item.
fn revision(item: &str) -> u64 {
    let digits = item.rsplit(['@', '=']).next().unwrap_or_default();
    digits.trim_end_matches('!').parse().expect("a revision")
}

/// A change of an object.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// It comes, or changes.
    Put(u8),
    /// It goes, and the next one of its name has another uid.
    Delete(u8),
    /// It is replaced at once by one with another uid.
    Replace(u8),
}

fn happenings() -> impl Strategy<Value = Vec<Change>> {
    let name = || 0..30_u8;
    let change = prop_oneof![
        4 => name().prop_map(Change::Put),
        2 => name().prop_map(Change::Delete),
        1 => name().prop_map(Change::Replace),
    ];
    proptest::collection::vec(change, 1..120)
}

/// Objects with uids that change when they come anew.
#[derive(Default)]
struct Pods {
    lives: BTreeMap<u8, u32>,
}

impl Pods {
    fn apply(&mut self, script: &Script, change: Change) {
        let (Change::Put(name) | Change::Delete(name) | Change::Replace(name)) = change;
        let key = format!("/pods/n{}/{name:02}", name % 5);
        let life = self.lives.entry(name).or_default();
        match change {
            Change::Put(_) => {}
            Change::Replace(_) => *life += 1,
            Change::Delete(_) => {
                if script.exists(&key) {
                    script.delete(&key);
                    *life += 1;
                }
                return;
            }
        }
        let pod = sharded_pod(&key, &format!("{name}-{life}"));
        script.put_raw(&key, serde_json::to_vec(&pod).expect("json").into());
    }
}

/// Returns the items of watches together, in the order of their revisions, without bookmarks.
fn together(watches: Vec<Vec<String>>) -> Vec<String> {
    let mut all: Vec<_> = watches.concat();
    all.retain(|item| !item.starts_with('='));
    all.sort_by_key(|item| revision(item));
    all
}

/// Replacing an object at once moves it from one shard to another: one of them sees it go and the other sees it come.
fn without_moves(items: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for item in items {
        let (sign, rest) = item.split_at(1);
        let other = match sign {
            "+" => format!("-{rest}"),
            "-" => format!("+{rest}"),
            _ => String::new(),
        };
        if joined.last() == Some(&other) {
            joined.pop();
            joined.push(format!("~{rest}"));
        } else {
            joined.push(item);
        }
    }
    joined
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The shards of a partition together see every event once, whether they begin with the state, after a revision, or
    /// have fallen behind; and each sees what a filter lets through.
    #[test]
    fn shards_together_see_every_event(
        before in happenings(),
        after in happenings(),
        field in fields(),
        bounds in bounds(),
        shards in 1..7_usize,
        with_state in any::<bool>(),
        late in any::<bool>(),
    ) {
        let (whole, parts) = paused_runtime().block_on(async {
            let world = World::new(WindowLimits::default()).await;
            let mut pods = Pods::default();
            before.iter().for_each(|it| pods.apply(&world.script, *it));
            world.settle().await;
            let newest = world.script.state().revision;
            let options = || if with_state { streamed(Some(0)) } else { bookmarked(Some(newest)) };
            let whole = world.watch(options()).await;
            let mut parts = Vec::new();
            for shard in partition(field, &bounds, shards) {
                let mut options = options();
                options.predicate.shard = shard;
                parts.push(world.watch(options).await);
            }
            for change in &after {
                pods.apply(&world.script, *change);
                if !late {
                    world.settle().await;
                }
            }
            world.settle().await;
            let whole = seen(whole).await;
            let mut seen_parts = Vec::new();
            for part in parts {
                seen_parts.push(seen(part).await);
            }
            (whole, seen_parts)
        });
        if with_state {
            let ended = |items: &[String]| items.iter().filter(|it| it.ends_with('!')).count();
            prop_assert!(parts.iter().all(|part| ended(part) == 1), "one bookmark after the state");
        }
        let whole = together(vec![whole]);
        let parts = without_moves(together(parts));
        let sorted = |mut items: Vec<String>| { items.sort_unstable(); items };
        prop_assert_eq!(sorted(parts), sorted(whole));
    }
}

/// An event reaches no watcher of another shard, and the metrics count those that it would have reached without.
#[tokio::test(start_paused = true)]
async fn an_event_reaches_the_watchers_of_its_shard_alone() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    metrics.register_shards(&mut registry);
    let world = World::with(
        Arc::new(Script::default()),
        WindowLimits::default(),
        metrics,
    );
    world.pods.ready().await.expect("listed");
    let hash = shard_hash("mine");
    let mut watches = Vec::new();
    for shard in partition(ShardField::Uid, &[hash, hash + 1], 3) {
        for _ in 0..2 {
            let mut options = bookmarked(Some(1));
            options.predicate.shard = shard.clone();
            let mut watch = world.watch(options).await;
            assert_eq!(item_now(&mut watch).await, None);
            watches.push(watch);
        }
    }
    let shown = |line: &str| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains(line), "{line} in {text}");
    };
    shown("apiserver_watch_shards_total{group=\"\",resource=\"pods\"} 6\n");
    let pod = sharded_pod("/pods/d/a", "mine");
    let value = || serde_json::to_vec(&pod).expect("json").into();
    world.script.put_raw("/pods/d/a", value());
    world.settle().await;
    // Four watchers of two other shards, about an object that was not there before.
    shown("apiserver_watch_filtered_events_total{group=\"\",resource=\"pods\"} 4\n");
    world.script.put_raw("/pods/d/a", value());
    world.settle().await;
    // Now they would look at both the old and the new object.
    shown("apiserver_watch_filtered_events_total{group=\"\",resource=\"pods\"} 12\n");
    for (number, mut watch) in watches.into_iter().enumerate() {
        let expected = [None, Some("+a@2 ~a@3".to_owned())][usize::from(number / 2 == 1)].clone();
        let found = match expected {
            None => item_now(&mut watch).await,
            Some(_) => Some(next_items(&mut watch, 2).await),
        };
        assert_eq!(found, expected, "{number}");
    }
    shown("apiserver_watch_shards_total{group=\"\",resource=\"pods\"} 0\n");
}

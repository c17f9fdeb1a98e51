//! Lists by an index against lists that look at everything.

use proptest::prelude::*;

use super::*;
use crate::meta::{FieldPath, FieldSchema, FieldSelector, Object};
use crate::storage::cacher::decide::{Fresh, ListPlan};
use crate::storage::cacher::list_snapshot::list_folder;
use crate::storage::cacher::window::field_index::INDEXED_BYTES;
use crate::storage::cacher::window::snapshot::{Entry, SnapshotMap};

/// The number of changes after which a state is kept, to be listed at the end.
const CHANGES_OF_STATE: usize = 16;

fn schema() -> FieldSchema {
    FieldSchema::new([FieldPath {
        name: "spec.nodeName".into(),
        default: "",
        from: &[],
        indexed: true,
    }])
}

fn on_node(key: &str, node: u8) -> Arc<Object> {
    let mut pod = scripted::pod(key, "x");
    pod["spec"] = serde_json::json!({"nodeName": node_name(node)});
    Arc::new(Object::from_value(&pod, 1, &schema()).expect("an object"))
}

/// Returns the name of a node; the first is that of pods that have none.
fn node_name(node: u8) -> String {
    match node {
        0 => String::new(),
        node => format!("n{node}"),
    }
}

fn of_node(node: u8) -> SelectionPredicate {
    let selector = format!("spec.nodeName={}", node_name(node));
    SelectionPredicate {
        field: FieldSelector::parse(&selector).expect("a selector"),
        ..SelectionPredicate::default()
    }
}

/// A change of a key.
#[derive(Clone, Copy, Debug)]
enum Content {
    Pod {
        node: u8,
    },
    /// A value that is no object, whatever was there before.
    Unreadable,
    Nothing,
}

fn changes() -> impl Strategy<Value = Vec<(u8, Content)>> {
    let content = prop_oneof![
        6 => (0..4_u8).prop_map(|node| Content::Pod { node }),
        1 => Just(Content::Unreadable),
        2 => Just(Content::Nothing),
    ];
    proptest::collection::vec((0..24_u8, content), 1..80)
}

fn change(state: &mut SnapshotMap, number: u8, content: Content) {
    let key = format!("/pods/{}/{number:02}", if number < 12 { "a" } else { "b" });
    let last = state.get(&key).and_then(Entry::object).cloned();
    let entry = match content {
        Content::Pod { node } => Entry::Readable(on_node(&key, node)),
        Content::Unreadable => Entry::Unreadable { last },
        Content::Nothing => {
            state.remove(&key);
            return;
        }
    };
    state.insert(key.into(), entry);
}

/// Returns a list, page by page, and how many objects were looked at.
fn listed_in_pages(
    state: &SnapshotMap,
    folder: &str,
    limit: u64,
    predicate: &SelectionPredicate,
) -> (Vec<String>, u64) {
    let mut plan = ListPlan {
        fresh: Fresh::Any,
        exact: None,
        start: None,
        limit,
    };
    let (mut names, mut looked_at) = (Vec::new(), 0);
    loop {
        let page = list_folder(state, 7, folder, &plan, predicate).expect("a page");
        looked_at += page.objects_read;
        names.extend(page.list.items.iter().map(|it| it.name().to_owned()));
        let Some(token) = page.list.continue_token else {
            return (names, looked_at);
        };
        let token = crate::storage::ContinueToken::decode(&token, folder).expect("a token");
        plan.start = Some(token.start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lists_by_index_are_those_without(changes in changes(), limit in 0..5_u64) {
        let mut indexed = SnapshotMap::with_indexes(&schema());
        let mut plain = SnapshotMap::default();
        let mut states = Vec::new();
        for (place, (number, content)) in changes.into_iter().enumerate() {
            if place % CHANGES_OF_STATE == 0 {
                states.push((indexed.clone(), plain.clone()));
            }
            change(&mut indexed, number, content);
            change(&mut plain, number, content);
        }
        states.push((indexed, plain));
        for (indexed, plain) in &states {
            for (node, folder) in (0..4).flat_map(|node| ["/pods/", "/pods/b/"].map(|it| (node, it))) {
                let predicate = of_node(node);
                let (names, looked_at) = listed_in_pages(indexed, folder, limit, &predicate);
                let (expected, _) = listed_in_pages(plain, folder, limit, &predicate);
                prop_assert_eq!(looked_at, names.len() as u64, "only what is selected is looked at");
                prop_assert_eq!(names, expected);
            }
            let everything = SelectionPredicate::default();
            let (names, _) = listed_in_pages(indexed, "/pods/", limit, &everything);
            let (expected, _) = listed_in_pages(plain, "/pods/", limit, &everything);
            prop_assert_eq!(names, expected);
        }
    }
}

#[test]
fn an_index_is_counted_with_what_it_refers_to() {
    let mut indexed = SnapshotMap::with_indexes(&schema());
    let mut plain = SnapshotMap::default();
    for number in 0..3 {
        change(&mut indexed, number, Content::Pod { node: number });
        change(&mut plain, number, Content::Pod { node: number });
    }
    assert_eq!(indexed.bytes(), plain.bytes() + 3 * INDEXED_BYTES);
    for number in 0..3 {
        change(&mut indexed, number, Content::Nothing);
    }
    assert_eq!(indexed.bytes(), 0);
}

/// A state that is cleared, since the list of its type begins again, loses what was listed and keeps its indexes.
#[test]
fn a_state_that_is_cleared_keeps_its_indexes() {
    let mut state = SnapshotMap::with_indexes(&schema());
    change(&mut state, 0, Content::Pod { node: 1 });
    state.clear();
    change(&mut state, 1, Content::Pod { node: 1 });
    change(&mut state, 2, Content::Pod { node: 2 });
    let listed = listed_in_pages(&state, "/pods/", 0, &of_node(1));
    assert_eq!(listed, (vec!["01".to_owned()], 1));
}

/// A list and a watch of one node's pods look at no other, and the metrics say so.
#[tokio::test(start_paused = true)]
async fn lists_and_watches_of_a_node_look_at_its_pods() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    let world = World::with(
        Arc::new(Script::default()),
        WindowLimits::default(),
        metrics,
    );
    let mut config = of_type("widgets", "/widgets/", WindowLimits::default());
    config.versioner = Versioner::new(schema());
    let widgets = world.feed.add_type(config);
    widgets.ready().await.expect("listed");
    for number in 0..20_u8 {
        let key = format!("/widgets/d/{number:02}");
        let mut pod = scripted::pod(&key, "x");
        pod["spec"] = serde_json::json!({"nodeName": node_name(number % 4)});
        let value = serde_json::to_vec(&pod).expect("json");
        world.script.put_raw(&key, value.into());
    }
    world.settle().await;
    let delegator = CacheDelegator::new(Arc::clone(&widgets), Arc::clone(&world.store) as _);
    let mut options = since(0);
    options.predicate.field = of_node(3).field;
    let list = delegator.get_list("/widgets/", options.clone()).await;
    assert_eq!(listed(&list.expect("from memory")), "21: 03 07 11 15 19");
    options.send_initial_events = Some(true);
    options.predicate.allow_watch_bookmarks = true;
    let mut watch = widgets.watch("/widgets/", options).await.expect("ready");
    let items = next_items(&mut watch, 6).await;
    assert_eq!(items, "+03@5 +07@9 +11@13 +15@17 +19@21 =21!");
    let shown = |registry: &prometheus_client::registry::Registry| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).expect("text");
        text
    };
    let text = shown(&registry);
    let labels = r#"{group="",resource="widgets",index="f:spec.nodeName"}"#;
    for line in [
        format!("apiserver_cache_list_total{labels} 1\n"),
        format!("apiserver_cache_list_fetched_objects_total{labels} 5\n"),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
    world.feed.remove_type(&widgets);
    assert!(!shown(&registry).contains("widgets"), "forgotten");
}

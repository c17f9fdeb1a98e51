//! The metrics of a type, as things happen to it.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::*;
use crate::storage::{WatchObserver, WatchProgress};
use crate::sync::OnceLock;

/// Returns a world and the registry of its metrics.
async fn world() -> (World, Registry) {
    let mut registry = Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    let world = World::with(Arc::default(), WindowLimits::default(), metrics);
    world.pods.ready().await.expect("listed");
    world.settle().await;
    (world, registry)
}

/// Returns the value of one of the pods' metrics.
fn shown(registry: &Registry, name: &str) -> f64 {
    let mut text = String::new();
    encode(&mut text, registry).expect("text");
    let start = format!("{name}{{group=\"\",resource=\"pods\"");
    let mut lines = text.lines().filter(|line| {
        line.starts_with(&start)
            || line
                .strip_prefix(name)
                .is_some_and(|it| it.starts_with(' '))
    });
    let line = lines
        .next()
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    let value = line.rsplit(' ').next().expect("a value");
    value.parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn an_overflowed_watcher_is_counted_until_it_listens_again() {
    let (world, registry) = world().await;
    let mut slow = world.watch(since(1)).await;
    let mut fast = world.watch(since(1)).await;
    world.script.put("/pods/d/first", "x");
    assert_eq!(next_item(&mut slow).await, "+first@2");
    assert_eq!(next_item(&mut fast).await, "+first@2");
    for watch in [&mut slow, &mut fast] {
        assert_eq!(item_now(watch).await, None, "it listens");
    }
    assert_eq!(shown(&registry, "ringwatch_watchers"), 2.0);
    for number in 0..500 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
        world.settle().await;
        next_item(&mut fast).await;
        assert_eq!(item_now(&mut fast).await, None);
    }
    let overflows = shown(&registry, "ringwatch_channel_overflows_total");
    assert!((400.0..500.0).contains(&overflows), "{overflows} overflows");
    assert_eq!(shown(&registry, "ringwatch_watcher_parks_total"), 0.0);
    for number in 0..400 {
        let event = next_item(&mut slow).await;
        assert!(event.starts_with(&format!("+p{number}@")), "{event}");
    }
    assert_eq!(shown(&registry, "ringwatch_watcher_parks_total"), 1.0);
    assert_eq!(shown(&registry, "ringwatch_parked_watchers"), 1.0);
    for _ in 400..500 {
        next_item(&mut slow).await;
    }
    assert_eq!(item_now(&mut slow).await, None);
    assert_eq!(shown(&registry, "ringwatch_parked_watchers"), 0.0);
    drop(slow);
    assert_eq!(shown(&registry, "ringwatch_watchers"), 1.0);
}

/// Keeps the place of a watch.
#[derive(Debug, Default)]
struct Looker(OnceLock<Arc<dyn WatchProgress>>);

impl WatchObserver for Looker {
    fn begins(&self, place: Arc<dyn WatchProgress>) {
        self.0.set(place).expect("it begins once");
    }
}

#[tokio::test(start_paused = true)]
async fn the_lag_of_a_watch_shows_from_outside() {
    let world = World::new(WindowLimits::default()).await;
    world.pods.ready().await.expect("listed");
    world.settle().await;
    let looker = Arc::new(Looker::default());
    let observed = ListOptions {
        observer: Some(Arc::clone(&looker) as _),
        ..since(1)
    };
    let put = async |count: u64| {
        for number in 0..count {
            world.script.put(&format!("/pods/d/p{number}"), "x");
        }
        world.settle().await;
    };
    let mut watch = world.watch(observed).await;
    let place = looker.0.get().expect("a place");
    assert_eq!(place.of_type(), ("", "pods"));
    let lag = || (place.lag().events, place.lag().parked);
    put(3).await;
    assert_eq!(lag(), (3, false), "it has not begun to read");
    next_items(&mut watch, 2).await;
    assert_eq!(lag(), (1, false), "it reads the window");
    next_items(&mut watch, 1).await;
    assert_eq!(item_now(&mut watch).await, None);
    assert_eq!(lag(), (0, false), "it listens");
    put(5).await;
    next_items(&mut watch, 1).await;
    assert_eq!(lag(), (4, false), "they are in its channel");
    put(100).await;
    assert_eq!(lag(), (104, true), "its channel has overflowed");
    next_items(&mut watch, 54).await;
    assert_eq!(lag(), (50, true), "it reads the window");
    next_items(&mut watch, 50).await;
    assert_eq!(item_now(&mut watch).await, None);
    assert_eq!(lag(), (0, false), "it listens again");
}

#[tokio::test(start_paused = true)]
async fn a_type_tells_its_figures() {
    let world = World::new(WindowLimits::default()).await;
    world.pods.ready().await.expect("listed");
    for number in 0..3 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
    }
    world.settle().await;
    let of_pods = || {
        let figures = world.feed.figures().into_iter();
        let mut pods = figures.filter(|it| it.resource == "pods");
        pods.next().expect("the type")
    };
    let pods = of_pods();
    assert_eq!((pods.objects, pods.changes, pods.window.events), (3, 3, 3));
    assert_eq!((pods.window.spare, pods.watchers, pods.ready), (0, 0, true));
    assert_eq!(pods.revision, world.feed.revision());
    let _watch = world.watch(since(1)).await;
    tokio::time::advance(Duration::from_secs(6)).await;
    let pods = of_pods();
    assert_eq!((pods.window.spare, pods.watchers, pods.waiting), (3, 1, 0));
    // Settling took a moment too.
    assert!(pods.window.oldest >= Some(Duration::from_secs(6)));
    let read = world.list(since(pods.revision + 1));
    let read = std::pin::pin!(read);
    assert!(futures::poll!(read).is_pending());
    assert_eq!(of_pods().waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_while_overflowed_is_counted_no_more() {
    let (world, registry) = world().await;
    let mut slow = world.watch(since(1)).await;
    assert_eq!(item_now(&mut slow).await, None);
    for number in 0..500 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
    }
    world.settle().await;
    for _ in 0..100 {
        next_item(&mut slow).await;
    }
    assert_eq!(shown(&registry, "ringwatch_parked_watchers"), 1.0);
    drop(slow);
    assert_eq!(shown(&registry, "ringwatch_parked_watchers"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn each_batch_of_events_is_measured_by_stage() {
    let (world, registry) = world().await;
    let family = "apiserver_watch_events_dispatch_duration_seconds";
    let mut text = String::new();
    encode(&mut text, &registry).expect("text");
    assert!(!text.contains(&format!("{family}_count")), "{text}");
    let _watch = world.watch(since(1)).await;
    for name in ["a", "b"] {
        world.script.put(&format!("/pods/d/{name}"), "x");
        world.settle().await;
    }
    text.clear();
    encode(&mut text, &registry).expect("text");
    for stage in ["total", "storage_to_cache", "cache_to_watcher"] {
        let labels = format!("{{group=\"\",resource=\"pods\",stage=\"{stage}\"}}");
        let line = format!("{family}_count{labels} 2\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_and_the_feed_are_shown() {
    let (world, registry) = world().await;
    assert_eq!(shown(&registry, "ringwatch_feed_revision"), 1.0);
    assert_eq!(shown(&registry, "watch_cache_capacity"), 100.0);
    for number in 0..150 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
    }
    world.settle().await;
    assert_eq!(shown(&registry, "ringwatch_window_events"), 150.0);
    assert_eq!(shown(&registry, "watch_cache_capacity"), 200.0);
    assert_eq!(shown(&registry, "watch_cache_capacity_increase_total"), 1.0);
    assert!(shown(&registry, "ringwatch_window_bytes") > 150.0);
    assert_eq!(shown(&registry, "ringwatch_feed_revision"), 151.0);
    let last_batch = shown(&registry, "ringwatch_feed_last_batch_timestamp_seconds");
    world.clock.sleep(Duration::from_secs(10)).await;
    world.script.put("/pods/d/p0", "y");
    world.settle().await;
    assert_eq!(shown(&registry, "ringwatch_window_age_seconds"), 10.0);
    let later = shown(&registry, "ringwatch_feed_last_batch_timestamp_seconds");
    assert!(
        (9.0..12.0).contains(&(later - last_batch)),
        "{last_batch}, {later}"
    );
    world.clock.sleep(Duration::from_secs(200)).await;
    assert!(shown(&registry, "ringwatch_window_events") < 150.0);
    let filled = "apiserver_watch_cache_initialization_duration_seconds_count";
    assert_eq!(shown(&registry, filled), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_may_not_be_asked_is_told_from_one_that_is_silent() {
    let (world, registry) = world().await;
    let asks = "ringwatch_feed_asks_for_progress";
    // It is told at once, since the store may fall silent at any time.
    assert_eq!(shown(&registry, asks), 1.0);
    world.script.state().trusted = false;
    world.clock.sleep(Duration::from_secs(16)).await;
    assert_eq!(shown(&registry, asks), 0.0);
}

/// A full window lets go of a sixteenth at a time.
#[tokio::test(start_paused = true)]
async fn a_window_with_large_events_stays_nearly_full() {
    const BYTES_MAX: usize = 200_000;
    let mut registry = Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    let limits = WindowLimits {
        bytes_max: BYTES_MAX,
        ..WindowLimits::default()
    };
    let world = World::with(Arc::default(), limits, metrics);
    world.pods.ready().await.expect("listed");
    let large = "x".repeat(1_000);
    for number in 0..1_000 {
        world.script.put("/pods/d/p", &large);
        world.settle().await;
        let bytes = shown(&registry, "ringwatch_window_bytes");
        assert!(bytes <= BYTES_MAX as f64, "{bytes} bytes");
        let least = BYTES_MAX as f64 * 0.9;
        assert!(
            number < 200 || bytes > least,
            "{bytes} bytes after {number}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_may_be_full_to_the_byte() {
    let filled = async |bytes_max: usize| {
        let mut registry = Registry::default();
        let metrics = CacheMetrics::register(&mut registry);
        let limits = WindowLimits {
            bytes_max,
            ..WindowLimits::default()
        };
        let world = World::with(Arc::default(), limits, metrics);
        world.pods.ready().await.expect("listed");
        for _ in 0..100 {
            world.script.put("/pods/d/p", "x");
        }
        world.settle().await;
        let shown = |name| shown(&registry, name) as usize;
        (
            shown("ringwatch_window_bytes"),
            shown("ringwatch_window_events"),
        )
    };
    let (bytes, events) = filled(usize::MAX).await;
    assert_eq!(events, 100);
    assert_eq!(filled(bytes).await, (bytes, 100));
    assert!(filled(bytes - 1).await.1 < 100);
}

#[tokio::test(start_paused = true)]
async fn values_that_are_no_objects_are_counted() {
    let (world, registry) = world().await;
    assert_eq!(
        shown(&registry, "apiserver_storage_decode_errors_total"),
        0.0
    );
    world.script.put_raw("/pods/d/bad", "nonsense".into());
    world.settle().await;
    assert_eq!(
        shown(&registry, "apiserver_storage_decode_errors_total"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn lists_that_fail_are_counted_until_one_fills_the_cache() {
    let script = Arc::new(Script::default());
    script.state().hung = Some("/pods/".to_owned());
    let mut registry = Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    let world = World::with(Arc::clone(&script), WindowLimits::default(), metrics);
    world.clock.sleep(Duration::from_secs(600)).await;
    world.settle().await;
    let failed = "apiserver_watch_cache_initialization_errors_total";
    assert!(shown(&registry, failed) > 0.0);
    assert_eq!(
        shown(&registry, "apiserver_watch_cache_initializations_total"),
        0.0
    );
    script.state().hung = None;
    world.pods.ready().await.expect("listed");
    assert_eq!(
        shown(&registry, "apiserver_watch_cache_initializations_total"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_window_has_passed_is_counted_as_terminated() {
    let mut registry = Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    let limits = so_many_events(2);
    let world = World::with(Arc::default(), limits, metrics);
    world.pods.ready().await.expect("listed");
    let mut slow = world.watch(since(1)).await;
    for number in 0..1_000 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
        world.settle().await;
    }
    let terminated = "apiserver_terminated_watchers_total";
    assert_eq!(shown(&registry, terminated), 0.0);
    for _ in 0..1_000 {
        if next_item(&mut slow).await.starts_with("too old") {
            break;
        }
    }
    assert_eq!(shown(&registry, terminated), 1.0);
}

#[tokio::test(start_paused = true)]
async fn lists_and_what_they_read_are_counted() {
    let (world, registry) = world().await;
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        world.script.put(&format!("/pods/d/{name}"), app);
    }
    world.settle().await;
    assert_eq!(
        shown(&registry, "apiserver_watch_cache_resource_version"),
        4.0
    );
    world.list(since(0)).await.expect("from memory");
    let selected = world.list(labelled("x", since(0))).await;
    assert_eq!(selected.expect("from memory").items.len(), 2);
    let single = ListOptions {
        recursive: false,
        ..since(0)
    };
    let single = world.delegator.get_list("/pods/d/a", single).await;
    assert_eq!(single.expect("from memory").items.len(), 1);
    assert_eq!(shown(&registry, "apiserver_cache_list_total"), 3.0);
    assert_eq!(
        shown(&registry, "apiserver_cache_list_fetched_objects_total"),
        7.0
    );
    assert_eq!(
        shown(&registry, "apiserver_cache_list_returned_objects_total"),
        6.0
    );
}

#[tokio::test(start_paused = true)]
async fn consistent_reads_are_counted_by_who_answered() {
    let (world, registry) = world().await;
    let counted = |success: bool, fallback: bool| {
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let start = format!(
            "apiserver_watch_cache_consistent_read_total{{group=\"\",resource=\"pods\",success=\"{success}\",fallback=\"{fallback}\"}} "
        );
        let count = text.lines().find_map(|line| line.strip_prefix(&start));
        count.map_or(0, |count| count.parse().expect("a number"))
    };
    for _ in 0..2 {
        world.list(newest()).await.expect("fresh");
    }
    assert_eq!((counted(true, false), counted(false, true)), (2, 0));
    world.script.state().trusted = false;
    world.list(newest()).await.expect("the store's");
    assert_eq!((counted(true, false), counted(false, true)), (2, 1));
}

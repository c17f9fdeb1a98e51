//! Types: the figures of their caches, and the counts of their watchers.

use std::collections::BTreeMap;

use ringwatch::storage::cacher::TypeFigures;
use ringwatch_observe::status::{TypeState, WaitingReads, WatcherCounts, WindowState, type_name};

use super::lagging::Lagging;

/// Returns all types that are cached or watched, by their names.
pub(super) fn types(figures: &[TypeFigures], watches: &[Lagging]) -> Vec<TypeState> {
    let mut counts: BTreeMap<(&str, &str), WatcherCounts> = BTreeMap::new();
    for it in watches {
        let of_type = counts.entry(it.watch.of_type()).or_default();
        of_type.total += 1;
        if let Some(of_kind) = of_type.of_kind(it.watch.kind.name()) {
            *of_kind += 1;
        }
        of_type.parked += u64::from(it.parked);
        of_type.behind_max = of_type.behind_max.max(it.behind.unwrap_or_default());
    }
    let mut types = Vec::with_capacity(figures.len());
    for cached in figures {
        let mut watchers = counts
            .remove(&(&*cached.group, &*cached.resource))
            .unwrap_or_default();
        // A watch may have begun or ended since the others were counted.
        watchers.internal = cached.watchers.saturating_sub(watchers.total);
        types.push(cached_type(cached, watchers));
    }
    let uncached = counts.into_iter();
    types.extend(uncached.map(|(name, watchers)| uncached_type(type_name(name), watchers)));
    types.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    types
}

fn cached_type(figures: &TypeFigures, watchers: WatcherCounts) -> TypeState {
    let (window, limits) = (&figures.window, &figures.window.limits);
    TypeState {
        name: type_name((&figures.group, &figures.resource)),
        objects: Some(figures.objects as u64),
        bytes: Some(figures.object_bytes),
        window: Some(WindowState {
            events: window.events,
            spare: window.spare,
            capacity: limits.events_max as u64,
            bytes: Some(window.bytes),
            bytes_max: limits.bytes_max as u64,
            oldest_seconds: window.oldest.map(|it| it.as_secs_f64()),
        }),
        changes: Some(figures.changes),
        watchers,
        reads: WaitingReads {
            waiting: figures.waiting as u64,
            longest_seconds: figures.longest_wait.as_secs_f64(),
        },
        revision: Some(figures.revision),
        ready: figures.ready,
    }
}

fn uncached_type(name: String, watchers: WatcherCounts) -> TypeState {
    TypeState {
        name,
        objects: None,
        bytes: None,
        window: None,
        changes: None,
        watchers,
        reads: WaitingReads::default(),
        revision: None,
        ready: false,
    }
}

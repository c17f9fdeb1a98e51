//! Makes a state of what the metrics of any API server tell.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ringwatch_observe::status::{
    LevelState, ServerState, TypeState, WaitingReads, WatcherCounts, WindowState,
};

use crate::exposition::{Sample, samples};

/// The metrics that are read, of versions 1.30 to 1.36 of Kubernetes.
const WANTED: [&str; 17] = [
    "apiserver_flowcontrol_current_executing_requests",
    "apiserver_flowcontrol_current_executing_seats",
    "apiserver_flowcontrol_current_inqueue_requests",
    "apiserver_flowcontrol_nominal_limit_seats",
    "apiserver_flowcontrol_rejected_requests_total",
    "apiserver_longrunning_requests",
    "apiserver_resource_objects",
    "apiserver_resource_size_estimate_bytes",
    "apiserver_storage_objects",
    "apiserver_watch_cache_events_received_total",
    "apiserver_watch_cache_resource_version",
    "kubernetes_build_info",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "watch_cache_capacity",
    "apiserver_watch_cache_events_dispatched_total",
    "apiserver_watch_cache_capacity",
];

/// Returns what the text of `/metrics` tells.
pub(crate) fn state(text: &str, now: Timestamp) -> ServerState {
    let samples = samples(text, |name| WANTED.contains(&name));
    let mut state = ServerState::unknown("API server (by its metrics)", now.to_string());
    let mut types: BTreeMap<String, TypeState> = BTreeMap::new();
    let mut levels: BTreeMap<String, LevelState> = BTreeMap::new();
    for sample in &samples {
        let level = sample.label("priority_level");
        if !level.is_empty() {
            let level = levels.entry(level.to_owned());
            let level = level.or_insert_with_key(|name| new_level(name));
            add_to_level(level, sample);
        } else if let Some(name) = type_name(sample) {
            let of_type = types.entry(name);
            let of_type = of_type.or_insert_with_key(|name| new_type(name));
            add_to_type(of_type, sample);
        } else {
            add(&mut state, sample, now);
        }
    }
    state.feed.revision = types.values().filter_map(|it| it.revision).max();
    state.types = types.into_values().collect();
    state.fairness = levels.into_values().collect();
    state
}

/// Adds a sample about the whole server.
fn add(state: &mut ServerState, sample: &Sample<'_>, now: Timestamp) {
    match sample.name {
        "kubernetes_build_info" => state.version = sample.label("git_version").to_owned(),
        "process_resident_memory_bytes" => {
            state.memory.resident_bytes = Some(whole(sample.value));
        }
        "process_start_time_seconds" => {
            let now = now.as_duration().as_secs_f64();
            state.uptime_seconds = (now - sample.value).max(0.0);
        }
        _ => {}
    }
}

fn add_to_level(level: &mut LevelState, sample: &Sample<'_>) {
    let value = whole(sample.value);
    match sample.name {
        "apiserver_flowcontrol_current_executing_requests" => level.executing += value,
        "apiserver_flowcontrol_current_executing_seats" => level.taken += value,
        "apiserver_flowcontrol_current_inqueue_requests" => level.waiting += value,
        "apiserver_flowcontrol_rejected_requests_total" => level.rejected += value,
        // An exempt level has no seats of its own.
        "apiserver_flowcontrol_nominal_limit_seats" => {
            level.seats = Some(value).filter(|it| *it > 0);
        }
        _ => {}
    }
}

fn add_to_type(of_type: &mut TypeState, sample: &Sample<'_>) {
    let value = whole(sample.value);
    match sample.name {
        "apiserver_storage_objects" | "apiserver_resource_objects" => {
            // -1 stands for a type that could not be counted.
            of_type.objects = Some(value).filter(|_| sample.value >= 0.0);
        }
        "apiserver_resource_size_estimate_bytes" => {
            of_type.bytes = Some(value).filter(|_| sample.value >= 0.0);
        }
        "apiserver_watch_cache_events_received_total" => of_type.changes = Some(value),
        "apiserver_watch_cache_events_dispatched_total" => {
            of_type.changes = of_type.changes.or(Some(value));
        }
        "apiserver_watch_cache_resource_version" => {
            of_type.revision = Some(value);
        }
        "watch_cache_capacity" | "apiserver_watch_cache_capacity" => {
            of_type.window = Some(WindowState {
                capacity: value,
                ..WindowState::default()
            });
        }
        "apiserver_longrunning_requests" if sample.label("verb") == "WATCH" => {
            of_type.watchers.total += value;
        }
        _ => {}
    }
}

/// Returns the type that a sample is about, such as `deployments.apps`; `None` if it is about none.
fn type_name(sample: &Sample<'_>) -> Option<String> {
    let (resource, group) = (sample.label("resource"), sample.label("group"));
    if resource.is_empty() {
        return None;
    }
    // Some metrics have the group in the resource.
    let group = if resource.contains('.') { "" } else { group };
    Some(ringwatch_observe::status::type_name((group, resource)))
}

fn new_level(name: &str) -> LevelState {
    LevelState {
        level: name.to_owned(),
        seats: None,
        executing: 0,
        taken: 0,
        waiting: 0,
        rejected: 0,
    }
}

fn new_type(name: &str) -> TypeState {
    TypeState {
        name: name.to_owned(),
        objects: None,
        bytes: None,
        window: None,
        changes: None,
        watchers: WatcherCounts::default(),
        reads: WaitingReads::default(),
        revision: None,
        // Metrics do not tell, and it is not to be taken for a fault.
        ready: true,
    }
}

/// Returns a sample's value as a number of things.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and counts are whole"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_of_kube_apiserver_make_a_state() {
        let text = r#"
kubernetes_build_info{git_version="v1.36.2",major="1"} 1
process_resident_memory_bytes 5.24288e+08
process_start_time_seconds 1000
apiserver_resource_objects{group="apps",resource="deployments"} 7
apiserver_storage_objects{resource="pods"} 12
apiserver_storage_objects{resource="broken.example.com"} -1
apiserver_watch_cache_events_received_total{group="",resource="pods"} 40
apiserver_watch_cache_resource_version{group="",resource="pods"} 99
watch_cache_capacity{group="",resource="pods"} 1600
apiserver_longrunning_requests{group="",resource="pods",verb="WATCH",scope="cluster"} 3
apiserver_longrunning_requests{group="",resource="pods",verb="WATCH",scope="namespace"} 2
apiserver_longrunning_requests{group="",resource="pods",verb="CONNECT",scope="namespace"} 2
apiserver_flowcontrol_nominal_limit_seats{priority_level="exempt"} 0
apiserver_flowcontrol_nominal_limit_seats{priority_level="catch-all"} 13
apiserver_flowcontrol_current_executing_requests{flow_schema="a",priority_level="catch-all"} 1
apiserver_flowcontrol_current_executing_requests{flow_schema="b",priority_level="catch-all"} 2
apiserver_flowcontrol_rejected_requests_total{flow_schema="b",priority_level="catch-all",reason="x"} 4
"#;
        let now = Timestamp::from_second(1060).expect("a time");
        let state = state(text, now);
        assert_eq!((&*state.version, state.uptime_seconds), ("v1.36.2", 60.0));
        assert_eq!(state.memory.resident_bytes, Some(500 << 20));
        assert_eq!(state.feed.revision, Some(99));
        let names: Vec<_> = state
            .types
            .iter()
            .map(|it| (&*it.name, it.objects))
            .collect();
        let expected = [
            ("broken.example.com", None),
            ("deployments.apps", Some(7)),
            ("pods", Some(12)),
        ];
        assert_eq!(names, expected);
        let pods = &state.types[2];
        assert_eq!((pods.changes, pods.watchers.total), (Some(40), 5));
        assert_eq!(pods.window.as_ref().map(|it| it.capacity), Some(1600));
        let levels = &state.fairness;
        assert_eq!((levels[0].seats, levels[0].executing), (Some(13), 3));
        assert_eq!((levels[0].rejected, levels[1].seats), (4, None));
    }
}

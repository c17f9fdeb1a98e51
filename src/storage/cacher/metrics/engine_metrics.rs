//! The metrics of the engine: its watchers, its channels and its windows.
//!
//! kube-apiserver has no counterpart of these, so they have names of their own, except for the capacity of the window:
//! there is no ring here whose slots could be doubled and halved, so that metric shows the ring that kube-apiserver
//! would need for the events that are kept, and how often its size changes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::type_labels::TypeLabels;

/// The families of all types.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineMetrics {
    counters: [Family<TypeLabels, Counter>; COUNTERS.len()],
    gauges: [Family<TypeLabels, Gauge>; GAUGES.len()],
}

/// The counters' names and meanings, in the order of the fields that they fill.
const COUNTERS: [(&str, &str); 4] = [
    (
        "watch_cache_capacity_increase",
        "[ALPHA] Total number of watch cache capacity increase events broken by resource type.",
    ),
    (
        "watch_cache_capacity_decrease",
        "[ALPHA] Total number of watch cache capacity decrease events broken by resource type.",
    ),
    (
        "ringwatch_watcher_parks",
        "Times a watcher found that its channel had overflowed and read on in the window",
    ),
    (
        "ringwatch_channel_overflows",
        "Events left to the window because a watcher's channel was full or not yet open",
    ),
];

/// The gauges' names and meanings, in the order of the fields that they fill.
const GAUGES: [(&str, &str); 6] = [
    (
        "watch_cache_capacity",
        "[ALPHA] Total capacity of watch cache broken by resource type.",
    ),
    ("ringwatch_watchers", "Watchers of the watch cache"),
    (
        "ringwatch_parked_watchers",
        "Watchers whose channel has overflowed and who read on in the window now",
    ),
    ("ringwatch_window_events", "Events that the window holds"),
    (
        "ringwatch_window_bytes",
        "Memory that the window keeps beside the newest state",
    ),
    (
        "ringwatch_window_age_seconds",
        "Age of the oldest event in the window when the window last changed",
    ),
];

/// The metrics of one type.
#[derive(Clone, Debug)]
pub(crate) struct TypeEngineMetrics {
    capacity_increases: Counter,
    capacity_decreases: Counter,
    overflowed_total: Counter,
    /// Events that found no room in a channel.
    pub(crate) overflows: Counter,
    capacity: Gauge,
    /// The gauge of open watches.
    pub(crate) watchers: Gauge,
    overflowed: Gauge,
    window_events: Gauge,
    window_bytes: Gauge,
    window_age: Gauge,
}

/// Counts a watcher whose channel has overflowed and that reads the window, until this is dropped.
#[derive(Debug)]
pub(crate) struct OverflowedWatcher(Gauge);

impl OverflowedWatcher {
    /// Counts a watcher whose channel has overflowed.
    pub(crate) fn count(metrics: &TypeEngineMetrics) -> Self {
        metrics.overflowed_total.inc();
        metrics.overflowed.inc();
        Self(metrics.overflowed.clone())
    }
}

impl Drop for OverflowedWatcher {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The content of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowFigures {
    /// The number of events in the window.
    pub(crate) events: usize,
    /// The bytes that they keep alive beside the newest state.
    pub(crate) bytes: usize,
    /// The age of the oldest event, in seconds.
    pub(crate) age_seconds: u64,
    /// The number of events that are kept however old they are: the least capacity of the ring.
    pub(crate) events_min: usize,
}

impl EngineMetrics {
    /// Registers the families for `/metrics`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for (family, (name, help)) in self.counters.iter().zip(COUNTERS) {
            registry.register(name, help, family.clone());
        }
        for (family, (name, help)) in self.gauges.iter().zip(GAUGES) {
            registry.register(name, help, family.clone());
        }
    }

    /// Returns the metrics of a type.
    pub(crate) fn of_type(&self, labels: &TypeLabels) -> TypeEngineMetrics {
        let [
            capacity_increases,
            capacity_decreases,
            overflowed_total,
            overflows,
        ] = self
            .counters
            .each_ref()
            .map(|family| family.get_or_create_owned(labels));
        let [
            capacity,
            watchers,
            overflowed,
            window_events,
            window_bytes,
            window_age,
        ] = self
            .gauges
            .each_ref()
            .map(|family| family.get_or_create_owned(labels));
        TypeEngineMetrics {
            capacity_increases,
            capacity_decreases,
            overflowed_total,
            overflows,
            capacity,
            watchers,
            overflowed,
            window_events,
            window_bytes,
            window_age,
        }
    }

    /// Removes a type's metrics from `/metrics`.
    pub(crate) fn forget_type(&self, labels: &TypeLabels) {
        for family in &self.counters {
            family.remove(labels);
        }
        for family in &self.gauges {
            family.remove(labels);
        }
    }
}

impl TypeEngineMetrics {
    /// Returns the number of open watches.
    pub(crate) fn open_watchers(&self) -> u64 {
        u64::try_from(self.watchers.get()).unwrap_or_default()
    }

    /// Returns the bytes of the window when it last changed.
    pub(crate) fn window_bytes(&self) -> u64 {
        u64::try_from(self.window_bytes.get()).unwrap_or_default()
    }

    /// Sets the gauges of the window.
    pub(crate) fn set_window(&self, window: WindowFigures) {
        let shown = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        self.window_events.set(shown(window.events));
        self.window_bytes.set(shown(window.bytes));
        let age = i64::try_from(window.age_seconds).unwrap_or(i64::MAX);
        self.window_age.set(age);
        let capacity = ring_slots(window.events, window.events_min);
        let before = self.capacity.set(shown(capacity));
        // The first capacity is neither an increase nor a decrease.
        if before > 0 && shown(capacity) > before {
            self.capacity_increases.inc();
        } else if shown(capacity) < before {
            self.capacity_decreases.inc();
        }
    }
}

/// Returns the least power-of-two multiple of `least` that holds so many events.
fn ring_slots(events: usize, least: usize) -> usize {
    let least = least.max(1);
    least.saturating_mul(events.div_ceil(least).next_power_of_two())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn capacity_is_that_of_a_ring_which_doubles() {
        let slots = [0, 1, 100, 101, 200, 201, 400, 401, 102_400].map(|it| ring_slots(it, 100));
        assert_eq!(slots, [100, 100, 100, 200, 200, 400, 400, 800, 102_400]);
    }

    #[test]
    fn a_type_shows_its_window_until_it_is_forgotten() {
        let (metrics, mut registry) = (EngineMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        let labels = TypeLabels {
            group: String::new(),
            resource: "pods".to_owned(),
        };
        let pods = metrics.of_type(&labels);
        for events in [0, 90, 150, 250, 30, 150, 30] {
            pods.set_window(WindowFigures {
                events,
                bytes: 10 * events,
                age_seconds: 7,
                events_min: 100,
            });
        }
        pods.watchers.inc();
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        for (name, value) in [
            ("watch_cache_capacity", 100),
            ("watch_cache_capacity_increase_total", 3),
            ("watch_cache_capacity_decrease_total", 2),
            ("ringwatch_window_events", 30),
            ("ringwatch_window_bytes", 300),
            ("ringwatch_window_age_seconds", 7),
            ("ringwatch_watchers", 1),
            ("ringwatch_parked_watchers", 0),
            ("ringwatch_channel_overflows_total", 0),
        ] {
            let line = format!("{name}{{group=\"\",resource=\"pods\"}} {value}\n");
            assert!(text.contains(&line), "{line} in {text}");
        }
        metrics.forget_type(&labels);
        text.clear();
        encode(&mut text, &registry).expect("text");
        assert!(!text.contains("pods"), "{text}");
    }
}

//! Conversion of metrics between v1 and v2 by a table of paths.

use ringwatch_apimachinery::path::{get, set, text};
use serde_json::{Value, json};

/// Pairs of paths with the same meaning, in v1 and in v2.
type Paths = &'static [(&'static str, &'static str)];

/// The shapes of metrics in both versions: of targets in the spec, or of current metrics in the status.
pub(super) struct Shapes {
    /// The path of a resource's average utilization in v2.
    pub(super) utilization: &'static str,
    /// True if v2 has a `target.type`.
    typed: bool,
    /// The types of metrics, the members of each, and the quantity that v1 requires.
    types: &'static [(&'static str, Paths, Option<&'static str>)],
}

/// Shapes of the metrics in the spec, with their targets.
pub(super) const TARGET: Shapes = Shapes {
    utilization: "resource.target.averageUtilization",
    typed: true,
    types: &[
        ("resource", RESOURCE_TARGET, None),
        ("containerResource", RESOURCE_TARGET, None),
        (
            "pods",
            &[
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("targetAverageValue", "target.averageValue"),
            ],
            Some("targetAverageValue"),
        ),
        (
            "object",
            &[
                ("target", "describedObject"),
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("targetValue", "target.value"),
                ("averageValue", "target.averageValue"),
            ],
            Some("targetValue"),
        ),
        (
            "external",
            &[
                ("metricName", "metric.name"),
                ("metricSelector", "metric.selector"),
                ("targetValue", "target.value"),
                ("targetAverageValue", "target.averageValue"),
            ],
            None,
        ),
    ],
};

/// Shapes of the metrics in the status, with their current values.
pub(super) const STATUS: Shapes = Shapes {
    utilization: "resource.current.averageUtilization",
    typed: false,
    types: &[
        ("resource", RESOURCE_STATUS, Some("currentAverageValue")),
        (
            "containerResource",
            RESOURCE_STATUS,
            Some("currentAverageValue"),
        ),
        (
            "pods",
            &[
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("currentAverageValue", "current.averageValue"),
            ],
            Some("currentAverageValue"),
        ),
        (
            "object",
            &[
                ("target", "describedObject"),
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("currentValue", "current.value"),
                ("averageValue", "current.averageValue"),
            ],
            Some("currentValue"),
        ),
        (
            "external",
            &[
                ("metricName", "metric.name"),
                ("metricSelector", "metric.selector"),
                ("currentValue", "current.value"),
                ("currentAverageValue", "current.averageValue"),
            ],
            Some("currentValue"),
        ),
    ],
};

const RESOURCE_TARGET: Paths = &[
    ("name", "name"),
    ("container", "container"),
    ("targetAverageUtilization", "target.averageUtilization"),
    ("targetAverageValue", "target.averageValue"),
];

const RESOURCE_STATUS: Paths = &[
    ("name", "name"),
    ("container", "container"),
    ("currentAverageUtilization", "current.averageUtilization"),
    ("currentAverageValue", "current.averageValue"),
];

impl Shapes {
    /// Converts a metric to v1; a required quantity that is missing becomes `0`.
    fn to_v1(&self, metric: &Value) -> Value {
        let mut reshaped = self.reshape(metric, |(v1, v2)| (v2, v1));
        for (kind, _, required) in self.types {
            let source = reshaped.get_mut(*kind).and_then(Value::as_object_mut);
            if let (Some(source), Some(required)) = (source, required) {
                source.entry(*required).or_insert_with(|| "0".into());
            }
        }
        reshaped
    }

    /// Converts metrics to a v1 list.
    pub(super) fn all_to_v1(&self, metrics: &[Value]) -> Value {
        metrics.iter().map(|metric| self.to_v1(metric)).collect()
    }

    /// Converts a metric to v2.
    pub(super) fn to_v2(&self, metric: &Value) -> Value {
        let mut reshaped = self.reshape(metric, |pair| pair);
        self.name_target(&mut reshaped);
        reshaped
    }

    fn reshape(
        &self,
        metric: &Value,
        direct: fn((&'static str, &'static str)) -> (&'static str, &'static str),
    ) -> Value {
        let mut reshaped = json!({"type": text(metric, "type")});
        for (kind, paths, _) in self.types {
            let Some(source) = metric.get(*kind) else {
                continue;
            };
            for (from, to) in paths.iter().copied().map(direct) {
                if let Some(value) = get(source, from) {
                    set(&mut reshaped, &format!("{kind}.{to}"), value.clone());
                }
            }
        }
        reshaped
    }

    /// Sets `target.type` of a v2 metric by the value that the target has.
    pub(super) fn name_target(&self, metric: &mut Value) {
        if !self.typed {
            return;
        }
        for (kind, ..) in self.types {
            let Some(target) = get(metric, &format!("{kind}.target")) else {
                continue;
            };
            let name = if target.get("averageUtilization").is_some() {
                "Utilization"
            } else if target.get("value").is_some() {
                "Value"
            } else {
                "AverageValue"
            };
            set(metric, &format!("{kind}.target.type"), name.into());
        }
    }
}

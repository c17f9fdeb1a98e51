//! Table of HorizontalPodAutoscalers, which are read in their storage version: current metrics against their targets.

use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

/// Maximum number of metrics that a cell shows.
const SHOWN_MAX: usize = 2;

const UNKNOWN: &str = "<unknown>";

/// Table of HorizontalPodAutoscalers, with the scaled object, metrics and replicas.
pub(crate) static AUTOSCALERS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Reference", "What is scaled."),
        Column::text("Targets", "What is measured, and what it should be."),
        Column::text("MinPods", "The least number of replicas."),
        Column::text("MaxPods", "The greatest number of replicas."),
        Column::text("Replicas", "How many replicas there are."),
        Column::AGE,
    ],
    |autoscaler| {
        let target = autoscaler.text("spec.scaleTargetRef.name");
        let least = autoscaler.shown("spec.minReplicas");
        cells![
            autoscaler.name(),
            format!("{}/{target}", autoscaler.text("spec.scaleTargetRef.kind")),
            metrics(autoscaler),
            least.unwrap_or_else(|| "<unset>".to_owned()),
            autoscaler.number("spec.maxReplicas"),
            autoscaler.number("status.currentReplicas"),
            autoscaler.age(),
        ]
    },
);

fn metrics(autoscaler: &RowSubject<'_>) -> String {
    let specs: Vec<_> = autoscaler.list("spec.metrics").collect();
    let statuses: Vec<_> = autoscaler.list("status.currentMetrics").collect();
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let shown = specs.iter().take(SHOWN_MAX).enumerate();
    let shown: Vec<String> = shown
        .map(|(place, spec)| metric(spec, statuses.get(place)))
        .collect();
    let shown = shown.join(", ");
    match specs.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// Formats a metric as `current/target`. `status` is the entry of `currentMetrics` with the metric's index, if there is
/// one.
fn metric(spec: &RowSubject<'_>, status: Option<&RowSubject<'_>>) -> String {
    let (member, by_name) = match spec.text("type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let target = |what: &str| spec.shown(&format!("{member}.target.{what}"));
    let current = |what: &str| {
        let found = status.and_then(|it| it.shown(&format!("{member}.current.{what}")));
        found.unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let name = if by_name {
        format!("{}: ", spec.text(&format!("{member}.name")))
    } else {
        String::new()
    };
    match (target("averageValue"), by_name) {
        (Some(wanted), true) => format!("{name}{}/{wanted}", current("averageValue")),
        (Some(wanted), false) if member == "pods" => {
            format!("{}/{wanted}", current("averageValue"))
        }
        (Some(wanted), false) => format!("{}/{wanted} (avg)", current("averageValue")),
        (None, true) => {
            let percent = |text: String| match text.as_str() {
                UNKNOWN => text,
                _ => format!("{text}%"),
            };
            let wanted = target("averageUtilization").map(percent);
            let wanted = wanted.unwrap_or_else(|| "<auto>".to_owned());
            format!("{name}{}/{wanted}", percent(current("averageUtilization")))
        }
        (None, false) => {
            let wanted = target("value").unwrap_or_else(|| "0".to_owned());
            format!("{}/{wanted}", current("value"))
        }
    }
}

//! Writes events for a backend, and shortens those that are too large.

use std::borrow::Cow;

use crate::event::Event;
use crate::level::Level;
use crate::metrics::Metrics;
use crate::rendering;

/// The plugin that is counted with events that are too large even without bodies.
const TRUNCATE: &str = "truncate";

/// The bounds of events and batches.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// Maximum number of bytes of an event in JSON. A larger one loses its bodies; if that is not enough, it is dropped.
    pub event_bytes_max: u64,
    /// Maximum number of bytes of a batch.
    pub batch_bytes_max: u64,
}

/// An event that fits, and its JSON.
pub(super) struct Fitting<'a> {
    pub(super) event: Cow<'a, Event>,
    pub(super) json: Vec<u8>,
}

/// Writes an event within the bounds; returns `None` if it is too large even without its bodies, which is counted.
pub(super) fn fitting<'a>(
    event: &'a Event,
    bounds: Option<&Truncation>,
    is_item: bool,
    plugin: &'static str,
    metrics: &Metrics,
) -> Option<Fitting<'a>> {
    let rendered = rendering::json(event, is_item);
    for error in rendered.errors {
        tracing::warn!(
            audit_id = event.audit_id,
            error,
            "an audit event lacks a body"
        );
        metrics.errors(plugin, 1);
    }
    let fits = |json: &[u8]| {
        // kube-apiserver counts the end of the line too.
        bounds.is_none_or(|it| (json.len() as u64) < it.event_bytes_max)
    };
    if fits(&rendered.json) {
        return Some(Fitting {
            event: Cow::Borrowed(event),
            json: rendered.json,
        });
    }
    if event.level >= Level::Request {
        let mut short = event.clone();
        short.truncate();
        let json = rendering::json(&short, is_item).json;
        if fits(&json) {
            let event = Cow::Owned(short);
            return Some(Fitting { event, json });
        }
    }
    tracing::warn!(
        audit_id = event.audit_id,
        "event is too large even after truncating"
    );
    metrics.errors(TRUNCATE, 1);
    None
}

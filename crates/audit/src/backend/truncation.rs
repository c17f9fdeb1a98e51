//! Writes events for a backend, and shortens those that are too large.
//!
//! Ported from Kubernetes 1.36, apiserver/plugin/pkg/audit/truncate/truncate.go `ProcessEvents`.

use std::borrow::Cow;

use crate::event::AuditEvent;
use crate::level::Level;
use crate::metrics::Metrics;
use crate::rendering::{self, API_VERSION};

/// The plugin that is counted with events that are too large even without bodies.
const TRUNCATE: &str = "truncate";

/// The bytes that kube-apiserver counts for an event and an item of a list does not have: kind, version, and the end of
/// the line.
const ENVELOPE_BYTES: u64 =
    r#""kind":"Event","apiVersion":"","#.len() as u64 + API_VERSION.len() as u64 + 1;

/// The bounds of events and batches.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// Maximum number of bytes of an event in JSON. A larger one loses its bodies; if that is not enough, it is
    /// dropped.
    pub event_bytes_max: u64,
    /// Maximum number of bytes of the events of a batch in JSON.
    pub batch_bytes_max: u64,
}

/// An event that fits, and its JSON.
pub(super) struct Fitting<'a> {
    pub(super) event: Cow<'a, AuditEvent>,
    pub(super) json: Vec<u8>,
    /// The bytes that count for the bounds: those of the event as a document of its own, with the end of its line.
    pub(super) size: u64,
}

/// Writes an event within the bounds; returns `None` if it is too large even without its bodies, which is counted.
pub(super) fn fitting<'a>(
    event: &'a AuditEvent,
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
    let added = if is_item { ENVELOPE_BYTES } else { 1 };
    let size = |json: &[u8]| json.len() as u64 + added;
    let fits = |size: u64| bounds.is_none_or(|it| size <= it.event_bytes_max);
    let whole = size(&rendered.json);
    if fits(whole) {
        return Some(Fitting {
            event: Cow::Borrowed(event),
            json: rendered.json,
            size: whole,
        });
    }
    if event.level >= Level::Request {
        let mut short = event.clone();
        short.truncate();
        let json = rendering::json(&short, is_item).json;
        let size = size(&json);
        if fits(size) {
            let event = Cow::Owned(short);
            return Some(Fitting { event, json, size });
        }
    }
    tracing::warn!(
        audit_id = event.audit_id,
        "event is too large even after truncating"
    );
    metrics.errors(TRUNCATE, 1);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_a_document_in_either_form() {
        let event = AuditEvent::default();
        let metrics = Metrics::default();
        let [document, item] = [false, true]
            .map(|is_item| fitting(&event, None, is_item, TRUNCATE, &metrics).expect("no bounds"));
        assert_eq!(document.size, document.json.len() as u64 + 1);
        assert_eq!(item.size, document.size);
    }

    #[test]
    fn an_event_may_be_as_large_as_the_bound() {
        let event = AuditEvent::default();
        let metrics = Metrics::default();
        let whole = fitting(&event, None, true, TRUNCATE, &metrics).expect("no bounds");
        for (event_bytes_max, fits) in [(whole.size, true), (whole.size - 1, false)] {
            let bounds = Truncation {
                event_bytes_max,
                batch_bytes_max: 0,
            };
            let fitting = fitting(&event, Some(&bounds), true, TRUNCATE, &metrics);
            assert_eq!(fitting.is_some(), fits, "{event_bytes_max}");
        }
    }
}

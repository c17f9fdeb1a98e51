//! Table of Events, which are stored as `v1`, those of `events.k8s.io` included.

use crate::table::{Column, TableConvertor, cells, field_docs, subject::RowSubject};

/// Table of Events, with the times when they were seen, their object, source and message.
pub(crate) static EVENTS: TableConvertor = TableConvertor::new(
    &[
        Column::text("Last Seen", field_docs::EVENT_LAST_TIMESTAMP),
        Column::text("Type", field_docs::EVENT_TYPE),
        Column::text("Reason", field_docs::EVENT_REASON),
        Column::text("Object", field_docs::EVENT_INVOLVED_OBJECT),
        Column::text("Subobject", field_docs::EVENT_FIELD_PATH).wide(),
        Column::text("Source", field_docs::EVENT_SOURCE).wide(),
        Column::text("Message", field_docs::EVENT_MESSAGE),
        Column::text("First Seen", field_docs::EVENT_FIRST_TIMESTAMP).wide(),
        Column::text("Count", field_docs::EVENT_COUNT).wide(),
        Column::NAME.wide(),
    ],
    |event| {
        let first = if event.has("firstTimestamp") {
            event.since("firstTimestamp")
        } else {
            event.since("eventTime")
        };
        let (last, count) = last_seen(event, &first);
        cells![
            last,
            event.text("type"),
            event.text("reason"),
            object(event),
            event.text("involvedObject.fieldPath"),
            source(event),
            event.text("message").trim(),
            first,
            count,
            event.name(),
        ]
    },
);

/// Returns the time since the event was seen last, for people, and how often it was seen. An event without a count was
/// seen once.
fn last_seen(event: &RowSubject<'_>, first: &str) -> (String, i64) {
    if event.has("series") {
        let last = event.since("series.lastObservedTime");
        return (last, event.number("series.count"));
    }
    let last = if event.has("lastTimestamp") {
        event.since("lastTimestamp")
    } else {
        first.to_owned()
    };
    (last, event.number("count").max(1))
}

fn object(event: &RowSubject<'_>) -> String {
    let kind = event.text("involvedObject.kind").to_lowercase();
    match event.text("involvedObject.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// Returns the component that reported the event, with its host or instance.
fn source(event: &RowSubject<'_>) -> String {
    let component = event.text_or("source.component", event.text("reportingComponent"));
    match event.text_or("source.host", event.text("reportingInstance")) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

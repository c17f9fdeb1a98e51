//! The tracer of requests, and the task that exports its spans.

use ringwatch::clock::Clock;
use ringwatch_spans::{SpanMetrics, Tracer};

use super::tasks::Tasks;
use crate::config::server_id::server_id;
use crate::config::tracing_file::SpansConfig;

/// Builds the tracer that a file configures.
pub(crate) fn tracer(config: &SpansConfig, metrics: SpanMetrics, clock: &Clock) -> (Tracer, Tasks) {
    let (tracer, exporter) = Tracer::new(
        config.sampling,
        &config.endpoint,
        server_id(),
        metrics,
        clock.clone(),
    );
    let mut tasks = Tasks::default();
    tasks.background_to_its_end("export of spans", |end| exporter.run(end));
    (tracer, tasks)
}

//! Exports ended spans to a collector: OTLP over gRPC, without TLS, in batches.
//!
//! A batch that the collector does not take in time is dropped. So a collector that is absent, hangs or refuses costs
//! spans and nothing else.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use ringwatch::clock::Clock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint as Address, Uri};

use crate::Endpoint;
use crate::metrics::SpanMetrics;

/// Maximum number of spans of a batch. This and the next two are OpenTelemetry's defaults.
const BATCH_SPANS_MAX: usize = 512;
/// Maximum time that a span waits for others.
const BATCH_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum time of an attempt to send a batch.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to send the last batches, when the server ends; then they are dropped. Background tasks have two
/// seconds.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1500);

/// The name of this service in traces.
const SERVICE: &str = "apiserver";

/// Sends spans to a collector.
#[derive(Debug)]
pub struct Exporter {
    ended: mpsc::Receiver<SpanData>,
    url: String,
    resource: ResourceAttributesWithSchema,
    metrics: SpanMetrics,
    clock: Clock,
    /// The number of spans that are being sent.
    being_sent: usize,
    /// True while the last batch was not taken, which is logged once.
    is_failing: bool,
}

impl Exporter {
    pub(crate) fn new(
        ended: mpsc::Receiver<SpanData>,
        endpoint: &Endpoint,
        instance: String,
        metrics: SpanMetrics,
        clock: Clock,
    ) -> Self {
        let resource = Resource::builder_empty()
            .with_service_name(SERVICE)
            .with_attribute(KeyValue::new("service.instance.id", instance))
            .build();
        Self {
            ended,
            url: endpoint.url(),
            resource: ResourceAttributesWithSchema::from(&resource),
            metrics,
            clock,
            being_sent: 0,
            is_failing: false,
        }
    }

    /// Sends spans until `end` is cancelled, and then those that are left, within a bounded time.
    pub async fn run(mut self, end: CancellationToken) {
        let collector = match self.collector() {
            Ok(collector) => collector,
            Err(why) => {
                tracing::error!(why, "spans cannot be exported");
                return;
            }
        };
        let clock = self.clock.clone();
        let mut batch = Vec::with_capacity(BATCH_SPANS_MAX);
        let too_late = async {
            end.cancelled().await;
            clock.sleep(FLUSH_TIMEOUT).await;
        };
        let sending = async {
            while let Some(()) = end.run_until_cancelled(self.fill(&mut batch)).await {
                self.send(&collector, &mut batch).await;
            }
            self.ended.close();
            while !batch.is_empty() || self.ended.recv_many(&mut batch, BATCH_SPANS_MAX).await > 0 {
                self.send(&collector, &mut batch).await;
            }
        };
        tokio::select! {
            () = sending => {}
            () = too_late => {
                let left = self.being_sent + batch.len() + self.ended.len();
                self.metrics.export_failed(left as u64);
                tracing::warn!(left, "the last spans could not be exported in time");
            }
        }
    }

    /// Returns a client that connects when it is first used, and again after a failure.
    fn collector(&self) -> Result<TraceServiceClient<Channel>, String> {
        let address = Address::from_shared(self.url.clone()).map_err(|error| error.to_string())?;
        let address = match self.url.starts_with("unix:") {
            true => address.origin(Uri::from_static("http://localhost")),
            false => address,
        };
        Ok(TraceServiceClient::new(address.connect_lazy()))
    }

    /// Waits until a batch is full, or its first span has waited long enough. Spans that were taken from the queue stay
    /// in the batch when this is dropped.
    async fn fill(&mut self, batch: &mut Vec<SpanData>) {
        if batch.is_empty() && self.ended.recv_many(batch, BATCH_SPANS_MAX).await == 0 {
            // No tracer is left; the end is what remains.
            return std::future::pending().await;
        }
        let others = async {
            while batch.len() < BATCH_SPANS_MAX {
                let room = BATCH_SPANS_MAX - batch.len();
                if self.ended.recv_many(batch, room).await == 0 {
                    break;
                }
            }
        };
        let _ = self.clock.timeout(BATCH_WAIT_MAX, others).await;
    }

    /// Sends a batch and empties it, whether or not it is taken.
    async fn send(&mut self, collector: &TraceServiceClient<Channel>, batch: &mut Vec<SpanData>) {
        self.being_sent = batch.len();
        let spans = batch.len() as u64;
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(
                std::mem::take(batch),
                &self.resource,
            ),
        };
        let mut collector = collector.clone();
        let sent = collector.export(request);
        let outcome = match self.clock.timeout(SEND_TIMEOUT, sent).await {
            Ok(Ok(answer)) => {
                let partial = answer.into_inner().partial_success;
                let refused = partial.map_or(0, |it| it.rejected_spans);
                Ok(u64::try_from(refused).unwrap_or_default().min(spans))
            }
            Ok(Err(status)) => Err(format!("{:?}: {}", status.code(), status.message())),
            Err(_) => Err(format!("no answer within {SEND_TIMEOUT:?}")),
        };
        match &outcome {
            Ok(refused) => {
                self.metrics.exported(spans - refused);
                self.metrics.export_failed(*refused);
            }
            Err(_) => self.metrics.export_failed(spans),
        }
        self.being_sent = 0;
        self.tell(&outcome);
    }

    /// Logs when exporting begins to fail, and when it works again.
    fn tell(&mut self, outcome: &Result<u64, String>) {
        let was_failing = std::mem::replace(&mut self.is_failing, outcome.is_err());
        match outcome {
            Err(why) if !was_failing => tracing::warn!(
                why,
                collector = self.url,
                "spans cannot be exported and are dropped; ringwatch_tracing_dropped_spans_total counts them"
            ),
            Ok(_) if was_failing => {
                tracing::info!(collector = self.url, "spans are exported again");
            }
            _ => {}
        }
    }
}

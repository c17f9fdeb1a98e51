//! A collector of the test's own, which takes spans over OTLP.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures::stream;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::{DEADLINE, eventually};

/// The manner in which a collector answers.
#[derive(Clone, Copy)]
pub(super) enum Manner {
    Takes,
    Refuses,
    Hangs,
}

/// A span that was exported.
#[derive(Clone, Debug)]
pub(super) struct Exported {
    /// The attributes of the service.
    pub(super) service: BTreeMap<String, String>,
    /// Its own attributes.
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) span: Span,
}

type Taken = Arc<Mutex<Vec<Exported>>>;

/// A collector, until it is dropped.
pub(super) struct Collector {
    pub(super) address: SocketAddr,
    taken: Taken,
    _serving: JoinSet<()>,
}

struct Service {
    manner: Manner,
    taken: Taken,
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        match self.manner {
            Manner::Takes => {}
            Manner::Refuses => return Err(Status::unavailable("not today")),
            Manner::Hangs => std::future::pending().await,
        }
        let mut taken = self.taken.lock().unwrap();
        for of_service in request.into_inner().resource_spans {
            let service = map(of_service.resource.unwrap_or_default().attributes);
            let spans = of_service.scope_spans.into_iter().flat_map(|it| it.spans);
            taken.extend(spans.map(|span| Exported {
                service: service.clone(),
                attributes: map(span.attributes.clone()),
                span,
            }));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Returns attributes as text.
fn map(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = attributes.into_iter().map(|it| {
        let value = it.value.and_then(|it| it.value);
        (it.key, value.map(text).unwrap_or_default())
    });
    pairs.collect()
}

impl Collector {
    pub(super) async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = stream::unfold(listener, |listener| async move {
            let accepted = listener.accept().await.map(|(socket, _)| socket);
            Some((accepted, listener))
        });
        let taken = Taken::default();
        let service = TraceServiceServer::new(Service {
            manner,
            taken: Arc::clone(&taken),
        });
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let served = Server::builder().serve_with_incoming(service, accepted);
            served.await.unwrap();
        });
        Self {
            address,
            taken,
            _serving: serving,
        }
    }

    /// The spans of a trace once there is one with this name, in the order of their starts.
    pub(super) async fn trace(&self, trace_id: &str, name: &str) -> Vec<Exported> {
        let is_here = |it: &&Exported| hex(&it.span.trace_id) == trace_id;
        let taken = eventually(DEADLINE, format!("{name} in {trace_id}"), async || {
            let taken = self.all();
            let mut trace: Vec<Exported> = taken.iter().filter(is_here).cloned().collect();
            if trace.iter().any(|it| it.span.name == name) {
                trace.sort_by_key(|it| it.span.start_time_unix_nano);
                return Ok(trace);
            }
            Err(taken)
        });
        taken.await
    }

    /// All spans that were exported.
    pub(super) fn all(&self) -> Vec<Exported> {
        self.taken.lock().unwrap().clone()
    }
}

impl Exported {
    pub(super) fn id(&self) -> String {
        hex(&self.span.span_id)
    }

    pub(super) fn parent(&self) -> String {
        hex(&self.span.parent_span_id)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The span with this name; there must be one.
#[track_caller]
pub(super) fn named<'a>(trace: &'a [Exported], name: &str) -> &'a Exported {
    let found = trace.iter().find(|it| it.span.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {trace:?}"))
}

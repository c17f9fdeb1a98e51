//! The latency of the backend's responses to a store, under kube-apiserver's names.
//!
//! Requests for all types at once (the newest revision, the stream of changes, progress) have no type as a label and
//! are not counted here.

use std::future::Future;
use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::clock::Clock;
use crate::storage::backend::BackendError;

/// The upper bounds of kube-apiserver's buckets, in seconds.
const REQUEST_BUCKETS_SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// The upper bounds of kube-apiserver's buckets, in objects.
const LEASE_BUCKETS_OBJECTS: [f64; 7] = [10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0];

/// An operation of the backend.
#[derive(Clone, Copy, Debug)]
pub(super) enum BackendOperation {
    /// Reading a key.
    Get,
    /// Reading a page of keys.
    List,
    /// Counting keys.
    Count,
    /// Writing a key that is not there.
    Create,
    /// Writing a key that may be there.
    Update,
    /// Deleting a key.
    Delete,
}

impl BackendOperation {
    /// Returns kube-apiserver's name of the operation.
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Count => "listWithCount",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    group: Arc<str>,
    resource: Arc<str>,
}

/// The families of all types.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    clock: Clock,
    seconds: Family<RequestLabels, Histogram, fn() -> Histogram>,
    requests: Family<RequestLabels, Counter>,
    errors: Family<RequestLabels, Counter>,
    /// The number of objects that shared a lease by the time that the next one was granted.
    lease_objects: Histogram,
}

/// The metrics of one type.
#[derive(Clone, Debug)]
pub struct TypeRequestMetrics {
    all: RequestMetrics,
    group: Arc<str>,
    resource: Arc<str>,
}

impl RequestMetrics {
    /// Creates families that are not registered.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_BUCKETS_SECONDS)),
            requests: Family::default(),
            errors: Family::default(),
            lease_objects: Histogram::new(LEASE_BUCKETS_OBJECTS),
        }
    }

    /// Creates the families and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry, clock: Clock) -> Self {
        let metrics = Self::new(clock);
        registry.register(
            "etcd_request_duration_seconds",
            "[ALPHA] Etcd request latency in seconds for each operation and object type.",
            metrics.seconds.clone(),
        );
        registry.register(
            "etcd_requests",
            "[ALPHA] Etcd request counts for each operation and object type.",
            metrics.requests.clone(),
        );
        registry.register(
            "etcd_request_errors",
            "[ALPHA] Etcd failed request counts for each operation and object type.",
            metrics.errors.clone(),
        );
        registry.register(
            "etcd_lease_object_counts",
            "[ALPHA] Number of objects attached to a single etcd lease.",
            metrics.lease_objects.clone(),
        );
        metrics
    }

    /// Returns the metrics of a type.
    #[must_use]
    pub fn of_type(&self, group: &str, resource: &str) -> TypeRequestMetrics {
        TypeRequestMetrics {
            all: self.clone(),
            group: group.into(),
            resource: resource.into(),
        }
    }
}

impl TypeRequestMetrics {
    /// Measures a request and counts it.
    ///
    /// # Errors
    /// The request's.
    pub(super) async fn count<T>(
        &self,
        operation: BackendOperation,
        request: impl Future<Output = Result<T, BackendError>> + Send,
    ) -> Result<T, BackendError> {
        let clock = &self.all.clock;
        let begun = clock.now();
        let answer = request.await;
        let seconds = (clock.now() - begun).as_secs_f64();
        let labels = RequestLabels {
            operation: operation.name(),
            group: Arc::clone(&self.group),
            resource: Arc::clone(&self.resource),
        };
        self.all.seconds.get_or_create(&labels).observe(seconds);
        self.all.requests.get_or_create(&labels).inc();
        if answer.is_err() {
            self.all.errors.get_or_create(&labels).inc();
        }
        answer
    }

    /// Counts a lease that is no longer reused, and the objects that share it.
    pub(super) fn count_lease(&self, objects: u32) {
        self.all.lease_objects.observe(objects.into());
    }
}

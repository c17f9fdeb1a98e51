//! An etcd whose requests are spans, with the names and attributes of `otelgrpc`, by which kube-apiserver calls etcd.
//!
//! Only requests that are made for a traced request of a client have spans.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::storage::backend::{
    Backend, BackendError, LeaseId, RangeRequest, RangeResponse, Txn, TxnResponse, WatchRequest,
    WatchResponses,
};
use ringwatch_spans::{start_call, text};

/// An etcd whose requests are spans.
#[derive(Debug)]
pub(crate) struct TracedBackend(Arc<dyn Backend>);

impl TracedBackend {
    /// Traces the requests to an etcd.
    pub(crate) fn new(etcd: Arc<dyn Backend>) -> Self {
        Self(etcd)
    }
}

/// Makes a request as a span that is named by its gRPC method.
async fn traced<T>(
    method: &'static str,
    request: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    let span = start_call(method, || {
        [text("rpc.system.name", "grpc"), text("rpc.method", method)]
    });
    let outcome = span.within(request).await;
    if let Err(error) = &outcome
        && span.is_sampled()
    {
        span.fail(error.to_string());
    }
    outcome
}

#[async_trait]
impl Backend for TracedBackend {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        traced("etcdserverpb.KV/Range", self.0.range(request)).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        traced("etcdserverpb.KV/Txn", self.0.txn(txn)).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        self.0.watch(request).await
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        self.0.request_progress().await
    }

    fn progress_is_trusted(&self) -> bool {
        self.0.progress_is_trusted()
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        let granted = self.0.grant_lease(ttl_seconds);
        traced("etcdserverpb.Lease/LeaseGrant", granted).await
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        self.0.compact(revision).await
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        self.0.oldest_revision().await
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.0.size_bytes().await
    }
}

//! A cluster of etcd members: which endpoint is called, and how calls are retried.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::ResponseHeader;
use futures::StreamExt;
use tokio::sync::watch as value;

use super::config::Config;
use super::convert::{range_response, request, signed, transaction, txn_response};
use super::endpoint::Endpoint;
use super::error::{explain, was_never_sent};
use super::watch;
use crate::clock::Clock;
use crate::storage::backend::{
    Backend, BackendError, KeyRange, LeaseId, RangeContent, RangeRequest, RangeResponse, Txn,
    TxnResponse, WatchRequest, WatchResponses,
};
use crate::sync::Mutex;

/// The number of rounds over all endpoints before a call fails.
const ROUNDS_MAX: usize = 5;
/// A key that is never written.
const OLDEST_PROBE_KEY: &str = "ringwatch/oldest-revision";
/// The time to wait between two rounds over all endpoints.
const ROUND_PAUSE: Duration = Duration::from_millis(250);

/// A connection to an etcd cluster.
pub struct Etcd {
    /// The members of the cluster; never empty.
    endpoints: Vec<Endpoint>,
    /// The index of the endpoint to try first: the last one that answered.
    preferred: Mutex<usize>,
    request_timeout: Duration,
    clock: Clock,
    /// The number of requests for progress; watches request it when it rises.
    progress_requests: value::Sender<u64>,
}

/// The effect of a call on the store, which decides whether it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The call may be repeated.
    Repeatable,
    /// The call is repeated only if it was never sent.
    Once,
}

impl Etcd {
    /// Connects, and requests the version of every endpoint. It is enough if one responds.
    ///
    /// # Errors
    /// One line that names the endpoints and the error.
    pub async fn connect(config: Config, clock: Clock) -> Result<Self, BackendError> {
        let endpoints = config.open().await?;
        let etcd = Self {
            endpoints,
            preferred: Mutex::new(0),
            request_timeout: config.request_timeout,
            clock,
            progress_requests: value::Sender::new(0),
        };
        let reason = tokio::select! {
            probed = etcd.probe() => match probed {
                Ok(_) => return Ok(etcd),
                Err(error) => error.to_string(),
            },
            () = etcd.clock.sleep(config.connect_timeout) => {
                format!("no answer in {:?}", config.connect_timeout)
            }
        };
        Err(BackendError::Unavailable(format!(
            "cannot reach etcd at {}: {reason}",
            etcd.names()
        )))
    }

    /// Requests the version and the database size of every endpoint, and returns the size in bytes that the first one
    /// gives. The versions decide whether progress notices are trusted, so a caller should probe from time to time:
    /// endpoints are replaced.
    ///
    /// # Errors
    /// The error of the first endpoint, if none responds.
    pub async fn probe(&self) -> Result<u64, BackendError> {
        let probes = self.endpoints.iter().map(Endpoint::probe);
        let mut first_error = None;
        let mut size_bytes = None;
        for outcome in futures::future::join_all(probes).await {
            match outcome {
                Ok(bytes) => size_bytes = size_bytes.or(Some(bytes)),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match (size_bytes, first_error) {
            (Some(bytes), _) => Ok(bytes),
            (None, Some(error)) => Err(explain(error)),
            (None, None) => Err(BackendError::Unavailable("no endpoints".to_owned())),
        }
    }

    /// Returns the number by which the members know their cluster.
    ///
    /// # Errors
    /// Transport errors.
    pub async fn cluster_id(&self) -> Result<u64, BackendError> {
        let status = self
            .call(Effect::Repeatable, |endpoint| {
                let mut maintenance = endpoint.maintenance();
                async move { maintenance.status().await }
            })
            .await?;
        Ok(status.header().map_or(0, ResponseHeader::cluster_id))
    }

    /// Makes a call on one endpoint after the other until one responds.
    pub(super) async fn call<T, F>(
        &self,
        effect: Effect,
        make: impl Fn(&Endpoint) -> F,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        tokio::select! {
            outcome = self.call_in_turn(effect, make) => outcome,
            () = self.clock.sleep(self.request_timeout) => Err(BackendError::Timeout(format!(
                "etcd at {} did not answer in {:?}",
                self.names(),
                self.request_timeout
            ))),
        }
    }

    async fn call_in_turn<T, F>(
        &self,
        effect: Effect,
        make: impl Fn(&Endpoint) -> F,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let first = *self
            .preferred
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let turns = self.endpoints.len();
        let mut last = BackendError::Unavailable("no endpoints".to_owned());
        for turn in 0..turns * ROUNDS_MAX {
            if turn > 0 && turn % turns == 0 {
                self.clock.sleep(ROUND_PAUSE).await;
            }
            let index = (first + turn) % turns;
            let error = match make(&self.endpoints[index]).await {
                Ok(answer) => {
                    if turn > 0 {
                        *self
                            .preferred
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner) = index;
                    }
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let harmless = effect == Effect::Repeatable || was_never_sent(&error);
            match explain(error) {
                BackendError::Unavailable(reason) => {
                    let name = self.endpoints[index].name();
                    last = BackendError::Unavailable(format!("etcd at {name}: {reason}"));
                    if !harmless {
                        break;
                    }
                }
                other => return Err(other),
            }
        }
        Err(last)
    }

    /// Returns the endpoints' URLs, for messages.
    fn names(&self) -> String {
        let names: Vec<&str> = self.endpoints.iter().map(Endpoint::name).collect();
        names.join(", ")
    }
}

#[async_trait]
impl Backend for Etcd {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        let response = self
            .call(Effect::Repeatable, |endpoint| {
                let mut kv = endpoint.kv();
                let (key, options) = self::request(&request);
                async move { kv.get(key, Some(options)).await }
            })
            .await?;
        Ok(range_response(response))
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        let response = self
            .call(Effect::Once, |endpoint| {
                let mut kv = endpoint.kv();
                let txn = transaction(&txn);
                async move { kv.txn(txn).await }
            })
            .await?;
        Ok(txn_response(response))
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        let progress_requests = self.progress_requests.subscribe();
        let opened = self
            .call(Effect::Repeatable, |endpoint| {
                watch::open(endpoint.watch(), request.clone())
            })
            .await?;
        Ok(watch::responses(opened, &request, progress_requests))
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        self.progress_requests
            .send_modify(|count| *count = count.wrapping_add(1));
        Ok(())
    }

    fn progress_is_trusted(&self) -> bool {
        self.endpoints.iter().all(Endpoint::progress_is_trusted)
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        let response = self
            .call(Effect::Repeatable, |endpoint| {
                let mut lease = endpoint.lease();
                async move { lease.grant(ttl_seconds, None).await }
            })
            .await?;
        Ok(LeaseId(response.id()))
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        self.call(Effect::Repeatable, |endpoint| {
            let mut kv = endpoint.kv();
            async move { kv.compact(signed(revision), None).await }
        })
        .await?;
        Ok(())
    }

    /// Reads the revision from the one response in which etcd gives it: that to a watch which begins before it. Such a
    /// watch gets a response only if there was a compaction, hence the read.
    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        let first = RangeRequest {
            revision: 1,
            content: RangeContent::Count,
            ..RangeRequest::key(OLDEST_PROBE_KEY)
        };
        match self.range(first).await {
            Ok(_) => return Ok(1),
            Err(BackendError::Compacted { .. }) => {}
            Err(other) => return Err(other),
        }
        let request = WatchRequest {
            range: KeyRange::Key(OLDEST_PROBE_KEY.to_owned()),
            start_revision: 1,
            previous: false,
            progress: false,
        };
        let mut answers = self.watch(request).await?;
        let answer = tokio::select! {
            answer = answers.next() => answer,
            () = self.clock.sleep(self.request_timeout) => None,
        };
        match answer {
            Some(Err(BackendError::Compacted { compact_revision })) => Ok(compact_revision),
            Some(Err(other)) => Err(other),
            Some(Ok(_)) | None => Err(BackendError::Timeout(format!(
                "etcd at {} did not return the revision to which it is compacted",
                self.names()
            ))),
        }
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.probe().await
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Etcd")
            .field("endpoints", &self.names())
            .finish_non_exhaustive()
    }
}

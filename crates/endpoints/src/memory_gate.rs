//! Admits lists and watches by their estimated memory, or refuses them with 429; receives large bodies of a user one at
//! a time when memory is short.
//!
//! Gets and writes are never refused here, since deletions free memory.
//!
//! The hard part is that the length of a list is unknown before it is read. So a list asks the budget twice: for its
//! fixed cost before reading, and for the rest once its items are known. Items from the cache are shared and cost a
//! reference each; the store asks for its own items before it reads them. The list's share is held until its body is
//! sent.

use std::sync::Arc;

use http::Response;
use http_body_util::BodyExt;
use ringwatch::budget::{Account, Exceeded, Ledger, Share};
use ringwatch_apimachinery::User;
use ringwatch_flowcontrol::Requester;
use ringwatch_http::ResponseBody;
use ringwatch_offload::LARGE_BYTES;
use ringwatch_webhook::shares::{SharePermit, Shares};

use super::errors::Failure;
use super::metrics::{Metrics, RefusedKind};

/// Fixed cost of a list in bytes: its head, a chunk, the state of compression.
const LIST_BYTES: u64 = 64 << 10;

/// Cost of a watch in bytes: its stream, its channel, and its part of the connection. Bytes being sent are counted with
/// the connection.
const WATCH_BYTES: u64 = 8 << 10;

/// Cost of a watch in bytes for each byte of its selectors: a requirement on a label of one letter takes that much,
/// mostly while it is read.
const SELECTOR_FACTOR: u64 = 200;

/// Maximum number of large bodies of a user that are received at a time while memory is short. Of all users there may
/// be more: whoever sends slowly is to keep nobody else waiting.
const SHORT_BODIES_OF_A_USER_MAX: usize = 1;

/// Admits lists and watches while there is memory.
#[derive(Clone, Debug)]
pub(super) struct MemoryGate {
    ledger: Ledger,
    /// Counts the requests that were refused.
    metrics: Metrics,
    /// The users' large bodies that are received while memory is short.
    short: Arc<Shares<Requester>>,
}

/// The memory that a response takes until it is sent, beside what it shares with others. The handler puts it into the
/// response's extensions.
#[derive(Clone, Debug)]
pub(super) struct ResponseMemory {
    /// The bytes that the budget has not admitted yet.
    pub(super) bytes: u64,
    /// The share of the budget that covers its objects already.
    pub(super) objects: Option<Arc<Share>>,
}

/// A body that is being received, and its share of the memory budget.
#[derive(Debug)]
pub(super) struct ReceivedBody {
    share: Share,
    requester: Requester,
    short: Arc<Shares<Requester>>,
    /// The user's permit for a body while memory is short; `None` while there is enough.
    permit: Option<SharePermit<Requester>>,
}

impl ReceivedBody {
    /// Counts received bytes. If there is no memory for a large body, waits until no other such body of the user is
    /// being received.
    pub(super) async fn keep(&mut self, bytes: usize) {
        let kept = bytes as u64;
        let more = kept.saturating_sub(self.share.bytes());
        if bytes > LARGE_BYTES && self.permit.is_none() && self.share.admit(more).is_err() {
            let permit = Arc::clone(&self.short).acquire(self.requester.clone());
            self.permit = Some(permit.await);
        }
        self.share.set(kept);
    }

    /// Counts a body no more that has been received: where it waits for a thread, it is counted there. The user's
    /// permit is kept until this is dropped.
    pub(super) fn end(&mut self) {
        self.share.set(0);
    }
}

impl MemoryGate {
    /// Creates a gate that admits everything, for tests.
    #[cfg(test)]
    pub(super) fn open() -> Self {
        Self::new(Ledger::unlimited(), Metrics::new())
    }

    /// Creates a gate that asks this ledger.
    pub(super) fn new(ledger: Ledger, metrics: Metrics) -> Self {
        Self {
            ledger,
            metrics,
            short: Arc::new(Shares::new(SHORT_BODIES_OF_A_USER_MAX)),
        }
    }

    /// Admits a watch with selectors of so many bytes.
    ///
    /// # Errors
    /// 429 when memory is short.
    pub(super) fn watch(&self, selector_bytes: usize) -> Result<Share, Failure> {
        let selectors = (selector_bytes as u64).saturating_mul(SELECTOR_FACTOR);
        let admitted = self.ledger.admit(WATCH_BYTES.saturating_add(selectors));
        admitted.map_err(|exceeded| self.refuse(RefusedKind::Watch, exceeded))
    }

    /// Counts a body of a user while it is received.
    pub(super) fn receive(&self, user: &User) -> ReceivedBody {
        ReceivedBody {
            share: self.ledger.share(Account::Requests),
            requester: Requester::from(user),
            short: Arc::clone(&self.short),
            permit: None,
        }
    }

    /// Admits a list, with its fixed cost.
    ///
    /// # Errors
    /// 429 when memory is short.
    pub(super) fn list(&self) -> Result<Share, Failure> {
        let admitted = self.ledger.admit(LIST_BYTES);
        admitted.map_err(|exceeded| self.refuse_list(exceeded))
    }

    /// Admits the sending of a list that has been read, and holds its share until it is sent.
    ///
    /// # Errors
    /// 429 when memory is short.
    pub(super) fn send_list(
        &self,
        mut share: Share,
        mut response: Response<ResponseBody>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let held: Option<ResponseMemory> = response.extensions_mut().remove();
        if let Some(held) = &held {
            share
                .admit(held.bytes)
                .map_err(|exceeded| self.refuse_list(exceeded))?;
        }
        let shares = (share, held.and_then(|held| held.objects));
        // The body drops them with the closure.
        Ok(response.map(|body| body.inspect_frame(move |_| _ = &shares).boxed_unsync()))
    }

    /// Returns the ledger that a list asks for the memory of the objects that it reads.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the refusal of a list that was not given the memory it asked for.
    pub(super) fn refuse_list(&self, exceeded: Exceeded) -> Failure {
        self.refuse(RefusedKind::List, exceeded)
    }

    fn refuse(&self, kind: RefusedKind, exceeded: Exceeded) -> Failure {
        self.metrics.count_shed(kind);
        tracing::debug!(%exceeded, ?kind, "refused: the memory budget is spent");
        Failure::out_of_memory()
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_http::full;

    use super::*;

    fn gate(limit: u64) -> (MemoryGate, Ledger) {
        let ledger = Ledger::new(limit);
        (MemoryGate::new(ledger.clone(), Metrics::new()), ledger)
    }

    #[test]
    fn a_refusal_is_a_status_with_a_time_to_retry() {
        let (gate, _) = gate(8);
        let failure = gate.watch(0).expect_err("no room");
        let status = serde_json::to_value(failure.status()).expect("json");
        assert_eq!(
            status,
            serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "reason": "TooManyRequests", "code": 429,
                "message": "the server is short of memory and begins no lists and watches now, \
                            please try again later",
                "details": {"retryAfterSeconds": 5}})
        );
        assert_eq!(failure.retry_after_seconds(), Some(5));
    }

    #[tokio::test]
    async fn a_list_holds_what_it_takes_until_it_is_sent() {
        let (gate, ledger) = gate(1 << 20);
        let share = gate.list().expect("room");
        let mut response = Response::new(full("items"));
        let mut objects = ledger.share(Account::Requests);
        objects.set(500);
        response.extensions_mut().insert(ResponseMemory {
            bytes: 1_000,
            objects: Some(Arc::new(objects)),
        });
        let response = gate.send_list(share, response).expect("room");
        assert_eq!(ledger.spent(Account::Requests), LIST_BYTES + 1_500);
        let body = response.into_body().collect().await.expect("a body");
        assert_eq!(body.to_bytes(), "items");
        assert_eq!(ledger.total(), 0);
    }

    #[test]
    fn a_watch_holds_what_its_selectors_take() {
        let (gate, ledger) = gate(1 << 20);
        let watch = gate.watch(1_000).expect("room");
        assert_eq!(ledger.total(), WATCH_BYTES + 1_000 * SELECTOR_FACTOR);
        assert!(gate.watch(1 << 20).is_err());
        drop(watch);
        assert_eq!(ledger.total(), 0);
    }

    #[tokio::test]
    async fn large_bodies_of_a_user_are_received_one_at_a_time_when_memory_is_short() {
        let (gate, ledger) = gate(64 << 10);
        let user = |name: &str| User {
            name: name.to_owned(),
            ..User::default()
        };
        let (ann, bob) = (user("ann"), user("bob"));
        let [mut first, mut second, mut small] = [(); 3].map(|()| gate.receive(&ann));
        first.keep(20 << 10).await;
        assert_eq!(ledger.spent(Account::Requests), 20 << 10);
        first.keep(60 << 10).await;
        small.keep(LARGE_BYTES).await;
        let mut waits = Box::pin(second.keep(LARGE_BYTES + 1));
        assert!(futures::poll!(&mut waits).is_pending());
        // However slowly she sends, he does not wait for her.
        let mut others = gate.receive(&bob);
        others.keep(LARGE_BYTES + 1).await;
        drop(first);
        waits.await;
        drop((second, small, others));
        assert_eq!(ledger.total(), 0);
    }

    #[test]
    fn a_list_that_turns_out_too_long_is_refused() {
        let (gate, ledger) = gate(1 << 20);
        let share = gate.list().expect("room");
        let mut response = Response::new(full("items"));
        response.extensions_mut().insert(ResponseMemory {
            bytes: 1 << 20,
            objects: None,
        });
        assert!(gate.send_list(share, response).is_err());
        assert_eq!(ledger.total(), 0);
        assert!(gate.watch(0).is_ok(), "others go on");
    }
}

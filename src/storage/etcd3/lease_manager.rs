//! Leases that are shared among objects which expire at about the same time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::request_metrics::TypeRequestMetrics;
use crate::clock::{Clock, Instant};
use crate::storage::StorageError;
use crate::storage::backend::{Backend, LeaseId};

/// The extra time that an object may live because of a shared lease, in percent of its requested time to live.
const REUSE_PERCENT_OF_TTL: u64 = 5;
/// The longest extra time of an object, if nothing else is configured.
pub(super) const LEASE_REUSE_DEFAULT: Duration = Duration::from_secs(60);
/// Maximum number of objects that share a lease.
const LEASE_OBJECTS_MAX: u32 = 1_000;

/// Grants leases and reuses the last one while it fits.
#[derive(Debug)]
pub(super) struct LeaseManager {
    backend: Arc<dyn Backend>,
    /// The metrics of requests, which count the objects of each lease.
    requests: TypeRequestMetrics,
    /// The longest extra time of an object; 0 if objects share no leases.
    reuse_max: Duration,
    clock: Clock,
    /// The last lease. Held while one is granted, so that concurrent callers share the new one.
    last: Mutex<Option<Lease>>,
}

#[derive(Debug)]
struct Lease {
    id: LeaseId,
    expires: Instant,
    /// The number of times that it was returned, whether or not the write succeeded.
    objects: u32,
}

impl LeaseManager {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        requests: TypeRequestMetrics,
        reuse_max: Duration,
        clock: Clock,
    ) -> Self {
        Self {
            backend,
            requests,
            reuse_max,
            clock,
            last: Mutex::new(None),
        }
    }

    /// Returns the longest extra time of an object.
    pub(super) fn reuse_max(&self) -> Duration {
        self.reuse_max
    }

    /// Returns a lease that lives for `ttl_seconds` and at most a little longer.
    ///
    /// # Errors
    /// Transport errors.
    pub(super) async fn lease(&self, ttl_seconds: u64) -> Result<LeaseId, StorageError> {
        let reuse_seconds = (ttl_seconds / 100 * REUSE_PERCENT_OF_TTL
            + ttl_seconds % 100 * REUSE_PERCENT_OF_TTL / 100)
            .min(self.reuse_max.as_secs());
        let granted_seconds = ttl_seconds.saturating_add(reuse_seconds);
        let mut last = self.last.lock().await;
        let now = self.clock.now();
        if let Some(lease) = last.as_mut() {
            lease.objects = lease.objects.saturating_add(1);
            let left = lease.expires.saturating_duration_since(now);
            let long_enough = left > Duration::from_secs(ttl_seconds);
            let not_too_long = left <= Duration::from_secs(granted_seconds);
            if long_enough && not_too_long && lease.objects <= LEASE_OBJECTS_MAX {
                return Ok(lease.id);
            }
            // The object at hand gets the next lease.
            self.requests.count_lease(lease.objects - 1);
        }
        let lease_seconds = i64::try_from(granted_seconds).unwrap_or(i64::MAX);
        let id = self.backend.grant_lease(lease_seconds).await?;
        *last = now
            .checked_add(Duration::from_secs(granted_seconds))
            .map(|expires| Lease {
                id,
                expires,
                objects: 1,
            });
        Ok(id)
    }

    /// Makes the next call grant a new lease.
    pub(super) async fn forget(&self) {
        *self.last.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::backend::embedded::Embedded;
    use crate::storage::etcd3::request_metrics::RequestMetrics;

    fn leases() -> LeaseManager {
        leases_for(LEASE_REUSE_DEFAULT)
    }

    fn leases_for(reuse_max: Duration) -> LeaseManager {
        let clock = Clock::real();
        let backend = Arc::new(Embedded::in_memory(clock.clone()));
        let requests = RequestMetrics::new(clock.clone()).of_type("", "events");
        LeaseManager::new(backend, requests, reuse_max, clock)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_shared_while_it_fits() {
        let leases = leases();
        // 5 % of 100 s are 5 s: the lease lives for 105 s.
        let first = leases.lease(100).await.expect("a lease");
        assert_eq!(leases.lease(100).await.expect("a lease"), first);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(leases.lease(100).await.expect("a lease"), first);
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = leases.lease(100).await.expect("a lease");
        assert_ne!(second, first, "100 s from now it would be gone");
        let short = leases.lease(90).await.expect("a lease");
        assert_ne!(
            short, second,
            "an object must not outlive its time by so much"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn each_second_counts_for_the_extra_time() {
        let leases = leases();
        assert_eq!(leases.reuse_max(), LEASE_REUSE_DEFAULT);
        // 5 % of 150 s are 7 s, rounded down.
        let first = leases.lease(150).await.expect("a lease");
        tokio::time::advance(Duration::from_millis(6_900)).await;
        assert_eq!(leases.lease(150).await.expect("a lease"), first);
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_ne!(leases.lease(150).await.expect("a lease"), first);
    }

    #[tokio::test(start_paused = true)]
    async fn an_hour_gets_a_minute_more() {
        let leases = leases();
        let first = leases.lease(3_600).await.expect("a lease");
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(leases.lease(3_600).await.expect("a lease"), first);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_ne!(leases.lease(3_600).await.expect("a lease"), first);
    }

    #[tokio::test(start_paused = true)]
    async fn without_reuse_each_object_has_a_lease() {
        let leases = leases_for(Duration::ZERO);
        let first = leases.lease(3_600).await.expect("a lease");
        assert_ne!(leases.lease(3_600).await.expect("a lease"), first);
        let leases = leases_for(Duration::from_secs(10));
        let first = leases.lease(3_600).await.expect("a lease");
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(leases.lease(3_600).await.expect("a lease"), first);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_ne!(leases.lease(3_600).await.expect("a lease"), first);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_carries_a_thousand_objects() {
        let leases = leases();
        let first = leases.lease(3_600).await.expect("a lease");
        for _ in 1..LEASE_OBJECTS_MAX {
            assert_eq!(leases.lease(3_600).await.expect("a lease"), first);
        }
        assert_ne!(leases.lease(3_600).await.expect("a lease"), first);
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_lease_is_not_handed_out() {
        let leases = leases();
        let first = leases.lease(100).await.expect("a lease");
        leases.forget().await;
        assert_ne!(leases.lease(100).await.expect("a lease"), first);
    }
}

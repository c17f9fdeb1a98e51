//! Leases that objects share while grants take their time, fail, or are given up.

use ringwatch_testing::dropped::{at_each_wait, dropped_after};

use super::etcd::Etcd;
use super::*;
use crate::storage::backend::LeaseId;
use crate::storage::etcd3::RequestMetrics;
use crate::storage::etcd3::lease_manager::{LEASE_REUSE_DEFAULT, LeaseManager};

/// The time to live of the objects, in seconds.
const TTL: u64 = 100;
/// The time to live of a lease that they share: 5 % more.
const LEASE: u64 = 105;

fn leases(etcd: &Arc<Etcd>) -> LeaseManager {
    let clock = Clock::real();
    let requests = RequestMetrics::new(clock.clone()).of_type("", "events");
    LeaseManager::new(Arc::clone(etcd) as _, requests, LEASE_REUSE_DEFAULT, clock)
}

/// Takes a lease for an object, and checks that the object lives for its time, and at most a little longer.
async fn take_lease(etcd: &Etcd, leases: &LeaseManager) -> LeaseId {
    let lease = leases.lease(TTL).await.expect("a lease");
    let script = etcd.script();
    let granted = script.granted.iter().find(|(id, ..)| *id == lease);
    let (_, seconds, begun) = granted.expect("the etcd's");
    let lives = Duration::from_secs(u64::try_from(*seconds).expect("a time"));
    let left = (*begun + lives).saturating_duration_since(Clock::real().now());
    let times = Duration::from_secs(TTL)..=Duration::from_secs(LEASE);
    assert!(times.contains(&left), "{left:?} are left");
    lease
}

#[tokio::test(start_paused = true)]
async fn an_object_lives_for_its_time_however_long_the_grant_took() {
    for grant_takes in [[0, 0], [3, 0], [0, 3], [2, 2]] {
        let etcd = Etcd::new();
        etcd.script().grant_takes = grant_takes.map(Duration::from_secs);
        let leases = leases(&etcd);
        for _ in 0..40 {
            take_lease(&etcd, &leases).await;
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        let granted = etcd.script().granted.len();
        assert!((2..40).contains(&granted), "{granted} leases");
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_fails_leaves_the_next_object_a_lease_of_its_whole_time() {
    let etcd = Etcd::new();
    let leases = leases(&etcd);
    let first = take_lease(&etcd, &leases).await;
    tokio::time::advance(Duration::from_secs(50)).await;
    etcd.script().refused = 1;
    leases.lease(TTL).await.expect_err("not granted");
    assert_ne!(take_lease(&etcd, &leases).await, first);
}

/// The lease for which it has waited has less than its time left.
#[tokio::test(start_paused = true)]
async fn an_object_that_waited_for_the_grant_of_another_lives_for_its_time() {
    let etcd = Etcd::new();
    etcd.script().grant_takes = [0, 6].map(Duration::from_secs);
    let leases = leases(&etcd);
    let first = async {
        leases.lease(TTL).await.expect("a lease");
        etcd.script().grant_takes = [Duration::ZERO; 2];
    };
    tokio::join!(first, take_lease(&etcd, &leases));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_given_up_during_a_grant_keeps_no_other_from_its_lease() {
    at_each_wait(async |waits| {
        let etcd = Etcd::new();
        etcd.script().grant_takes = [2, 2].map(Duration::from_secs);
        let leases = leases(&etcd);
        let taken = dropped_after(waits, leases.lease(TTL)).await;
        take_lease(&etcd, &leases).await;
        taken
    })
    .await
    .expect("a lease");
}

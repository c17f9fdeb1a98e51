//! Leader election among processes by a lease, with client-go's rules.
//!
//! A candidate takes a lease that has not been renewed for as long as it is held, by its own clock, since it first saw
//! it so. A leader that cannot renew stops working before that, so no two work at once unless a process stands still.

use std::convert::Infallible;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;

/// The name of the lease.
pub(crate) const LEASE: &str = "site-operator";
/// The time for which it is held after each renewal, in seconds.
const HELD_SECONDS: i32 = 5;
const HELD: Duration = Duration::from_secs(HELD_SECONDS as u64);
/// The time without a renewal after which a leader stops.
const STOP_AFTER: Duration = Duration::from_secs(3);
/// Pause between attempts.
const ATTEMPT_EVERY: Duration = Duration::from_millis(500);

/// One of those who stand for leader.
#[derive(Debug)]
pub(crate) struct Election {
    leases: Api<Lease>,
    identity: String,
}

/// A lease of somebody else, and since when it is as it is.
#[derive(Debug)]
struct Seen {
    version: Option<String>,
    since: Instant,
}

impl Election {
    pub(crate) fn new(client: &Client, namespace: &str, identity: String) -> Self {
        let leases = Api::namespaced(client.clone(), namespace);
        Self { leases, identity }
    }

    /// Does the work of each term that is won, for as long as it lasts.
    pub(crate) async fn stand<F: Future<Output = ()>>(
        &self,
        work: impl Fn(i32) -> F,
    ) -> Infallible {
        loop {
            let term = self.win().await;
            println!("{} leads in term {term}", self.identity);
            tokio::select! {
                () = work(term) => {}
                () = self.keep(term) => {}
            }
            println!("{} leads no more", self.identity);
        }
    }

    async fn win(&self) -> i32 {
        let mut seen = None;
        loop {
            match self.attempt(&mut seen).await {
                Ok(Some(term)) => return term,
                Ok(None) => {}
                Err(error) => eprintln!("{}: {error}", self.identity),
            }
            tokio::time::sleep(ATTEMPT_EVERY).await;
        }
    }

    /// Renews until that fails for too long, or the lease is another's.
    async fn keep(&self, term: i32) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < STOP_AFTER {
            tokio::time::sleep(ATTEMPT_EVERY).await;
            let asked = Instant::now();
            let stop = renewed + STOP_AFTER;
            match tokio::time::timeout_at(stop, self.attempt(&mut None)).await {
                Ok(Ok(Some(same))) if same == term => renewed = asked,
                Ok(Ok(_)) => return,
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Takes or renews the lease if that may be. Gives the term.
    async fn attempt(&self, seen: &mut Option<Seen>) -> Result<Option<i32>, kube::Error> {
        let Some(found) = self.leases.get_opt(LEASE).await? else {
            let lease = self.lease(ObjectMeta::default(), 0);
            return self.won(0, self.leases.create(&PostParams::default(), &lease).await);
        };
        let spec = found.spec.unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let before = spec.lease_transitions.unwrap_or_default();
        let is_mine = holder == self.identity;
        if !is_mine
            && !holder.is_empty()
            && !is_over(seen, found.metadata.resource_version.as_ref())
        {
            return Ok(None);
        }
        let term = if is_mine { before } else { before + 1 };
        let lease = self.lease(found.metadata, term);
        self.won(
            term,
            self.leases
                .replace(LEASE, &PostParams::default(), &lease)
                .await,
        )
    }

    fn lease(&self, metadata: ObjectMeta, term: i32) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(LEASE.to_owned()),
                ..metadata
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: Some(HELD_SECONDS),
                lease_transitions: Some(term),
                renew_time: Some(MicroTime(Timestamp::now())),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Whoever was faster has it.
    fn won(
        &self,
        term: i32,
        written: Result<Lease, kube::Error>,
    ) -> Result<Option<i32>, kube::Error> {
        match written {
            Ok(_) => Ok(Some(term)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the lease back, so that nobody has to wait until it is over.
    pub(crate) async fn release(&self) -> Result<(), kube::Error> {
        let Some(mut found) = self.leases.get_opt(LEASE).await? else {
            return Ok(());
        };
        let spec = found.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        let params = PostParams::default();
        self.leases.replace(LEASE, &params, &found).await.map(drop)
    }
}

/// Returns true if a lease has been unchanged for so long that its holder has stopped.
fn is_over(seen: &mut Option<Seen>, version: Option<&String>) -> bool {
    match seen {
        Some(known) if known.version.as_ref() == version => known.since.elapsed() > HELD,
        _ => {
            *seen = Some(Seen {
                version: version.cloned(),
                since: Instant::now(),
            });
            false
        }
    }
}

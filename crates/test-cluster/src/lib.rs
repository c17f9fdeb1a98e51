//! The controllers of a cluster that tests of operators need, inside an API server: what `--test-cluster` runs.
//!
//! Namespaces go when they are deleted, dependents go with their owners, each namespace has its ServiceAccount
//! `default` and the authority of the API, finished Jobs go when their time is over, and volumes lose the finalizers
//! that protect them while they are used. The [`Extra`] ones run if they are asked for by name. They behave as
//! kube-controller-manager 1.36's of the same names, act as the service accounts that it uses, and must not run beside
//! it: without the flag nothing here runs.
//!
//! ```text
//!   stores --Informer--> Controller::keys --> Queue --> Controller::reconcile --> writes to the stores
//!                                               ^                 |
//!                                               +--- once more ---+
//! ```
//!
//! Every controller looks at an object as it is now and does the next step, so that a change may be seen late, or
//! several as one. Nothing is kept but what can be listed anew.

mod account;
mod controller;
mod endpoints;
mod extra;
mod finished_jobs;
mod garbage;
mod kubelet;
mod namespace_defaults;
mod namespaces;
mod objects;
mod owned;
mod pods;
mod queue;
mod served_stores;
#[cfg(test)]
mod testing;
mod volume_binding;
mod volume_protection;
mod volumes;
mod workloads;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;

pub use self::extra::Extra;
pub use self::served_stores::ServedStores;

use self::finished_jobs::FinishedJobs;
use self::garbage::Garbage;
use self::namespace_defaults::NamespaceDefaults;
use self::namespaces::Namespaces;
use self::volume_protection::VolumeProtection;

/// Returns the certificate authority by which clients verify the API, in PEM, as it is now.
pub type Authority = Arc<dyn Fn() -> String + Send + Sync>;

/// The controllers of a test cluster.
#[derive(Clone)]
pub struct TestCluster {
    /// The stores of everything that is served.
    pub stores: ServedStores,
    /// The authority that is published in each namespace.
    pub authority: Authority,
    /// The controllers that run besides.
    pub extras: BTreeSet<Extra>,
    /// The time after which the pretended kubelet makes a pod ready, and one that is to end, end.
    pub pods_ready_after: Duration,
    /// The time.
    pub clock: Clock,
}

impl TestCluster {
    /// Runs the controllers until it is dropped.
    pub async fn run(self) {
        let Self {
            stores,
            authority,
            extras,
            pods_ready_after,
            clock,
        } = &self;
        tokio::join!(
            Namespaces::run(stores, clock),
            Garbage::run(stores, clock),
            NamespaceDefaults::run(stores, authority, clock),
            FinishedJobs::run(stores, clock),
            VolumeProtection::run(stores, clock),
            extra::run(extras, stores, *pods_ready_after, clock),
        );
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TestCluster")
            .field("stores", &self.stores)
            .field("extras", &self.extras)
            .finish_non_exhaustive()
    }
}

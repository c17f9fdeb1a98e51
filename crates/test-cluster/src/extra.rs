//! The controllers that run only if they are asked for by name.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{self, BoxFuture};
use ringwatch::clock::Clock;

use crate::endpoints::{MirroredEndpoints, SelectedEndpoints};
use crate::kubelet::Kubelet;
use crate::volume_binding::VolumeBinding;
use crate::{ServedStores, workloads};

/// A group of controllers that runs only if it is asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extra {
    /// Deployments, ReplicaSets and ReplicationControllers make pods.
    Workloads,
    /// Services have Endpoints and EndpointSlices.
    Endpoints,
    /// Claims are bound to volumes.
    Volumes,
    /// Pods get a node and run, on a node that is pretended.
    Kubelet,
}

impl Extra {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Workloads,
        Self::Endpoints,
        Self::Volumes,
        Self::Kubelet,
    ];

    /// Returns the name by which it is asked for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workloads => "workloads",
            Self::Endpoints => "endpoints",
            Self::Volumes => "volumes",
            Self::Kubelet => "kubelet",
        }
    }
}

/// Runs these controllers until it is dropped.
pub(crate) async fn run(
    extras: &BTreeSet<Extra>,
    stores: &ServedStores,
    pods_ready_after: Duration,
    clock: &Clock,
) {
    let run = |extra: &Extra| -> Vec<BoxFuture<'_, ()>> {
        match extra {
            Extra::Workloads => vec![Box::pin(workloads::run(stores, clock))],
            Extra::Endpoints => vec![
                Box::pin(SelectedEndpoints::run(stores, clock)),
                Box::pin(MirroredEndpoints::run(stores, clock)),
            ],
            Extra::Volumes => vec![Box::pin(VolumeBinding::run(stores, clock))],
            Extra::Kubelet => vec![Box::pin(Kubelet::run(stores, pods_ready_after, clock))],
        }
    };
    future::join_all(extras.iter().flat_map(run)).await;
}

//! Puts together what limits how much is served at a time.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use super::assembly::Assembly;
use super::filters::{Fairness, InFlight, Limits, Watches};
use super::flow_control::{FlowStores, Flows};
use super::storage_factory::Storages;
use crate::registry::default_flows;

impl Assembly<'_> {
    /// What limits how much is served at a time, and the stores that it goes by. With fairness the places of reads and
    /// writes are only counted.
    pub(super) fn limits(
        &self,
        registry: &mut Registry,
        storages: &Storages,
        background: &mut JoinSet<()>,
    ) -> (Limits, Option<FlowStores>) {
        let flags = &self.flags.limits;
        let (fairness, flows) = self.fairness(storages, background);
        let most = |most| if fairness.is_some() { 0 } else { most };
        if let Some(fairness) = &fairness {
            fairness.register(registry);
        }
        let in_flight = InFlight::new(
            most(flags.max_requests_inflight),
            most(flags.max_mutating_requests_inflight),
            flags.request_timeout,
        );
        in_flight.register(registry);
        let limits = Limits {
            in_flight,
            fairness,
            sizes: storages.counts.clone(),
            watches: Watches::new(flags.max_watches_per_user),
            request_timeout: flags.request_timeout,
        };
        (limits, flows)
    }

    /// What lets requests wait for each other, which follows what is stored in the background.
    fn fairness(
        &self,
        storages: &Storages,
        background: &mut JoinSet<()>,
    ) -> (Option<Arc<Fairness>>, Option<FlowStores>) {
        let limits = &self.flags.limits;
        let reads = limits.max_requests_inflight;
        let total = reads.saturating_add(limits.max_mutating_requests_inflight);
        let stores = FlowStores::of(storages);
        let Some(stores) = stores.filter(|_| limits.enable_priority_and_fairness && total > 0)
        else {
            return (None, None);
        };
        let fairness = Fairness::new(total, limits.request_timeout, default_flows());
        let fairness = Arc::new(fairness);
        let flows = Flows {
            stores: stores.clone(),
            fairness: Arc::clone(&fairness),
            clock: self.clock.clone(),
        };
        self.run(flows.run(), background);
        (Some(fairness), Some(stores))
    }
}

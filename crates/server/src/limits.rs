//! Puts together what limits how much is served at a time.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch_apiserver::filters::{InFlight, LargeWork, Limits};
use ringwatch_apiserver::transport::connection;
use ringwatch_apiserver::transport::open_files;
use ringwatch_apiserver::transport::unauthenticated::{ConnectionLimits, Unauthenticated};
use ringwatch_controllers::flow_control::{FlowStores, Flows};
use ringwatch_flowcontrol::{Fairness, Watches};
use ringwatch_registry::Stores;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_resources::default_flows;
use tokio::task::JoinSet;

use super::assembly::Assembly;

impl Assembly<'_> {
    /// Builds the limits on requests in flight, and the stores that they follow. With fairness, the places of reads and
    /// writes are only counted.
    pub(super) fn limits(
        &self,
        registry: &mut Registry,
        ledger: &Ledger,
        (stores, counts): (&Stores, &ObjectCounts),
        background: &mut JoinSet<()>,
    ) -> (Limits, Option<FlowStores>) {
        let flags = &self.flags.limits;
        let (fairness, flows) = self.fairness(stores, background);
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
            sizes: counts.clone(),
            watches: Watches::new(flags.max_watches_per_user),
            large_work: LargeWork::new(
                &self.runtimes,
                ledger.clone(),
                self.clock.clone(),
                registry,
            ),
            request_timeout: flags.request_timeout,
        };
        (limits, flows)
    }

    /// The count of failed handshakes, and the places of connections, as many as there are files for.
    pub(super) fn connections(&self, registry: &mut Registry) -> (Counter, Unauthenticated) {
        let limits = ConnectionLimits::for_files(open_files::for_connections());
        let unauthenticated = Unauthenticated::new(limits, &self.clock);
        unauthenticated.register(registry);
        (connection::handshake_errors(registry), unauthenticated)
    }

    /// Builds the filter of API Priority and Fairness, which follows the stored configuration in the background.
    fn fairness(
        &self,
        all: &Stores,
        background: &mut JoinSet<()>,
    ) -> (Option<Arc<Fairness>>, Option<FlowStores>) {
        let limits = &self.flags.limits;
        let reads = limits.max_requests_inflight;
        let total = reads.saturating_add(limits.max_mutating_requests_inflight);
        let stores = FlowStores::of(all);
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

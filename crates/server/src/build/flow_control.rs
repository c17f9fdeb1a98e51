//! API Priority and Fairness of a server, built from its flags.

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch_controllers::flow_control::{FlowStores, Flows};
use ringwatch_flowcontrol::Fairness;
use ringwatch_registry::Stores;
use ringwatch_resources::default_flows;

use crate::config::flags::LimitFlags;

/// The filter of API Priority and Fairness, and the stores of the objects that configure it.
#[derive(Debug)]
pub(crate) struct FlowControl {
    /// The filter.
    pub(crate) fairness: Arc<Fairness>,
    /// The stores of FlowSchemas and PriorityLevelConfigurations.
    pub(crate) stores: FlowStores,
}

impl FlowControl {
    /// Builds the filter; `None` if the limits leave nothing to share.
    pub(crate) fn new(flags: &LimitFlags, all: &Stores) -> Option<Self> {
        let reads = flags.max_requests_inflight;
        let total = reads.saturating_add(flags.max_mutating_requests_inflight);
        if total == 0 {
            return None;
        }
        let stores = FlowStores::new(all)?;
        let fairness = Fairness::new(total, flags.request_timeout, default_flows());
        Some(Self {
            fairness: Arc::new(fairness),
            stores,
        })
    }

    /// Returns the controller that configures the filter by the stored objects.
    pub(crate) fn controller(&self, clock: &Clock) -> Flows {
        Flows {
            stores: self.stores.clone(),
            fairness: Arc::clone(&self.fairness),
            clock: clock.clone(),
        }
    }
}

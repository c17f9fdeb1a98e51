//! The parts of a server that flags enable or disable: RBAC, the Node authorizer, priority and fairness, and the
//! encryption configuration that is read again.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_controllers::nodes::Nodes;
use ringwatch_controllers::roles::{RoleStores, Roles};
use ringwatch_endpoints::health::Done;
use ringwatch_flowcontrol::Fairness;

use super::flow_control::FlowControl;
use super::post_start_hooks::{PostStartHooks, RoleHooks};
use super::resources::Resources;
use super::tasks::Tasks;
use crate::config::encryption_file::EncryptionReload;
use crate::config::flags::ServeFlags;

/// The parts that flags enable, and the post-start hooks, which depend on them.
pub(crate) struct EnabledParts {
    /// The stores of roles and bindings; `None` without RBAC.
    pub(crate) roles: Option<RoleStores>,
    /// API Priority and Fairness; `None` if it is disabled.
    pub(crate) flow_control: Option<FlowControl>,
    /// The steps of the start.
    pub(crate) hooks: PostStartHooks,
}

impl EnabledParts {
    /// Builds the parts that flags enable. The tasks configure them by stored objects and by the file of encryption.
    pub(crate) fn new(
        flags: &ServeFlags,
        resources: &Resources,
        encryption: Option<EncryptionReload>,
        clock: &Clock,
    ) -> (Self, Tasks) {
        let (stores, authorizer) = (&resources.stores, &resources.authorizer);
        let roles = RoleStores::new(stores).filter(|_| authorizer.uses_roles());
        let has_fairness = flags.enable_priority_and_fairness;
        let flow_control = has_fairness.then(|| FlowControl::new(&flags.limits, stores));
        let flow_control = flow_control.flatten();
        let hooks = PostStartHooks {
            roles: roles.as_ref().map(|_| RoleHooks::default()),
            nodes_synced: authorizer.node_graph().map(|_| Done::default()),
            flows_ensured: flow_control.as_ref().map(|_| Done::default()),
            encryption_followed: encryption.as_ref().map(|_| Done::default()),
            ..PostStartHooks::default()
        };
        let mut tasks = Tasks::default();
        let objects = resources.admission.objects.clone();
        let initialized = hooks.admission_initialized.clone();
        tasks.background("initialization of admission", async move {
            objects.known().await;
            initialized.set();
        });
        if let Some(flow_control) = &flow_control {
            tasks.background("flow control", flow_control.controller(clock).run());
        }
        if let Some((graph, synced)) = authorizer.node_graph().zip(hooks.nodes_synced.clone()) {
            let nodes = Nodes::new(stores, Arc::clone(graph), synced, clock.clone());
            tasks.background("nodes", nodes.run());
        }
        if let Some((stores, hooks)) = roles.clone().zip(hooks.roles.as_ref()) {
            let roles = Roles {
                stores,
                authorizer: Arc::clone(authorizer),
                synced: hooks.synced.clone(),
                clock: clock.clone(),
            };
            tasks.background("roles", roles.run());
        }
        if let Some((reload, begun)) = encryption.zip(hooks.encryption_followed.clone()) {
            let feed = resources.storages.feed.clone();
            let reload = reload.follow(feed, begun, clock.clone());
            tasks.background("encryption configuration", reload);
        }
        if let Some(repair) = resources.repair.clone() {
            let bootstrapped = hooks.bootstrapped.clone();
            tasks.serving("repair of allocations", async move {
                bootstrapped.wait().await;
                repair.run().await;
            });
        }
        let parts = Self {
            roles,
            flow_control,
            hooks,
        };
        (parts, tasks)
    }

    /// Registers the metrics of priority and fairness, if it is enabled.
    pub(crate) fn register(&self, registry: &mut Registry) {
        if let Some(fairness) = self.fairness() {
            fairness.register(registry);
        }
    }

    /// Returns the filter of API Priority and Fairness; `None` if it is disabled.
    pub(crate) fn fairness(&self) -> Option<&Arc<Fairness>> {
        self.flow_control.as_ref().map(|it| &it.fairness)
    }
}

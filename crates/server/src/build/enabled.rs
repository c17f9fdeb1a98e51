//! The parts of a server that flags enable or disable.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_apiserver::health::Done;
use ringwatch_controllers::nodes::Nodes;
use ringwatch_controllers::roles::{RoleStores, Roles};

use super::flow_control::FlowControl;
use super::post_start_hooks::{PostStartHooks, RoleHooks};
use super::resources::Resources;
use crate::background::Background;
use crate::config::encryption_file::EncryptionFile;
use crate::config::flags::ServeFlags;

/// The parts that flags enable, and the post-start hooks, which depend on them.
pub(crate) struct Enabled {
    /// The stores of roles and bindings; `None` without RBAC.
    pub(crate) roles: Option<RoleStores>,
    /// API Priority and Fairness; `None` if it is disabled.
    pub(crate) flow_control: Option<FlowControl>,
    /// The steps of the start.
    pub(crate) hooks: PostStartHooks,
}

impl Enabled {
    /// Builds the parts that flags enable, and runs the controllers that configure RBAC, the Node authorizer, and priority
    /// and fairness by stored objects.
    pub(crate) fn new(
        flags: &ServeFlags,
        resources: &Resources,
        clock: &Clock,
        registry: &mut Registry,
        background: &mut Background,
    ) -> Self {
        let (stores, authorizer) = (&resources.stores, &resources.authorizer);
        let roles = RoleStores::new(stores).filter(|_| authorizer.uses_roles());
        let has_fairness = flags.enable_priority_and_fairness;
        let flow_control = has_fairness.then(|| FlowControl::new(&flags.limits, stores, registry));
        let flow_control = flow_control.flatten();
        let hooks = PostStartHooks {
            roles: roles.as_ref().map(|_| RoleHooks::default()),
            nodes_synced: authorizer.node_graph().map(|_| Done::default()),
            flows_ensured: flow_control.as_ref().map(|_| Done::default()),
            ..PostStartHooks::default()
        };
        let (objects, initialized) = (
            resources.admission.objects.clone(),
            hooks.admission_initialized.clone(),
        );
        background.run(async move {
            objects.known().await;
            initialized.set();
        });
        if let Some(flow_control) = &flow_control {
            background.run(flow_control.controller(clock).run());
        }
        if let Some((graph, synced)) = authorizer.node_graph().zip(hooks.nodes_synced.clone()) {
            let nodes = Nodes::new(stores, Arc::clone(graph), synced, clock.clone());
            background.run(nodes.run());
        }
        if let Some((stores, hooks)) = roles.clone().zip(hooks.roles.as_ref()) {
            let roles = Roles {
                stores,
                authorizer: Arc::clone(authorizer),
                synced: hooks.synced.clone(),
                clock: clock.clone(),
            };
            background.run(roles.run());
        }
        Self {
            roles,
            flow_control,
            hooks,
        }
    }
    /// Reads the encryption configuration again when it changes, if the flags say so.
    pub(crate) fn follow_encryption(
        &mut self,
        file: EncryptionFile,
        resources: &Resources,
        clock: &Clock,
        registry: &mut Registry,
        background: &mut Background,
    ) {
        let feed = &resources.storages.feed;
        self.hooks.encryption_followed = file.follow(feed, clock, registry, background);
    }
}

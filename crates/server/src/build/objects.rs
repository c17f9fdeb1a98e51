//! The stored objects of a server: storages, caches and stores, and the parts that follow from stored objects.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_controllers::component_statuses::ComponentStatuses;
use ringwatch_controllers::custom_resources::joined_types::JoinedTypes;
use tokio::sync::oneshot;

use super::custom_apis::fill_caches;
use super::enabled_parts::EnabledParts;
use super::inputs::ServerInputs;
use super::resources::{ResourceMetrics, Resources};
use super::storage_factory::{StorageMetrics, storage_factory};
use super::storages::Storages;
use super::tasks::Tasks;
use crate::config::flags::ServeFlags;
use crate::config::security::ObjectFiles;

/// The stored objects, and the parts that follow from them.
pub(crate) struct Objects {
    /// The built-in resources.
    pub(crate) resources: Resources,
    /// The parts that flags enable.
    pub(crate) enabled: EnabledParts,
    /// The types of custom resources whose caches are filled with the others.
    pub(crate) joined_types: oneshot::Receiver<JoinedTypes>,
}

/// The metrics of storages, caches, admission and controllers.
pub(crate) struct ObjectMetrics {
    storage: StorageMetrics,
    resources: ResourceMetrics,
}

impl ObjectMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry, flags: &ServeFlags, clock: &Clock) -> Self {
        Self {
            storage: StorageMetrics::register(registry, flags, clock),
            resources: ResourceMetrics::register(registry),
        }
    }
}

impl Objects {
    /// Builds the storages, their caches, the stores, and the parts that flags enable, in this order.
    pub(crate) fn new(
        inputs: &ServerInputs<'_>,
        files: ObjectFiles,
        components: &Arc<ComponentStatuses>,
        metrics: ObjectMetrics,
    ) -> (Self, Tasks) {
        let (flags, clock) = (inputs.flags, &inputs.clock);
        let encryption = &files.encryption.encryption;
        let (factory, mut tasks) = storage_factory(inputs, encryption, metrics.storage);
        let (storages, reflector) = Storages::new(factory, &flags.cluster_options(), components);
        let (joined_types, more) = fill_caches(&storages, reflector);
        tasks.append(more);
        let (authorizers, admission) = (files.authorizers, files.admission);
        let metrics = metrics.resources;
        let (resources, more) =
            Resources::new(flags, storages, authorizers, admission, metrics, clock);
        tasks.append(more);
        let encryption = files.encryption.reload();
        let (enabled, more) = EnabledParts::new(flags, &resources, encryption, clock);
        tasks.append(more);
        let objects = Self {
            resources,
            enabled,
            joined_types,
        };
        (objects, tasks)
    }
}

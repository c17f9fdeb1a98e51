//! The EndpointSlices of Services that one controller keeps, as it reads and writes them.

use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_apimachinery::{Error, accessor, path};
use ringwatch_registry::{DeleteOptions, ListWatch};
use serde_json::{Value, json};

use super::slices::{MANAGED_BY, SERVICE_NAME, SliceChanges};
use crate::ServedStores;
use crate::objects::ControllerObjects;
use crate::owned::NamespacedName;

/// The EndpointSlices that have one controller's label.
#[derive(Debug)]
pub(super) struct ServiceSlices<'a> {
    slices: ControllerObjects<'a>,
    manager: &'static str,
}

impl<'a> ServiceSlices<'a> {
    /// Returns the slices that this account writes and that have this label; `None` if they are not served.
    pub(super) fn new(
        stores: &'a ServedStores,
        (account, manager): (&'static str, &'static str),
        clock: &'a Clock,
    ) -> Option<Self> {
        let resource = ("discovery.k8s.io", "endpointslices");
        let slices = ControllerObjects::new(stores, resource, account, clock)?;
        Some(Self { slices, manager })
    }

    /// Returns what an informer follows.
    pub(super) fn source(&self) -> &'a dyn ListWatch {
        self.slices.source()
    }

    /// Returns the Services to which a slice belongs by its label or its owner, if it is one of these.
    pub(super) fn services_of(&self, slice: &Object) -> Vec<NamespacedName> {
        let slice = self.slices.content(slice);
        if !self.is_own(&slice) {
            return Vec::new();
        }
        let labelled = slice["metadata"]["labels"][SERVICE_NAME].as_str();
        let owners = path::list(&slice, "metadata.ownerReferences").iter();
        let owners = owners.filter(|it| it["controller"] == true);
        let owning = owners.filter_map(|it| it["name"].as_str());
        let mut names: Vec<&str> = labelled.into_iter().chain(owning).collect();
        names.dedup();
        let namespace = accessor::text(&slice, "namespace");
        let names = names.into_iter().map(str::to_owned);
        names.map(|name| (namespace.to_owned(), name)).collect()
    }

    /// Returns the slices of a Service, or of Endpoints of its name.
    pub(super) async fn of(&self, service: &Value) -> Result<Vec<Value>, Error> {
        let namespace = accessor::text(service, "namespace");
        self.named(namespace, accessor::text(service, "name")).await
    }

    /// Returns the slices of the Service of this name, which may be gone.
    pub(super) async fn named(&self, namespace: &str, name: &str) -> Result<Vec<Value>, Error> {
        let mut slices = self.slices.list(namespace).await?;
        slices.retain(|it| self.is_own(it) && it["metadata"]["labels"][SERVICE_NAME] == name);
        Ok(slices)
    }

    /// Writes changes. None is created for an owner that is being deleted, which the collector of garbage would follow.
    pub(super) async fn write(&self, changes: SliceChanges, owner_goes: bool) -> Result<(), Error> {
        if !owner_goes {
            for slice in changes.create {
                self.slices.create(slice).await?;
            }
        }
        for slice in changes.update {
            let change = |now: &mut Value| {
                for member in ["endpoints", "ports"] {
                    now[member] = slice[member].clone();
                }
                for member in ["labels", "annotations"] {
                    accessor::copy(now, &slice, member);
                }
            };
            self.slices.update(&slice, "", change).await?;
        }
        self.delete(&changes.delete).await
    }

    /// Deletes slices.
    pub(super) async fn delete(&self, slices: &[Value]) -> Result<(), Error> {
        for slice in slices {
            self.slices.delete(slice, DeleteOptions::default()).await?;
        }
        Ok(())
    }

    fn is_own(&self, slice: &Value) -> bool {
        slice["metadata"]["labels"][MANAGED_BY] == self.manager
    }
}

/// Returns the reference by which a slice names what it belongs to.
pub(super) fn owner_reference(kind: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

//! Mirrors Endpoints that users make to EndpointSlices, for Services without a selector.
//!
//! Source of the semantics: the controller `endpointslicemirroring` of kube-controller-manager 1.36. Events about
//! addresses that are left out are not made.

use std::collections::BTreeMap;
use std::net::IpAddr;

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::informer::InformerChange;
use serde_json::{Value, json};

use super::TRIGGER_TIME;
use super::of_pod::AddressFamily;
use super::slice_writes::{ServiceSlices, owner_reference};
use super::slices::{MANAGED_BY, SERVICE_NAME, SliceTemplate, WantedEndpoints};
use super::subsets;
use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::owned::NamespacedName;

/// The service account of the controller.
const ACCOUNT: &str = "endpointslicemirroring-controller";

/// The value of the label of EndpointSlices that are kept here.
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";

/// Maximum number of addresses of a subset that are mirrored, which one slice has room for.
const SUBSET_ADDRESSES_MAX: usize = 1000;

/// The label of Endpoints that are not to be mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";

/// The annotation of Endpoints that are a lock.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The annotation of Endpoints that only tells what `kubectl apply` did last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The controller that mirrors Endpoints.
#[derive(Debug)]
pub(crate) struct MirroredEndpoints<'a> {
    services: ControllerObjects<'a>,
    endpoints: ControllerObjects<'a>,
    slices: ServiceSlices<'a>,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MirroringSource {
    /// Services, or Endpoints of the same name.
    Named,
    Slices,
}

impl MirroredEndpoints<'_> {
    /// Runs the controller until it is dropped.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let objects = |plural| ControllerObjects::new(stores, ("", plural), ACCOUNT, clock);
        let (Some(services), Some(endpoints), Some(slices)) = (
            objects("services"),
            objects("endpoints"),
            ServiceSlices::new(stores, (ACCOUNT, MANAGER), clock),
        ) else {
            return;
        };
        let controller = MirroredEndpoints {
            services,
            endpoints,
            slices,
        };
        let sources = vec![
            (MirroringSource::Named, controller.services.source()),
            (MirroringSource::Named, controller.endpoints.source()),
            (MirroringSource::Slices, controller.slices.source()),
        ];
        controller::run(&controller, "mirrored Endpoints", sources, clock).await;
    }
}

#[async_trait]
impl Controller for MirroredEndpoints<'_> {
    type Source = MirroringSource;
    type Key = NamespacedName;

    fn keys(&self, source: MirroringSource, change: &InformerChange) -> Vec<NamespacedName> {
        let object = object_of(change);
        match source {
            MirroringSource::Named => {
                vec![(object.namespace().to_owned(), object.name().to_owned())]
            }
            MirroringSource::Slices => self.slices.services_of(object),
        }
    }

    async fn reconcile(&self, (namespace, name): &NamespacedName) -> Result<Next, Error> {
        let service = self.services.get(namespace, name).await?;
        let endpoints = self.endpoints.get(namespace, name).await?;
        let service = service.filter(|it| it["spec"]["selector"].is_null());
        let endpoints = endpoints.filter(|it| service.is_some() && is_mirrored(it));
        let mut existing = self.slices.named(namespace, name).await?;
        let Some(endpoints) = endpoints else {
            self.slices.delete(&existing).await?;
            return Ok(Next::Done);
        };
        let template = template(&endpoints);
        let mut wanted = wanted(&endpoints);
        for family in AddressFamily::ALL {
            let wanted = wanted.remove(&family).unwrap_or_default();
            let of_family = existing.extract_if(.., |it| it["addressType"] == family.name());
            let changes = template.changes(family, wanted, of_family.collect());
            let goes = is_terminating(&endpoints);
            self.slices.write(changes, goes).await?;
        }
        self.slices.delete(&existing).await?;
        Ok(Next::Done)
    }
}

fn is_mirrored(endpoints: &Value) -> bool {
    let metadata = &endpoints["metadata"];
    metadata["labels"][SKIP] != "true" && metadata["annotations"][LEADER].is_null()
}

/// Returns the endpoints of each family. Those of a subset that one slice has no room for are left out.
fn wanted(endpoints: &Value) -> BTreeMap<AddressFamily, WantedEndpoints> {
    let mut wanted: BTreeMap<AddressFamily, WantedEndpoints> = BTreeMap::new();
    for subset in subsets::pack(subsets::unpack(endpoints)) {
        let lists = [("addresses", true), ("notReadyAddresses", false)];
        let addresses = lists.into_iter().flat_map(|(member, is_ready)| {
            let addresses = path::list(&subset, member).iter();
            addresses.filter_map(move |it| mirrored(it, is_ready))
        });
        for (family, endpoint) in addresses.take(SUBSET_ADDRESSES_MAX) {
            let ports = path::list(&subset, "ports").iter().map(port);
            wanted
                .entry(family)
                .or_default()
                .add(ports.collect(), endpoint);
        }
    }
    wanted
}

/// Returns the endpoint of an address, and its family; `None` if it is none.
fn mirrored(address: &Value, is_ready: bool) -> Option<(AddressFamily, Value)> {
    let ip: IpAddr = path::text(address, "ip").parse().ok()?;
    let mut endpoint = json!({
        "addresses": [ip.to_string()],
        "conditions": {"ready": is_ready},
    });
    for member in ["hostname", "nodeName", "targetRef"] {
        if !address[member].is_null() {
            endpoint[member] = address[member].clone();
        }
    }
    Some((AddressFamily::of(ip), endpoint))
}

/// Returns a port of Endpoints as slices have it, with a name in any case.
fn port(port: &Value) -> Value {
    let mut port = port.clone();
    port["name"] = port["name"].as_str().unwrap_or_default().into();
    port
}

fn template(endpoints: &Value) -> SliceTemplate {
    let metadata = &endpoints["metadata"];
    let name = accessor::text(endpoints, "name").to_owned();
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.as_str().into());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.into());
    let annotations = metadata["annotations"].as_object();
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.remove(TRIGGER_TIME);
    annotations.remove(LAST_APPLIED);
    SliceTemplate {
        name,
        namespace: accessor::text(endpoints, "namespace").to_owned(),
        labels: labels.into(),
        annotations: annotations.into(),
        owner: owner_reference("Endpoints", endpoints),
        endpoints_max: SUBSET_ADDRESSES_MAX,
        has_placeholder: false,
    }
}

//! Keeps Endpoints and EndpointSlices of the Services that have a selector: where the pods are that it selects.
//!
//! Source of the semantics: the controllers `endpoints` and `endpointslice` of kube-controller-manager 1.36. The time
//! of the change that caused one is not noted, and nothing hints at zones or nodes.

mod mirroring;
mod of_pod;
mod selecting;
mod slice_writes;
mod slices;
mod subsets;

use std::collections::BTreeMap;

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch::meta::LabelSelector;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::DeleteOptions;
use ringwatch_registry::informer::InformerChange;
use serde_json::{Map, Value, json};

use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::owned::NamespacedName;

pub(crate) use self::mirroring::MirroredEndpoints;

use self::of_pod::AddressFamily;
use self::selecting::{SelectingServices, selector};
use self::slice_writes::ServiceSlices;
use self::slices::{SliceTemplate, WantedEndpoints};
use self::subsets::OfferedPort;

/// The service accounts of the controllers of Endpoints and of EndpointSlices.
const ACCOUNT: &str = "endpoint-controller";
const SLICES_ACCOUNT: &str = "endpointslice-controller";

/// The label of Endpoints that are kept here, and its value.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";

/// The value of the label of EndpointSlices that are kept here.
const SLICES_MANAGER: &str = "endpointslice-controller.k8s.io";

/// The label of what belongs to a Service without an address.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The annotation of Endpoints that had no room for all addresses, and its value.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const TRUNCATED: &str = "truncated";

/// The annotation with the time of a change, which is not kept here.
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Maximum number of endpoints of a slice.
const SLICE_ENDPOINTS_MAX: usize = 100;

/// The controllers of the Endpoints and the EndpointSlices of Services with a selector.
#[derive(Debug)]
pub(crate) struct SelectedEndpoints<'a> {
    services: ControllerObjects<'a>,
    pods: ControllerObjects<'a>,
    nodes: ControllerObjects<'a>,
    endpoints: ControllerObjects<'a>,
    slices: ServiceSlices<'a>,
    selecting: SelectingServices,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndpointsSource {
    Services,
    Pods,
    Endpoints,
    Slices,
}

impl SelectedEndpoints<'_> {
    /// Runs the controllers until they are dropped.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let objects = |plural| ControllerObjects::new(stores, ("", plural), ACCOUNT, clock);
        let (Some(services), Some(pods), Some(nodes), Some(endpoints), Some(slices)) = (
            objects("services"),
            objects("pods"),
            objects("nodes"),
            objects("endpoints"),
            ServiceSlices::new(stores, (SLICES_ACCOUNT, SLICES_MANAGER), clock),
        ) else {
            return;
        };
        let controller = SelectedEndpoints {
            services,
            pods,
            nodes,
            endpoints,
            slices,
            selecting: SelectingServices::default(),
        };
        let sources = vec![
            (EndpointsSource::Services, controller.services.source()),
            (EndpointsSource::Pods, controller.pods.source()),
            (EndpointsSource::Endpoints, controller.endpoints.source()),
            (EndpointsSource::Slices, controller.slices.source()),
        ];
        controller::run(&controller, "endpoints of Services", sources, clock).await;
    }

    /// Returns the pods of a Service that can be reached.
    async fn pods(&self, service: &Value, selector: &LabelSelector) -> Result<Vec<Value>, Error> {
        let mut pods = self.pods.list(accessor::text(service, "namespace")).await?;
        pods.retain(|pod| {
            selector.matches(accessor::labels(pod).as_labels()) && of_pod::is_reachable(pod)
        });
        Ok(pods)
    }

    /// Brings the Endpoints of a Service up to date.
    async fn write_endpoints(&self, service: &Value, pods: &[Value]) -> Result<(), Error> {
        let mut subsets = subsets::pack(offers(service, pods));
        let (namespace, name) = (
            accessor::text(service, "namespace"),
            accessor::text(service, "name"),
        );
        let found = self.endpoints.get(namespace, name).await?;
        let wanted = labels(service);
        if let Some(found) = &found
            && subsets::pack(subsets::unpack(found)) == subsets
            && found["metadata"]["labels"] == wanted
            && found["metadata"]["annotations"][OVER_CAPACITY].is_null()
        {
            return Ok(());
        }
        let is_truncated = subsets::truncate(&mut subsets);
        let change = |endpoints: &mut Value| {
            endpoints["subsets"] = subsets.clone().into();
            endpoints["metadata"]["labels"] = wanted.clone();
            let annotations = &mut endpoints["metadata"]["annotations"];
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.remove(TRIGGER_TIME);
                annotations.remove(OVER_CAPACITY);
            }
            if is_truncated {
                annotations[OVER_CAPACITY] = TRUNCATED.into();
            }
        };
        if let Some(found) = found {
            return self.endpoints.update(&found, "", change).await.map(drop);
        }
        let mut new = json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": name, "namespace": namespace},
        });
        change(&mut new);
        self.endpoints.create(new).await.map(drop)
    }

    /// Brings the EndpointSlices of a Service up to date.
    async fn write_slices(&self, service: &Value, pods: &[Value]) -> Result<Next, Error> {
        let template = template(service);
        let nodes = self.nodes.list("").await?.into_iter();
        let nodes = nodes.map(|it| (accessor::text(&it, "name").to_owned(), it));
        let nodes: BTreeMap<String, Value> = nodes.collect();
        let families = AddressFamily::of_service(service);
        let mut existing = self.slices.of(service).await?;
        let mut next = Next::Done;
        for family in families {
            let mut wanted = WantedEndpoints::default();
            for pod in pods {
                let node = nodes.get(path::text(pod, "spec.nodeName"));
                if node.is_none() && !of_pod::publishes_all(service) {
                    // It counts once its node is there.
                    next = Next::Again;
                } else if let Some(endpoint) = endpoint(service, pod, node, family) {
                    wanted.add(of_pod::ports(pod, service), endpoint);
                }
            }
            let of_family = existing.extract_if(.., |it| it["addressType"] == family.name());
            let changes = template.changes(family, wanted, of_family.collect());
            self.slices.write(changes, is_terminating(service)).await?;
        }
        // Those of other families.
        self.slices.delete(&existing).await?;
        Ok(next)
    }
}

#[async_trait]
impl Controller for SelectedEndpoints<'_> {
    type Source = EndpointsSource;
    type Key = NamespacedName;

    fn reset(&self) {
        self.selecting.reset();
    }

    fn keys(&self, source: EndpointsSource, change: &InformerChange) -> Vec<NamespacedName> {
        let object = object_of(change);
        match source {
            EndpointsSource::Services => {
                let service = self.services.content(object);
                vec![self.selecting.note(change, &service)]
            }
            EndpointsSource::Pods => self.selecting.of_pod(change, &self.pods.content(object)),
            EndpointsSource::Endpoints => match change {
                InformerChange::Upserted(_) => Vec::new(),
                InformerChange::Deleted(_) => {
                    vec![(object.namespace().to_owned(), object.name().to_owned())]
                }
            },
            EndpointsSource::Slices => self.slices.services_of(object),
        }
    }

    async fn reconcile(&self, (namespace, name): &NamespacedName) -> Result<Next, Error> {
        let Some(service) = self.services.get(namespace, name).await? else {
            // Slices go as dependents of the Service.
            if let Some(endpoints) = self.endpoints.get(namespace, name).await? {
                self.endpoints
                    .delete(&endpoints, DeleteOptions::default())
                    .await?;
            }
            return Ok(Next::Done);
        };
        let Some(selector) = selector(&service) else {
            return Ok(Next::Done);
        };
        let pods = self.pods(&service, &selector).await?;
        // One does not wait for the other.
        let endpoints = self.write_endpoints(&service, &pods).await;
        let next = self.write_slices(&service, &pods).await?;
        endpoints.map(|()| next)
    }
}

/// Returns what the pods of a Service offer. Those that are being deleted offer nothing.
fn offers(service: &Value, pods: &[Value]) -> Vec<OfferedPort> {
    let family = AddressFamily::of_service(service).first().copied();
    let mut offers = Vec::new();
    for pod in pods.iter().filter(|it| !is_terminating(it)) {
        let ip = family.and_then(|it| of_pod::address(pod, it));
        let Some(ip) = ip else {
            continue;
        };
        let mut address = json!({"ip": ip, "targetRef": of_pod::reference(pod)});
        if let Some(node) = path::get(pod, "spec.nodeName") {
            address["nodeName"] = node.clone();
        }
        if let Some(name) = of_pod::host_name(pod, service) {
            address["hostname"] = name.into();
        }
        let is_ready = of_pod::publishes_all(service) || crate::pods::is_ready(pod);
        let offer = |port: Option<Value>| OfferedPort {
            address: address.clone(),
            port,
            is_ready,
        };
        if !path::list(service, "spec.ports").is_empty() {
            let ports = of_pod::ports(pod, service).into_iter();
            offers.extend(ports.map(|it| offer(Some(it))));
        } else if path::text(service, "spec.clusterIP") == "None" {
            offers.push(offer(None));
        }
    }
    offers
}

/// Returns a pod as an endpoint of a Service; `None` if it has no address of the family.
fn endpoint(
    service: &Value,
    pod: &Value,
    node: Option<&Value>,
    family: AddressFamily,
) -> Option<Value> {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let mut endpoint = json!({
        "addresses": [of_pod::address(pod, family)?],
        "conditions": of_pod::conditions(pod, service),
        "targetRef": of_pod::reference(pod),
    });
    if let Some(name) = path::get(pod, "spec.nodeName") {
        endpoint["nodeName"] = name.clone();
    }
    let zone = node.and_then(|it| it["metadata"]["labels"][ZONE].as_str());
    if let Some(zone) = zone.filter(|it| !it.is_empty()) {
        endpoint["zone"] = zone.into();
    }
    if let Some(name) = of_pod::host_name(pod, service) {
        endpoint["hostname"] = name.into();
    }
    Some(endpoint)
}

/// Returns the labels of the Endpoints of a Service.
fn labels(service: &Value) -> Value {
    let mut labels = own_labels(service);
    labels.insert(MANAGED_BY.to_owned(), MANAGER.into());
    labels.into()
}

/// Returns the labels of a Service, and the one that says that it has no address.
fn own_labels(service: &Value) -> Map<String, Value> {
    let labels = service["metadata"]["labels"].as_object();
    let mut labels = labels.cloned().unwrap_or_default();
    if of_pod::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), "".into());
    } else {
        labels.remove(HEADLESS);
    }
    labels
}

fn template(service: &Value) -> SliceTemplate {
    let name = accessor::text(service, "name").to_owned();
    let mut labels = own_labels(service);
    labels.insert(slices::SERVICE_NAME.to_owned(), name.as_str().into());
    labels.insert(slices::MANAGED_BY.to_owned(), SLICES_MANAGER.into());
    SliceTemplate {
        name,
        namespace: accessor::text(service, "namespace").to_owned(),
        labels: labels.into(),
        annotations: Value::Null,
        owner: slice_writes::owner_reference("Service", service),
        endpoints_max: SLICE_ENDPOINTS_MAX,
        has_placeholder: true,
    }
}

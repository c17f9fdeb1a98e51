//! Resolution of a service to the addresses of its ready endpoints, since a server without kube-proxy reaches no
//! cluster IP. A service that has no EndpointSlices is tried at its cluster IP.

use std::sync::Arc;

use async_trait::async_trait;
use rand::seq::SliceRandom;
use ringwatch::codec;
use ringwatch::meta::{LabelSelector, ResourceVersion};
use ringwatch::storage::{GetOptions, Interface, ListOptions, StorageError};
use ringwatch_resources::Availability;
use ringwatch_webhook::ServiceResolver;
use serde_json::Value;

use crate::ServiceReference;

/// Maximum number of EndpointSlices of a service that are read.
const SLICES_MAX: u64 = 100;

/// The storages of services and EndpointSlices, by which services are resolved.
#[derive(Clone, Debug)]
pub struct ServiceAddresses {
    /// The storage of services.
    pub services: Arc<dyn Interface>,
    /// The storage of endpoint slices.
    pub slices: Arc<dyn Interface>,
}

#[async_trait]
impl ServiceResolver for ServiceAddresses {
    async fn address(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        Self::address(self, namespace, name, port).await
    }
}

impl ServiceAddresses {
    /// Returns one host and port behind a port of a service, chosen at random.
    ///
    /// # Errors
    /// A message in kube-apiserver's words if the service, the port or a ready endpoint is missing, or cannot be read.
    pub async fn address(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        let mut all = self.addresses(namespace, name, port).await?;
        // There is one, or else an error.
        all.pop()
            .ok_or_else(|| format!("no endpoints available for service {name:?}"))
    }

    /// Returns all hosts and ports behind a port of a service, in random order.
    ///
    /// # Errors
    /// A message in kube-apiserver's words if the service, the port or a ready endpoint is missing, or cannot be read.
    pub async fn addresses(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<Vec<(String, u16)>, String> {
        let service = self.service(namespace, name).await?;
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        if text(&service, "/spec/type") == "ExternalName" {
            return Ok(vec![(text(&service, "/spec/externalName"), port)]);
        }
        let port_name = port_name(&service, port)
            .ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        let slices = self.slices(namespace, name).await?;
        if slices.is_empty() {
            let cluster_ip = text(&service, "/spec/clusterIP");
            if !matches!(cluster_ip.as_str(), "" | "None") {
                return Ok(vec![(cluster_ip, port)]);
            }
        }
        let mut ready: Vec<_> = slices
            .iter()
            .flat_map(|slice| addresses(slice, port_name))
            .collect();
        ready.shuffle(&mut rand::rng());
        if ready.is_empty() {
            return Err(format!("no endpoints available for service {name:?}"));
        }
        Ok(ready)
    }

    /// Checks whether the service of an APIService, its port and its ready endpoints exist. Returns the condition of
    /// the APIService if something is missing or cannot be read, and `None` if nothing is.
    pub async fn lack(&self, api: &ServiceReference) -> Option<Availability> {
        let ServiceReference {
            namespace,
            name,
            port,
        } = api;
        let no = |reason, message| Some(Availability::no(reason, message));
        let unknown = |reason, error| {
            let message =
                format!("service/{name} in {namespace:?} cannot be checked due to: {error}");
            Some(Availability {
                status: "Unknown",
                ..Availability::no(reason, message)
            })
        };
        let service = match self.service(namespace, name).await {
            Ok(Some(service)) => service,
            Ok(None) => {
                let message = format!("service/{name} in {namespace:?} is not present");
                return no("ServiceNotFound", message);
            }
            Err(error) => return unknown("ServiceAccessError", error),
        };
        // Services of other types need not have EndpointSlices with the port, so they are not checked further.
        if text(&service, "/spec/type") != "ClusterIP" {
            return None;
        }
        let Some(port_name) = port_name(&service, *port) else {
            let message =
                format!("service/{name} in {namespace:?} is not listening on port {port}");
            return no("ServicePortError", message);
        };
        let slices = match self.slices(namespace, name).await {
            Ok(slices) => slices,
            Err(error) => return unknown("EndpointsAccessError", error),
        };
        if slices.is_empty() {
            let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
            return no("EndpointsNotFound", message);
        }
        if slices.iter().all(|it| addresses(it, port_name).is_empty()) {
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
            );
            return no("MissingEndpoints", message);
        }
        None
    }

    async fn service(&self, namespace: &str, name: &str) -> Result<Option<Value>, String> {
        let key = format!("/services/specs/{namespace}/{name}");
        let cached = GetOptions {
            resource_version: Some(ResourceVersion(0)),
        };
        match self.services.get(&key, cached).await {
            Ok(service) => {
                let service = codec::tree(&service).map_err(|error| error.to_string())?;
                Ok(Some(service))
            }
            Err(StorageError::KeyNotFound { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn slices(&self, namespace: &str, name: &str) -> Result<Vec<Value>, String> {
        let selector = format!("kubernetes.io/service-name={name}");
        let mut options = ListOptions {
            resource_version: Some(ResourceVersion(0)),
            recursive: true,
            ..ListOptions::default()
        };
        options.predicate.limit = SLICES_MAX;
        options.predicate.label =
            LabelSelector::parse(&selector).map_err(|error| error.to_string())?;
        let key = format!("/endpointslices/{namespace}/");
        let list = self.slices.get_list(&key, options).await;
        let list = list.map_err(|error| error.to_string())?;
        let trees = list.items.iter().map(|slice| codec::tree(slice));
        trees
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }
}

fn text(object: &Value, path: &str) -> String {
    let text = object.pointer(path).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Returns the name of a service's port by its number; empty if the port has no name.
fn port_name(service: &Value, port: u16) -> Option<&str> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let mut ports = ports.into_iter().flatten();
    let port = ports.find(|it| it["port"] == port)?;
    Some(port["name"].as_str().unwrap_or_default())
}

/// Returns the first address of each ready endpoint in a slice, with the slice's number for the named port.
fn addresses(slice: &Value, port_name: &str) -> Vec<(String, u16)> {
    let list = |value: &Value, name: &str| {
        let list = value.get(name).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let ports = list(slice, "ports");
    let port = ports
        .iter()
        .find(|port| port["name"].as_str().unwrap_or_default() == port_name);
    let number = port.and_then(|port| u16::try_from(port["port"].as_u64()?).ok());
    let Some(number) = number else {
        return Vec::new();
    };
    let ready = |endpoint: &Value| endpoint["conditions"]["ready"] != false;
    let endpoints = list(slice, "endpoints");
    let first = endpoints.iter().filter(|it| ready(it)).filter_map(|it| {
        let address = it["addresses"].get(0)?.as_str()?;
        Some((address.to_owned(), number))
    });
    first.collect()
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch::storage::backend::embedded::Embedded;
    use ringwatch::storage::etcd3::{Config, Store};
    use serde_json::json;

    use super::*;

    /// Makes the storages and writes these objects to them without the API's validation.
    async fn services(objects: &[(&str, Value)]) -> ServiceAddresses {
        let clock = Clock::real();
        let backend = Arc::new(Embedded::in_memory(clock.clone()));
        let store = |prefix: &str| {
            let config = Config::new("/registry", prefix, clock.clone());
            Arc::new(Store::new(Arc::clone(&backend) as _, config)) as Arc<dyn Interface>
        };
        let found = ServiceAddresses {
            services: store("/services/specs"),
            slices: store("/endpointslices"),
        };
        for (key, object) in objects {
            let storage = if key.starts_with("/services") {
                &found.services
            } else {
                &found.slices
            };
            storage.create(key, object, None).await.expect("created");
        }
        found
    }

    fn service(name: &str, cluster_ip: &str) -> (String, Value) {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"clusterIP": cluster_ip, "ports": [
                {"name": "metrics", "port": 80}, {"name": "https", "port": 443}]}});
        (format!("/services/specs/ns/{name}"), service)
    }

    #[tokio::test]
    async fn a_service_is_reached_at_a_ready_endpoint() {
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "hook-1", "namespace": "ns",
                "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "ports": [{"name": "metrics", "port": 8080}, {"name": "https", "port": 9443}],
            "endpoints": [
                {"addresses": ["10.1.0.1"], "conditions": {"ready": false}},
                {"addresses": ["10.1.0.2"], "conditions": {"ready": true}}]});
        let (key, hook) = service("hook", "10.0.0.7");
        let (lonely_key, lonely) = service("lonely", "10.0.0.8");
        let (headless_key, headless) = service("headless", "None");
        let services = services(&[
            (&key, hook),
            (&lonely_key, lonely),
            (&headless_key, headless),
            ("/endpointslices/ns/hook-1", slice),
        ])
        .await;
        let reached = |host: &str, port| Ok((host.to_owned(), port));
        for (name, port, expected) in [
            ("hook", 443, reached("10.1.0.2", 9443)),
            ("hook", 80, reached("10.1.0.2", 8080)),
            ("lonely", 443, reached("10.0.0.8", 443)),
            (
                "hook",
                1,
                Err("no service port 1 found for service \"hook\"".to_owned()),
            ),
            (
                "headless",
                443,
                Err("no endpoints available for service \"headless\"".to_owned()),
            ),
            ("none", 443, Err("service \"none\" not found".to_owned())),
        ] {
            assert_eq!(services.address("ns", name, port).await, expected);
        }
    }
}

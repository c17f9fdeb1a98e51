//! Where the service of a webhook is reached: at the address of one of its endpoints, since a server without
//! kube-proxy reaches no cluster IP. A service that nobody keeps slices of is tried at its cluster IP.

use std::sync::Arc;

use rand::seq::IndexedRandom;
use serde_json::Value;

use crate::codec;
use crate::meta::{LabelSelector, ResourceVersion};
use crate::storage::{GetOptions, Interface, ListOptions, StorageError};

/// Slices of a service that are looked at.
const SLICES_MAX: u64 = 100;

/// The services and their endpoint slices.
#[derive(Clone, Debug)]
pub struct Services {
    /// The storage of services.
    pub services: Arc<dyn Interface>,
    /// The storage of endpoint slices.
    pub slices: Arc<dyn Interface>,
}

impl Services {
    /// The host and port behind a port of a service.
    ///
    /// # Errors
    /// There is none, in kube-apiserver's words.
    pub(super) async fn address(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        let service = self.service(namespace, name).await?;
        let text = |path: &str| {
            let text = service.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        if text("/spec/type") == "ExternalName" {
            return Ok((text("/spec/externalName"), port));
        }
        let ports = service.pointer("/spec/ports").and_then(Value::as_array);
        let mut ports = ports.into_iter().flatten();
        let wanted = ports.find(|it| it["port"] == port);
        let wanted =
            wanted.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        let port_name = wanted["name"].as_str().unwrap_or_default();
        let slices = self.slices(namespace, name).await?;
        if slices.is_empty() {
            let cluster_ip = text("/spec/clusterIP");
            if !matches!(cluster_ip.as_str(), "" | "None") {
                return Ok((cluster_ip, port));
            }
        }
        let ready: Vec<_> = slices
            .iter()
            .flat_map(|slice| addresses(slice, port_name))
            .collect();
        let chosen = ready.choose(&mut rand::rng()).cloned();
        chosen.ok_or_else(|| format!("no endpoints available for service {name:?}"))
    }

    async fn service(&self, namespace: &str, name: &str) -> Result<Value, String> {
        let key = format!("/services/specs/{namespace}/{name}");
        let cached = GetOptions {
            resource_version: Some(ResourceVersion(0)),
        };
        match self.services.get(&key, cached).await {
            Ok(service) => codec::tree(&service).map_err(|error| error.to_string()),
            Err(StorageError::KeyNotFound { .. }) => Err(format!("service {name:?} not found")),
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

/// The ready addresses of a slice with the number of this port.
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
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::storage::Versioner;
    use crate::storage::backend::embedded::Embedded;
    use crate::storage::etcd3::{Config, Store};

    /// Services and slices as they are stored, which the API may have taken from elsewhere.
    async fn services(objects: &[(&str, Value)]) -> Services {
        let clock = Clock::real();
        let backend = Arc::new(Embedded::in_memory(clock.clone()));
        let store = |prefix: &str| {
            let config = Config {
                path_prefix: "/registry".to_owned(),
                resource_prefix: prefix.to_owned(),
                versioner: Versioner::default(),
                clock: clock.clone(),
                compact_revision: None,
            };
            Arc::new(Store::new(Arc::clone(&backend) as _, config)) as Arc<dyn Interface>
        };
        let found = Services {
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

//! The Endpoints and the EndpointSlice of the service `kubernetes`, which name the addresses of the API servers.

use std::collections::BTreeSet;

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_registry::{DeleteOptions, RequestContext, Store, UpdateOptions, UpdatedObject};
use serde_json::{Value, json};

/// Name of the service and of its Endpoints and EndpointSlice.
const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";

/// Writes the addresses of the API servers into the Endpoints and the EndpointSlice, unless they are there already.
///
/// # Errors
/// An error of the store if either object cannot be read or written.
pub(super) async fn publish_addresses(
    endpoints: &Store,
    slices: &Store,
    addresses: &BTreeSet<String>,
    port: u16,
    clock: &Clock,
) -> Result<(), Error> {
    write(endpoints, endpoints_of(addresses, port), clock).await?;
    let slice = slice_of(addresses, port);
    make_way(slices, &slice, clock).await?;
    write(slices, slice, clock).await
}

/// Deletes an EndpointSlice of the other address family, since `addressType` is immutable.
async fn make_way(slices: &Store, wanted: &Value, clock: &Clock) -> Result<(), Error> {
    let found = match slices.get(NAMESPACE, NAME, GetOptions::default()).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let found = codec::tree(&found)?;
    if found["addressType"] == wanted["addressType"] {
        return Ok(());
    }
    let (context, options) = (RequestContext::of_server(clock), DeleteOptions::default());
    let deleted = slices.delete(&context, NAMESPACE, NAME, options).await;
    deleted.map(|_| ())
}

/// Builds the Endpoints object, labelled so that no controller mirrors it into EndpointSlices: the server writes its
/// own.
fn endpoints_of(addresses: &BTreeSet<String>, port: u16) -> Value {
    let addresses: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": NAME, "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": addresses,
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}]})
}

fn slice_of(addresses: &BTreeSet<String>, port: u16) -> Value {
    let is_v6 = addresses.iter().all(|ip| ip.contains(':'));
    let endpoints = addresses.iter();
    let endpoints: Vec<_> = endpoints
        .map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}}))
        .collect();
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": if is_v6 { "IPv6" } else { "IPv4" },
        "endpoints": endpoints,
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}]})
}

async fn write(store: &Store, wanted: Value, clock: &Clock) -> Result<(), Error> {
    let context = RequestContext::of_server(clock);
    let options = UpdateOptions {
        force_allow_create: true,
        ..UpdateOptions::default()
    };
    let mut wanted = AddressUpdate(wanted);
    let written = store.update(&context, NAMESPACE, NAME, &mut wanted, &options);
    written.await.map(|_| ())
}

/// An update that sets the labels and all members besides `metadata`; members that others have added stay.
struct AddressUpdate(Value);

#[async_trait]
impl UpdatedObject for AddressUpdate {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let Some(existing) = existing else {
            return Ok(self.0.clone());
        };
        let mut next = existing.clone();
        for (name, value) in self.0.as_object().into_iter().flatten() {
            if name != "metadata" {
                next[name] = value.clone();
            }
        }
        let labels = self
            .0
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        for (name, value) in labels.into_iter().flatten() {
            next["metadata"]["labels"][name] = value.clone();
        }
        Ok(next)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ringwatch_registry::testing::{self, MemoryStorage};

    use super::*;

    pub(in super::super) fn store(plural: &str) -> Store {
        let resources = ringwatch_resources::built_in();
        let resource = resources.into_iter().find(|it| it.plural == plural);
        let resource = resource.expect("built in");
        let storage = MemoryStorage::new(&format!("/{}", resource.storage_prefix));
        Store::new(resource, storage as _)
    }

    pub(in super::super) async fn tree(store: &Store) -> Value {
        let found = store.get(NAMESPACE, NAME, GetOptions::default()).await;
        codec::tree(&found.expect("there")).expect("an object")
    }

    #[tokio::test]
    async fn addresses_are_published_once() {
        let (endpoints, slices) = (store("endpoints"), store("endpointslices"));
        let clock = testing::context().clock;
        let publish = async |addresses: &[&str]| {
            let addresses = addresses.iter().map(|it| (*it).to_owned()).collect();
            let published = publish_addresses(&endpoints, &slices, &addresses, 6443, &clock);
            published.await.expect("published");
            (tree(&endpoints).await, tree(&slices).await)
        };
        let first = publish(&["192.0.2.7"]).await;
        assert_eq!(
            first.0["subsets"],
            json!([{"addresses": [{"ip": "192.0.2.7"}],
                "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}])
        );
        assert_eq!(first.1["addressType"], "IPv4");
        assert_eq!(
            publish(&["192.0.2.7"]).await,
            first,
            "nothing is written again"
        );
        let both = publish(&["192.0.2.9", "192.0.2.7"]).await;
        let ips = both.1["endpoints"].as_array().expect("a list");
        let ips: Vec<_> = ips.iter().map(|it| &it["addresses"][0]).collect();
        assert_eq!(ips, ["192.0.2.7", "192.0.2.9"]);
        assert_eq!(both.0["metadata"]["uid"], first.0["metadata"]["uid"]);
        assert_eq!(publish(&["2001:db8::7"]).await.1["addressType"], "IPv6");
    }
}

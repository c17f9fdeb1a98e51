//! Finds the address that a request of the subresource `proxy` is forwarded to.

use std::net::IpAddr;

use ringwatch::codec;
use ringwatch::storage::GetOptions;
use ringwatch_http::client::{Backend, is_proxyable};
use ringwatch_registry::Verb;
use serde_json::Value;
use tokio::net::lookup_host;

use crate::call::Call;
use crate::errors::{About, Failure};
use crate::handlers::kubelet_target::kubelet;

/// A name as clients write it: `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    scheme: &'a str,
    name: &'a str,
    port: &'a str,
}

/// Finds the address of the request's target.
///
/// # Errors
/// 400 for a name that names nothing or an address that may not be reached, 404 for what does not exist,
/// 503 for a service that nothing stands behind.
pub(super) async fn find(call: &Call<'_>) -> Result<Backend, Failure> {
    let resource = call.store.resource();
    let target = Target::parse(call.name()).ok_or_else(|| {
        let (singular, name) = (&resource.singular, call.name());
        Failure::bad_request(format!("invalid {singular} request {name:?}"))
    })?;
    match resource.plural.as_str() {
        "pods" => pod(call, &target).await,
        "services" => service(call, &target).await,
        _ => node(call, &target).await,
    }
}

/// Finds the node's kubelet, or another port of the node.
async fn node(call: &Call<'_>, target: &Target<'_>) -> Result<Backend, Failure> {
    let kubelet = kubelet(call, target.name, false).await?;
    if target.port.is_empty() || target.port == kubelet.port.to_string() {
        return Ok(kubelet);
    }
    let port = target.number()?;
    let refused = |why: String| Failure::bad_request(why);
    let found = lookup_host((kubelet.host.as_str(), port)).await;
    let found = found.map_err(|error| refused(error.to_string()))?;
    let found: Vec<_> = found.map(|it| it.ip()).collect();
    let refusal = found.iter().copied().find(|it| !is_proxyable(*it));
    // One forbidden address makes the whole target forbidden.
    let address = refusal.or_else(|| found.first().copied());
    let address = address.ok_or_else(|| refused("no addresses for hostname".to_owned()))?;
    call.kubelets
        .proxied(target.scheme, address, port, &call.context.clock)
}

/// Finds a port of the pod, or the first that it names.
async fn pod(call: &Call<'_>, target: &Target<'_>) -> Result<Backend, Failure> {
    let pod = read(call, "pods", target.name).await?;
    let port = match target.port {
        "" => first_port(&pod).unwrap_or_else(|| target.usual_port()),
        _ => target.number()?,
    };
    let address = addresses(&pod).next().and_then(|it| it.parse().ok());
    let address = address.ok_or_else(|| Failure::bad_request("address not allowed"))?;
    call.kubelets
        .proxied(target.scheme, address, port, &call.context.clock)
}

/// Finds an endpoint of a port of the service.
async fn service(call: &Call<'_>, target: &Target<'_>) -> Result<Backend, Failure> {
    let name = target.name;
    let mut port = target.port.to_owned();
    if let Ok(number) = port.parse::<i64>() {
        let service = read(call, "services", name).await?;
        let ports = list(&service, "/spec/ports");
        let mut ports = ports.filter(|it| it["port"].as_i64() == Some(number));
        let found = ports.next().ok_or_else(|| {
            let why = format!("no service port {number} found for service {name:?}");
            Failure::service_unavailable(why)
        })?;
        port = found["name"].as_str().unwrap_or_default().to_owned();
    }
    let endpoints = read(call, "endpoints", name).await?;
    let mut found: Vec<(&Value, u16)> = Vec::new();
    for subset in list(&endpoints, "/subsets") {
        let mut ports = list(subset, "/ports");
        let wanted = ports.find(|it| it["name"].as_str().unwrap_or_default() == port);
        let wanted = wanted.and_then(|it| u16::try_from(it["port"].as_u64()?).ok());
        if let Some(wanted) = wanted {
            found.extend(list(subset, "/addresses").map(|address| (address, wanted)));
        }
    }
    while !found.is_empty() {
        let (address, port) = found.swap_remove(rand::random_range(0..found.len()));
        if let Some(address) = pods_address(call, address).await {
            return call
                .kubelets
                .proxied(target.scheme, address, port, &call.context.clock);
        }
    }
    // kube-apiserver's message has the whole name here, not the port.
    let asked = if list(&endpoints, "/subsets").next().is_none() {
        name
    } else {
        call.name()
    };
    let why = format!("no endpoints available for service {asked:?}");
    Err(Failure::service_unavailable(why))
}

/// Returns the address of an endpoint if it is that of its pod, and may be reached.
async fn pods_address(call: &Call<'_>, endpoint: &Value) -> Option<IpAddr> {
    let text = |path: &str| endpoint.pointer(path).and_then(Value::as_str);
    if text("/targetRef/namespace")? != call.namespace() {
        return None;
    }
    let pod = read(call, "pods", text("/targetRef/name")?).await.ok()?;
    let address = text("/ip")?;
    let is_its_own = addresses(&pod).any(|it| it == address);
    let address = address.parse().ok().filter(|it| is_proxyable(*it));
    address.filter(|_| is_its_own)
}

/// Reads an object in the namespace of the request.
async fn read(call: &Call<'_>, plural: &str, name: &str) -> Result<Value, Failure> {
    let store = call.routes.needed("", "v1", plural)?;
    let about = About {
        resource: store.resource(),
        name,
        verb: Verb::Get,
    };
    let object = store.get(call.namespace(), name, GetOptions::default());
    let object = object
        .await
        .map_err(|error| Failure::from_error(&error, about))?;
    codec::tree(&object).map_err(Failure::internal)
}

fn first_port(pod: &Value) -> Option<u16> {
    let mut ports = list(pod, "/spec/containers").flat_map(|it| list(it, "/ports"));
    let port = ports.next()?.get("containerPort")?.as_u64()?;
    u16::try_from(port).ok()
}

/// Returns the addresses of a pod.
fn addresses(pod: &Value) -> impl Iterator<Item = &str> {
    list(pod, "/status/podIPs").filter_map(|it| it.get("ip")?.as_str())
}

fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = object.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten()
}

impl<'a> Target<'a> {
    /// Reads a name; the port may be empty.
    fn parse(name: &'a str) -> Option<Self> {
        let parts: Vec<_> = name.split(':').collect();
        let (scheme, name, port) = match *parts.as_slice() {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme @ ("" | "http" | "https"), name, port] => (scheme, name, port),
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { scheme, name, port })
    }

    /// Returns the port as a number. Go asks a table of the system what other words mean; there is none here.
    fn number(&self) -> Result<u16, Failure> {
        let port = self.port;
        port.parse().map_err(|_| {
            Failure::service_unavailable(format!(
                "error trying to reach service: dial tcp: lookup tcp/{port}: unknown port"
            ))
        })
    }

    fn usual_port(&self) -> u16 {
        if self.scheme == "https" { 443 } else { 80 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_scheme_and_a_port() {
        let read = |name| Target::parse(name).map(|it| (it.scheme, it.name, it.port));
        assert_eq!(read("n"), Some(("", "n", "")));
        assert_eq!(read("n:10250"), Some(("", "n", "10250")));
        assert_eq!(read("https:n:"), Some(("https", "n", "")));
        assert_eq!(read("http:n:web"), Some(("http", "n", "web")));
        for wrong in ["", ":1", "ftp:n:1", "a:b:c:d"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

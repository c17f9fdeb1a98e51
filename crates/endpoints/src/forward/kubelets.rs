//! Finds the address of a node's kubelet in the node object.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_http::client::{Backend, is_proxyable};
use serde_json::Value;

use crate::errors::Failure;

/// The bound of connecting to what is proxied, as in Go's transport.
pub const PROXY_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The client's side of TLS for kubelets.
#[derive(Clone, Debug)]
pub struct KubeletTls {
    /// The configuration by the flags: the kubelet's certificate is verified, and the server presents its own.
    pub trusted: Arc<rustls::ClientConfig>,
    /// The same without verification of the kubelet's certificate: `insecureSkipTLSVerifyBackend`.
    pub unverified: Arc<rustls::ClientConfig>,
    /// The configuration for `proxy` to other ports: no certificate is verified or presented.
    pub proxied: Arc<rustls::ClientConfig>,
}

/// The settings by which kubelets are reached.
#[derive(Clone, Debug)]
pub struct Kubelets {
    /// The client's side of TLS.
    pub tls: KubeletTls,
    /// The types of a node's addresses in the order of preference: the first that it has one of is taken.
    pub address_types: Vec<String>,
    /// The port of kubelets whose node tells none.
    pub default_port: u16,
    /// The bound of connecting, the TLS handshake included.
    pub connect_timeout: Duration,
    /// The most bytes in a second in each direction of a connection to a pod, node or service; `None` for no limit.
    pub bytes_per_second: Option<NonZeroU64>,
}

impl Kubelets {
    /// Returns the backend that is the kubelet of this node.
    ///
    /// # Errors
    /// 500 when the node says no address of the preferred types.
    pub(crate) fn backend(
        &self,
        node: &Value,
        unverified: bool,
        clock: &Clock,
    ) -> Result<Backend, Failure> {
        let host = self.address(node).ok_or_else(|| no_address(node))?;
        let port = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port");
        let port = port.and_then(Value::as_u64).filter(|port| *port > 0);
        let tls = if unverified {
            &self.tls.unverified
        } else {
            &self.tls.trusted
        };
        Ok(Backend {
            host: host.to_owned(),
            port: port
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(self.default_port),
            tls: Some(Arc::clone(tls)),
            name: host.to_owned(),
            may_be_local: true,
            connect_timeout: self.connect_timeout,
            bytes_per_second: self.bytes_per_second,
            kept: None,
            clock: clock.clone(),
        })
    }

    /// Returns the backend of a proxied request at an address, by a scheme as it stands in the request.
    ///
    /// # Errors
    /// The address is not one that clients may reach through this server.
    pub(crate) fn proxied(
        &self,
        scheme: &str,
        address: IpAddr,
        port: u16,
        clock: &Clock,
    ) -> Result<Backend, Failure> {
        if !is_proxyable(address) {
            return Err(Failure::bad_request("address not allowed"));
        }
        let tls = (scheme == "https").then(|| Arc::clone(&self.tls.proxied));
        Ok(Backend {
            host: address.to_string(),
            port,
            tls,
            name: address.to_string(),
            may_be_local: false,
            connect_timeout: PROXY_CONNECT_TIMEOUT,
            bytes_per_second: self.bytes_per_second,
            kept: None,
            clock: clock.clone(),
        })
    }

    fn address<'node>(&self, node: &'node Value) -> Option<&'node str> {
        let of_type = |wanted: &String| addresses(node).find(|(kind, _)| kind == wanted);
        let (_, address) = self.address_types.iter().find_map(of_type)?;
        Some(address)
    }
}

/// Returns the types and addresses of a node.
fn addresses(node: &Value) -> impl Iterator<Item = (&str, &str)> {
    let listed = node
        .pointer("/status/addresses")
        .and_then(Value::as_array)
        .into_iter();
    listed.flatten().map(|entry| {
        let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        (text("type"), text("address"))
    })
}

fn no_address(node: &Value) -> Failure {
    let known: Vec<_> = addresses(node)
        .map(|(kind, address)| format!("{{{kind} {address}}}"))
        .collect();
    let known = known.join(" ");
    Failure::untranslated(format!(
        "no preferred addresses found; known addresses: [{known}]"
    ))
}

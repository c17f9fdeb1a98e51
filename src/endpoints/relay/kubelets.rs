//! Where the kubelet of a node listens, as the node object says.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::super::errors::Failure;
use super::backend::Backend;

/// What is assumed of a kubelet that does not say its port, as in kube-apiserver.
const KUBELET_PORT_DEFAULT: u16 = 10250;

/// How TLS is spoken with kubelets.
#[derive(Clone, Debug)]
pub struct KubeletTls {
    /// As the flags say.
    pub trusted: Arc<rustls::ClientConfig>,
    /// The same without looking at the kubelet's certificate, for clients that wish so.
    pub unverified: Arc<rustls::ClientConfig>,
}

/// How kubelets are reached.
#[derive(Clone, Debug)]
pub struct Kubelets {
    /// How TLS is spoken.
    pub tls: KubeletTls,
    /// Which of a node's addresses is taken: the first type that it has one of.
    pub address_types: Vec<String>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

impl Kubelets {
    /// Where the kubelet of this node is.
    ///
    /// # Errors
    /// 500 when the node says no address of the preferred types.
    pub(in super::super) fn backend(
        &self,
        node: &Value,
        unverified: bool,
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
                .unwrap_or(KUBELET_PORT_DEFAULT),
            tls: Arc::clone(tls),
            connect_timeout: self.connect_timeout,
        })
    }

    fn address<'node>(&self, node: &'node Value) -> Option<&'node str> {
        let of_type = |wanted: &String| addresses(node).find(|(kind, _)| kind == wanted);
        let (_, address) = self.address_types.iter().find_map(of_type)?;
        Some(address)
    }
}

/// The types and addresses of a node.
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

//! The flags of the place of a server in its cluster.

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::{ArgAction, Args};
use ringwatch_apimachinery::duration;
use ringwatch_test_cluster::Extra;

use super::{ServingFlags, parse_bool};

/// Flags of the place of a server in its cluster: how others find it, and when it counts as alive.
#[derive(Args, Clone, Debug)]
pub struct ClusterFlags {
    /// Way in which the addresses of the Service `kubernetes` are kept: lease (by leases that the servers of one etcd
    /// renew) or none (this server leaves them alone).
    #[arg(long, value_name = "TYPE", default_value = "lease", value_parser = ReconcilerType::parse)]
    pub endpoint_reconciler_type: ReconcilerType,

    /// Host name, with or without a port, in URLs that lead to this server: in discovery and in that of the keys of
    /// service account tokens. The default is the advertised address.
    #[arg(long, value_name = "HOST")]
    pub external_hostname: Option<String>,

    /// Time after the start during which /livez does not fail for steps of the start that are not done.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub livez_grace_period: Duration,

    /// Run the controllers of a cluster that tests need: namespaces go when they are deleted, dependents go with their
    /// owners, namespaces have a ServiceAccount and the authority of the API, finished Jobs go, and so do volumes and
    /// claims that nobody uses any more. More of them run by name, several with commas between: workloads (Deployments,
    /// ReplicaSets and ReplicationControllers make pods), endpoints (Services have EndpointSlices and Endpoints),
    /// volumes (claims are bound), kubelet (pods run, on a node that is pretended), or all. Not beside
    /// kube-controller-manager, and not for production.
    #[arg(long, default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL|NAMES",
          value_parser = TestClusterFlag::parse)]
    pub test_cluster: TestClusterFlag,

    /// Time after which the kubelet of --test-cluster makes a pod ready that has a node. Pods of Jobs, and others that
    /// are not to start again, succeed after as much time again.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub test_cluster_pods_ready_after: Duration,
}

/// The controllers of a test cluster that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestClusterFlag {
    /// No controllers.
    Off,
    /// The controllers that tests miss most, and these besides.
    On(BTreeSet<Extra>),
}

impl TestClusterFlag {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(is_on) = parse_bool(text) {
            return Ok(match is_on {
                true => Self::On(BTreeSet::new()),
                false => Self::Off,
            });
        }
        let mut extras = BTreeSet::new();
        for name in text.split(',') {
            match Extra::ALL.iter().find(|it| it.name() == name) {
                Some(extra) => drop(extras.insert(*extra)),
                None if name == "all" => extras.extend(Extra::ALL),
                None => {
                    let names = Extra::ALL.map(Extra::name).join(", ");
                    return Err(format!(
                        "there are no controllers {name:?}; use true, false, all, or some of {names}"
                    ));
                }
            }
        }
        Ok(Self::On(extras))
    }

    /// Returns true if controllers run.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self, Self::On(_))
    }
}

/// The way in which the addresses of the Service `kubernetes` are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcilerType {
    /// By leases that servers renew.
    Lease,
    /// They are left alone.
    None,
}

impl ReconcilerType {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "lease" => Ok(Self::Lease),
            "none" => Ok(Self::None),
            "master-count" => Err("it is not supported; use lease, which counts no servers".into()),
            _ => Err("no such reconciler; use lease or none".into()),
        }
    }
}

impl ClusterFlags {
    /// Returns the host and port for URLs that lead to the server, which listens on this port.
    #[must_use]
    pub fn external_address(&self, serving: &ServingFlags, listening: SocketAddr) -> String {
        let port = listening.port();
        match self.external_hostname.as_deref() {
            None | Some("") => {
                let address = serving
                    .advertised_address()
                    .unwrap_or_else(|| listening.ip());
                SocketAddr::new(address, port).to_string()
            }
            Some(host) if host.parse::<Ipv6Addr>().is_ok() => format!("[{host}]:{port}"),
            Some(host) if has_port(host) => host.to_owned(),
            Some(host) => format!("{host}:{port}"),
        }
    }
}

/// Returns true if a host name has a port. A colon inside brackets belongs to an IPv6 address.
fn has_port(host: &str) -> bool {
    let port = host.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        cluster: ClusterFlags,
        #[command(flatten)]
        serving: ServingFlags,
    }

    fn parse(flags: &[&str]) -> Result<Line, String> {
        let line = Line::try_parse_from(std::iter::once(&"serve").chain(flags));
        line.map_err(|error| error.to_string())
    }

    #[test]
    fn urls_have_the_external_host_name_with_a_port() {
        let listening: SocketAddr = "127.0.0.1:6443".parse().expect("an address");
        for (flag, expected) in [
            ("--external-hostname=api.example", "api.example:6443"),
            ("--external-hostname=api.example:443", "api.example:443"),
            ("--external-hostname=[2001:db8::1]", "[2001:db8::1]:6443"),
            ("--external-hostname=2001:db8::1", "[2001:db8::1]:6443"),
            ("--external-hostname=", "127.0.0.1:6443"),
            ("--advertise-address=192.0.2.7", "192.0.2.7:6443"),
        ] {
            let mut flags = parse(&[flag]).expect(flag);
            // The default is an address of the machine.
            flags
                .serving
                .advertise_address
                .get_or_insert_with(|| listening.ip());
            assert_eq!(
                flags.cluster.external_address(&flags.serving, listening),
                expected
            );
        }
    }

    #[test]
    fn unknown_reconcilers_are_refused() {
        for (flag, words) in [
            ("--endpoint-reconciler-type=master-count", "use lease"),
            ("--endpoint-reconciler-type=x", "lease or none"),
        ] {
            let error = parse(&[flag]).expect_err(flag);
            assert!(error.contains(words), "{flag}: {error}");
        }
    }
}

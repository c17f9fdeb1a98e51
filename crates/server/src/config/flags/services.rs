//! The flags of services: the ranges of cluster IPs and node ports.

use clap::Args;
use ringwatch_resources::allocation::PortRange;
use ringwatch_resources::service_ranges::ServiceRanges;

/// Flags of services.
#[derive(Args, Clone, Debug)]
pub struct ServiceFlags {
    /// Range of the cluster IPs of services, as a CIDR, or two ranges of different families, comma-separated; the first
    /// decides the family of services that name none. Its first address is that of the service `kubernetes`.
    #[arg(long, value_name = "CIDRS", default_value = "10.0.0.0/24", value_parser = ServiceRanges::parse)]
    pub service_cluster_ip_range: ServiceRanges,

    /// Range of the ports that services get on all nodes: FIRST-LAST, FIRST+COUNT or one port.
    #[arg(long, value_name = "RANGE", default_value = "30000-32767", value_parser = PortRange::parse)]
    pub service_node_port_range: PortRange,
}

//! The flags of connections to kubelets, pods and services.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ringwatch_apimachinery::duration;

/// Flags of connections to kubelets.
#[derive(Args, Clone, Debug)]
pub struct KubeletFlags {
    /// Certificate authorities that kubelets' certificates are verified against. Without it they are not verified.
    #[arg(long, value_name = "FILE")]
    pub kubelet_certificate_authority: Option<PathBuf>,

    /// Client certificate for kubelets.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    pub kubelet_client_certificate: Option<PathBuf>,

    /// Private key of that certificate.
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    pub kubelet_client_key: Option<PathBuf>,

    /// Types of node addresses at which kubelets are reached, comma-separated: the first type that a node has is used.
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    pub kubelet_preferred_address_types: Vec<String>,

    /// Timeout of connecting to a kubelet.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub kubelet_timeout: Duration,

    /// Maximum number of bytes in a second in each direction of a connection to a pod, a node or a service, such as
    /// that of exec; 0 for no limit.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub max_connection_bytes_per_sec: i64,

    /// Port of kubelets whose Node tells none.
    #[arg(long, value_name = "PORT", default_value_t = 10250, hide = true)]
    pub kubelet_port: u16,
}

impl KubeletFlags {
    /// Returns the most bytes in a second of an upgraded connection; `None` for no limit.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<NonZeroU64> {
        let bytes = u64::try_from(self.max_connection_bytes_per_sec);
        bytes.ok().and_then(NonZeroU64::new)
    }
}

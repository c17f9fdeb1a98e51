//! How much longer the certificates by which clients authenticate are valid, under kube-apiserver's name.

use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::CertifiedUser;

/// The upper bounds of kube-apiserver's buckets, in seconds: from half an hour to a year (`apiserver/pkg/authentication/
/// request/x509/x509.go` of Kubernetes 1.36).
const REMAINING_BUCKETS_SECONDS: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

/// The remaining lifetimes of the certificates of requests.
#[derive(Clone, Debug)]
pub(super) struct CertificateMetrics {
    remaining: Histogram,
}

impl Default for CertificateMetrics {
    fn default() -> Self {
        let remaining = Histogram::new(REMAINING_BUCKETS_SECONDS);
        Self { remaining }
    }
}

impl CertificateMetrics {
    /// Registers the family.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_client_certificate_expiration_seconds",
            "[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.",
            self.remaining.clone(),
        );
    }

    /// Counts a request with a certificate of a known authority, valid or expired.
    pub(super) fn observe(&self, certified: &CertifiedUser, now: Timestamp) {
        let remaining = certified.valid_until_seconds - now.as_second();
        #[allow(clippy::cast_precision_loss, reason = "times stay far below 2^52")]
        self.remaining.observe(remaining as f64);
    }
}

//! The metric of the time for which the certificates by which clients authenticate are still valid, under
//! kube-apiserver's name.

use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::CertifiedUser;

/// The upper bounds of kube-apiserver's buckets, in seconds: from half an hour to a year
/// (`apiserver/pkg/authentication/ request/x509/x509.go` of Kubernetes 1.36).
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

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use prometheus_client::encoding::text::encode;
    use ringwatch_apimachinery::User;

    use super::*;
    use crate::{Authenticator, Peer, TokenFile};

    #[tokio::test]
    async fn each_request_with_a_certificate_counts_though_it_has_expired() {
        let authenticator = Authenticator::new(TokenFile::default());
        let mut registry = Registry::default();
        authenticator.register(&mut registry);
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let peer = |remaining_seconds| Peer {
            user: Some(CertifiedUser {
                user: User::default(),
                valid_until_seconds: now.as_second() + remaining_seconds,
            }),
            ..Peer::default()
        };
        let peers = [peer(86_400), peer(60 * 86_400), peer(-5), Peer::default()];
        let mut users = Vec::new();
        for peer in &peers {
            let headers = &mut HeaderMap::new();
            let user = authenticator.authenticate(peer, None, headers, "/", now);
            users.push(user.await.is_some());
        }
        assert_eq!(users[..3], [true, true, false]);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let name = "apiserver_client_certificate_expiration_seconds";
        for line in [
            format!("{name}_bucket{{le=\"0.0\"}} 1"),
            format!("{name}_bucket{{le=\"43200.0\"}} 1"),
            format!("{name}_bucket{{le=\"604800.0\"}} 2"),
            format!("{name}_count 3"),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}

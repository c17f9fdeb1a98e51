//! When the server's certificates expire, as `/metrics` shows it.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_apiserver::transport::current_credentials::CurrentCredentials;

/// The expiry of the certificates that the server shows to clients.
#[derive(Debug)]
pub(super) struct CertificateMetrics {
    credentials: CurrentCredentials,
    expires: Gauge,
    replace_by: Gauge,
}

impl CertificateMetrics {
    /// Registers the metrics.
    #[must_use]
    pub(super) fn register(registry: &mut Registry, credentials: &CurrentCredentials) -> Self {
        let (expires, replace_by) = (Gauge::default(), Gauge::default());
        registry.register(
            "ringwatch_serving_certificate_expiration_timestamp_seconds",
            "When a certificate that this server shows to clients expires, in seconds since 1970; of several, the one that should be replaced first.",
            expires.clone(),
        );
        registry.register(
            "ringwatch_serving_certificate_replacement_timestamp_seconds",
            "When this certificate should have been replaced, in seconds since 1970: a week before it expires, or at the last tenth of its validity if that is later.",
            replace_by.clone(),
        );
        let metrics = Self {
            credentials: credentials.clone(),
            expires,
            replace_by,
        };
        metrics.refresh();
        metrics
    }

    /// Sets the metrics to what is served now, before a scrape.
    pub(super) fn refresh(&self) {
        let expiry = self.credentials.borrow().serving_expiry;
        self.expires.set(expiry.until_seconds);
        self.replace_by.set(expiry.replace_by_seconds);
    }
}

//! The metrics of the times at which the server's certificates expire, as `/metrics` shows them.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_tls::served_certificates::Expiry;

/// The expiry of the certificates that the server shows to clients.
#[derive(Debug)]
pub(crate) struct CertificateMetrics {
    credentials: CurrentCredentials,
    clock: Clock,
    expires: Gauge,
    replace_by: Gauge,
}

impl CertificateMetrics {
    /// Registers the metrics.
    #[must_use]
    pub(crate) fn register(
        registry: &mut Registry,
        credentials: &CurrentCredentials,
        clock: &Clock,
    ) -> Self {
        let (expires, replace_by) = (Gauge::default(), Gauge::default());
        registry.register(
            "ringwatch_serving_certificate_expiration_timestamp_seconds",
            "When a certificate that this server shows to clients expires, in seconds since 1970; of several, that of the most urgent: of those that should have been replaced the one that expires first, or else the one that should be replaced first.",
            expires.clone(),
        );
        registry.register(
            "ringwatch_serving_certificate_replacement_timestamp_seconds",
            "When this certificate should have been replaced, in seconds since 1970: a week before it expires, or at the last tenth of its validity if that is later.",
            replace_by.clone(),
        );
        let metrics = Self {
            credentials: credentials.clone(),
            clock: clock.clone(),
            expires,
            replace_by,
        };
        metrics.refresh();
        metrics
    }

    /// Sets the metrics to what is served now, before a scrape.
    pub(crate) fn refresh(&self) {
        let now = self.clock.wall().as_second();
        let expiry = Expiry::most_urgent(&self.credentials.borrow().serving_expiries, now);
        let never = i64::MAX;
        let replace_by = expiry.map_or(never, |it| it.replace_by_seconds);
        self.expires
            .set(expiry.map_or(never, |it| it.until_seconds));
        self.replace_by.set(replace_by);
    }
}

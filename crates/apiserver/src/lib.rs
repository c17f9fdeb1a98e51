//! Other names of `ringwatch-endpoints` and `ringwatch-filters`, until all crates name these.

pub use ringwatch_endpoints::{self as endpoints, current_credentials, health};
pub use ringwatch_endpoints::{AggregatedApi, LOG_TARGET, ServiceAddresses, ServiceReference};
#[cfg(feature = "testing")]
pub use ringwatch_filters::testing;
pub use ringwatch_filters::{self as filters, shutdown, threads};

/// The client of webhooks.
pub mod webhook_client {
    use std::sync::Arc;

    use ringwatch::clock::Clock;
    use ringwatch_endpoints::ServiceAddresses;
    use ringwatch_observe::webhook_calls::WebhookCalls;
    use ringwatch_webhook::{NetworkClient, WebhookClient};

    /// Creates the client by which a server calls webhooks.
    #[must_use]
    pub fn client(
        services: ServiceAddresses,
        calls: WebhookCalls,
        clock: Clock,
    ) -> Arc<dyn WebhookClient> {
        Arc::new(NetworkClient::new(Arc::new(services), calls, clock))
    }
}

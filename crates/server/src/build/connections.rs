//! The connections of a server or relay: their service and their limits, and the counts that the metrics show.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_filters::{Filters, service};
use ringwatch_http::unauthenticated::{ConnectionLimits, UnauthenticatedConnections};
use ringwatch_http::{Connections, handshake_errors, open_files};

use crate::config::flags::ServingFlags;
use crate::shutdown::Steps;

/// The limits and counts of connections.
pub(crate) struct ConnectionCounts {
    handshake_errors: Counter,
    unauthenticated: UnauthenticatedConnections,
}

impl ConnectionCounts {
    /// Builds the limits on unauthenticated connections, from the number of files that the process may open.
    pub(crate) fn register(registry: &mut Registry, clock: &Clock) -> Self {
        let handshake_errors = handshake_errors(registry);
        let limits = ConnectionLimits::for_files(open_files::for_connections());
        let unauthenticated = UnauthenticatedConnections::new(limits, clock);
        unauthenticated.register(registry);
        Self {
            handshake_errors,
            unauthenticated,
        }
    }

    /// Builds the connections whose requests these filters answer.
    pub(crate) fn connections(
        self,
        filters: &Arc<Filters>,
        credentials: &CurrentCredentials,
        ledger: Ledger,
        flags: &ServingFlags,
        steps: &Steps,
    ) -> Connections {
        Connections {
            service: service(Arc::clone(filters), credentials.clone()),
            request_timeout: filters.limits.request_timeout,
            streams_max: flags.http2_max_streams_per_connection,
            ledger,
            unauthenticated: self.unauthenticated,
            handshake_errors: self.handshake_errors,
            closing: steps.closing.clone(),
            end_of_watches: steps.end_of_watches.clone(),
            clock: filters.clock.clone(),
        }
    }
}

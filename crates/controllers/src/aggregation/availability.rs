//! Checks that the servers behind APIServices are available.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Request;
use ringwatch::clock::Clock;
use ringwatch_endpoints::ServiceAddresses;
use ringwatch_endpoints::{AggregatedServer, set_identity};
use ringwatch_http::client::probe;
use ringwatch_http::full;
use ringwatch_resources::Availability;
use rustls::ClientConfig;

use super::aggregator;

/// Maximum time for the server to answer, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of endpoints of a service that are tried at once.
const PLACES_MAX: usize = 5;

/// Asks the server for what it must have. Who it is does not matter yet: clients are told when they ask.
pub(super) async fn check(
    server: &AggregatedServer,
    services: &ServiceAddresses,
    anyone: &Arc<ClientConfig>,
    clock: &Clock,
) -> Availability {
    let service = &server.api.service;
    if let Some(lack) = services.lack(service).await {
        return lack;
    }
    let failed = |why| Availability::no("FailedDiscoveryCheck", why);
    let places = services.addresses(&service.namespace, &service.name, service.port);
    let places = match places.await {
        Ok(places) => places.into_iter().take(PLACES_MAX),
        Err(why) => return failed(why),
    };
    let attempts = places.map(|place| attempt(server, place, anyone, clock));
    let mut attempts: FuturesUnordered<_> = attempts.collect();
    let mut last = String::new();
    while let Some(tried) = attempts.next().await {
        match tried {
            Ok(()) => {
                return Availability {
                    status: "True",
                    reason: "Passed",
                    message: "all checks passed".to_owned(),
                };
            }
            Err(why) => last = why,
        }
    }
    failed(last)
}

async fn attempt(
    server: &AggregatedServer,
    place: (String, u16),
    anyone: &Arc<ClientConfig>,
    clock: &Clock,
) -> Result<(), String> {
    let (host, port) = place;
    let backend = server.backend(host, port, Arc::clone(anyone), clock);
    let path = server.api.path();
    let url = format!("https://{}{path}", backend.authority());
    let missing = |why: String| format!("failing or missing response from {url}: {why}");
    let mut request = Request::new(full(""));
    *request.uri_mut() = path.parse().map_err(|error| format!("{error}"))?;
    set_identity(request.headers_mut(), &aggregator());
    let answer = clock.timeout(TIMEOUT, probe(&backend, request)).await;
    let why = match answer {
        Ok(Ok(status)) if status.is_success() => return Ok(()),
        Ok(Ok(status)) => {
            return Err(missing(format!(
                "bad status from {url}: {}",
                status.as_u16()
            )));
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()
        }
    };
    Err(missing(format!("Get {url:?}: {why}")))
}

//! Connections for tests: all that a server is, but with an API that the test brings.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Method, Response};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_authentication::{
    Authenticator, ClientCertificates, ExtensionAuthentication, TokenFile,
};
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::current_credentials::{Credentials, CurrentCredentials};
use ringwatch_endpoints::{Handler, Impersonation, Metrics, OwnPaths};
use ringwatch_flowcontrol::UserWatches;
use ringwatch_http::tls::ServingTls;
use ringwatch_http::unauthenticated::{ConnectionLimits, UnauthenticatedConnections};
use ringwatch_http::{CancellationFlag, Connections, ResponseBody};
use ringwatch_observe::running_requests::RunningRequests;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_tls::certificates::{Certificates, Serving};
use ringwatch_tls::pem;
use ringwatch_tls::protocol::TlsProtocol;
use ringwatch_tls::served_certificates::ServedCertificates;
use ringwatch_tls::verifiers::Authorities;
use tokio::sync::watch;

use super::{Filters, InFlight, LargeWork, Limits, Outer, Start, service};

/// A server without paths of its own.
struct Nothing;

#[async_trait]
impl OwnPaths for Nothing {
    async fn answer(
        &self,
        _: &Method,
        _: &str,
        _: &str,
        _: &HeaderMap,
    ) -> Option<Response<ResponseBody>> {
        None
    }
}

/// Generates certificates for `localhost`.
pub fn certificates() -> Certificates {
    let folder = tempfile::tempdir().expect("a directory");
    let subjects = ["localhost".to_owned()];
    let now = Clock::real().wall();
    let serving = Serving {
        directory: folder.path(),
        subjects: &subjects,
    };
    Certificates::load_or_generate(folder.path(), Some(serving), now).expect("certificates")
}

/// Returns the credentials of a server with these certificates.
pub fn credentials(certificates: &Certificates) -> CurrentCredentials {
    let mut roots = Authorities::default();
    for authority in pem::certificates(&certificates.authority).expect("an authority") {
        roots.add(authority).expect("an authority");
    }
    let clients = ClientCertificates::new(roots).expect("authorities");
    let server = certificates.server.as_ref().expect("a certificate");
    let served = ServedCertificates::new(server).expect("a certificate");
    let credentials = Credentials {
        tls: ServingTls::new(&served, &TlsProtocol::default(), clients.authorities()).expect("TLS"),
        clients,
        authority: certificates.authority.clone(),
        admin: certificates.admin.clone(),
        extension: ExtensionAuthentication::default(),
        serving_expiries: served.expiries(),
    };
    watch::channel(Arc::new(credentials)).1
}

/// Makes connections that authenticate the token `secret` and client certificates.
pub fn connections(
    api: Arc<dyn Handler>,
    ledger: &Ledger,
    certificates: &Certificates,
) -> Connections {
    let request_timeout = Duration::from_secs(60);
    let end_of_watches = CancellationFlag::default();
    let filters = Filters {
        outer: Outer::default(),
        start: Start::default(),
        tracer: None,
        auditor: None,
        impersonation: Impersonation::new(
            Authorizer::always_allow(),
            Clock::real(),
            &mut Registry::default(),
        )
        .into(),
        authorizer: Authorizer::always_allow(),
        authenticator: Authenticator::new(TokenFile::parse("secret,ann,1").expect("tokens")).into(),
        limits: Limits {
            running: RunningRequests::default(),
            in_flight: InFlight::new(0, 0, request_timeout),
            fairness: None,
            sizes: ObjectCounts::default(),
            watches: UserWatches::new(0),
            large_work: LargeWork::on_current_runtime(),
            request_timeout,
            metrics: Metrics::new(),
        },
        end_of_watches: end_of_watches.clone(),
        own: Arc::new(Nothing),
        api,
        clock: Clock::real(),
    };
    Connections {
        service: service(Arc::new(filters), credentials(certificates)),
        request_timeout,
        streams_max: 0,
        ledger: ledger.clone(),
        unauthenticated: UnauthenticatedConnections::new(
            ConnectionLimits::for_files(usize::MAX),
            &Clock::real(),
        ),
        handshake_errors: Counter::default(),
        closing: CancellationFlag::default(),
        end_of_watches,
        clock: Clock::real(),
    }
}

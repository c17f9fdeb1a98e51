//! A small server for tests: it knows one token and the certificates of one authority.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use prometheus_client::metrics::counter::Counter;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_tls::certificates::{Certificates, Serving};
use ringwatch_tls::client_verifier::ClientVerifier;
use ringwatch_tls::pem;
use ringwatch_tls::protocol::TlsProtocol;
use ringwatch_tls::served_certificates::ServedCertificates;
use ringwatch_tls::verifiers::Authorities;
use rustls::pki_types::UnixTime;

use super::body::{Body, RequestBody, ResponseBody, full};
use super::cancellation::CancellationFlag;
use super::connection::Connections;
use super::service::{Peer, Service};
use super::tls::{ServingTls, TlsConfigs};
use super::unauthenticated::{ConnectionLimits, Judgement, UnauthenticatedConnections};

/// Answers the requests of users.
#[async_trait]
pub(crate) trait Handler: Send + Sync + 'static {
    async fn handle(&self, request: Request<RequestBody>, user: &str) -> Response<ResponseBody>;
}

/// Authenticates the token `secret` and client certificates.
struct Authenticating {
    handler: Arc<dyn Handler>,
    clients: ClientVerifier,
    end_of_watches: CancellationFlag,
}

impl Authenticating {
    fn vouches_for(&self, peer: &Peer) -> bool {
        let chain = peer.certificates.split_first();
        let verified =
            chain.map(|(leaf, others)| self.clients.verify(leaf, others, UnixTime::now()));
        verified.is_some_and(|it| it.is_ok())
    }
}

#[async_trait]
impl Service for Authenticating {
    async fn answer(&self, request: Request<RequestBody>, peer: &Peer) -> Response<Body> {
        let token = request.headers().get(AUTHORIZATION);
        let user = match token {
            Some(token) => (token == "Bearer secret").then_some("ann"),
            None => self.vouches_for(peer).then_some("admin"),
        };
        let Some(user) = user else {
            peer.judge(Judgement::Refused);
            let mut refusal = Response::new(full("Unauthorized\n").into());
            *refusal.status_mut() = StatusCode::UNAUTHORIZED;
            return refusal;
        };
        peer.judge(Judgement::Authenticated);
        let is_watch = request.uri().query() == Some("watch=1");
        let response = self.handler.handle(request, user).await;
        response.map(|body| match is_watch {
            true => Body::until(body, &self.end_of_watches, None),
            false => body.into(),
        })
    }
}

/// Generates certificates for `localhost`.
pub(crate) fn certificates() -> Certificates {
    let folder = tempfile::tempdir().expect("a directory");
    let serving = Serving {
        directory: folder.path(),
        subjects: &["localhost".to_owned()],
    };
    let now = Clock::real().wall();
    Certificates::load_or_generate(folder.path(), Some(serving), now).expect("certificates")
}

fn verifier(certificates: &Certificates) -> ClientVerifier {
    let mut roots = Authorities::default();
    for authority in pem::certificates(&certificates.authority).expect("an authority") {
        roots.add(authority).expect("an authority");
    }
    ClientVerifier::trusting(roots).expect("authorities")
}

/// Returns the configuration of TLS of a server with these certificates.
pub(crate) fn tls(certificates: &Certificates) -> TlsConfigs {
    let server = certificates.server.as_ref().expect("a certificate");
    let served = ServedCertificates::new(server).expect("a certificate");
    let names = verifier(certificates).names().to_vec();
    let tls = ServingTls::new(&served, &TlsProtocol::default(), names).expect("TLS");
    Arc::new(move |tcp| tls.config(tcp))
}

/// Makes connections whose requests the handler answers.
pub(crate) fn connections(
    handler: Arc<dyn Handler>,
    ledger: &Ledger,
    certificates: &Certificates,
) -> Connections {
    let end_of_watches = CancellationFlag::default();
    let service = Arc::new(Authenticating {
        handler,
        clients: verifier(certificates),
        end_of_watches: end_of_watches.clone(),
    });
    let clock = Clock::real();
    let limits = ConnectionLimits::for_files(usize::MAX);
    Connections {
        service: Arc::new(move |peer| {
            if service.vouches_for(peer) {
                peer.judge(Judgement::Authenticated);
            }
            Arc::clone(&service) as _
        }),
        request_timeout: Duration::from_secs(60),
        streams_max: 0,
        ledger: ledger.clone(),
        unauthenticated: UnauthenticatedConnections::new(limits, &clock),
        handshake_errors: Counter::default(),
        closing: CancellationFlag::default(),
        end_of_watches,
        clock,
    }
}

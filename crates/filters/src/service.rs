//! The filters as the service of connections: each knows its client's certificate.

use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response};
use ringwatch_authentication::is_anonymous;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_http::{Body, Judgement, NewService, Peer, RequestBody, Service};

use super::client_certificate::ClientCertificate;
use super::{Authentication, ClientSide, Filters};

/// The filters, and the certificate of a connection's client.
struct ClientService {
    filters: Arc<Filters>,
    /// `None` if the client has presented none.
    certificate: Option<ClientCertificate>,
}

/// Returns what makes the service of each connection. A client whose certificate the newest credentials accept is
/// authenticated before its first request.
#[must_use]
pub fn service(filters: Arc<Filters>, credentials: CurrentCredentials) -> NewService {
    Arc::new(move |client| {
        let now = filters.clock.wall();
        let chain = &client.certificates;
        let certificate =
            (!chain.is_empty()).then(|| ClientCertificate::new(chain, &credentials, now));
        if let Some(peer) = certificate.as_ref().map(|it| it.peer(chain, now))
            && (peer.user.is_some() || peer.is_front_proxy_at(now))
        {
            client.judge(Judgement::Authenticated);
        }
        Arc::new(ClientService {
            filters: Arc::clone(&filters),
            certificate,
        })
    })
}

#[async_trait]
impl Service for ClientService {
    async fn answer(&self, request: Request<RequestBody>, client: &Peer) -> Response<Body> {
        let chain = &client.certificates;
        let now = self.filters.clock.wall();
        let peer = self.certificate.as_ref().map(|it| it.peer(chain, now));
        let side = ClientSide {
            address: client.address,
            shows_certificate: !chain.is_empty(),
            peer: &peer.unwrap_or_default(),
        };
        let judge = |outcome: Authentication<'_>| {
            client.judge(match outcome {
                Authentication::User(user) if !is_anonymous(user) => Judgement::Authenticated,
                Authentication::User(_) | Authentication::Refused => Judgement::Refused,
                Authentication::Skipped => Judgement::Skipped,
            });
        };
        self.filters.answer(request, side, &judge).await
    }
}

//! The certificate of a connection's client, verified at each request by the newest authorities.
//!
//! As in kube-apiserver a certificate is verified at each request, so that a connection does not outlive the trust in
//! an authority. The result is cached until the credentials change.

use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use ringwatch_authentication::Peer;
use ringwatch_endpoints::current_credentials::{Credentials, CurrentCredentials};
use rustls::pki_types::CertificateDer;

/// The identity that a chain of certificates proves.
#[derive(Debug)]
pub(super) struct ClientCertificate {
    credentials: CurrentCredentials,
    judged: ArcSwap<Verification>,
}

#[derive(Debug)]
struct Verification {
    by: Arc<Credentials>,
    peer: Arc<Peer>,
}

impl ClientCertificate {
    /// Verifies the chain that a client has shown, the leaf first.
    pub(super) fn new(
        chain: &[CertificateDer<'_>],
        credentials: &CurrentCredentials,
        now: Timestamp,
    ) -> Self {
        let by = Arc::clone(&credentials.borrow());
        let peer = Arc::new(by.clients.identify(chain, now));
        Self {
            credentials: credentials.clone(),
            judged: ArcSwap::from_pointee(Verification { by, peer }),
        }
    }

    /// Returns the identity that the same chain proves by the newest credentials.
    pub(super) fn peer(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Arc<Peer> {
        let newest = Arc::clone(&self.credentials.borrow());
        let judged = self.judged.load();
        if Arc::ptr_eq(&judged.by, &newest) {
            return Arc::clone(&judged.peer);
        }
        let peer = Arc::new(newest.clients.identify(chain, now));
        // Concurrent streams compute the same result; if not, the next request verifies again.
        self.judged.store(Arc::new(Verification {
            by: newest,
            peer: Arc::clone(&peer),
        }));
        peer
    }
}

//! Verifiers of clients' certificates: of any in the handshake, and of those that an authority vouches for.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::chain::{self, ChainError, Purpose, Rules};
use super::handshake_signature;
use super::verifiers::Authorities;

/// Maximum number of characters of a subject in the log.
const SUBJECT_CHARACTERS_MAX: usize = 256;

/// The reason why a client's certificate is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RefusedCertificate(String);

/// Verifies the certificates that clients have shown.
#[derive(Debug)]
pub struct ClientVerifier {
    webpki: Arc<dyn ClientCertVerifier>,
    authorities: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientVerifier {
    /// Creates a verifier that accepts certificates of these authorities.
    ///
    /// # Errors
    /// Fails when no certificate is trusted.
    pub fn trusting(authorities: Authorities) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let (roots, authorities) = authorities.into_parts();
        let webpki = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let webpki = webpki
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self {
            webpki,
            authorities,
            algorithms,
        })
    }

    /// Returns the names of the authorities.
    #[must_use]
    pub fn names(&self) -> &[DistinguishedName] {
        self.webpki.root_hint_subjects()
    }

    /// Verifies that an authority vouches for a client's certificate.
    ///
    /// # Errors
    /// The certificate is refused.
    pub fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), RefusedCertificate> {
        let verified = self.webpki.verify_client_cert(leaf, intermediates, now);
        let Err(error) = verified else { return Ok(()) };
        let rules = Rules {
            authorities: &self.authorities,
            algorithms: self.algorithms,
            purpose: Purpose::Client,
            now,
        };
        chain::verify(leaf, intermediates, rules).map_err(|why| match why {
            ChainError::Constrained => RefusedCertificate(error.to_string()),
            why => RefusedCertificate(why.to_string()),
        })
    }
}

/// Returns the subject of a certificate for the log.
#[must_use]
pub fn subject(certificate: &CertificateDer<'_>) -> String {
    match X509Certificate::from_der(certificate) {
        Ok((_, certificate)) => {
            let subject = certificate.subject().to_string();
            subject.chars().take(SUBJECT_CHARACTERS_MAX).collect()
        }
        Err(_) => "unreadable".to_owned(),
    }
}

/// Requests a certificate from clients and accepts any whose key the client holds; a client may have none.
/// Authentication verifies the certificate at every request.
#[derive(Debug)]
pub struct AnyClient {
    algorithms: WebPkiSupportedAlgorithms,
    /// The names of the authorities from which clients choose their certificate.
    authorities: Vec<DistinguishedName>,
}

impl AnyClient {
    /// Creates a verifier. `authorities` are the names by which clients choose their certificate.
    #[must_use]
    pub fn new(authorities: Vec<DistinguishedName>) -> Self {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        Self {
            algorithms: provider.signature_verification_algorithms,
            authorities,
        }
    }
}

/// Logs a refused client, whose connection ends without an answer that says why.
fn log_refused(certificate: &CertificateDer<'_>, error: &Error) {
    let subject = subject(certificate);
    tracing::warn!(%error, subject, "a client does not prove that it holds the key of its certificate");
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        handshake_signature::verify_tls12(message, certificate, signature, &self.algorithms)
            .inspect_err(|error| log_refused(certificate, error))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        handshake_signature::verify_tls13(message, certificate, signature, &self.algorithms)
            .inspect_err(|error| log_refused(certificate, error))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

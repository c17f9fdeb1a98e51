//! The server's side of TLS: its certificate, and which client certificates it asks for.

use std::sync::Arc;

use ringwatch_authentication::ClientCertificates;
use ringwatch_tls::certificates::Identity;
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem::certificates;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};

/// The protocols that are offered, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A configuration with this certificate; `source` names it in errors. TLS 1.2 or 1.3.
///
/// # Errors
/// The certificate or its key cannot be used.
pub fn server_config(
    identity: &Identity,
    source: &str,
    clients: &ClientCertificates,
) -> Result<ServerConfig, StartError> {
    let wrong = |why: String| {
        StartError::new(
            format!("use the server's certificate {source}"),
            why,
            "give a certificate and its key in PEM",
        )
    };
    let chain = certificates(&identity.certificate).map_err(&wrong)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
        .map_err(|error| wrong(format!("the key cannot be read: {error}")))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Arc::new(AnyCertificate {
        verifier: clients.verifier(),
        authorities: clients.authorities(),
    });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| wrong(error.to_string()))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

/// Asks for a client certificate and takes any whose key the client holds. Whether it is good is
/// judged when it is used, see [`super::authentication`].
#[derive(Debug)]
struct AnyCertificate {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The names of the authorities of client certificates.
    authorities: Vec<DistinguishedName>,
}

impl ClientCertVerifier for AnyCertificate {
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
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

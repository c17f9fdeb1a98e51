//! The serving side of TLS: the certificate, and the client certificates that it asks for.

use std::sync::Arc;

use ringwatch_authentication::ClientCertificates;
use ringwatch_tls::certificates::Identity;
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem::certificates;
use ringwatch_tls::verifiers::AnyClient;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

/// The protocols that are offered, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Makes a configuration of TLS 1.2 and 1.3 with this certificate; `source` names it in errors.
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
    let verifier = Arc::new(AnyClient::new(clients.verifier(), clients.authorities()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| wrong(error.to_string()))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

//! The client's side of TLS. Sessions are not resumed, so that every connection costs the same.

use std::sync::Arc;

use ringwatch_tls::verifiers::ServerVerifier;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::super::target::{Credentials, TargetError};
use super::HttpVersion;

/// A configuration that shows and checks what the credentials say, and offers one protocol.
pub(super) fn config(
    credentials: &Credentials,
    http: HttpVersion,
) -> Result<Arc<ClientConfig>, TargetError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable("TLS"))?;
    let builder = if credentials.trusts_anybody {
        let anybody = Arc::new(ServerVerifier::any(&provider));
        builder
            .dangerous()
            .with_custom_certificate_verifier(anybody)
    } else {
        builder.with_root_certificates(roots(credentials)?)
    };
    let mut config = match &credentials.certificate {
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>();
            let chain = chain.map_err(unusable("the client certificate"))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(unusable("the client key"))?;
            let built = builder.with_client_auth_cert(chain, key);
            built.map_err(unusable("the client certificate"))?
        }
        None => builder.with_no_client_auth(),
    };
    let protocol: &[u8] = match http {
        HttpVersion::One => b"http/1.1",
        HttpVersion::Two => b"h2",
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn roots(credentials: &Credentials) -> Result<RootCertStore, TargetError> {
    match &credentials.authorities {
        Some(pem) => named_roots(pem),
        None => system_roots(),
    }
}

/// The authorities that this machine trusts. Some of them may be too old for anybody to read.
fn system_roots() -> Result<RootCertStore, TargetError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})"));
        return Err(TargetError::NoAuthority {
            why: why.unwrap_or_default(),
        });
    }
    Ok(roots)
}

fn named_roots(pem: &[u8]) -> Result<RootCertStore, TargetError> {
    const WHAT: &str = "the certificate authority";
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(unusable(WHAT))?;
        roots.add(certificate).map_err(unusable(WHAT))?;
    }
    if roots.is_empty() {
        return Err(unusable(WHAT)("there is no certificate in it"));
    }
    Ok(roots)
}

fn unusable<E: ToString>(what: &'static str) -> impl FnOnce(E) -> TargetError {
    move |error| TargetError::Credentials {
        what,
        why: error.to_string(),
    }
}

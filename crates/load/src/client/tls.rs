//! The client's side of TLS. Sessions are not resumed, so that every connection costs the same.

use std::sync::Arc;

use ringwatch_tls::client_identity::ClientIdentity;
use ringwatch_tls::pem;
use ringwatch_tls::tls_client::{self, Trust};
use ringwatch_tls::verifiers::Authorities;
use rustls::ClientConfig;
use rustls::client::Resumption;

use super::HttpVersion;
use crate::target::{Credentials, TargetError};

/// Returns a configuration that shows and checks what the credentials say, and offers one protocol.
///
/// # Errors
/// [`TargetError::Credentials`]: a certificate or key is none. [`TargetError::NoAuthority`]: the machine trusts
/// nobody, and the credentials name no authority.
pub(super) fn config(
    credentials: &Credentials,
    http: HttpVersion,
) -> Result<Arc<ClientConfig>, TargetError> {
    let identity = credentials.certificate.as_ref().map(|(certificate, key)| {
        let read = ClientIdentity::read(&String::from_utf8_lossy(certificate), key);
        read.map_err(unusable("the client certificate"))
    });
    let config = tls_client::config(trust(credentials)?, identity.transpose()?.as_ref());
    let mut config = Arc::unwrap_or_clone(config.map_err(unusable("TLS"))?);
    let protocol: &[u8] = match http {
        HttpVersion::One => b"http/1.1",
        HttpVersion::Two => b"h2",
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn trust(credentials: &Credentials) -> Result<Trust, TargetError> {
    if credentials.trusts_anybody {
        return Ok(Trust::Anyone);
    }
    match &credentials.authorities {
        Some(pem) => named_authorities(pem).map(Trust::Authorities),
        None => match Trust::system() {
            Trust::Authorities(none) if none.is_empty() => Err(TargetError::NoAuthority),
            system => Ok(system),
        },
    }
}

fn named_authorities(pem: &[u8]) -> Result<Authorities, TargetError> {
    const WHAT: &str = "the certificate authority";
    let mut authorities = Authorities::default();
    let certificates = pem::certificates(&String::from_utf8_lossy(pem));
    for certificate in certificates.map_err(unusable(WHAT))? {
        authorities.add(certificate).map_err(unusable(WHAT))?;
    }
    Ok(authorities)
}

fn unusable<E: ToString>(what: &'static str) -> impl FnOnce(E) -> TargetError {
    move |error| TargetError::Credentials {
        what,
        why: error.to_string(),
    }
}

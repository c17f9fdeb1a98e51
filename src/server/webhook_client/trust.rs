//! Whom webhooks must prove to be.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};

/// How TLS is spoken with webhooks.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// With those that the machine's authorities vouch for; read when the first of them is asked.
    system: OnceLock<Arc<ClientConfig>>,
}

impl Trust {
    /// How TLS is spoken with a webhook that this bundle vouches for, or the machine's authorities.
    pub(super) fn config(&self, bundle: Option<&[u8]>) -> Result<Arc<ClientConfig>, String> {
        let Some(bundle) = bundle else {
            if let Some(config) = self.system.get() {
                return Ok(Arc::clone(config));
            }
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let config = with_roots(roots)?;
            return Ok(Arc::clone(self.system.get_or_init(|| config)));
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
            let added = roots.add(certificate);
            added.map_err(|error| format!("caBundle: {error}"))?;
        }
        if roots.is_empty() {
            return Err(
                "unable to load root certificates: unable to parse bytes as PEM block".to_owned(),
            );
        }
        with_roots(roots)
    }
}

fn with_roots(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

/// A failed handshake in Go's words, as far as it is about certificates.
pub(super) fn words(error: &io::Error, name: &str) -> String {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner else {
        return format!("tls: {error}");
    };
    let why = match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("certificate is not valid for {name}")
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

//! The client's side of TLS: the servers that are trusted, and the certificate that is presented.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::client_identity::ClientIdentity;
use super::error::StartError;
use super::pem;
use super::verifiers::{Authorities, ServerVerifier};

/// The servers that are trusted.
#[derive(Debug)]
pub enum Trust {
    /// Any server is trusted, whatever certificate it presents.
    Anyone,
    /// Servers with a certificate that one of these authorities has signed.
    Authorities(Authorities),
}

impl Trust {
    /// Returns the authorities of the operating system.
    #[must_use]
    pub fn system() -> Self {
        let mut authorities = Authorities::default();
        for certificate in rustls_native_certs::load_native_certs().certs {
            // Some of the system's certificates may be malformed.
            drop(authorities.add(certificate));
        }
        Self::Authorities(authorities)
    }

    /// Trusts the servers that an authority in a `caBundle` vouches for.
    ///
    /// # Errors
    /// A line that says why, in Go's words, if none of it can be used.
    pub fn bundle(pem: &[u8]) -> Result<Self, String> {
        let mut authorities = Authorities::default();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
            let added = authorities.add(certificate);
            added.map_err(|error| format!("caBundle: {error}"))?;
        }
        if authorities.is_empty() {
            return Err(
                "unable to load root certificates: unable to parse bytes as PEM block".to_owned(),
            );
        }
        Ok(Self::Authorities(authorities))
    }

    /// Trusts the servers that an authority in a file vouches for; `flag` is the flag that names it.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn file(path: &Path, flag: &str) -> Result<Self, StartError> {
        let mut authorities = Authorities::default();
        for certificate in certificates(path, flag)? {
            let added = authorities.add(certificate);
            added.map_err(|error| unusable(path, flag, error.to_string()))?;
        }
        Ok(Self::Authorities(authorities))
    }
}

fn certificates(path: &Path, flag: &str) -> Result<Vec<CertificateDer<'static>>, StartError> {
    pem::certificates(&pem::read(path, flag)?).map_err(|why| unusable(path, flag, why))
}

fn unusable(path: &Path, flag: &str, why: String) -> StartError {
    let advice = format!("give {flag} a file of certificates in PEM");
    StartError::new(format!("use {}", path.display()), why, advice)
}

/// Creates the client's configuration of TLS, with these trusted servers and this identity.
///
/// # Errors
/// Fails when the TLS library cannot use the trusted certificates or the identity.
pub fn config(
    trust: Trust,
    identity: Option<&ClientIdentity>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match trust {
        Trust::Authorities(authorities) if authorities.is_empty() => {
            builder.with_root_certificates(RootCertStore::empty())
        }
        Trust::Authorities(authorities) => {
            let trusted = ServerVerifier::trusting(authorities, provider)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(trusted))
        }
        Trust::Anyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ServerVerifier::any(&provider))),
    };
    let Some(identity) = identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let mut config = builder.with_client_cert_resolver(identity.resolver());
    // A resumed session has the client certificate of the first one, which may have been replaced.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The client's side of TLS for servers with a `caBundle`, or else with a certificate of the system's authorities.
#[derive(Debug, Default)]
pub struct BundleTls {
    /// The certificate that this server presents.
    pub identity: Option<ClientIdentity>,
    /// The configuration with the system's authorities, made when it is first needed.
    pub system: OnceLock<Arc<ClientConfig>>,
}

impl BundleTls {
    /// Returns the client's side of TLS for one server: by its bundle, or else by the machine's authorities.
    ///
    /// # Errors
    /// A line that says why, in Go's words, if the bundle cannot be used.
    pub fn config(&self, bundle: Option<&[u8]>) -> Result<Arc<ClientConfig>, String> {
        let made = |trust| {
            let made = config(trust, self.identity.as_ref());
            made.map_err(|error| error.to_string())
        };
        match (bundle, self.system.get()) {
            (Some(bundle), _) => made(Trust::bundle(bundle)?),
            (None, Some(known)) => Ok(Arc::clone(known)),
            (None, None) => {
                let config = made(Trust::system())?;
                Ok(Arc::clone(self.system.get_or_init(|| config)))
            }
        }
    }
}

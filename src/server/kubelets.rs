//! What the flags say about kubelets: whom they must prove to be, and who this server says it is.

use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

use super::error::StartError;
use super::flags::KubeletFlags;
use super::tls;
use crate::any_server::AnyServer;
use crate::endpoints::{KubeletTls, Kubelets};

/// Reads what the flags name. Without an authority kubelets need not prove anything, as in
/// kube-apiserver.
///
/// # Errors
/// A file cannot be read or understood.
pub fn load(flags: &KubeletFlags) -> Result<Kubelets, StartError> {
    let unverified = Arc::new(with_identity(client_config(None)?, flags)?);
    // What is proxied is anybody's; who this server is, is for kubelets alone.
    let proxied = Arc::new(client_config(None)?.with_no_client_auth());
    let trusted = match &flags.kubelet_certificate_authority {
        None => Arc::clone(&unverified),
        Some(path) => {
            let flag = "--kubelet-certificate-authority";
            let wrong = |why: String| {
                let advice = format!("give {flag} a file of certificates in PEM");
                StartError::new(format!("use {}", path.display()), why, advice)
            };
            let mut roots = RootCertStore::empty();
            for certificate in tls::certificates(&tls::read(path, flag)?).map_err(wrong)? {
                let added = roots.add(certificate);
                added.map_err(|error| wrong(error.to_string()))?;
            }
            Arc::new(with_identity(client_config(Some(roots))?, flags)?)
        }
    };
    Ok(Kubelets {
        tls: KubeletTls {
            trusted,
            unverified,
            proxied,
        },
        address_types: flags.kubelet_preferred_address_types.clone(),
        connect_timeout: flags.kubelet_timeout,
    })
}

fn client_config(
    roots: Option<RootCertStore>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, StartError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder: ConfigBuilder<ClientConfig, WantsVerifier> = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| StartError::new("speak TLS with kubelets", error, "report this"))?;
    Ok(match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer::new(provider))),
    })
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    flags: &KubeletFlags,
) -> Result<ClientConfig, StartError> {
    let certificate = flags.kubelet_client_certificate.as_ref();
    let Some((certificate, key)) = certificate.zip(flags.kubelet_client_key.as_ref()) else {
        return Ok(builder.with_no_client_auth());
    };
    let wrong = |why: String| {
        StartError::new(
            format!("use the client certificate {}", certificate.display()),
            why,
            "give a certificate and its key in PEM",
        )
    };
    let chain = tls::read(certificate, "--kubelet-client-certificate")?;
    let chain = tls::certificates(&chain).map_err(wrong)?;
    let key = tls::read(key, "--kubelet-client-key")?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| wrong(format!("the key cannot be read: {error}")))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| wrong(error.to_string()))
}

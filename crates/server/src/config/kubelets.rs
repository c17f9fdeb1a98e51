//! The flags of connections to kubelets: their certificate authority, and the server's own identity.

use std::sync::Arc;

use ringwatch_endpoints::{KubeletTls, Kubelets};
use ringwatch_tls::client_identity::{ClientIdentity, IdentityFiles};
use ringwatch_tls::error::StartError;
use ringwatch_tls::tls_client::{Trust, config};

use super::flags::KubeletFlags;

/// Reads the files that the flags name, and returns the connection settings with the files of the identity, which may
/// change. Without an authority the certificates of kubelets are not verified, as in kube-apiserver.
///
/// # Errors
/// A file cannot be read or understood.
pub(crate) fn load(flags: &KubeletFlags) -> Result<(Kubelets, Option<IdentityFiles>), StartError> {
    let files = identity(flags)?;
    let identity = files.as_ref().map(IdentityFiles::identity);
    let made = |trust, identity: Option<&ClientIdentity>| {
        let failed = |error| StartError::new("speak TLS with kubelets", error, "report this");
        config(trust, identity).map_err(failed)
    };
    let unverified = made(Trust::Anyone, identity.as_ref())?;
    let trusted = match &flags.kubelet_certificate_authority {
        None => Arc::clone(&unverified),
        Some(path) => {
            let trust = Trust::file(path, "--kubelet-certificate-authority")?;
            made(trust, identity.as_ref())?
        }
    };
    let kubelets = Kubelets {
        tls: KubeletTls {
            trusted,
            unverified,
            // Proxied pods and services may be anybody's; the server shows its identity to kubelets only.
            proxied: made(Trust::Anyone, None)?,
        },
        address_types: flags.kubelet_preferred_address_types.clone(),
        default_port: flags.kubelet_port,
        connect_timeout: flags.kubelet_timeout,
        bytes_per_second: flags.bytes_per_second(),
    };
    Ok((kubelets, files))
}

fn identity(flags: &KubeletFlags) -> Result<Option<IdentityFiles>, StartError> {
    let certificate = flags.kubelet_client_certificate.as_deref();
    let key = flags.kubelet_client_key.as_deref();
    IdentityFiles::load_named(
        (certificate, "--kubelet-client-certificate"),
        (key, "--kubelet-client-key"),
    )
}

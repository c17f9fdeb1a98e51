//! Certificates in PEM, and the files in which flags name them.

use std::fs;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::error::StartError;

/// A file that a flag names.
#[derive(Clone, Copy, Debug)]
pub struct FlagFile<'a> {
    /// The path of the file.
    pub path: &'a Path,
    /// The flag, such as `--tls-cert-file`, for errors.
    pub flag: &'a str,
}

/// Reads a file that a flag names.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path, flag: &str) -> Result<String, StartError> {
    fs::read_to_string(path).map_err(|error| {
        StartError::new(
            format!("read {}", path.display()),
            error,
            format!("give {flag} a file that can be read"),
        )
    })
}

/// Parses the certificates in a text.
///
/// # Errors
/// There is none, or one cannot be read.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate cannot be read: {error}"))?;
    if certificates.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(certificates)
}

//! Credentials: the user as whom requests are made, and the authorities that are trusted.

use std::fmt;
use std::fs;
use std::path::Path;

use super::{RemoteFlags, TargetError};

/// The credentials of a client, and the authority that it checks. All of it in PEM.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) token: Option<String>,
    /// A client certificate and its key.
    pub(crate) certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// The authorities of the server's certificate; if there are none, those that this machine trusts.
    pub(crate) authorities: Option<Vec<u8>>,
    /// True if the server's certificate is not checked at all.
    pub(crate) trusts_anybody: bool,
}

/// Says which credentials there are and keeps them secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("token", &self.token.is_some())
            .field("certificate", &self.certificate.is_some())
            .field("authorities", &self.authorities.is_some())
            .field("trusts_anybody", &self.trusts_anybody)
            .finish()
    }
}

impl Credentials {
    /// Lets what the command line says win.
    pub(super) fn overrule(&mut self, flags: &RemoteFlags) -> Result<(), TargetError> {
        if let Some(token) = &flags.token {
            self.token = Some(token.clone());
            self.certificate = None;
        }
        if let Some(path) = &flags.certificate_authority {
            self.authorities = Some(read(path)?);
            self.trusts_anybody = false;
        }
        if flags.insecure_skip_tls_verify {
            self.trusts_anybody = true;
        }
        Ok(())
    }
}

/// Reads a file's content.
fn read(path: &Path) -> Result<Vec<u8>, TargetError> {
    fs::read(path).map_err(|error| TargetError::Read {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

//! The files `NAME.crt` and `NAME.key` of a directory, and who made them.
//!
//! Files of others are never written over. A certificate tells: it is this program's if
//! [`AUTHORITY_NAME`] has signed it for the subject that this program gives to files of its name, and if it is alone in
//! its file. A key does not tell, so it is never written over: a new certificate is made for the key that is there. A
//! certificate is written before its key, so that what a crash leaves is the half that tells. An authority's key comes
//! first: without the key, which may have been lost, its certificate is refused, and a key alone gets a certificate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{DistinguishedName, DnType};
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

use super::error::StartError;
use super::private_file::{Access, create, replace};

/// The common name of the authority that this program makes.
pub(crate) const AUTHORITY_NAME: &str = "ringwatch-ca";

/// The line with which PEM begins.
const BEGIN: &str = "-----BEGIN";

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate; intermediates may follow it.
    pub certificate: String,
    /// The private key of the certificate.
    pub key: String,
}

/// Keeps the key out of logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A subject of certificates that this program makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CertificateSubject {
    pub(crate) common_name: &'static str,
    pub(crate) organisation: Option<&'static str>,
}

impl CertificateSubject {
    /// Returns the name for a certificate.
    pub(crate) fn name(self) -> DistinguishedName {
        let mut name = DistinguishedName::new();
        if let Some(organisation) = self.organisation {
            name.push(DnType::OrganizationName, organisation);
        }
        name.push(DnType::CommonName, self.common_name);
        name
    }

    /// Returns true if a certificate has this name, and nothing else in it.
    fn is(self, name: &X509Name<'_>) -> bool {
        let text = |it: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            it.as_str().map(str::to_owned).unwrap_or_default()
        };
        let common: Vec<String> = name.iter_common_name().map(text).collect();
        let organisations: Vec<String> = name.iter_organization().map(text).collect();
        common == [self.common_name]
            && organisations.iter().eq(self.organisation.iter())
            && name.iter_attributes().count() == common.len() + organisations.len()
    }
}

/// The content of the two files.
#[derive(Debug)]
pub(crate) enum StoredPair {
    /// No file, or a certificate of this program without a key.
    Missing,
    /// A certificate that this program made, and a key.
    Made(Identity),
    /// A certificate of others, and a key.
    Foreign,
}

/// The files of a certificate and its key.
#[derive(Debug)]
pub(crate) struct PairFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    subject: CertificateSubject,
}

impl PairFiles {
    /// Names the files of a directory for certificates of a subject.
    pub(crate) fn new(directory: &Path, name: &str, subject: CertificateSubject) -> Self {
        Self {
            certificate: directory.join(format!("{name}.crt")),
            key: directory.join(format!("{name}.key")),
            subject,
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read, or one of others is without the other.
    pub(crate) fn read(&self) -> Result<StoredPair, String> {
        let half = |path: &Path| {
            let path = path.display();
            format!("error reading {path}, certificate and key must be supplied as a pair")
        };
        match (content(&self.certificate)?, content(&self.key)?) {
            (None, None) => Ok(StoredPair::Missing),
            (None, Some(_)) => Err(half(&self.certificate)),
            (Some(certificate), None) if self.is_made(&certificate) => Ok(StoredPair::Missing),
            (Some(_), None) => Err(half(&self.key)),
            (Some(certificate), Some(key)) if self.is_made(&certificate) => {
                Ok(StoredPair::Made(Identity { certificate, key }))
            }
            (Some(_), Some(_)) => Ok(StoredPair::Foreign),
        }
    }

    /// Returns the key if there is no certificate with it.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn key_alone(&self) -> Result<Option<String>, String> {
        match content(&self.certificate)? {
            None => content(&self.key),
            Some(_) => Ok(None),
        }
    }

    /// Returns true if the certificate is there and is this program's, or cannot be read.
    pub(crate) fn may_be_made(&self) -> bool {
        match content(&self.certificate) {
            Ok(there) => there.is_some_and(|certificate| self.is_made(&certificate)),
            Err(_) => true,
        }
    }

    /// Writes a certificate, and the key unless it is there.
    ///
    /// # Errors
    /// A file cannot be written, or would have to be written over that this program did not make.
    pub(crate) fn write(&self, identity: &Identity) -> Result<(), StartError> {
        let text = identity.certificate.as_bytes();
        let path = &self.certificate;
        let written = match content(path).map_err(|why| cannot_write(path, &why))? {
            None => create(path, text, Access::Everybody),
            Some(there) if self.is_made(&there) => replace(path, text, Access::Everybody),
            Some(_) => return Err(self.would_overwrite()),
        };
        written.map_err(|error| cannot_write(path, &error))?;
        self.write_key(&identity.key)
    }

    /// Writes a key unless there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_key(&self, key: &str) -> Result<(), StartError> {
        match create(&self.key, key.as_bytes(), Access::Owner) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created.map_err(|error| cannot_write(&self.key, &error)),
        }
    }

    /// Returns the error of a certificate that is not this program's where it needs one of its own.
    pub(crate) fn would_overwrite(&self) -> StartError {
        StartError::new(
            format!("write {}", self.certificate.display()),
            "there is one that ringwatch did not make",
            "move it away with its key, or choose another directory with --data-dir",
        )
    }

    /// Returns true if this program made a certificate for these files.
    pub(crate) fn is_made(&self, certificate: &str) -> bool {
        let authority = CertificateSubject {
            common_name: AUTHORITY_NAME,
            organisation: None,
        };
        let text = certificate.trim_start();
        if !text.starts_with(BEGIN) || text.matches(BEGIN).count() != 1 {
            return false;
        }
        let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(text.as_bytes()) else {
            return false;
        };
        X509Certificate::from_der(&pem.contents).is_ok_and(|(_, certificate)| {
            authority.is(certificate.issuer()) && self.subject.is(certificate.subject())
        })
    }
}

fn cannot_write(path: &Path, why: &dyn std::fmt::Display) -> StartError {
    let advice =
        "choose another directory with --data-dir or --cert-dir, or make this one writable";
    StartError::new(format!("write {}", path.display()), why, advice)
}

/// Reads a file; `None` if there is none.
fn content(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

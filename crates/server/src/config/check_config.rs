//! `ringwatch check-config`: reads the files that a configuration names, as the start of a server would, and changes
//! nothing.
//!
//! All files are looked at, so that one run tells all that is wrong. No port is opened, no other server is asked, and
//! the data directory is left alone: what a start would generate there is made in a temporary folder.

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_audit::Policy;
use ringwatch_tls::certificates::{given_pair, subjects};
use ringwatch_tls::client_identity::IdentityFiles;
use ringwatch_tls::error::StartError;
use ringwatch_tls::tls_client::Trust;

use super::admission_file::AdmissionConfig;
use super::audit_files;
use super::authentication_file::TokenIssuers;
use super::authorization_file::Authorizers;
use super::credentials::CredentialFiles;
use super::encryption_file::EncryptionFile;
use super::flags::{EtcdFlags, RelayFlags, ServeFlags};
use super::security::{self, addresses};
use super::tracing_file::SpansConfig;
use super::upstream_kubeconfig::UpstreamKubeconfig;
use super::{kubelets, service_account_keys};

/// Returns what is wrong with the files that the flags of a server name.
#[must_use]
pub fn of_server(flags: &ServeFlags) -> Vec<StartError> {
    let clock = Clock::real();
    let (flags, _folder) = match in_temporary_folder(flags.clone()) {
        Ok(both) => both,
        Err(error) => return vec![error],
    };
    let issuers = TokenIssuers::load(&flags, &clock);
    let authorizers = issuers.and_then(|mut it| Authorizers::load(&flags, &mut it));
    let (kubelets, proxy) = (&flags.kubelets, &flags.aggregation);
    let webhook = &flags.identity.token_webhook;
    let checks = [
        credentials(&flags, &clock),
        authorizers.map(drop),
        security::tokens(&flags).map(drop),
        security::token_webhook(webhook).map(drop),
        service_account_keys::load(&flags).map(drop),
        kubelets::load(kubelets).map(drop),
        security::proxy(proxy).map(drop),
        AdmissionConfig::load(&flags.admission).map(drop),
        EncryptionFile::load(&flags, &clock).map(drop),
        SpansConfig::load(flags.tracing_config_file.as_deref()).map(drop),
        audit_files::policy(&flags.audit).map(|_: Option<Policy>| ()),
        audit_files::webhook(&flags.audit).map(drop),
        etcd(&flags.etcd),
    ];
    checks.into_iter().filter_map(Result::err).collect()
}

/// Returns what is wrong with the files that the flags of a relay name.
#[must_use]
pub fn of_relay(flags: &RelayFlags) -> Vec<StartError> {
    let clock = Clock::real();
    let (served, _folder) = match in_temporary_folder(flags.as_served()) {
        Ok(both) => both,
        Err(error) => return vec![error],
    };
    let upstream =
        UpstreamKubeconfig::load(&flags.kubeconfig, &Ledger::unlimited(), &clock).map(drop);
    let checks = [
        upstream,
        credentials(&served, &clock),
        SpansConfig::load(flags.tracing_config_file.as_deref()).map(drop),
    ];
    checks.into_iter().filter_map(Result::err).collect()
}

/// Has flags generate files in a temporary folder, which is deleted when it is dropped.
fn in_temporary_folder(
    mut flags: ServeFlags,
) -> Result<(ServeFlags, tempfile::TempDir), StartError> {
    let folder = tempfile::tempdir().map_err(|error| {
        StartError::new(
            "make a temporary folder",
            error,
            "set TMPDIR to one that is writable",
        )
    })?;
    flags.data_dir = folder.path().to_owned();
    if let Some(directory) = flags.tls.cert_dir.take()
        && flags.tls.tls_cert_file.is_none()
        && let Some((certificate, key)) = given_pair(&directory)?
    {
        flags.tls.tls_cert_file = Some(certificate);
        flags.tls.tls_private_key_file = Some(key);
    }
    Ok((flags, folder))
}

fn credentials(flags: &ServeFlags, clock: &Clock) -> Result<(), StartError> {
    let subjects = subjects(&addresses(&flags.serving), security::host_name());
    CredentialFiles::load(flags, subjects, clock).map(drop)
}

/// Reads the certificates with which etcd is spoken to.
fn etcd(flags: &EtcdFlags) -> Result<(), StartError> {
    if let Some(path) = &flags.etcd_cafile {
        Trust::file(path, "--etcd-cafile")?;
    }
    let certificate = (flags.etcd_certfile.as_deref(), "--etcd-certfile");
    let key = (flags.etcd_keyfile.as_deref(), "--etcd-keyfile");
    IdentityFiles::load_named(certificate, key).map(drop)
}

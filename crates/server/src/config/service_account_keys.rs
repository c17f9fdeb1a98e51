//! The keys of service account tokens: read from the files that flags name, generated where they name none, and
//! published for others who verify tokens.

use std::path::Path;

use ringwatch_authentication::service_accounts::{KeyDiscovery, ServiceAccountConfig};
use ringwatch_authentication::{KeyError, SigningKey, VerifyingKey};
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use ringwatch_tls::private_file::{Access, create};

use super::flags::ServeFlags;

/// The generated key's file beside the generated certificates; kubeadm's name for it.
const KEY_FILE: &str = "sa.key";

/// Reads the keys that the flags name. Without a key to sign with, that of the last start is used, or a new one.
///
/// # Errors
/// A file cannot be read, written or understood.
pub(crate) fn load(flags: &ServeFlags) -> Result<ServiceAccountConfig, StartError> {
    let named = &flags.service_accounts;
    let signing = match &named.service_account_signing_key_file {
        Some(path) => {
            let flag = "--service-account-signing-key-file";
            let key = SigningKey::from_pem(&pem::read(path, flag)?);
            key.map_err(|why| unusable(path, why, &format!("give {flag} a private key in PEM")))?
        }
        None => load_or_generate(&flags.pki_dir().join(KEY_FILE))?,
    };
    let mut others = Vec::new();
    for path in &named.service_account_key_file {
        let flag = "--service-account-key-file";
        let keys = VerifyingKey::all_in(&pem::read(path, flag)?);
        let advice = format!("give {flag} keys or certificates in PEM");
        others.extend(keys.map_err(|why| unusable(path, why, &advice))?);
    }
    Ok(ServiceAccountConfig {
        issuers: named.service_account_issuer.clone(),
        audiences: named.audiences().to_vec(),
        signing,
        others,
        seconds_max: named
            .service_account_max_token_expiration
            .map(|longest| i64::try_from(longest.as_secs()).unwrap_or(i64::MAX)),
        lookup: named.service_account_lookup,
        extends_mounted: named.service_account_extend_token_expiration,
        keys_uri: named.service_account_jwks_uri.clone(),
    })
}

/// Builds the documents about the keys of service account tokens, for a server that is reached at this host and port.
#[must_use]
pub(crate) fn key_discovery(config: &ServiceAccountConfig, address: &str) -> Option<KeyDiscovery> {
    let keys = KeyDiscovery::new(config, address);
    if keys.is_none() {
        tracing::warn!(
            "the issuer of service account tokens is no https URL; its keys are not published"
        );
    }
    keys
}

/// Reads the generated key, or generates it. The directory is there: the certificates were made before.
fn load_or_generate(path: &Path) -> Result<SigningKey, StartError> {
    let advice =
        "restore it, or delete it for a new one, with which no token is good that was made before";
    if !path.exists() {
        let made = SigningKey::generate_pem().map_err(|why| {
            unusable(
                path,
                why,
                "give one with --service-account-signing-key-file",
            )
        });
        create(path, made?.as_bytes(), Access::Owner).map_err(|error| {
            StartError::new(
                format!("write {}", path.display()),
                error,
                "choose another directory with --data-dir or --cert-dir, or make this one writable",
            )
        })?;
    }
    let pem = std::fs::read_to_string(path)
        .map_err(|error| StartError::new(format!("read {}", path.display()), error, advice))?;
    SigningKey::from_pem(&pem).map_err(|why| unusable(path, why, advice))
}

fn unusable(path: &Path, why: KeyError, advice: &str) -> StartError {
    StartError::new(
        format!("use the key of service accounts {}", path.display()),
        why,
        advice,
    )
}

//! The flags about tokens of service accounts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use http::Uri;
use ringwatch_apimachinery::duration;

use super::go_values::parse_bool;

/// Flags of service account tokens.
#[derive(Args, Clone, Debug)]
pub struct ServiceAccountFlags {
    /// Issuer of service account tokens, as a URL. May be given several times: new tokens have the first, and tokens of
    /// all of them are accepted.
    #[arg(long, value_name = "ISSUER", default_value = "https://kubernetes.default.svc.cluster.local",
          value_parser = parse_issuer)]
    pub service_account_issuer: Vec<String>,

    /// Private key that signs service account tokens. Without it one is generated and kept with the generated
    /// certificates; several servers of one etcd need the same.
    #[arg(long, value_name = "FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// Further public or private keys that service account tokens may be signed with. May be given several times.
    #[arg(long, value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,

    /// Audiences of service account tokens that this server accepts, comma-separated. The default are the issuers.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub api_audiences: Vec<String>,

    /// Maximum expiration of service account tokens. Requests for longer ones get this.
    #[arg(long, value_name = "DURATION", value_parser = parse_longest)]
    pub service_account_max_token_expiration: Option<Duration>,

    /// Make tokens that are mounted into pods valid for a year, so that programs which read them once go on. These may
    /// exceed --service-account-max-token-expiration.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub service_account_extend_token_expiration: bool,

    /// Accept a token that lies in a Secret only as long as the Secret has it and its account exists.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub service_account_lookup: bool,

    /// URL of the public keys for relying parties, https only. The default is this server.
    #[arg(long, value_name = "URL", value_parser = parse_jwks_uri)]
    pub service_account_jwks_uri: Option<String>,
}

/// The allowed values of the maximum expiration, in seconds.
const LONGEST_SECONDS: std::ops::RangeInclusive<u64> = 3600..=1 << 32;

fn parse_longest(text: &str) -> Result<Duration, String> {
    let longest = duration::parse(text).map_err(|error| error.to_string())?;
    if !LONGEST_SECONDS.contains(&longest.as_secs()) {
        return Err("it must be between 1 hour and 2^32 seconds".to_owned());
    }
    Ok(longest)
}

fn parse_jwks_uri(text: &str) -> Result<String, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match uri.scheme_str() {
        Some("https") => Ok(text.to_owned()),
        _ => Err("it must be an https URL".to_owned()),
    }
}

impl ServiceAccountFlags {
    /// Returns the audiences; a token must have one of them.
    #[must_use]
    pub fn audiences(&self) -> &[String] {
        if self.api_audiences.is_empty() {
            &self.service_account_issuer
        } else {
            &self.api_audiences
        }
    }
}

/// Parses an issuer of tokens; one with a colon must be a URL, as RFC 7519 requires.
fn parse_issuer(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an issuer needs a name".to_owned());
    }
    if text.contains(':') {
        let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
        if uri.scheme().is_none() {
            return Err("what has a colon must be a URL".to_owned());
        }
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_a_name_or_a_url() {
        for good in ["kubernetes/serviceaccount", "https://issuer.example:8443/a"] {
            assert_eq!(parse_issuer(good), Ok(good.to_owned()));
        }
        for wrong in ["", "a:b c", "host.example:8443"] {
            assert!(parse_issuer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_for_an_hour_at_least() {
        assert_eq!(parse_longest("1h30m"), Ok(Duration::from_secs(5400)));
        for wrong in ["59m", "0s", "1193047h", "soon"] {
            assert!(parse_longest(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_are_found_over_tls() {
        assert!(parse_jwks_uri("https://keys.example/jwks").is_ok());
        for wrong in ["http://keys.example/jwks", "/jwks", "keys.example", ""] {
            assert!(parse_jwks_uri(wrong).is_err(), "{wrong}");
        }
    }
}

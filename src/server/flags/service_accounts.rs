//! The flags about tokens of service accounts.

use std::path::PathBuf;

use clap::Args;
use http::Uri;

/// How tokens of service accounts are made and judged.
#[derive(Args, Clone, Debug)]
pub struct ServiceAccountFlags {
    /// Who issues tokens of service accounts, as a URL. May be given several times: new tokens have the
    /// first, and tokens of all of them are good.
    #[arg(long, value_name = "ISSUER", default_value = "https://kubernetes.default.svc.cluster.local",
          value_parser = parse_issuer)]
    pub service_account_issuer: Vec<String>,

    /// The private key that tokens of service accounts are signed with. Without it one is generated and
    /// kept with the generated certificates; several servers of one etcd need the same.
    #[arg(long, value_name = "FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// Public keys, or the private ones, that tokens of service accounts may be signed with besides. May
    /// be given several times.
    #[arg(long, value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,

    /// For whom tokens must be that this server takes, comma-separated. The default are the issuers.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub api_audiences: Vec<String>,
}

impl ServiceAccountFlags {
    /// For whom tokens must be.
    #[must_use]
    pub fn audiences(&self) -> &[String] {
        if self.api_audiences.is_empty() {
            &self.service_account_issuer
        } else {
            &self.api_audiences
        }
    }
}

/// As in the definition of tokens: what has a colon is a URL.
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
}

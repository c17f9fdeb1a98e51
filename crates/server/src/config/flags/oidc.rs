//! The flags about an OpenID Connect provider.

use std::path::PathBuf;

use clap::Args;
use http::Uri;
use jsonwebtoken::{Algorithm, AlgorithmFamily};

/// Flags of an OpenID Connect provider.
#[derive(Args, Clone, Debug)]
pub struct OidcFlags {
    /// URL of an OpenID Connect provider whose tokens authenticate users; https only.
    #[arg(long, value_name = "URL", requires = "oidc_client_id", value_parser = parse_issuer)]
    pub oidc_issuer_url: Option<String>,

    /// Audience that the provider's tokens must have.
    #[arg(long, value_name = "ID", requires = "oidc_issuer_url")]
    pub oidc_client_id: Option<String>,

    /// Claim with the user's name.
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    pub oidc_username_claim: String,

    /// Prefix of user names; - for none. The default is the provider's URL and #, or none if the claim is email.
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "oidc_issuer_url",
        allow_hyphen_values = true
    )]
    pub oidc_username_prefix: Option<String>,

    /// Claim with the user's groups: a string or a list of strings.
    #[arg(long, value_name = "CLAIM", requires = "oidc_issuer_url")]
    pub oidc_groups_claim: Option<String>,

    /// Prefix of groups.
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub oidc_groups_prefix: String,

    /// Claims that tokens must have, as CLAIM=VALUE, comma-separated or in several flags.
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "oidc_issuer_url",
          value_parser = parse_required)]
    pub oidc_required_claim: Vec<(String, String)>,

    /// Signing algorithms of the provider's tokens, comma-separated: RS256, RS384, RS512, PS256, PS384, PS512, ES256 or
    /// ES384.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "RS256",
          value_parser = parse_algorithm)]
    pub oidc_signing_algs: Vec<Algorithm>,

    /// Certificate authorities that the provider's certificate is verified against. The default are the machine's.
    #[arg(long, value_name = "FILE", requires = "oidc_issuer_url")]
    pub oidc_ca_file: Option<PathBuf>,
}

impl OidcFlags {
    /// Returns the prefix of the names of an issuer's users.
    #[must_use]
    pub fn username_prefix(&self, issuer: &str) -> String {
        match self.oidc_username_prefix.as_deref() {
            Some("-") => String::new(),
            Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
            _ if self.oidc_username_claim == "email" => String::new(),
            _ => format!("{issuer}#"),
        }
    }
}

fn parse_issuer(text: &str) -> Result<String, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
    if uri.scheme_str() != Some("https") {
        return Err("URL scheme must be https".to_owned());
    }
    if uri.query().is_some() || text.contains(['#', '@']) {
        return Err(
            "URL must not contain a username, a password, a query or a fragment".to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn parse_required(text: &str) -> Result<(String, String), String> {
    let (claim, value) = text.split_once('=').ok_or("not of the form CLAIM=VALUE")?;
    Ok((claim.to_owned(), value.to_owned()))
}

/// Reads the name of a signature algorithm that has a public key: with a shared secret everybody who can verify a token
/// could make one.
fn parse_algorithm(text: &str) -> Result<Algorithm, String> {
    let known: Option<Algorithm> = text.parse().ok();
    let public = |it: &Algorithm| matches!(it.family(), AlgorithmFamily::Rsa | AlgorithmFamily::Ec);
    known.filter(public).ok_or_else(|| {
        "not here; use RS256, RS384, RS512, PS256, PS384, PS512, ES256 or ES384".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_make_no_sense_are_refused() {
        assert!(parse_issuer("https://issuer.example/a").is_ok());
        for wrong in [
            "http://issuer.example",
            "issuer",
            "https://a@b",
            "https://a/?b=c",
        ] {
            assert!(parse_issuer(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_algorithm("ES256"), Ok(Algorithm::ES256));
        for wrong in ["HS256", "none", "EdDSA", "rs256"] {
            assert!(parse_algorithm(wrong).is_err(), "{wrong}");
        }
        let claim = ("a".to_owned(), "b=c".to_owned());
        assert_eq!(parse_required("a=b=c"), Ok(claim));
        assert!(parse_required("a").is_err());
    }
}

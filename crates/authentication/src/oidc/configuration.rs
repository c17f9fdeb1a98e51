//! Reads the file of `--authentication-config`: the trusted issuers, and the paths that are served without credentials.

mod issuer;

use std::collections::HashSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::Expression;
use serde::Deserialize;
use serde_json::Value;

use self::issuer::Jwt;
use super::claims::ClaimMapping;

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const KIND: &str = "AuthenticationConfiguration";
/// The most issuers that a configuration may have, as in kube-apiserver.
const ISSUERS_MAX: usize = 64;

/// An AuthenticationConfiguration file, parsed and validated.
#[derive(Debug, Default)]
pub struct AuthenticationConfig {
    /// The trusted issuers, at most 64.
    pub issuers: Vec<JwtIssuer>,
    /// The requests that are served without credentials; `None` if a flag decides.
    pub anonymous: Option<Anonymous>,
}

/// An issuer of tokens.
#[derive(Debug)]
pub struct JwtIssuer {
    /// The issuer's URL, which its tokens have as `iss`.
    pub url: String,
    /// The URL of the discovery document, if it is not below the issuer's URL.
    pub discovery_url: Option<String>,
    /// The certificate authority of the issuer's server, in PEM; `None` for those of the system.
    pub certificate_authority: Option<String>,
    /// The accepted audiences, of which a token must have one.
    pub audiences: Vec<String>,
    /// The mapping of claims to users.
    pub mapping: ClaimMapping,
}

/// The requests that are served without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// No request is served without credentials.
    #[default]
    Refused,
    /// Requests for exactly these paths are served without credentials.
    Paths(Vec<String>),
    /// All requests are served without credentials, as far as they are authorised.
    Served,
}

impl Anonymous {
    /// Returns true if a path is served without credentials.
    #[must_use]
    pub fn serves(&self, path: &str) -> bool {
        match self {
            Self::Refused => false,
            Self::Paths(paths) => paths.iter().any(|it| it == path),
            Self::Served => true,
        }
    }
}

/// The failure to read an AuthenticationConfiguration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcConfigError {
    /// The file is not an AuthenticationConfiguration.
    #[error("{0}")]
    Read(String),
    /// The configuration violates these rules.
    #[error("{}", FieldError::join(.0))]
    Invalid(Vec<FieldError>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigurationFile {
    api_version: String,
    kind: String,
    #[serde(default)]
    jwt: Vec<Jwt>,
    anonymous: Option<AnonymousFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnonymousFile {
    #[serde(default)]
    enabled: bool,
    #[serde(default)]
    conditions: Vec<AnonymousCondition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnonymousCondition {
    path: String,
}

impl AuthenticationConfig {
    /// Parses and validates the file. `taken` are the issuers of service account tokens, which no entry may have.
    ///
    /// # Errors
    /// [`OidcConfigError`] if the file cannot be read as a configuration, or violates one of kube-apiserver's rules.
    pub fn parse(text: &str, taken: &[String]) -> Result<Self, OidcConfigError> {
        let file: ConfigurationFile = serde_saphyr::from_str(text)
            .map_err(|error| OidcConfigError::Read(error.to_string()))?;
        let version = file
            .api_version
            .strip_prefix(GROUP)
            .and_then(|it| it.strip_prefix('/'));
        if file.kind != KIND || !version.is_some_and(|it| VERSIONS.contains(&it)) {
            let found = format!("{}, Kind={}", file.api_version, file.kind);
            let why = format!("it is no {KIND} of {GROUP}/v1 or v1beta1, but {found}");
            return Err(OidcConfigError::Read(why));
        }
        let mut errors = Errors::default();
        let anonymous = file.anonymous.map(|it| anonymous(it, &mut errors));
        if file.jwt.len() > ISSUERS_MAX {
            errors.add(
                FieldErrorKind::TooMany,
                "jwt",
                format!("{}: must have at most {ISSUERS_MAX} items", file.jwt.len()),
            );
        }
        let mut known: HashSet<String> = HashSet::new();
        let issuers = file.jwt.into_iter().take(ISSUERS_MAX).enumerate();
        let issuers: Vec<_> = issuers
            .filter_map(|(place, jwt)| {
                let path = format!("jwt[{place}]");
                for url in jwt.urls() {
                    if !url.is_empty() && !known.insert(url.clone()) {
                        errors.add(
                            FieldErrorKind::Duplicate,
                            format!("{path}.issuer.url"),
                            format!("{url:?}"),
                        );
                    }
                }
                jwt.read(&path, taken, &mut errors)
            })
            .collect();
        if errors.0.is_empty() {
            return Ok(Self { issuers, anonymous });
        }
        Err(OidcConfigError::Invalid(errors.0))
    }
}

fn anonymous(file: AnonymousFile, errors: &mut Errors) -> Anonymous {
    let paths: Vec<String> = file.conditions.into_iter().map(|it| it.path).collect();
    match (file.enabled, paths.is_empty()) {
        (true, true) => Anonymous::Served,
        (true, false) => Anonymous::Paths(paths),
        (false, true) => Anonymous::Refused,
        (false, false) => {
            let why = "enabled should be set to true when conditions are defined";
            errors.invalid("anonymous.conditions", &Value::from(paths), why);
            Anonymous::Refused
        }
    }
}

/// Collects the errors of a configuration.
#[derive(Default)]
struct Errors(Vec<FieldError>);

impl Errors {
    fn add(&mut self, kind: FieldErrorKind, field: impl Into<String>, detail: impl Into<String>) {
        self.0.push(FieldError::new(kind, field, detail));
    }

    fn invalid(&mut self, field: impl Into<String>, value: &Value, why: impl AsRef<str>) {
        self.0.push(FieldError::invalid(field, value, why));
    }

    fn expression(&mut self, field: String, text: &str, names: &[&str]) -> Option<Expression> {
        self.compiled(field, text, Expression::compile(text, names))
    }

    /// Compiles an expression that must be true or false.
    fn condition(&mut self, field: String, text: &str, names: &[&str]) -> Option<Expression> {
        self.compiled(field, text, Expression::condition(text, names))
    }

    fn compiled(
        &mut self,
        field: String,
        text: &str,
        compiled: Result<Expression, String>,
    ) -> Option<Expression> {
        compiled
            .map_err(|why| self.invalid(field, &Value::from(text), why))
            .ok()
    }
}

#[cfg(test)]
mod tests;

//! Reads and validates one entry of `jwt` in an AuthenticationConfiguration.

use std::collections::HashSet;

use http::Uri;
use ringwatch_apimachinery::FieldErrorKind;
use ringwatch_cel::Expression;
use serde::Deserialize;
use serde_json::Value;

use super::{Errors, JwtIssuer};
use crate::oidc::claims::{AttributeSource, ClaimMapping, ClaimValidationRule};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Jwt {
    issuer: Issuer,
    #[serde(default)]
    claim_validation_rules: Vec<ClaimRule>,
    claim_mappings: Mappings,
    #[serde(default)]
    user_validation_rules: Vec<UserRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Issuer {
    #[serde(default)]
    url: String,
    #[serde(rename = "discoveryURL", default)]
    discovery_url: String,
    #[serde(default)]
    certificate_authority: String,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    audience_match_policy: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClaimRule {
    #[serde(default)]
    claim: String,
    #[serde(default)]
    required_value: String,
    #[serde(default)]
    expression: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserRule {
    #[serde(default)]
    expression: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mappings {
    #[serde(default)]
    username: Mapping,
    #[serde(default)]
    groups: Mapping,
    #[serde(default)]
    uid: Mapping,
    #[serde(default)]
    extra: Vec<Extra>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mapping {
    #[serde(default)]
    claim: String,
    prefix: Option<String>,
    #[serde(default)]
    expression: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Extra {
    key: String,
    value_expression: String,
}

impl Jwt {
    /// Returns the issuer's URL and its discovery URL.
    pub(super) fn urls(&self) -> [&String; 2] {
        [&self.issuer.url, &self.issuer.discovery_url]
    }

    /// Validates the issuer and converts it; `None` if something is wrong that leaves nothing to go on with.
    pub(super) fn read(
        self,
        path: &str,
        taken: &[String],
        errors: &mut Errors,
    ) -> Option<JwtIssuer> {
        self.issuer.check(path, taken, errors);
        let email_is_verified = self.verifies_email();
        let mappings = format!("{path}.claimMappings");
        let username = format!("{mappings}.username");
        let mapped = self.claim_mappings.username.read(&username, true, errors);
        if mapped.is_none() {
            errors.add(
                FieldErrorKind::Required,
                &*username,
                "claim or expression is required",
            );
        }
        if !email_is_verified {
            let text = &self.claim_mappings.username.expression;
            let why = "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression";
            errors.invalid(format!("{username}.expression"), &Value::from(&**text), why);
        }
        let mut mapping = ClaimMapping::new(mapped?);
        let groups = format!("{mappings}.groups");
        mapping.groups = self.claim_mappings.groups.read(&groups, true, errors);
        let uid = format!("{mappings}.uid");
        mapping.uid = self.claim_mappings.uid.read(&uid, false, errors);
        mapping.extra = extra(&mappings, self.claim_mappings.extra, errors);
        for (place, rule) in self.claim_validation_rules.into_iter().enumerate() {
            rule.read(
                &format!("{path}.claimValidationRules[{place}]"),
                &mut mapping,
                errors,
            );
        }
        for (place, rule) in self.user_validation_rules.into_iter().enumerate() {
            let field = format!("{path}.userValidationRules[{place}].expression");
            let expression = errors.condition(field, &rule.expression, &["user"]);
            mapping
                .user_rules
                .extend(expression.map(|expression| ClaimValidationRule {
                    message: said(rule.message, &rule.expression),
                    expression,
                }));
        }
        let named = |text: String| (!text.is_empty()).then_some(text);
        Some(JwtIssuer {
            url: self.issuer.url,
            discovery_url: named(self.issuer.discovery_url),
            certificate_authority: named(self.issuer.certificate_authority),
            audiences: self.issuer.audiences,
            mapping,
        })
    }

    /// Returns false if the username is made of `claims.email` and no expression uses `claims.email_verified`: the
    /// address could be anybody's.
    fn verifies_email(&self) -> bool {
        let uses = |text: &str, name: &str| {
            text.match_indices(name).any(|(at, _)| {
                let next = text[at + name.len()..].chars().next();
                !next.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_')
            })
        };
        let username = &self.claim_mappings.username.expression;
        let extra = self
            .claim_mappings
            .extra
            .iter()
            .map(|it| &it.value_expression);
        let rules = self.claim_validation_rules.iter().map(|it| &it.expression);
        let mut all = extra.chain(rules).chain([username]);
        !uses(username, "claims.email") || all.any(|text| uses(text, "claims.email_verified"))
    }
}

impl Issuer {
    fn check(&self, path: &str, taken: &[String], errors: &mut Errors) {
        let url = format!("{path}.issuer.url");
        check_url(&url, &self.url, errors);
        if taken.contains(&self.url) {
            let why = format!("URL must not overlap with disallowed issuers: {taken:?}");
            errors.invalid(&*url, &Value::from(&*self.url), why);
        }
        let discovery = format!("{path}.issuer.discoveryURL");
        if !self.discovery_url.is_empty() {
            check_url(&discovery, &self.discovery_url, errors);
            if self.discovery_url.trim_end_matches('/') == self.url.trim_end_matches('/') {
                let why = "discoveryURL must be different from URL";
                errors.invalid(discovery, &Value::from(&*self.discovery_url), why);
            }
        }
        let audiences = format!("{path}.issuer.audiences");
        if self.audiences.is_empty() {
            errors.add(
                FieldErrorKind::Required,
                &*audiences,
                "at least one jwt audience is required",
            );
        }
        let mut known = HashSet::new();
        for (place, audience) in self.audiences.iter().enumerate() {
            let field = format!("{audiences}[{place}]");
            if audience.is_empty() {
                errors.add(FieldErrorKind::Required, field, "audience can't be empty");
            } else if !known.insert(audience) {
                errors.add(FieldErrorKind::Duplicate, field, format!("{audience:?}"));
            }
        }
        let policy = Value::from(&*self.audience_match_policy);
        let field = format!("{path}.issuer.audienceMatchPolicy");
        match (self.audiences.len(), &*self.audience_match_policy) {
            (_, "MatchAny") | (0..=1, "") => {}
            (0..=1, _) => errors.invalid(
                field,
                &policy,
                "audienceMatchPolicy must be empty or MatchAny for single audience",
            ),
            _ => errors.invalid(
                field,
                &policy,
                "audienceMatchPolicy must be MatchAny for multiple audiences",
            ),
        }
    }
}

impl Mapping {
    /// Reads the source of a name. A prefix must be given where there is one, be it empty: names without could be
    /// anybody's.
    fn read(&self, path: &str, prefixed: bool, errors: &mut Errors) -> Option<AttributeSource> {
        match (&*self.claim, &*self.expression) {
            ("", "") => {
                if self.prefix.is_some() {
                    errors.invalid(
                        format!("{path}.prefix"),
                        &Value::Null,
                        "prefix can't be set when claim is empty",
                    );
                }
                None
            }
            (claim, "") => {
                if prefixed && self.prefix.is_none() {
                    let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                    errors.add(FieldErrorKind::Required, format!("{path}.prefix"), why);
                }
                Some(AttributeSource::Claim {
                    name: claim.to_owned(),
                    prefix: self.prefix.clone().unwrap_or_default(),
                })
            }
            ("", text) => {
                if self.prefix.is_some() {
                    errors.invalid(
                        format!("{path}.prefix"),
                        &Value::Null,
                        "prefix can't be set when expression is set",
                    );
                }
                let field = format!("{path}.expression");
                errors
                    .expression(field, text, &["claims"])
                    .map(AttributeSource::Expression)
            }
            (claim, _) => {
                errors.invalid(
                    path,
                    &Value::from(claim),
                    "claim and expression can't both be set",
                );
                None
            }
        }
    }
}

fn extra(path: &str, all: Vec<Extra>, errors: &mut Errors) -> Vec<(String, Expression)> {
    let mut known = HashSet::new();
    let mut read = Vec::new();
    for (place, extra) in all.into_iter().enumerate() {
        let field = format!("{path}.extra[{place}]");
        let key = format!("{field}.key");
        let (domain, name) = extra.key.split_once('/').unwrap_or(("", &extra.key));
        if domain.is_empty() || name.is_empty() || extra.key.to_lowercase() != extra.key {
            errors.invalid(
                &*key,
                &Value::from(&*extra.key),
                "must be a domain-prefixed path in lower case (such as \"acme.io/foo\")",
            );
        } else if domain == "kubernetes.io"
            || domain.ends_with(".kubernetes.io")
            || domain == "k8s.io"
            || domain.ends_with(".k8s.io")
        {
            errors.invalid(
                &*key,
                &Value::from(&*extra.key),
                "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
            );
        }
        if !known.insert(extra.key.clone()) {
            errors.add(FieldErrorKind::Duplicate, key, format!("{:?}", extra.key));
        }
        let field = format!("{field}.valueExpression");
        let expression = errors.expression(field, &extra.value_expression, &["claims"]);
        read.extend(expression.map(|expression| (extra.key, expression)));
    }
    read
}

impl ClaimRule {
    fn read(self, path: &str, mapping: &mut ClaimMapping, errors: &mut Errors) {
        match (self.claim.is_empty(), self.expression.is_empty()) {
            (false, true) if self.message.is_empty() => {
                mapping.required.push((self.claim, self.required_value));
            }
            (false, true) => {
                errors.invalid(
                    format!("{path}.message"),
                    &Value::from(self.message),
                    "message can't be set when claim is set",
                );
            }
            (true, false) if self.required_value.is_empty() => {
                let field = format!("{path}.expression");
                let expression = errors.condition(field, &self.expression, &["claims"]);
                mapping
                    .claim_rules
                    .extend(expression.map(|expression| ClaimValidationRule {
                        message: said(self.message, &self.expression),
                        expression,
                    }));
            }
            (true, false) => {
                errors.invalid(
                    format!("{path}.requiredValue"),
                    &Value::from(self.required_value),
                    "requiredValue can't be set when expression is set",
                );
            }
            (true, true) => errors.add(
                FieldErrorKind::Required,
                path,
                "claim or expression is required",
            ),
            (false, false) => errors.invalid(
                path,
                &Value::from(self.claim),
                "claim and expression can't both be set",
            ),
        }
    }
}

/// Returns the message for a token that violates a rule.
fn said(message: String, expression: &str) -> String {
    if message.is_empty() {
        return format!("validation expression '{expression}' failed");
    }
    format!("validation expression '{expression}' failed: {message}")
}

fn check_url(field: &str, url: &str, errors: &mut Errors) {
    if url.is_empty() {
        errors.add(FieldErrorKind::Required, field, "URL is required");
        return;
    }
    let value = Value::from(url);
    let uri: Uri = match url.parse() {
        Ok(uri) => uri,
        Err(error) => return errors.invalid(field, &value, format!("{error}")),
    };
    if uri.scheme_str() != Some("https") {
        errors.invalid(field, &value, "URL scheme must be https");
    }
    if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        errors.invalid(field, &value, "URL must not contain a username or password");
    }
    if uri.query().is_some() {
        errors.invalid(field, &value, "URL must not contain a query");
    }
    if url.contains('#') {
        errors.invalid(field, &value, "URL must not contain a fragment");
    }
}

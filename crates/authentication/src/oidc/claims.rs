//! Maps the claims of a token to a user.

use std::collections::BTreeMap;

use ringwatch_apimachinery::User;
use ringwatch_cel::{Expression, Variables};
use serde_json::{Map, Value, json};

use super::OidcError;

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The mapping of claims to users, with the rules that they must satisfy.
#[derive(Debug)]
pub struct ClaimMapping {
    /// The source of the user's name.
    pub username: AttributeSource,
    /// The source of the groups; `None` if users have none.
    pub groups: Option<AttributeSource>,
    /// The source of the uid; `None` if users have none.
    pub uid: Option<AttributeSource>,
    /// The keys of extra attributes, and the expressions of their values.
    pub extra: Vec<(String, Expression)>,
    /// The claims that a token must have, with their values.
    pub required: Vec<(String, String)>,
    /// The validation rules for claims.
    pub claim_rules: Vec<ClaimValidationRule>,
    /// The validation rules for the mapped user.
    pub user_rules: Vec<ClaimValidationRule>,
}

/// The source of an attribute of the user.
#[derive(Debug)]
pub enum AttributeSource {
    /// The value of a claim, after a prefix.
    Claim {
        /// The name of the claim.
        name: String,
        /// The prefix that is put before the claim's value.
        prefix: String,
    },
    /// The value of a CEL expression over the claims.
    Expression(Expression),
}

/// A validation rule, with the message for tokens that violate it.
#[derive(Debug)]
pub struct ClaimValidationRule {
    /// The CEL expression, which must be true.
    pub expression: Expression,
    /// The message of the refusal.
    pub message: String,
}

impl ClaimMapping {
    /// Creates a mapping that takes the user's name from here, and nothing else.
    #[must_use]
    pub fn new(username: AttributeSource) -> Self {
        Self {
            username,
            groups: None,
            uid: None,
            extra: Vec::new(),
            required: Vec::new(),
            claim_rules: Vec::new(),
            user_rules: Vec::new(),
        }
    }

    /// Maps the claims of a verified token to a user.
    pub(super) fn user(&self, claims: &Map<String, Value>) -> Result<User, OidcError> {
        for (name, wanted) in &self.required {
            let found = claims.get(name).and_then(Value::as_str);
            if found != Some(wanted) {
                let why = "it does not have the required value";
                return Err(fault("required", name, why));
            }
        }
        let mut variables = Variables::new();
        if self.uses_expressions() {
            variables.add("claims", &Value::Object(claims.clone()));
        }
        check(&self.claim_rules, &mut variables)?;
        let user = User {
            name: self.name(claims, &mut variables)?,
            uid: self.uid(claims, &mut variables)?,
            groups: self.groups(claims, &mut variables)?,
            extra: self.extra(claims, &mut variables)?,
        };
        if !self.user_rules.is_empty() {
            let shown = json!({"username": user.name, "uid": user.uid, "groups": user.groups,
                "extra": user.extra});
            variables.add("user", &shown);
        }
        check(&self.user_rules, &mut variables)?;
        Ok(user)
    }

    fn uses_expressions(&self) -> bool {
        let sources = [
            Some(&self.username),
            self.groups.as_ref(),
            self.uid.as_ref(),
        ];
        let mut sources = sources.into_iter().flatten();
        sources.any(|source| matches!(source, AttributeSource::Expression(_)))
            || !self.extra.is_empty()
            || !self.claim_rules.is_empty()
    }

    fn name(
        &self,
        claims: &Map<String, Value>,
        variables: &mut Variables,
    ) -> Result<String, OidcError> {
        match &self.username {
            AttributeSource::Claim { name, prefix } => {
                let text = claim_text("username", claims, name)?;
                // An address that is known not to be verified could be anybody's.
                let verified = claims.get("email_verified");
                if name == "email" && verified.is_some_and(|it| *it != Value::Bool(true)) {
                    return Err(fault("username", name, "the email is not verified"));
                }
                Ok(format!("{prefix}{text}"))
            }
            AttributeSource::Expression(expression) => {
                let name = variables.text(expression);
                let name = name.map_err(|why| expression_fault("username", why))?;
                if name.is_empty() {
                    return Err(expression_fault("username", "it is empty".to_owned()));
                }
                Ok(name)
            }
        }
    }

    fn uid(
        &self,
        claims: &Map<String, Value>,
        variables: &mut Variables,
    ) -> Result<String, OidcError> {
        match &self.uid {
            None => Ok(String::new()),
            Some(AttributeSource::Claim { name, .. }) => {
                Ok(claim_text("uid", claims, name)?.to_owned())
            }
            Some(AttributeSource::Expression(expression)) => {
                let uid = variables.text(expression);
                uid.map_err(|why| expression_fault("uid", why))
            }
        }
    }

    /// Reads the groups: a string or a list of strings.
    fn groups(
        &self,
        claims: &Map<String, Value>,
        variables: &mut Variables,
    ) -> Result<Vec<String>, OidcError> {
        let (name, prefix) = match &self.groups {
            None => return Ok(Vec::new()),
            Some(AttributeSource::Claim { name, prefix }) => (name, prefix),
            Some(AttributeSource::Expression(expression)) => {
                let groups = variables.texts(expression);
                let groups = groups.map_err(|why| expression_fault("groups", why))?;
                return Ok(groups.into_iter().filter(|it| !it.is_empty()).collect());
            }
        };
        let groups = match claims.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(group)) => vec![Some(group.as_str())],
            Some(Value::Array(groups)) => groups.iter().map(Value::as_str).collect(),
            Some(_) => vec![None],
        };
        let groups: Option<Vec<_>> = groups.into_iter().collect();
        let groups = groups.ok_or_else(|| fault("groups", name, "it is no list of texts"))?;
        let prefixed = groups.iter().map(|group| format!("{prefix}{group}"));
        Ok(prefixed.collect())
    }

    fn extra(
        &self,
        claims: &Map<String, Value>,
        variables: &mut Variables,
    ) -> Result<BTreeMap<String, Vec<String>>, OidcError> {
        let mut extra = BTreeMap::new();
        if let Some(id) = claims.get("jti").and_then(Value::as_str) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.extra {
            let values = variables.texts(expression);
            let mut values = values.map_err(|why| expression_fault("extra", why))?;
            values.retain(|value| !value.is_empty());
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }
}

fn check(rules: &[ClaimValidationRule], variables: &mut Variables) -> Result<(), OidcError> {
    for rule in rules {
        match variables.decide(&rule.expression) {
            Ok(true) => {}
            Ok(false) => return Err(OidcError::Rule(rule.message.clone())),
            Err(why) => return Err(OidcError::Rule(why)),
        }
    }
    Ok(())
}

fn claim_text<'a>(
    what: &'static str,
    claims: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, OidcError> {
    let text = claims.get(name).and_then(Value::as_str);
    let text = text.filter(|text| !text.is_empty());
    text.ok_or_else(|| fault(what, name, "it is not there, empty or no text"))
}

fn fault(what: &'static str, name: &str, why: &'static str) -> OidcError {
    OidcError::Claim {
        what,
        name: name.to_owned(),
        why,
    }
}

fn expression_fault(what: &'static str, why: String) -> OidcError {
    OidcError::Expression { what, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, prefix: &str) -> AttributeSource {
        AttributeSource::Claim {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
        }
    }

    fn expression(text: &str, names: &[&str]) -> Expression {
        Expression::compile(text, names).expect(text)
    }

    fn user(mapping: &ClaimMapping, claims: &Value) -> Result<User, String> {
        let claims = claims.as_object().expect("claims");
        mapping.user(claims).map_err(|error| error.to_string())
    }

    #[test]
    fn claims_name_user_and_groups() {
        let mapping = ClaimMapping {
            groups: Some(claim("roles", "of:")),
            required: vec![("org".to_owned(), "us".to_owned())],
            ..ClaimMapping::new(claim("email", "oidc:"))
        };
        let ann = user(
            &mapping,
            &json!({"email": "ann@us", "email_verified": true, "roles": ["a", "b"], "org": "us", "jti": "7"}),
        );
        let ann = ann.expect("a user");
        assert_eq!(ann.name, "oidc:ann@us");
        assert_eq!(ann.groups, ["of:a", "of:b"]);
        assert_eq!(ann.extra[CREDENTIAL_ID], ["JTI=7"]);
        let one = user(
            &mapping,
            &json!({"email": "ann@us", "roles": "a", "org": "us"}),
        );
        assert_eq!(one.expect("a user").groups, ["of:a"]);
        let none = user(&mapping, &json!({"email": "ann@us", "org": "us"}));
        assert!(none.expect("a user").groups.is_empty());
    }

    #[test]
    fn claims_that_are_not_what_they_should_be_name_nobody() {
        let mapping = ClaimMapping {
            groups: Some(claim("roles", "")),
            required: vec![("org".to_owned(), "us".to_owned())],
            ..ClaimMapping::new(claim("email", ""))
        };
        for wrong in [
            json!({"org": "us"}),
            json!({"email": "", "org": "us"}),
            json!({"email": 7, "org": "us"}),
            json!({"email": "ann@us", "email_verified": false, "org": "us"}),
            json!({"email": "ann@us", "email_verified": "true", "org": "us"}),
            json!({"email": "ann@us", "roles": {"a": 1}, "org": "us"}),
            json!({"email": "ann@us", "roles": ["a", 1], "org": "us"}),
            json!({"email": "ann@us"}),
            json!({"email": "ann@us", "org": "them"}),
            json!({"email": "ann@us", "org": ["us"]}),
        ] {
            assert!(user(&mapping, &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn expressions_name_users_and_rules_refuse_them() {
        let claims = &["claims"];
        let source = |text| AttributeSource::Expression(expression(text, claims));
        let rule = |text: &str, names: &[&str]| ClaimValidationRule {
            expression: expression(text, names),
            message: format!("not {text}"),
        };
        let mapping = ClaimMapping {
            groups: Some(source("claims.roles.split(',')")),
            uid: Some(source("claims.sub")),
            extra: vec![(
                "example.org/team".to_owned(),
                expression("claims.team", claims),
            )],
            claim_rules: vec![rule("claims.level > 2", claims)],
            user_rules: vec![rule("!user.username.startsWith('system:')", &["user"])],
            ..ClaimMapping::new(source("claims.name + '@us'"))
        };
        let with = |name: &str, value: Value| {
            let mut claims =
                json!({"name": "ann", "sub": "7", "roles": "a,b", "team": "x", "level": 3});
            claims[name] = value;
            user(&mapping, &claims)
        };
        let ann = with("more", json!(1)).expect("a user");
        assert_eq!((&*ann.name, &*ann.uid), ("ann@us", "7"));
        assert_eq!(ann.groups, ["a", "b"]);
        assert_eq!(ann.extra["example.org/team"], ["x"]);
        let none = with("team", json!("")).expect("a user");
        assert!(none.extra.is_empty());
        assert_eq!(
            with("level", json!(1)),
            Err("not claims.level > 2".to_owned())
        );
        for (name, value) in [
            ("name", json!("system:x")),
            ("name", json!(7)),
            ("team", json!({"a": 1})),
            ("roles", json!(["a"])),
            ("level", json!("3")),
            ("sub", Value::Null),
        ] {
            assert!(with(name, value.clone()).is_err(), "{name}: {value}");
        }
    }
}

//! Which claims name the user, and how.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::OidcError;
use crate::registry::User;

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// From claims to users.
#[derive(Clone, Debug, Default)]
pub struct ClaimMapping {
    /// The claim with the user's name.
    pub username: String,
    /// What is written before it.
    pub username_prefix: String,
    /// The claim with the groups, if there are any.
    pub groups: Option<String>,
    /// What is written before each.
    pub groups_prefix: String,
    /// Claims that a token must have, and with what value.
    pub required: Vec<(String, String)>,
}

impl ClaimMapping {
    /// The user of these claims.
    pub(super) fn user(&self, claims: &Map<String, Value>) -> Result<User, OidcError> {
        for (name, wanted) in &self.required {
            let found = claims.get(name).and_then(Value::as_str);
            if found != Some(wanted) {
                return Err(fault(
                    "required",
                    name,
                    "it does not have the required value",
                ));
            }
        }
        let mut extra = BTreeMap::new();
        if let Some(id) = claims.get("jti").and_then(Value::as_str) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        Ok(User {
            name: self.name(claims)?,
            uid: String::new(),
            groups: self.groups(claims)?,
            extra,
        })
    }

    fn name(&self, claims: &Map<String, Value>) -> Result<String, OidcError> {
        let name = claims.get(&self.username).and_then(Value::as_str);
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            fault(
                "username",
                &self.username,
                "it is not there, empty or no text",
            )
        })?;
        // An address that is known not to be verified could be anybody's.
        let verified = claims.get("email_verified");
        if self.username == "email" && verified.is_some_and(|it| *it != Value::Bool(true)) {
            return Err(fault(
                "username",
                &self.username,
                "the email is not verified",
            ));
        }
        Ok(format!("{}{name}", self.username_prefix))
    }

    /// One group, or a list of them.
    fn groups(&self, claims: &Map<String, Value>) -> Result<Vec<String>, OidcError> {
        let Some(name) = &self.groups else {
            return Ok(Vec::new());
        };
        let groups = match claims.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(group)) => vec![Some(group.as_str())],
            Some(Value::Array(groups)) => groups.iter().map(Value::as_str).collect(),
            Some(_) => vec![None],
        };
        let groups: Option<Vec<_>> = groups.into_iter().collect();
        let groups = groups.ok_or_else(|| fault("groups", name, "it is no list of texts"))?;
        let prefixed = groups
            .iter()
            .map(|group| format!("{}{group}", self.groups_prefix));
        Ok(prefixed.collect())
    }
}

fn fault(what: &'static str, name: &str, why: &'static str) -> OidcError {
    OidcError::Claim {
        what,
        name: name.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(mapping: &ClaimMapping, claims: Value) -> Result<User, String> {
        let claims = claims.as_object().expect("claims");
        mapping.user(claims).map_err(|error| error.to_string())
    }

    #[test]
    fn claims_name_user_and_groups() {
        let mapping = ClaimMapping {
            username: "email".to_owned(),
            username_prefix: "oidc:".to_owned(),
            groups: Some("roles".to_owned()),
            groups_prefix: "of:".to_owned(),
            required: vec![("org".to_owned(), "us".to_owned())],
        };
        let ann = user(
            &mapping,
            json!({"email": "ann@us", "email_verified": true, "roles": ["a", "b"], "org": "us", "jti": "7"}),
        );
        let ann = ann.expect("a user");
        assert_eq!(ann.name, "oidc:ann@us");
        assert_eq!(ann.groups, ["of:a", "of:b"]);
        assert_eq!(ann.extra[CREDENTIAL_ID], ["JTI=7"]);
        let one = user(
            &mapping,
            json!({"email": "ann@us", "roles": "a", "org": "us"}),
        );
        assert_eq!(one.expect("a user").groups, ["of:a"]);
        let none = user(&mapping, json!({"email": "ann@us", "org": "us"}));
        assert!(none.expect("a user").groups.is_empty());
    }

    #[test]
    fn claims_that_are_not_what_they_should_be_name_nobody() {
        let mapping = ClaimMapping {
            username: "email".to_owned(),
            groups: Some("roles".to_owned()),
            required: vec![("org".to_owned(), "us".to_owned())],
            ..ClaimMapping::default()
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
            assert!(user(&mapping, wrong.clone()).is_err(), "{wrong}");
        }
    }
}

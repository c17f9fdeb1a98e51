//! Reviews of access: what is asked, whether it makes sense, and how the decision is told.

use serde_json::{Map, Value, json};

use crate::registry::authorization::{Attributes, Authorizer, Rule, SelfRules};
use crate::registry::{Error, FieldError, User};

/// What the configured authorizer says about what a review asks, as its status.
pub(super) async fn decide(authorizer: &Authorizer, user: &User, asked: &Value) -> Value {
    let of = |part: &str, name: &str| {
        let value = asked.pointer(&format!("/spec/{part}/{name}"));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let resource = |name| of("resourceAttributes", name);
    let path = |name| of("nonResourceAttributes", name);
    let decision = if attributes(asked, "resourceAttributes").is_some() {
        authorizer
            .decide(&Attributes {
                namespace: &resource("namespace"),
                subresource: &resource("subresource"),
                name: &resource("name"),
                version: &resource("version"),
                ..Attributes::of_resource(
                    user,
                    &resource("verb"),
                    &resource("group"),
                    &resource("resource"),
                )
            })
            .await
    } else {
        authorizer
            .decide(&Attributes::of_path(user, &path("verb"), &path("path")))
            .await
    };
    let mut status = json!({"allowed": decision.allowed});
    if decision.denied {
        status["denied"] = json!(true);
    }
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    status
}

/// What a user may do, as the status of a review of rules.
pub(super) fn rules(found: &SelfRules) -> Value {
    let lists = |lists: &[(&str, &Vec<String>)]| {
        let set = lists
            .iter()
            .filter(|(name, list)| *name == "verbs" || !list.is_empty());
        Value::Object(
            set.map(|(name, list)| ((*name).to_owned(), json!(list)))
                .collect::<Map<_, _>>(),
        )
    };
    let resource = |rule: &&Rule| {
        lists(&[
            ("verbs", &rule.verbs),
            ("apiGroups", &rule.api_groups),
            ("resources", &rule.resources),
            ("resourceNames", &rule.resource_names),
        ])
    };
    let path = |rule: &&Rule| {
        lists(&[
            ("verbs", &rule.verbs),
            ("nonResourceURLs", &rule.non_resource_urls),
        ])
    };
    let resources = found.rules.iter().filter(|it| !it.resources.is_empty());
    let paths = found
        .rules
        .iter()
        .filter(|it| !it.non_resource_urls.is_empty());
    let mut status = json!({
        "resourceRules": resources.map(|it| resource(&it)).collect::<Vec<_>>(),
        "nonResourceRules": paths.map(|it| path(&it)).collect::<Vec<_>>(),
        "incomplete": false,
    });
    if !found.errors.is_empty() {
        status["evaluationError"] = json!(found.errors.join(", "));
    }
    status
}

/// Whom a review is about.
pub(super) fn subject(asked: &Value) -> User {
    let spec = &asked["spec"];
    let text = |name: &str| spec[name].as_str().unwrap_or_default().to_owned();
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.to_lowercase(), texts(values)))
            .collect(),
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(String::from).collect()
}

/// Whether a review asks about resources or about paths, and not about both.
pub(super) fn check_attributes(asked: &Value) -> Result<(), Error> {
    refuse(attribute_errors(asked))
}

/// Whether it also says whom it is about.
pub(super) fn check_subject(asked: &Value) -> Result<(), Error> {
    refuse(subject_errors(asked))
}

/// Whether it also stays in its namespace.
pub(super) fn check_local(asked: &Value, namespace: &str) -> Result<(), Error> {
    let own = asked.pointer("/metadata/namespace").and_then(Value::as_str);
    let own = own.unwrap_or(namespace);
    let mut errors = subject_errors(asked);
    if let Some(resource) = attributes(asked, "resourceAttributes") {
        let named = resource["namespace"].as_str().unwrap_or_default();
        if named != own {
            let field = "spec.resourceAttributes.namespace";
            let why = "must match metadata.namespace";
            errors.push(FieldError::invalid(field, &json!(named), why));
        }
    }
    if let Some(path) = attributes(asked, "nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", path, why));
    }
    refuse(errors)?;
    if own == namespace {
        return Ok(());
    }
    let message = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
    Err(Error::BadRequest(message))
}

fn attributes<'a>(asked: &'a Value, name: &str) -> Option<&'a Value> {
    let found = asked.pointer(&format!("/spec/{name}"));
    found.filter(|it| !it.is_null())
}

fn attribute_errors(asked: &Value) -> Vec<FieldError> {
    let resource = attributes(asked, "resourceAttributes");
    let error = match (resource, attributes(asked, "nonResourceAttributes")) {
        (None, None) => FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (Some(_), Some(path)) => FieldError::invalid(
            "spec.nonResourceAttributes",
            path,
            "cannot be specified in combination with resourceAttributes",
        ),
        _ => return Vec::new(),
    };
    vec![error]
}

fn subject_errors(asked: &Value) -> Vec<FieldError> {
    let mut errors = attribute_errors(asked);
    let user = subject(asked);
    if user.name.is_empty() && user.groups.is_empty() {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), why));
    }
    errors
}

fn refuse(errors: Vec<FieldError>) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid {
        kind: ".authorization.k8s.io".to_owned(),
        name: String::new(),
        errors,
    })
}

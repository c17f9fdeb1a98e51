//! Access reviews: reads and checks the attributes in a SubjectAccessReview, and fills in the decision.

use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{Error, FieldError, FieldErrorKind, User};
use ringwatch_authorization::{Attributes, Authorizer, Rule, SelfRules};
use serde_json::{Map, Value, json};

use super::metadata::metadata_error;

/// Returns the status of an access review about a user: the decision of the configured authorizer.
pub(super) async fn decide(
    authorizer: &Authorizer,
    asker: &User,
    user: &User,
    review: &Value,
) -> Value {
    let of = |part: &str, name: &str| {
        let value = review.pointer(&format!("/spec/{part}/{name}"));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let resource = |name| of("resourceAttributes", name);
    let path = |name| of("nonResourceAttributes", name);
    let version = Some(resource("version")).filter(|it| !it.is_empty());
    let fields = ReviewSelector::read(review, "fieldSelector", field_text, |text| {
        FieldSelector::parse(text).ok()
    });
    let labels = ReviewSelector::read(review, "labelSelector", label_text, |text| {
        LabelSelector::parse(text).ok()
    });
    let decision = if attributes(review, "resourceAttributes").is_some() {
        authorizer
            .decide(&Attributes {
                asker,
                namespace: &resource("namespace"),
                subresource: &resource("subresource"),
                name: &resource("name"),
                version: version.as_deref().unwrap_or("*"),
                fields: fields.read.as_ref(),
                labels: labels.read.as_ref(),
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
            .decide(&Attributes {
                asker,
                ..Attributes::of_path(user, &path("verb"), &path("path"))
            })
            .await
    };
    let mut status = json!({"allowed": decision.allowed});
    if decision.denied {
        status["denied"] = json!(true);
    }
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    let wrong: Vec<String> = [
        fields.complaint("fieldSelector"),
        labels.complaint("labelSelector"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !wrong.is_empty() {
        status["evaluationError"] = json!(wrong.join("; "));
    }
    status
}

/// The selector of a review. Requirements that cannot be parsed are omitted, so that authorization covers at least the
/// selected objects.
struct ReviewSelector<T> {
    read: Option<T>,
    is_partial: bool,
}

impl<T> ReviewSelector<T> {
    fn read(
        review: &Value,
        member: &str,
        text_of: fn(&Value) -> Option<String>,
        parse: fn(&str) -> Option<T>,
    ) -> Self {
        let written = review.pointer(&format!("/spec/resourceAttributes/{member}"));
        let written = written.unwrap_or(&Value::Null);
        let requirements = written["requirements"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if requirements.is_empty() {
            let raw = written["rawSelector"].as_str().filter(|it| !it.is_empty());
            let read = raw.and_then(parse);
            return Self {
                is_partial: raw.is_some() && read.is_none(),
                read,
            };
        }
        let texts = requirements.iter().filter_map(text_of);
        let good: Vec<String> = texts.filter(|text| parse(text).is_some()).collect();
        Self {
            is_partial: good.len() < requirements.len(),
            read: parse(&good.join(",")).filter(|_| !good.is_empty()),
        }
    }

    fn complaint(&self, member: &str) -> Option<String> {
        let ignored = if self.read.is_some() {
            "partially ignored"
        } else {
            "ignored"
        };
        let why = format!("spec.resourceAttributes.{member} {ignored} due to parse error");
        self.is_partial.then_some(why)
    }
}

/// Returns a requirement on a field as text of a selector.
fn field_text(requirement: &Value) -> Option<String> {
    let values = texts(&requirement["values"]);
    let [value] = values.as_slice() else {
        return None;
    };
    let key = requirement["key"].as_str()?;
    let selector = FieldSelector::default();
    match requirement["operator"].as_str()? {
        "In" => Some(selector.and_exact(key, value).to_string()),
        "NotIn" => Some(
            selector
                .and_exact(key, value)
                .to_string()
                .replacen('=', "!=", 1),
        ),
        _ => None,
    }
}

/// Returns a requirement on a label as text of a selector.
fn label_text(requirement: &Value) -> Option<String> {
    let key = requirement["key"].as_str()?;
    let values = texts(&requirement["values"]);
    let plain =
        |text: &str| !text.contains(|it: char| it.is_whitespace() || ",()!=<>".contains(it));
    if !plain(key) || !values.iter().all(|it| plain(it)) {
        return None;
    }
    let values_text = values.join(",");
    match (requirement["operator"].as_str()?, values.is_empty()) {
        ("In", false) => Some(format!("{key} in ({values_text})")),
        ("NotIn", false) => Some(format!("{key} notin ({values_text})")),
        ("Exists", true) => Some(key.to_owned()),
        ("DoesNotExist", true) => Some(format!("!{key}")),
        _ => None,
    }
}

/// Returns the status of a SelfSubjectRulesReview.
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

/// Returns the user that a review asks about.
pub(super) fn subject(review: &Value) -> User {
    let spec = &review["spec"];
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

/// Checks that a review asks either about resources or about paths. Follows `ValidateSelfSubjectAccessReview`.
pub(super) fn check_attributes(review: &Value) -> Result<(), Error> {
    let mut errors = attribute_errors(review);
    errors.extend(selector_errors(review));
    errors.extend(metadata_error(review, false));
    refuse(errors)
}

/// Checks that it also names a user or group. Follows `ValidateSubjectAccessReview`.
pub(super) fn check_subject(review: &Value) -> Result<(), Error> {
    let mut errors = subject_errors(review);
    errors.extend(metadata_error(review, false));
    refuse(errors)
}

/// Checks that it also stays in its namespace. Follows `ValidateLocalSubjectAccessReview`.
pub(super) fn check_local(review: &Value, namespace: &str) -> Result<(), Error> {
    let own = review
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let own = own.unwrap_or(namespace);
    let mut errors = subject_errors(review);
    errors.extend(metadata_error(review, true));
    if let Some(resource) = attributes(review, "resourceAttributes") {
        let named = resource["namespace"].as_str().unwrap_or_default();
        if named != own {
            let field = "spec.resourceAttributes.namespace";
            let why = "must match metadata.namespace";
            errors.push(FieldError::invalid(field, &json!(named), why));
        }
    }
    if let Some(path) = attributes(review, "nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        errors.push(path_error(path, why));
    }
    refuse(errors)?;
    if own == namespace {
        return Ok(());
    }
    let message = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
    Err(Error::BadRequest(message))
}

fn attributes<'a>(review: &'a Value, name: &str) -> Option<&'a Value> {
    let found = review.pointer(&format!("/spec/{name}"));
    found.filter(|it| !it.is_null())
}

fn attribute_errors(review: &Value) -> Vec<FieldError> {
    let resource = attributes(review, "resourceAttributes");
    let error = match (resource, attributes(review, "nonResourceAttributes")) {
        (None, None) => Some(FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        (Some(_), Some(path)) => Some(path_error(
            path,
            "cannot be specified in combination with resourceAttributes",
        )),
        _ => None,
    };
    error.into_iter().collect()
}

fn subject_errors(review: &Value) -> Vec<FieldError> {
    let mut errors = attribute_errors(review);
    let user = subject(review);
    if user.name.is_empty() && user.groups.is_empty() {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), why));
    }
    errors.extend(selector_errors(review));
    errors
}

/// Returns the errors in the selectors of a review. Requirements with operators that are not known here are ignored:
/// newer clients may know them. Follows `validateResourceAttributes`.
fn selector_errors(review: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for member in ["fieldSelector", "labelSelector"] {
        let path = format!("spec.resourceAttributes.{member}");
        let selector = review.pointer(&format!("/spec/resourceAttributes/{member}"));
        let Some(selector) = selector.filter(|it| !it.is_null()) else {
            continue;
        };
        let raw = selector["rawSelector"].as_str().unwrap_or_default();
        let requirements = selector["requirements"].as_array();
        let requirements = requirements.map_or(&[][..], Vec::as_slice);
        match (raw.is_empty(), requirements.is_empty()) {
            (false, false) => errors.push(FieldError::invalid(
                format!("{path}.rawSelector"),
                &json!(raw),
                "may not specified at the same time as requirements",
            )),
            (true, true) => {
                let why =
                    format!("when {path} is specified, requirements or rawSelector is required");
                let field = format!("{path}.requirements");
                errors.push(FieldError::new(FieldErrorKind::Required, field, why));
            }
            _ => {}
        }
        for (index, requirement) in requirements.iter().enumerate() {
            let path = format!("{path}.requirements[{index}]");
            let of_labels = member == "labelSelector";
            errors.extend(requirement_errors(requirement, &path, of_labels));
        }
    }
    errors
}

/// Follows `ValidateFieldSelectorRequirement` and `ValidateLabelSelectorRequirement` in apimachinery's
/// pkg/apis/meta/v1/validation.
fn requirement_errors(requirement: &Value, path: &str, of_labels: bool) -> Vec<FieldError> {
    let key = requirement["key"].as_str().unwrap_or_default();
    let key_field = format!("{path}.key");
    let mut of_key: Vec<FieldError> = if of_labels {
        let wrong = formats::label_key(key).into_iter();
        let error = |why: String| FieldError::invalid(&key_field, &json!(key), why);
        wrong.map(error).collect()
    } else if key.is_empty() {
        let kind = FieldErrorKind::Required;
        vec![FieldError::new(kind, key_field, "must be specified")]
    } else {
        Vec::new()
    };
    let values = texts(&requirement["values"]);
    let values_field = format!("{path}.values");
    let of_values = match (requirement["operator"].as_str(), values.is_empty()) {
        (Some("In" | "NotIn"), true) => Some(FieldError::new(
            FieldErrorKind::Required,
            values_field.clone(),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        (Some("Exists" | "DoesNotExist"), false) => Some(FieldError::forbidden(
            values_field.clone(),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        _ => None,
    };
    // Labels' values come first in kube-apiserver, fields' keys.
    if of_labels {
        let mut errors: Vec<FieldError> = of_values.into_iter().collect();
        errors.append(&mut of_key);
        for (index, value) in values.iter().enumerate() {
            let wrong = formats::label_value(value).into_iter();
            let field = format!("{values_field}[{index}]");
            errors.extend(wrong.map(|why| FieldError::invalid(&field, &json!(value), why)));
        }
        return errors;
    }
    of_key.extend(of_values);
    of_key
}

/// Returns the error about the attributes of a path, as their Go type shows them.
fn path_error(path: &Value, why: &str) -> FieldError {
    let text = |name: &str| json!(path[name].as_str().unwrap_or_default());
    let shown = format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb"));
    let field = "spec.nonResourceAttributes";
    FieldError::new(FieldErrorKind::Invalid, field, format!("{shown}: {why}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(attributes: Value, metadata: Value) -> String {
        let review =
            json!({"metadata": metadata, "spec": {"user": "u", "resourceAttributes": attributes}});
        let errors = check_subject(&review).err().map(|it| match it {
            Error::Invalid { errors, .. } => errors,
            other => panic!("{other}"),
        });
        let errors = errors.unwrap_or_default();
        let line = |it: &FieldError| {
            let field = it.field.replace("spec.resourceAttributes.", "");
            format!("{field}: {}", it.message())
        };
        errors.iter().map(line).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn selectors_of_reviews_say_something() {
        for (attributes, why) in [
            (json!({"fieldSelector": {"rawSelector": "a=b"}}), ""),
            (
                json!({"labelSelector": {}}),
                "labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
            ),
            (
                json!({"fieldSelector": {"rawSelector": "a=b", "requirements": [
                    {"key": "a", "operator": "In", "values": ["b"]}]}}),
                "fieldSelector.rawSelector: Invalid value: \"a=b\": may not specified at the same time as requirements",
            ),
            (
                json!({"fieldSelector": {"requirements": [{"key": "a", "operator": "Exists", "values": ["b"]},
                    {"operator": "In"}, {"key": "a", "operator": "Odd"}]}}),
                "fieldSelector.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'; \
                 fieldSelector.requirements[1].key: Required value: must be specified; \
                 fieldSelector.requirements[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            (
                json!({"labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["ok"]},
                    {"key": "a", "operator": "NotIn"}]}}),
                "labelSelector.requirements[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
        ] {
            assert_eq!(wrong(attributes.clone(), Value::Null), why, "{attributes}");
        }
        let bad = json!({"labelSelector": {"requirements": [
            {"key": "a b", "operator": "In", "values": ["c d"]}]}});
        let found = wrong(bad, Value::Null);
        assert!(
            found.contains("requirements[0].key: Invalid value: \"a b\""),
            "{found}"
        );
        assert!(
            found.contains("requirements[0].values[0]: Invalid value: \"c d\""),
            "{found}"
        );
    }

    #[test]
    fn reviews_have_no_metadata() {
        assert_eq!(
            wrong(json!({}), json!({"managedFields": [{}], "name": ""})),
            ""
        );
        assert!(wrong(json!({}), json!({"name": "x"})).starts_with("metadata: Invalid value: "));
        let local = |metadata: Value| {
            let review = json!({"metadata": metadata,
                "spec": {"user": "u", "resourceAttributes": {"namespace": "n"}}});
            check_local(&review, "n").is_ok()
        };
        assert!(local(json!({"namespace": "n"})));
        assert!(!local(json!({"namespace": "n", "labels": {"a": "b"}})));
    }
}

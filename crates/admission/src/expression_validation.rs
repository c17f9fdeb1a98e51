//! Checks the expressions of webhooks and policies when they are written.
//!
//! Expressions that were there before are not looked at again: what an earlier server took is kept.

use std::collections::BTreeSet;

use imbl::OrdMap;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::{CompileError, DeclaredType, Names, RESERVED, Type, check};
use serde_json::{Value, json};

use super::expression_variables::{OptionalNames, json_patch, made_object, names, variables};

/// Maximum number of match conditions of a webhook or a policy.
const CONDITIONS_MAX: usize = 64;

/// Bytes of the expression of an audit annotation at most.
const AUDIT_EXPRESSION_BYTES_MAX: usize = 5 << 10;

/// Bytes of all expressions of an object at most. Checking as many takes seconds.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// The reasons that a validation may give.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// The ways to change an object.
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

/// Returns the errors in the match conditions of webhooks.
pub fn webhook_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let given = OptionalNames {
        authorizer: true,
        ..OptionalNames::default()
    };
    let mut reader = ExpressionReader::new(old);
    for (place, webhook) in list(object, "webhooks").iter().enumerate() {
        reader.conditions(webhook, &format!("webhooks[{place}]"), &names(given));
    }
    reader.errors
}

/// Returns the errors in a ValidatingAdmissionPolicy.
pub fn validating_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut reader = ExpressionReader::new(old);
    let known = reader.policy(object, false);
    let spec = &object["spec"];
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        for field in ["spec.validations", "spec.auditAnnotations"] {
            reader.push(FieldErrorKind::Required, field, why);
        }
    }
    for (place, validation) in list(spec, "validations").iter().enumerate() {
        reader.validation(validation, &format!("spec.validations[{place}]"), &known);
    }
    for (place, annotation) in list(spec, "auditAnnotations").iter().enumerate() {
        let at = format!("spec.auditAnnotations[{place}].valueExpression");
        let source = text(annotation, "valueExpression").trim();
        let why = match source.len() {
            0 => "valueExpression is not specified".to_owned(),
            length if length > AUDIT_EXPRESSION_BYTES_MAX => {
                format!("must not exceed {AUDIT_EXPRESSION_BYTES_MAX} bytes in length")
            }
            _ => {
                reader.expression(source, &at, &[Type::String, Type::Null], &known.names);
                continue;
            }
        };
        reader.push(FieldErrorKind::Required, &at, &why);
    }
    reader.errors
}

/// Returns the errors in a MutatingAdmissionPolicy.
pub fn mutating_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut reader = ExpressionReader::new(old);
    let known = reader.policy(object, true);
    let spec = &object["spec"];
    let mutations = list(spec, "mutations");
    if mutations.is_empty() {
        let why = "mutations must contain at least one item";
        reader.push(FieldErrorKind::Required, "spec.mutations", why);
    }
    for (place, mutation) in mutations.iter().enumerate() {
        reader.mutation(mutation, &format!("spec.mutations[{place}]"), &known.names);
    }
    match text(spec, "reinvocationPolicy") {
        "" => reader.push(FieldErrorKind::Required, "spec.reinvocationPolicy", ""),
        other => reader.among(other, "spec.reinvocationPolicy", &["IfNeeded", "Never"]),
    }
    reader.errors
}

/// The names that the expressions of a policy may use.
pub(crate) struct PolicyNames {
    names: Names,
    /// The names that message expressions may use.
    of_messages: Names,
}

/// Returns the errors in the kind of a policy's parameters. Follows `validateParamKind` in
/// pkg/apis/admissionregistration/validation/validation.go of Kubernetes 1.36.
fn param_kind_errors(param_kind: &Value) -> Vec<FieldError> {
    const VERSION: &str = "spec.paramKind.apiVersion";
    const KIND: &str = "spec.paramKind.kind";
    let mut errors = Vec::new();
    let mut invalid = |field: &str, value: &str, why: &str| {
        errors.push(FieldError::invalid(field, &value.into(), why));
    };
    let [api_version, kind] = ["apiVersion", "kind"].map(|it| text(param_kind, it));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.contains('/') {
        let why = format!("unexpected GroupVersion string: {api_version}");
        invalid(VERSION, api_version, &why);
    } else if !api_version.is_empty() {
        let wrong = formats::dns_subdomain(group);
        if !group.is_empty() && !wrong.is_empty() {
            invalid(VERSION, group, &wrong.join(","));
        }
        let wrong = formats::dns_1035_label(version);
        if version.is_empty() {
            invalid(VERSION, api_version, "version must be specified");
        } else if !wrong.is_empty() {
            invalid(VERSION, version, &wrong.join(","));
        }
    }
    let wrong = formats::dns_1035_label(&kind.to_lowercase());
    if !kind.is_empty() && !wrong.is_empty() {
        let why = format!(
            "may have mixed case, but should otherwise match: {}",
            wrong.join(",")
        );
        invalid(KIND, kind, &why);
    }
    for (field, value) in [(VERSION, api_version), (KIND, kind)] {
        if value.is_empty() {
            errors.push(FieldError::new(FieldErrorKind::Required, field, ""));
        }
    }
    errors
}

/// Returns the name of a type as `Type.String` of cel-go writes it, which is longer than in the checker's messages.
fn full_name(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::List(of) => format!("list({})", full_name(of)),
        Type::Map(key, value) => format!("map({}, {})", full_name(key), full_name(value)),
        Type::Optional(of) => format!("optional_type({})", full_name(of)),
        other => other.to_string(),
    }
}

/// Returns true for a text of white space alone.
fn is_blank(text: &str) -> bool {
    !text.is_empty() && text.trim().is_empty()
}

struct ExpressionReader<'o> {
    /// Expressions that were there before.
    known: BTreeSet<&'o str>,
    /// Bytes of the expressions so far.
    bytes: usize,
    errors: Vec<FieldError>,
}

impl<'o> ExpressionReader<'o> {
    fn new(old: Option<&'o Value>) -> Self {
        let mut known = BTreeSet::new();
        if let Some(old) = old {
            expressions(old, &mut known);
        }
        Self {
            known,
            bytes: 0,
            errors: Vec::new(),
        }
    }

    fn push(&mut self, kind: FieldErrorKind, field: &str, why: &str) {
        self.errors.push(FieldError::new(kind, field, why));
    }

    fn among(&mut self, value: &str, field: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            let quoted: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
            let why = format!("{value:?}: supported values: {}", quoted.join(", "));
            self.push(FieldErrorKind::NotSupported, field, &why);
        }
    }

    /// Checks the parts that policies of both kinds have, and returns the names that their expressions may use.
    fn policy(&mut self, object: &Value, mutations: bool) -> PolicyNames {
        let spec = &object["spec"];
        let param_kind = get(spec, "paramKind").filter(|it| it.is_object());
        let given = OptionalNames {
            params: param_kind.is_some(),
            authorizer: true,
            mutations,
        };
        if let Some(param_kind) = param_kind {
            self.errors.extend(param_kind_errors(param_kind));
        }
        if !get(spec, "matchConstraints").is_some_and(Value::is_object) {
            self.push(FieldErrorKind::Required, "spec.matchConstraints", "");
        } else if list(spec, "matchConstraints.resourceRules").is_empty() {
            let field = "spec.matchConstraints.resourceRules";
            self.push(FieldErrorKind::Required, field, "");
        }
        let mut plain = names(given);
        self.conditions(
            spec,
            "spec",
            &names(OptionalNames {
                mutations: false,
                ..given
            }),
        );
        let known = self.variables(spec, &mut plain);
        let mut of_messages = names(OptionalNames {
            authorizer: false,
            mutations: false,
            ..given
        });
        of_messages.add("variables", variables(&known));
        PolicyNames {
            names: plain,
            of_messages,
        }
    }

    fn conditions(&mut self, holder: &Value, path: &str, names: &Names) {
        let conditions = list(holder, "matchConditions");
        if conditions.len() > CONDITIONS_MAX {
            let why = format!(
                "{}: must have at most {CONDITIONS_MAX} items",
                conditions.len()
            );
            self.push(
                FieldErrorKind::TooMany,
                &format!("{path}.matchConditions"),
                &why,
            );
            return;
        }
        let mut seen = BTreeSet::new();
        for (place, condition) in conditions.iter().enumerate() {
            let path = format!("{path}.matchConditions[{place}]");
            self.expression(
                text(condition, "expression"),
                &format!("{path}.expression"),
                &[Type::Bool],
                names,
            );
            let name = text(condition, "name");
            let field = format!("{path}.name");
            if name.is_empty() {
                self.push(FieldErrorKind::Required, &field, "");
                continue;
            }
            let wrong = formats::label_key(name).into_iter();
            self.errors
                .extend(wrong.map(|why| FieldError::invalid(&field, &json!(name), why)));
            if !seen.insert(name) {
                self.push(FieldErrorKind::Duplicate, &field, &json!(name).to_string());
            }
        }
    }

    /// Returns the types of the variables, each of which sees those before it.
    fn variables(&mut self, spec: &Value, names: &mut Names) -> OrdMap<String, DeclaredType> {
        let mut known = OrdMap::new();
        for (place, variable) in list(spec, "variables").iter().enumerate() {
            names.add("variables", variables(&known));
            let path = format!("spec.variables[{place}]");
            let (name, source) = (text(variable, "name"), text(variable, "expression"));
            let field = format!("{path}.name");
            if name.trim().is_empty() {
                self.push(FieldErrorKind::Required, &field, "name is not specified");
            } else if !is_identifier(name) {
                let why = "must be a valid CEL identifier";
                self.errors
                    .push(FieldError::invalid(field, &json!(name), why));
            } else if known.contains_key(name) {
                self.push(FieldErrorKind::Duplicate, &field, &json!(name).to_string());
            }
            let field = format!("{path}.expression");
            let of = if source.trim().is_empty() {
                let why = "expression is not specified";
                self.push(FieldErrorKind::Required, &field, why);
                Type::Dyn
            } else {
                self.expression(source, &field, &[], names)
            };
            known.insert(name.to_owned(), DeclaredType::unsized_(of));
        }
        names.add("variables", variables(&known));
        known
    }

    fn validation(&mut self, validation: &Value, path: &str, known: &PolicyNames) {
        let source = text(validation, "expression");
        let field = format!("{path}.expression");
        if source.trim().is_empty() {
            self.push(
                FieldErrorKind::Required,
                &field,
                "expression is not specified",
            );
        } else {
            self.expression(source, &field, &[Type::Bool], &known.names);
        }
        let made = text(validation, "messageExpression");
        let field = format!("{path}.messageExpression");
        if is_blank(made) {
            self.blank(made, field);
        } else if !made.is_empty() {
            self.expression(made, &field, &[Type::String], &known.of_messages);
        }
        let message = text(validation, "message");
        let field = format!("{path}.message");
        if is_blank(message) {
            self.blank(message, field);
        } else if message.trim().contains(['\n', '\r']) {
            let why = "must not contain line breaks";
            let error = FieldError::invalid(field, &json!(message), why);
            self.errors.push(error);
        }
        // It is a pointer to Kubernetes: an empty one is there too.
        if let Some(reason) = get(validation, "reason").and_then(Value::as_str) {
            self.among(reason, &format!("{path}.reason"), &REASONS);
        }
    }

    /// Adds the error of a text that is there, but blank.
    fn blank(&mut self, text: &str, field: String) {
        let why = "must be non-empty if specified";
        self.errors
            .push(FieldError::invalid(field, &json!(text), why));
    }

    fn mutation(&mut self, mutation: &Value, path: &str, names: &Names) {
        let patch_type = text(mutation, "patchType");
        let (member, gives) = match patch_type {
            "ApplyConfiguration" => ("applyConfiguration", made_object()),
            "JSONPatch" => ("jsonPatch", Type::list(json_patch())),
            "" => return self.push(FieldErrorKind::Required, &format!("{path}.patchType"), ""),
            other => return self.among(other, &format!("{path}.patchType"), &PATCH_TYPES),
        };
        let field = format!("{path}.{member}");
        if !get(mutation, member).is_some_and(Value::is_object) {
            let why = format!("must be specified when patchType is {patch_type}");
            return self.push(FieldErrorKind::Required, &field, &why);
        }
        let source = text(mutation, &format!("{member}.expression"));
        self.expression(source, &format!("{field}.expression"), &[gives], names);
    }

    /// Returns the type of an expression, which must be one of these, if there are any.
    fn expression(&mut self, source: &str, field: &str, gives: &[Type], names: &Names) -> Type {
        if source.trim().is_empty() {
            self.push(FieldErrorKind::Required, field, "");
            return Type::Dyn;
        }
        self.bytes += source.len();
        if self.bytes > EXPRESSION_BYTES_MAX {
            self.errors.push(too_large(field));
            return Type::Dyn;
        }
        let why = match check(source, names) {
            Ok(checked) if gives.is_empty() || gives.contains(&checked.gives) => {
                return checked.gives;
            }
            Ok(checked) => match gives {
                [one] => format!(
                    "must evaluate to {one} but got {}",
                    full_name(&checked.gives)
                ),
                _ => {
                    let all: Vec<String> = gives.iter().map(full_name).collect();
                    let (all, found) = (all.join(" "), full_name(&checked.gives));
                    format!("must evaluate to one of [{all}] but got {found}")
                }
            },
            Err(CompileError::TooLarge) => {
                self.errors.push(too_large(field));
                return Type::Dyn;
            }
            Err(error) => format!("compilation failed: {error}"),
        };
        if !self.known.contains(source) {
            self.errors
                .push(FieldError::invalid(field, &json!(source), why));
        }
        Type::Dyn
    }
}

fn too_large(field: &str) -> FieldError {
    let why = "compilation failed: expression is too large";
    FieldError::invalid(field, &json!(""), why)
}

fn is_identifier(name: &str) -> bool {
    let letter = |it: char| it.is_ascii_alphabetic() || it == '_';
    !RESERVED.contains(&name)
        && name.starts_with(letter)
        && name.chars().all(|it| letter(it) || it.is_ascii_digit())
}

/// Collects all expressions of a configuration or policy.
fn expressions<'o>(object: &'o Value, all: &mut BTreeSet<&'o str>) {
    match object {
        Value::Array(items) => items.iter().for_each(|it| expressions(it, all)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name.to_lowercase().ends_with("expression") => {
                        all.insert(text);
                    }
                    other => expressions(other, all),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_a_version_and_a_kind() {
        for (version, kind, fields) in [
            ("v1", "ConfigMap", &[][..]),
            ("example.com/v1", "K", &[]),
            (
                "",
                "",
                &["spec.paramKind.apiVersion", "spec.paramKind.kind"],
            ),
            ("Example/v1", "K", &["spec.paramKind.apiVersion"]),
            ("example.com/", "K", &["spec.paramKind.apiVersion"]),
            ("a/b/c", "K", &["spec.paramKind.apiVersion"]),
            (
                "v1_",
                "1K",
                &["spec.paramKind.apiVersion", "spec.paramKind.kind"],
            ),
        ] {
            let errors = param_kind_errors(&json!({"apiVersion": version, "kind": kind}));
            let found: Vec<_> = errors.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(found, fields, "{version} {kind}");
        }
    }

    #[test]
    fn what_was_there_before_is_kept() {
        let webhook = |expression: &str| {
            let conditions = json!([{"name": "c", "expression": expression}]);
            json!({"webhooks": [{"matchConditions": conditions}]})
        };
        let (bad, worse) = (webhook("no such language"), webhook("neither that"));
        assert_eq!(webhook_errors(&bad, None).len(), 1);
        assert_eq!(webhook_errors(&bad, Some(&bad)), []);
        assert_eq!(webhook_errors(&worse, Some(&bad)).len(), 1);
    }

    #[test]
    fn each_variable_sees_those_before_it() {
        let variable = |number: usize| match number {
            0 => json!({"name": "v0", "expression": "1"}),
            _ => {
                json!({"name": format!("v{number}"), "expression": format!("variables.v{}", number - 1)})
            }
        };
        let policy = |count: usize| {
            let variables: Vec<Value> = (0..count).map(variable).collect();
            let last = format!("variables.v{} == 1", count - 1);
            json!({"spec": {"variables": variables, "validations": [{"expression": last}],
                "matchConstraints": {"resourceRules": [{}]}}})
        };
        assert_eq!(validating_errors(&policy(500), None), []);
        let mut unknown = policy(3);
        unknown["spec"]["variables"][1]["expression"] = "variables.v2".into();
        let errors = validating_errors(&unknown, None);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].message().contains("undefined field 'v2'"));
    }

    #[test]
    fn expressions_have_so_many_bytes_together() {
        let long = format!("'{}' == ''", "a".repeat(16_000));
        let policy = |count: usize| {
            json!({"spec": {"validations": vec![json!({"expression": long}); count],
                "matchConstraints": {"resourceRules": [{}]}}})
        };
        assert_eq!(validating_errors(&policy(65), None), []);
        let errors = validating_errors(&policy(67), None);
        let fields: Vec<&str> = errors.iter().map(|it| it.field.as_str()).collect();
        let last = [65, 66].map(|it| format!("spec.validations[{it}].expression"));
        assert_eq!(fields, last);
        assert!(errors[0].message().contains("expression is too large"));
    }

    #[test]
    fn too_many_conditions_are_not_looked_at() {
        let condition = |number: usize| json!({"name": format!("c{number}"), "expression": "?"});
        let conditions: Vec<Value> = (0..65).map(condition).collect();
        let errors = webhook_errors(
            &json!({"webhooks": [{"matchConditions": conditions}]}),
            None,
        );
        assert_eq!(errors.len(), 1);
        assert_eq!(
            errors[0].message(),
            "Too many: 65: must have at most 64 items"
        );
    }
}

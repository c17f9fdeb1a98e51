//! Checks the expressions of webhooks and policies when they are written.
//!
//! Follows pkg/apis/admissionregistration/validation/validation.go of Kubernetes 1.36. The fields beside the
//! expressions are checked by whoever asks for these.

use std::collections::BTreeSet;

use imbl::OrdMap;
use ringwatch_apimachinery::go_text::quoted;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind, GroupVersion};
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

/// The names that an expression may use.
#[derive(Clone, Copy, Debug)]
enum Sees {
    /// The names of match conditions, which see no variables.
    Conditions,
    /// The names of variables, validations and audit annotations.
    Variables,
    /// The names of mutations, which make objects and patches.
    Mutations,
    /// The names of messages, which ask no authorizer.
    Messages,
}

/// The checks of the expressions of one webhook configuration or policy, which the caller asks for part by part: the
/// errors of other fields come between theirs.
///
/// Errors of an expression that the older object has in the same field of any item are not told as long as the names
/// that it may use are the same: what an earlier server took is kept.
#[derive(Debug)]
pub struct ExpressionChecks<'o> {
    /// The expressions that were there before, where the same names could be used, without the space around them. Each
    /// has the path of its field without indexes: elsewhere it may have to give another type.
    known: BTreeSet<(String, &'o str)>,
    /// Bytes of the expressions so far.
    bytes: usize,
    /// The names that match conditions may use.
    of_conditions: Names,
    /// The names that variables, validations and audit annotations may use.
    of_variables: Names,
    /// The names that mutations may use.
    of_mutations: Names,
    /// The names that message expressions may use.
    of_messages: Names,
    errors: Vec<FieldError>,
}

impl<'o> ExpressionChecks<'o> {
    /// Returns the checks of a webhook configuration, which is new or replaces an older one.
    #[must_use]
    pub fn of_webhooks(old: Option<&'o Value>) -> Self {
        let given = OptionalNames {
            authorizer: true,
            ..OptionalNames::default()
        };
        Self::new(given, old)
    }

    /// Returns the checks of a policy, which is new or replaces an older one.
    #[must_use]
    pub fn of_policy(policy: &Value, old: Option<&'o Value>) -> Self {
        let given = OptionalNames {
            params: has_parameters(policy),
            authorizer: true,
            mutations: false,
        };
        let sees_the_same = |old: &&Value| {
            has_parameters(old) == given.params
                && list(old, "spec.variables") == list(policy, "spec.variables")
        };
        Self::new(given, old.filter(sees_the_same))
    }

    fn new(given: OptionalNames, old: Option<&'o Value>) -> Self {
        let known = old.map(expressions).unwrap_or_default();
        Self {
            known,
            bytes: 0,
            of_conditions: names(given),
            of_variables: names(given),
            of_mutations: names(OptionalNames {
                mutations: true,
                ..given
            }),
            of_messages: names(OptionalNames {
                authorizer: false,
                ..given
            }),
            errors: Vec::new(),
        }
    }

    /// Returns the errors of a part, which have been found since the last one.
    fn found(&mut self) -> Vec<FieldError> {
        std::mem::take(&mut self.errors)
    }
}

/// Returns true if a policy has parameters.
fn has_parameters(policy: &Value) -> bool {
    get(policy, "spec.paramKind").is_some_and(Value::is_object)
}

/// Returns the errors in the `paramKind` of a policy, if it has one. Follows `validateParamKind` in
/// pkg/apis/admissionregistration/validation/validation.go of Kubernetes 1.36.
#[must_use]
pub fn param_kind_errors(policy: &Value) -> Vec<FieldError> {
    let param_kind = get(policy, "spec.paramKind").filter(|it| it.is_object());
    param_kind.map(wrong_param_kind).unwrap_or_default()
}

fn wrong_param_kind(param_kind: &Value) -> Vec<FieldError> {
    const VERSION: &str = "spec.paramKind.apiVersion";
    const KIND: &str = "spec.paramKind.kind";
    let mut errors = Vec::new();
    let invalid =
        |field: &str, value: &str, why: &str| FieldError::invalid(field, &value.into(), why);
    let [api_version, kind] = ["apiVersion", "kind"].map(|it| text(param_kind, it));
    if api_version.is_empty() {
        errors.push(FieldError::required(VERSION));
    } else if let Some(GroupVersion { group, version }) = GroupVersion::parse(api_version) {
        let wrong = formats::dns_subdomain(&group);
        if !group.is_empty() && !wrong.is_empty() {
            errors.push(invalid(VERSION, &group, &wrong.join(",")));
        }
        let wrong = formats::dns_1035_label(&version);
        if version.is_empty() {
            errors.push(invalid(VERSION, api_version, "version must be specified"));
        } else if !wrong.is_empty() {
            errors.push(invalid(VERSION, &version, &wrong.join(",")));
        }
    } else {
        let why = format!("unexpected GroupVersion string: {api_version}");
        errors.push(invalid(VERSION, api_version, &why));
    }
    let wrong = formats::dns_1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        errors.push(FieldError::required(KIND));
    } else if !wrong.is_empty() {
        let why = format!(
            "may have mixed case, but should otherwise match: {}",
            wrong.join(",")
        );
        errors.push(invalid(KIND, kind, &why));
    }
    errors
}

/// Returns true for a text of white space alone.
fn is_blank(text: &str) -> bool {
    !text.is_empty() && text.trim().is_empty()
}

/// The checks of parts.
impl ExpressionChecks<'_> {
    /// Returns the errors in the match conditions of a webhook or of a policy's spec, which is at a path. Follows
    /// `validateMatchConditions`.
    pub fn match_conditions(&mut self, holder: &Value, path: &str) -> Vec<FieldError> {
        let conditions = list(holder, "matchConditions");
        let path = format!("{path}.matchConditions");
        if conditions.len() > CONDITIONS_MAX {
            let why = format!(
                "{}: must have at most {CONDITIONS_MAX} items",
                conditions.len()
            );
            self.push(FieldErrorKind::TooMany, &path, &why);
        }
        let mut seen = BTreeSet::new();
        for (place, condition) in conditions.iter().enumerate() {
            let field = format!("{path}[{place}].expression");
            let source = text(condition, "expression").trim();
            self.required_expression(source, &field, &[Type::Bool], Sees::Conditions);
            let name = text(condition, "name");
            let field = format!("{path}[{place}].name");
            if name.is_empty() {
                self.push(FieldErrorKind::Required, &field, "");
                continue;
            }
            let wrong = formats::label_key(name).into_iter();
            self.errors
                .extend(wrong.map(|why| FieldError::invalid(&field, &json!(name), why)));
            if !seen.insert(name) {
                self.push(FieldErrorKind::Duplicate, &field, &quoted(name));
            }
        }
        self.found()
    }

    /// Returns the errors in the variables of a policy, of which each sees those before it. The other expressions see
    /// all; without any, the expressions of a policy that changes objects may name them too. Follows
    /// `validateVariable`.
    pub fn variables(&mut self, policy: &Value, mutates: bool) -> Vec<FieldError> {
        let list = list(policy, "spec.variables");
        if list.is_empty() && !mutates {
            return Vec::new();
        }
        let mut known = OrdMap::new();
        for (place, variable) in list.iter().enumerate() {
            self.of_variables.add("variables", variables(&known));
            let path = format!("spec.variables[{place}]");
            let (name, source) = (text(variable, "name"), text(variable, "expression"));
            let field = format!("{path}.name");
            if name.trim().is_empty() {
                self.push(FieldErrorKind::Required, &field, "name is not specified");
            } else if !is_identifier(name) {
                let why = "must be a valid CEL identifier";
                self.errors
                    .push(FieldError::invalid(field, &json!(name), why));
            }
            let field = format!("{path}.expression");
            if source.trim().is_empty() {
                let why = "expression is not specified";
                self.push(FieldErrorKind::Required, &field, why);
            } else {
                let of = self.expression(source, &field, &[], Sees::Variables);
                known.insert(name.to_owned(), DeclaredType::unsized_(of));
            }
        }
        for names in [
            &mut self.of_variables,
            &mut self.of_mutations,
            &mut self.of_messages,
        ] {
            names.add("variables", variables(&known));
        }
        self.found()
    }

    /// Returns the errors in a validation of a policy, which is at a path. Follows `validateValidation`.
    pub fn validation(&mut self, validation: &Value, path: &str) -> Vec<FieldError> {
        let source = text(validation, "expression");
        let field = format!("{path}.expression");
        if source.trim().is_empty() {
            let why = "expression is not specified";
            self.push(FieldErrorKind::Required, &field, why);
        } else {
            self.expression(source, &field, &[Type::Bool], Sees::Variables);
        }
        let made = text(validation, "messageExpression");
        let field = format!("{path}.messageExpression");
        if is_blank(made) {
            self.blank(made, field);
        } else if !made.is_empty() {
            self.expression(made, &field, &[Type::String], Sees::Messages);
        }
        let message = text(validation, "message");
        let field = format!("{path}.message");
        if is_blank(message) {
            self.blank(message, field);
        } else if message.trim().contains(['\n', '\r']) {
            let why = "must not contain line breaks";
            self.errors
                .push(FieldError::invalid(field, &json!(message), why));
        }
        // It is a pointer to Kubernetes: an empty one is there too.
        if let Some(reason) = get(validation, "reason").and_then(Value::as_str) {
            self.among(reason, &format!("{path}.reason"), &REASONS);
        }
        self.found()
    }

    /// Returns the errors in the value of an audit annotation of a policy, which is at a path. Follows
    /// `validateAuditAnnotation`.
    pub fn audit_value(&mut self, annotation: &Value, path: &str) -> Vec<FieldError> {
        let field = format!("{path}.valueExpression");
        let written = text(annotation, "valueExpression");
        let source = written.trim();
        if source.is_empty() {
            let why = "valueExpression is not specified";
            self.push(FieldErrorKind::Required, &field, why);
        } else if source.len() > AUDIT_EXPRESSION_BYTES_MAX {
            let why = format!("must not exceed {AUDIT_EXPRESSION_BYTES_MAX} bytes in length");
            self.push(FieldErrorKind::Required, &field, &why);
        } else {
            let gives = [Type::String, Type::Null];
            self.shown_expression(source, written, &field, &gives, Sees::Variables);
        }
        self.found()
    }

    /// Returns the errors in a mutation of a policy, which is at a path. Follows `validateMutation`.
    pub fn mutation(&mut self, mutation: &Value, path: &str) -> Vec<FieldError> {
        const APPLY: &str = "applyConfiguration";
        const PATCH: &str = "jsonPatch";
        let patch_type = text(mutation, "patchType");
        let field = format!("{path}.patchType");
        let (own, other, gives) = match patch_type {
            "ApplyConfiguration" => (APPLY, PATCH, made_object()),
            "JSONPatch" => (PATCH, APPLY, Type::list(json_patch())),
            "" => {
                self.push(FieldErrorKind::Required, &field, "");
                return self.found();
            }
            other => {
                self.among(other, &field, &PATCH_TYPES);
                return self.found();
            }
        };
        let is_set = |member: &str| get(mutation, member).is_some_and(Value::is_object);
        if is_set(own) {
            let source = text(mutation, &format!("{own}.expression")).trim();
            let field = format!("{path}.{own}.expression");
            self.required_expression(source, &field, &[gives], Sees::Mutations);
        } else {
            let why = format!("must be specified when patchType is {patch_type}");
            self.push(FieldErrorKind::Required, &format!("{path}.{own}"), &why);
        }
        if is_set(other) {
            let why = format!("must not be specified when patchType is {patch_type}");
            let shown = json!(format!("{{{other}}}"));
            self.errors
                .push(FieldError::invalid(format!("{path}.{other}"), &shown, why));
        }
        self.found()
    }
}

impl ExpressionChecks<'_> {
    fn push(&mut self, kind: FieldErrorKind, field: &str, why: &str) {
        self.errors.push(FieldError::new(kind, field, why));
    }

    fn among(&mut self, value: &str, field: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            let all: Vec<String> = supported.iter().map(|it| quoted(it)).collect();
            let why = format!("{}: supported values: {}", quoted(value), all.join(", "));
            self.push(FieldErrorKind::NotSupported, field, &why);
        }
    }

    /// Adds the error of a text that is there, but blank.
    fn blank(&mut self, text: &str, field: String) {
        let why = "must be non-empty if specified";
        self.errors
            .push(FieldError::invalid(field, &json!(text), why));
    }

    /// Checks an expression that may not be empty.
    fn required_expression(&mut self, source: &str, field: &str, gives: &[Type], sees: Sees) {
        if source.is_empty() {
            self.push(FieldErrorKind::Required, field, "");
        } else {
            self.expression(source, field, gives, sees);
        }
    }

    /// Returns the type of an expression, which must be one of these, if there are any.
    fn expression(&mut self, source: &str, field: &str, gives: &[Type], sees: Sees) -> Type {
        self.shown_expression(source, source, field, gives, sees)
    }

    /// Returns the type of an expression, which errors show as it is written.
    fn shown_expression(
        &mut self,
        source: &str,
        written: &str,
        field: &str,
        gives: &[Type],
        sees: Sees,
    ) -> Type {
        self.bytes += source.len();
        if self.bytes > EXPRESSION_BYTES_MAX {
            self.errors.push(too_large(field));
            return Type::Dyn;
        }
        let names = match sees {
            Sees::Conditions => &self.of_conditions,
            Sees::Variables => &self.of_variables,
            Sees::Mutations => &self.of_mutations,
            Sees::Messages => &self.of_messages,
        };
        let why = match check(source, names) {
            Ok(checked) if gives.is_empty() || gives.contains(&checked.gives) => {
                return checked.gives;
            }
            Ok(checked) => match gives {
                [one] => format!(
                    "must evaluate to {one} but got {}",
                    checked.gives.full_name()
                ),
                _ => {
                    let all: Vec<String> = gives.iter().map(Type::full_name).collect();
                    let (all, found) = (all.join(" "), checked.gives.full_name());
                    format!("must evaluate to one of [{all}] but got {found}")
                }
            },
            Err(CompileError::TooLarge) => {
                self.errors.push(too_large(field));
                return Type::Dyn;
            }
            Err(error) => error.detail(),
        };
        if !self
            .known
            .contains(&(without_indexes(field), source.trim()))
        {
            self.errors
                .push(FieldError::invalid(field, &json!(written), why));
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

/// Returns a path without the indexes of items of lists.
fn without_indexes(field: &str) -> String {
    let parts = field.split('[').map(|part| match part.split_once(']') {
        Some((_, rest)) => rest,
        None => part,
    });
    parts.collect()
}

/// Collects the expressions of a configuration or policy.
fn expressions(object: &Value) -> BTreeSet<(String, &str)> {
    let mut all = BTreeSet::new();
    // Metadata has none, but names that clients choose.
    for part in ["spec", "webhooks"] {
        if let Some(value) = object.get(part) {
            expressions_in(value, &mut vec![part], &mut all);
        }
    }
    all
}

/// Collects the expressions in a part, around which are members of these names.
fn expressions_in<'o>(
    part: &'o Value,
    around: &mut Vec<&'o str>,
    all: &mut BTreeSet<(String, &'o str)>,
) {
    match part {
        Value::Array(items) => items.iter().for_each(|it| expressions_in(it, around, all)),
        Value::Object(members) => {
            for (name, value) in members {
                around.push(name);
                match value {
                    Value::String(text) if name.to_lowercase().ends_with("expression") => {
                        all.insert((around.join("."), text.trim()));
                    }
                    other => expressions_in(other, around, all),
                }
                around.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut checks = ExpressionChecks::of_webhooks(old);
        let webhooks = list(object, "webhooks").iter().enumerate();
        let errors =
            webhooks.map(|(place, it)| checks.match_conditions(it, &format!("webhooks[{place}]")));
        errors.flatten().collect()
    }

    fn validating_errors(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut checks = ExpressionChecks::of_policy(policy, old);
        let mut errors = checks.variables(policy, false);
        for (place, it) in list(policy, "spec.validations").iter().enumerate() {
            errors.extend(checks.validation(it, &format!("spec.validations[{place}]")));
        }
        errors
    }

    fn lines(errors: &[FieldError]) -> Vec<String> {
        let lines = errors.iter();
        lines
            .map(|it| format!("{}: {}", it.field, it.message()))
            .collect()
    }

    #[test]
    fn parameters_have_a_version_and_a_kind() {
        for (version, kind, fields) in [
            ("v1", "ConfigMap", &[][..]),
            ("example.com/v1", "K", &[]),
            ("", "", &["apiVersion", "kind"]),
            ("Example/v1", "K", &["apiVersion"]),
            ("example.com/", "K", &["apiVersion"]),
            ("a/b/c", "K", &["apiVersion"]),
            ("v1_", "1K", &["apiVersion", "kind"]),
            ("", "1K", &["apiVersion", "kind"]),
        ] {
            let errors = wrong_param_kind(&json!({"apiVersion": version, "kind": kind}));
            let found: Vec<_> = errors.iter().map(|it| it.field.as_str()).collect();
            let fields: Vec<_> = fields
                .iter()
                .map(|it| format!("spec.paramKind.{it}"))
                .collect();
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
    fn what_was_there_before_is_judged_anew_in_another_field() {
        let policy = |mutation: &str| {
            json!({"spec": {"matchConditions": [{"name": "c", "expression": "true"}],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": mutation}}]}})
        };
        let (old, new) = (
            policy("[JSONPatch{op: 'remove', path: '/x'}]"),
            policy("true "),
        );
        for (old, errors) in [(&old, 1), (&new, 0)] {
            let mut checks = ExpressionChecks::of_policy(&new, Some(old));
            let mutation = &new["spec"]["mutations"][0];
            let found = checks.mutation(mutation, "spec.mutations[0]");
            assert_eq!(found.len(), errors, "{found:?}");
        }
    }

    #[test]
    fn what_was_there_before_is_judged_anew_when_it_sees_less() {
        let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let policy = |kind: &Value, variables: Value| {
            json!({"spec": {"paramKind": kind, "variables": variables,
                "validations": [{"expression": "params.a == 1 && variables.b"}]}})
        };
        let variable = json!([{"name": "b", "expression": "true"}]);
        let old = policy(&kind, variable.clone());
        assert_eq!(validating_errors(&old, Some(&old)), []);
        for (new, missing) in [
            (
                policy(&Value::Null, variable),
                "undeclared reference to 'params'",
            ),
            (
                policy(&kind, json!([])),
                "undeclared reference to 'variables'",
            ),
        ] {
            let errors = validating_errors(&new, Some(&old));
            assert_eq!(errors.len(), 1);
            assert!(errors[0].detail.contains(missing), "{errors:?}");
        }
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
            json!({"spec": {"variables": variables, "validations": [{"expression": last}]}})
        };
        assert_eq!(validating_errors(&policy(500), None), []);
        let mut unknown = policy(3);
        unknown["spec"]["variables"][1]["expression"] = "variables.v2".into();
        let errors = validating_errors(&unknown, None);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].message().contains("undefined field 'v2'"));
        let mut twice = policy(3);
        twice["spec"]["variables"][2]["name"] = "v0".into();
        twice["spec"]["validations"][0]["expression"] = "variables.v0 == 1".into();
        assert_eq!(validating_errors(&twice, None), [], "the last one counts");
    }

    #[test]
    fn expressions_have_so_many_bytes_together() {
        let long = format!("'{}' == ''", "a".repeat(16_000));
        let policy = |count: usize| json!({"spec": {"validations": vec![json!({"expression": long}); count]}});
        assert_eq!(validating_errors(&policy(65), None), []);
        let errors = validating_errors(&policy(67), None);
        let fields: Vec<&str> = errors.iter().map(|it| it.field.as_str()).collect();
        let last = [65, 66].map(|it| format!("spec.validations[{it}].expression"));
        assert_eq!(fields, last);
        assert!(errors[0].message().contains("expression is too large"));
    }

    #[test]
    fn too_many_conditions_are_told_beside_what_is_wrong_in_them() {
        let condition =
            |number: usize| json!({"name": format!("c{number}"), "expression": " true "});
        let mut conditions: Vec<Value> = (0..65).map(condition).collect();
        conditions[3] = json!({"name": "c2", "expression": " "});
        let object = json!({"webhooks": [{"matchConditions": conditions}]});
        assert_eq!(
            lines(&webhook_errors(&object, None)),
            [
                "webhooks[0].matchConditions: Too many: 65: must have at most 64 items",
                "webhooks[0].matchConditions[3].expression: Required value",
                "webhooks[0].matchConditions[3].name: Duplicate value: \"c2\"",
            ]
        );
    }

    #[test]
    fn a_mutation_has_the_expression_of_its_type_alone() {
        let policy = json!({"spec": {}});
        let wrong = |mutation: Value| {
            let mut checks = ExpressionChecks::of_policy(&policy, None);
            let mut errors = checks.variables(&policy, true);
            errors.extend(checks.mutation(&mutation, "m"));
            lines(&errors)
        };
        let apply = json!({"expression": "Object{}"});
        let patch = json!({"expression": " [JSONPatch{op: 'remove', path: '/spec'}] "});
        for (mutation, expected) in [
            (
                json!({"patchType": "ApplyConfiguration", "applyConfiguration": apply}),
                vec![],
            ),
            (
                json!({"patchType": "JSONPatch", "jsonPatch": patch}),
                vec![],
            ),
            (json!({}), vec!["m.patchType: Required value"]),
            (
                json!({"patchType": "JSONPatch", "applyConfiguration": apply}),
                vec![
                    "m.jsonPatch: Required value: must be specified when patchType is JSONPatch",
                    "m.applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is JSONPatch",
                ],
            ),
            (
                json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": " "}, "jsonPatch": patch}),
                vec![
                    "m.applyConfiguration.expression: Required value",
                    "m.jsonPatch: Invalid value: \"{jsonPatch}\": must not be specified when patchType is ApplyConfiguration",
                ],
            ),
        ] {
            assert_eq!(wrong(mutation), expected);
        }
    }
}

//! Validation of the schemas of a CustomResourceDefinition, in kube-apiserver's order.

use std::collections::BTreeMap;

use ringwatch_apiextensions::schema::{
    DEFINED_IN, Patterns, RuleCheck, Strictness, StructuralSchema, has_defaults,
};
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::internal_form;

/// Versions without a schema that errors tell of.
const MISSING_TOLD_MAX: usize = 10_000;

/// Returns the schemas of a definition: that of all versions, and those of each.
pub(super) fn schemas(object: &Value) -> impl Iterator<Item = &Value> {
    let shared = get(object, "spec.validation.openAPIV3Schema");
    let versions = list(object, "spec.versions").iter();
    let own = versions.filter_map(|version| get(version, "schema.openAPIV3Schema"));
    shared.into_iter().chain(own)
}

/// Returns the schemas of a stored definition that can be read, by whichever rules it was accepted.
pub(super) fn readable(object: &Value) -> Vec<StructuralSchema> {
    let preserve = get(object, "spec.preserveUnknownFields") == Some(&Value::Bool(true));
    let mut patterns = Patterns::default();
    let read = |schema| {
        let followed = Strictness::of([schema].into_iter());
        StructuralSchema::read_beside(schema, preserve, &mut patterns, followed).ok()
    };
    schemas(object).filter_map(read).collect()
}

/// A check of the schemas of a definition, one after the other.
pub(super) struct SchemaCheck<'o> {
    object: &'o Value,
    /// The schemas of the versions of the definition that it replaces.
    before: BTreeMap<&'o str, &'o Value>,
    strictness: Strictness,
    patterns: Patterns,
    /// The check of the rules, unless nothing of the definition has changed.
    rules: Option<RuleCheck<'o>>,
}

impl<'o> SchemaCheck<'o> {
    /// Begins a check of a definition, which replaces an older one with these schemas.
    pub(super) fn of(
        object: &'o Value,
        old: Option<&'o Value>,
        old_schemas: &'o [StructuralSchema],
    ) -> Self {
        let is_unchanged = old.is_some_and(|old| get(object, "spec") == get(old, "spec"));
        Self {
            object,
            before: old.map(by_versions).unwrap_or_default(),
            strictness: Strictness::of(old.into_iter().flat_map(schemas)),
            patterns: Patterns::default(),
            rules: (!is_unchanged).then(|| RuleCheck::beside(old_schemas)),
        }
    }

    /// Returns the errors of the schema at a path, of a version that has this name or of all. Follows
    /// `validateCustomResourceDefinitionValidation`.
    pub(super) fn errors(
        &mut self,
        schema: Option<&Value>,
        path: &str,
        has_status: bool,
        version: &str,
    ) -> Vec<FieldError> {
        let Some(schema) = schema.filter(|it| !it.is_null()) else {
            return Vec::new();
        };
        let mut errors = Vec::from_iter(has_status.then(|| root_error(path, schema)).flatten());
        let path = format!("{path}.openAPIV3Schema");
        if schema.get("nullable") == Some(&json!(true)) {
            let why = "nullable cannot be true at the root";
            errors.push(FieldError::forbidden(format!("{path}.nullable"), why));
        }
        let preserve = get(self.object, "spec.preserveUnknownFields") == Some(&Value::Bool(true));
        let read =
            StructuralSchema::read_to_check(schema, preserve, &mut self.patterns, self.strictness);
        let with_rules = match read {
            Ok(read) => Some(Box::new(read)),
            Err(wrong) => {
                // What is told of the whole schema is told if there is nothing else.
                let told = wrong
                    .errors
                    .into_iter()
                    .filter(|it| errors.is_empty() || !it.field.is_empty());
                let told: Vec<_> = told.map(|error| placed(&path, error)).collect();
                errors.extend(told);
                wrong.with_rules
            }
        };
        if let (Some(read), Some(rules)) = (with_rules, &mut self.rules) {
            let is_unchanged = self.before.get(version).is_some_and(|it| *it == schema);
            errors.extend(rules.errors(&path, *read, schema, is_unchanged));
        }
        errors
    }
}

/// Returns the schema of each version of a definition. Follows `GetSchemaForVersion`.
fn by_versions(object: &Value) -> BTreeMap<&str, &Value> {
    let common = get(object, "spec.validation.openAPIV3Schema");
    // The first of a name counts.
    let versions = list(object, "spec.versions").iter().rev();
    let named = versions.filter_map(|version| {
        let own = get(version, "schema.openAPIV3Schema");
        Some((text(version, "name"), own.or(common)?))
    });
    named.collect()
}

/// Prefixes an error's field with the path of its schema.
fn placed(path: &str, mut error: FieldError) -> FieldError {
    let point = if error.field.is_empty() { "" } else { "." };
    error.field = format!("{path}{point}{}", error.field);
    if let Some(place) = error.detail.strip_prefix(DEFINED_IN) {
        error.detail = format!("{DEFINED_IN}{path}.{place}");
    }
    error
}

/// Returns the errors of the versions that have no schema. Definitions of earlier releases need one only for versions
/// that are served, and if what is not known is pruned.
pub(super) fn missing_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let lacks = |object: &Value, version: &Value| {
        get(version, "schema.openAPIV3Schema")
            .or_else(|| get(object, "spec.validation.openAPIV3Schema"))
            .is_none()
    };
    let lacked = |old: &Value| list(old, "spec.versions").iter().any(|it| lacks(old, it));
    let is_lenient = old.is_some_and(lacked);
    if is_lenient && get(object, "spec.preserveUnknownFields") == Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = match is_lenient {
        true => "because otherwise all fields are pruned",
        false => "",
    };
    let versions = list(object, "spec.versions").iter().enumerate();
    let missing = versions.filter(|(_, version)| {
        let is_served = version.get("served") == Some(&Value::Bool(true));
        lacks(object, version) && (is_served || !is_lenient)
    });
    let missing = missing.take(MISSING_TOLD_MAX);
    let paths = missing.map(|(place, _)| format!("spec.versions[{place}].schema.openAPIV3Schema"));
    paths
        .map(|path| FieldError::new(FieldErrorKind::Required, path, why))
        .collect()
}

/// Returns an error if a definition has defaults but keeps what its schema does not know.
pub(super) fn unpruned_defaults(object: &Value) -> Option<FieldError> {
    let path = "spec.preserveUnknownFields";
    let preserve = get(object, path) == Some(&Value::Bool(true));
    let why = "must be false in order to use defaults in the schema";
    (preserve && schemas(object).any(has_defaults))
        .then(|| FieldError::invalid(path, &json!(true), why))
}

/// The members that a schema may not have beside its type if the status is read out of its object. The first three
/// hide a wrong type.
const NOT_AT_ROOT: [&str; 22] = [
    "id",
    "$schema",
    "$ref",
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// The members among them that are switches, of which false is the same as none.
const ROOT_SWITCHES: [&str; 3] = [
    "nullable",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];

/// The members that it may have, by the names of Go's fields.
const AT_ROOT: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
XPreserveUnknownFields XValidations";

/// Returns the error about the root of a schema out of whose object the status is read, if there is one.
fn root_error(path: &str, schema: &Value) -> Option<FieldError> {
    // A zero value says nothing, unless it is a pointer in Go.
    let says = |name: &str| match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(false)) => !ROOT_SWITCHES.contains(&name),
        Some(Value::String(text)) => !text.is_empty() || !["id", "$schema"].contains(&name),
        Some(_) => true,
    };
    let kind = text(schema, "type");
    let is_wrong_type = !["", "object"].contains(&kind);
    let (early, late) = NOT_AT_ROOT.split_at(3);
    if is_wrong_type && !early.iter().any(|it| says(it)) {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        let path = format!("{path}.openAPIV3Schema.type");
        return Some(FieldError::invalid(path, &json!(kind), why));
    }
    if !early.iter().chain(late).any(|it| says(it)) {
        return None;
    }
    let why = format!(
        "only [{AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
    );
    let path = format!("{path}.openAPIV3Schema");
    let detail = format!("{}: {why}", internal_form::schema(schema));
    Some(FieldError::new(FieldErrorKind::Invalid, path, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_with_a_status_of_their_own_are_objects() {
        let schema = json!({"type": "text"});
        for (member, value, field) in [
            ("allOf", json!([{}]), ""),
            ("id", json!("x"), ""),
            ("not", json!({}), ".type"),
            ("nullable", json!(false), ".type"),
            ("required", json!(["spec"]), ".type"),
        ] {
            let mut schema = schema.clone();
            if member == "allOf" {
                schema["type"] = json!("object");
            }
            schema[member] = value;
            let error = root_error("s", &schema).expect(member);
            assert_eq!(error.field, format!("s.openAPIV3Schema{field}"), "{member}");
        }
        let example = json!({"type": "object", "example": 1});
        assert_eq!(root_error("s", &example), None);
    }

    fn said(spec: &Value, old: Option<&Value>) -> Vec<String> {
        let object = json!({"spec": spec});
        let old = old.map(|spec| json!({"spec": spec}));
        let old_schemas = old.as_ref().map(readable).unwrap_or_default();
        let mut check = SchemaCheck::of(&object, old.as_ref(), &old_schemas);
        let schema = get(&object, "spec.versions").and_then(|it| it[0].get("schema"));
        let schema = schema.and_then(|it| it.get("openAPIV3Schema"));
        let errors = check.errors(schema, "s", false, "v1");
        let lines = errors
            .iter()
            .map(|it| format!("{}: {}", it.field, it.message()));
        lines.collect()
    }

    fn version(schema: Value) -> Value {
        json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]})
    }

    #[test]
    fn what_is_wrong_with_a_schema_is_told_in_order() {
        let schema = version(
            json!({"type": "object", "nullable": true, "uniqueItems": true,
            "properties": {"y": {}, "x": {"type": "list"}}}),
        );
        assert_eq!(
            said(&schema, None),
            [
                "s.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root",
                "s.openAPIV3Schema.properties[y].type: Required value: must not be empty for specified object fields",
                "s.openAPIV3Schema.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
                "s.openAPIV3Schema.properties[x].type: Unsupported value: \"list\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ]
        );
    }

    #[test]
    fn rules_are_checked_where_and_below_which_nothing_is_wrong() {
        let keyword = "s.openAPIV3Schema.x-kubernetes-map-type: Unsupported value: \"x\": supported values: \"atomic\", \"granular\"";
        let ruled = |kind: &str, rule: &str| json!({"type": kind, "x-kubernetes-validations": [{"rule": rule}]});
        let wrong_below = json!({"type": "object", "properties": {"y": {"type": "object", "x-kubernetes-map-type": "x"}},
            "x-kubernetes-validations": [{"rule": "1"}]});
        for (x, field, why) in [
            (
                ruled("string", "self == oldSelf"),
                "properties[x].x-kubernetes-validations[0].rule",
                "oldSelf cannot be used on the uncorrelatable portion of the schema within s.openAPIV3Schema",
            ),
            (
                ruled("string", "1"),
                "properties[x].x-kubernetes-validations[0].rule",
                "cel expression must evaluate to a bool",
            ),
            (
                ruled("string", "self +"),
                "properties[x].x-kubernetes-validations[0].rule",
                "compilation failed: ERROR: <input>:1:7: ",
            ),
            (
                wrong_below,
                "properties[x].properties[y].x-kubernetes-map-type",
                "Unsupported value: ",
            ),
        ] {
            let schema = version(
                json!({"type": "object", "x-kubernetes-map-type": "x", "properties": {"x": x},
                "x-kubernetes-validations": [{"rule": "self +"}]}),
            );
            let said = said(&schema, None);
            assert_eq!(said.len(), 2, "{said:?}");
            assert!(said.contains(&keyword.to_owned()), "{said:?}");
            let is_other = |it: &&String| it.starts_with(&format!("s.openAPIV3Schema.{field}: "));
            assert!(
                said.iter()
                    .find(is_other)
                    .is_some_and(|it| it.contains(why)),
                "{said:?}"
            );
        }
    }
}

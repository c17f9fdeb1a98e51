//! Checks of FlowSchemas.
//!
//! Follows pkg/apis/flowcontrol/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use serde_json::{Value, json};

use crate::default_objects::flow_control::default_schema;
use crate::validation::field::{Errors, Field};

/// The schema of the requests that never wait.
const EXEMPT: &str = "exempt";
/// The schemas that every server has and nobody changes.
const MANDATORY: [&str; 2] = [EXEMPT, "catch-all"];
const PRECEDENCE_MAX: i64 = 10_000;
const DISTINGUISHERS: &[&str] = &["ByNamespace", "ByUser"];
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
/// The kinds of subjects, with the member that each has.
const SUBJECTS: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];

/// Checks a FlowSchema. Follows `ValidateFlowSchema`.
pub(crate) fn flow_schema(object: &Field<'_, '_>, errors: &mut Errors) {
    let (name, spec) = (object.at("metadata.name").text(), object.at("spec"));
    precedence(name, &spec.at("matchingPrecedence"), errors);
    let method = spec.at("distinguisherMethod");
    let kind = method.at("type").text();
    if method.is_set() && !DISTINGUISHERS.contains(&kind) {
        // As Kubernetes shows its own type.
        errors.push(
            method
                .at("type")
                .unsupported_value(json!({ "Type": kind }), DISTINGUISHERS),
        );
    }
    let level = spec.at("priorityLevelConfiguration.name");
    if level.is_empty() {
        errors.push(level.required("must reference a priority level"));
    } else {
        level.must_conform(formats::dns_subdomain, errors);
    }
    for rule in spec.items("rules") {
        self::rule(&rule, errors);
    }
    if MANDATORY.contains(&name)
        && default_schema(name).is_some_and(|it| it["spec"] != *spec.value())
    {
        errors.push(spec.invalid(format!("spec of '{name}' must equal the fixed value")));
    }
    conditions(object, errors);
}

/// Checks an update of the status of a FlowSchema or PriorityLevelConfiguration. Follows
/// `ValidateFlowSchemaStatusUpdate` and `ValidatePriorityLevelConfigurationStatusUpdate`.
pub(super) fn status(object: &Value, _old: &Value) -> Errors {
    let mut errors = Errors::new();
    conditions(&Field::root(object), &mut errors);
    errors
}

/// Follows `ValidateFlowSchemaStatus` and `ValidatePriorityLevelConfigurationStatus`.
pub(super) fn conditions(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for condition in object.items("status.conditions") {
        let kind = condition.at("type");
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate_of(kind.text()));
        }
        kind.must_be_set(errors);
    }
}

/// Checks the order of the schema among the others: a number that only `exempt` may have is 1.
fn precedence(name: &str, at: &Field<'_, '_>, errors: &mut Errors) {
    let number = at.number().unwrap_or(0);
    if number <= 0 {
        errors.push(at.invalid_value(number, "must be a positive value"));
    }
    if number > PRECEDENCE_MAX {
        errors.push(at.invalid(format!("must not be greater than {PRECEDENCE_MAX}")));
    }
    if number == 1 && name != EXEMPT {
        errors.push(at.invalid("only the schema named 'exempt' may have matchingPrecedence 1"));
    }
}

/// Checks subjects and what they ask for. Follows `ValidateFlowSchemaPolicyRulesWithSubjects`.
fn rule(rule: &Field<'_, '_>, errors: &mut Errors) {
    let subjects = rule.at("subjects");
    if subjects.is_empty() {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    for subject in rule.items("subjects") {
        self::subject(&subject, errors);
    }
    if rule.at("resourceRules").is_empty() && rule.at("nonResourceRules").is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(rule.required(why));
    }
    for resources in rule.items("resourceRules") {
        resource_rule(&resources, errors);
    }
    for paths in rule.items("nonResourceRules") {
        path_rule(&paths, errors);
    }
}

/// Checks a subject: it has the member of its kind and no other. Follows `ValidateFlowSchemaSubject`.
fn subject(at: &Field<'_, '_>, errors: &mut Errors) {
    let kind = at.at("kind");
    let Some((kind, own)) = SUBJECTS.iter().find(|(it, _)| *it == kind.text()) else {
        errors.push(kind.unsupported(&["Group", "ServiceAccount", "User"]));
        return;
    };
    let named = at.at(own);
    if named.is_set() {
        subject_name(kind, &named, errors);
    } else {
        errors.push(named.required(&format!("{own} is required when subject kind is '{kind}'")));
    }
    for (other, member) in SUBJECTS.iter().filter(|(other, _)| other != kind) {
        let why = format!("{member} is forbidden when subject kind is not '{other}'");
        at.at(member).must_be_unset(&why, errors);
    }
}

fn subject_name(kind: &str, at: &Field<'_, '_>, errors: &mut Errors) {
    let name = at.at("name");
    if name.is_empty() {
        errors.push(name.required(""));
    }
    if kind != "ServiceAccount" {
        return;
    }
    if name.text() != "*" {
        name.may_conform(formats::dns_subdomain, errors);
    }
    let namespace = at.at("namespace");
    if namespace.is_empty() {
        errors.push(namespace.required("must specify namespace for service account"));
    } else {
        namespace.must_conform(formats::dns_label, errors);
    }
}

/// Follows `ValidateFlowSchemaResourcePolicyRule`.
fn resource_rule(rule: &Field<'_, '_>, errors: &mut Errors) {
    verbs(&rule.at("verbs"), errors);
    for (member, none, others) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.at(member);
        if list.is_empty() {
            let why = format!("resource rules must supply at least one {none}");
            errors.push(list.required(&why));
        }
        stands_alone(&list, others, errors);
    }
    let namespaces = rule.at("namespaces");
    if namespaces.is_empty() && !rule.at("clusterScope").is_true() {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(namespaces.required(why));
    } else if !stands_alone(&namespaces, "namespaces", errors) {
        for namespace in namespaces.items("") {
            let wrong = formats::dns_label(namespace.text()).into_iter();
            errors.extend(wrong.map(|why| {
                namespace.invalid(format!(
                    "each member of this list must be '*' or a DNS-1123 label; {why}"
                ))
            }));
        }
    }
}

/// Follows `ValidateFlowSchemaNonResourcePolicyRule`.
fn path_rule(rule: &Field<'_, '_>, errors: &mut Errors) {
    verbs(&rule.at("verbs"), errors);
    let paths = rule.at("nonResourceURLs");
    if paths.is_empty() {
        errors.push(paths.required("nonResourceURLs must contain at least one value"));
    } else if !stands_alone(&paths, "non-resource URLs", errors) {
        for path in paths.items("") {
            path.must_conform(path_pattern, errors);
        }
    }
}

fn verbs(at: &Field<'_, '_>, errors: &mut Errors) {
    if at.is_empty() {
        errors.push(at.required("verbs must contain at least one value"));
    } else if !stands_alone(at, "verbs", errors)
        && !at.items("").all(|verb| VERBS.contains(&verb.text()))
    {
        errors.push(at.unsupported(VERBS));
    }
}

/// Returns true if a list has `*`, beside which there is an error about any other item.
fn stands_alone(list: &Field<'_, '_>, others: &str, errors: &mut Errors) -> bool {
    let all = list.items("").any(|it| it.text() == "*");
    if all && list.len() > 1 {
        let why = format!("if '*' is present, must not specify other {others}");
        errors.push(list.invalid(why));
    }
    all
}

/// Returns the error in a path, which may end with `/*`. Follows `ValidateNonResourceURLPath`.
fn path_pattern(path: &str) -> Vec<String> {
    let stars = path.matches('*').count();
    let why = match path {
        "" => "must not be empty",
        "/" => return Vec::new(),
        _ if !path.starts_with('/') => "must start with slash",
        _ if path.contains(' ') => "must not contain white-space",
        _ if path.contains("//") => "must not contain double slash",
        _ if stars > 1 || stars == 1 && !path.ends_with("/*") => {
            "wildcard can only do suffix matching"
        }
        _ => return Vec::new(),
    };
    vec![why.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::{found, messages};

    fn good() -> Value {
        json!({"metadata": {"name": "s"}, "spec": {"matchingPrecedence": 100,
            "priorityLevelConfiguration": {"name": "l"}, "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [{"kind": "ServiceAccount",
                    "serviceAccount": {"namespace": "n", "name": "*"}}],
                "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["*"],
                    "namespaces": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/healthz", "/api/*"]}]}]}})
    }

    #[test]
    fn schemas_that_are_wrong() {
        assert_eq!(found(flow_schema, &good()), []);
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let bad_namespace = format!(
            "spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: \"N\": each member of this list must be '*' or a DNS-1123 label; {label}"
        );
        let resource = "/spec/rules/0/resourceRules/0";
        for (at, value, wrong) in [
            (
                "/spec/matchingPrecedence".to_owned(),
                json!(0),
                "spec.matchingPrecedence: Invalid value: 0: must be a positive value",
            ),
            (
                "/spec/matchingPrecedence".to_owned(),
                json!(1),
                "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
            ),
            (
                "/spec/matchingPrecedence".to_owned(),
                json!(10_001),
                "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000",
            ),
            (
                "/spec/priorityLevelConfiguration".to_owned(),
                json!({}),
                "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
            ),
            (
                "/spec/distinguisherMethod/type".to_owned(),
                json!("x"),
                "spec.distinguisherMethod.type: Unsupported value: {\"Type\":\"x\"}: supported values: \"ByNamespace\", \"ByUser\"",
            ),
            (
                "/spec/rules/0/subjects".to_owned(),
                json!([]),
                "spec.rules[0].subjects: Required value: subjects must contain at least one value",
            ),
            (
                "/spec/rules/0/subjects/0".to_owned(),
                json!({"kind": "User"}),
                "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
            ),
            (
                "/spec/rules/0/subjects/0".to_owned(),
                json!({"kind": "User", "user": {"name": "u"}, "group": {"name": "g"}}),
                "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
            ),
            (
                "/spec/rules/0/subjects/0".to_owned(),
                json!({"kind": "x"}),
                "spec.rules[0].subjects[0].kind: Unsupported value: \"x\": supported values: \"Group\", \"ServiceAccount\", \"User\"",
            ),
            (
                format!("{resource}/verbs"),
                json!(["*", "get"]),
                "spec.rules[0].resourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify other verbs",
            ),
            (
                format!("{resource}/namespaces"),
                json!(["N"]),
                &bad_namespace,
            ),
            (
                format!("{resource}/namespaces"),
                json!([]),
                "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
            ),
            (
                "/spec/rules/0/nonResourceRules/0/nonResourceURLs".to_owned(),
                json!(["/a/*b"]),
                "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"/a/*b\": wildcard can only do suffix matching",
            ),
            (
                "/spec/rules/0".to_owned(),
                json!({"subjects": [{"kind": "Group", "group": {"name": "g"}}]}),
                "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            ),
        ] {
            let mut schema = good();
            *schema.pointer_mut(&at).expect("a field") = value;
            assert_eq!(messages(&found(flow_schema, &schema)), [wrong], "{schema}");
        }
    }

    #[test]
    fn what_every_server_has_is_valid_and_stays() {
        let resources = crate::built_in();
        let kind = resources.iter().find(|it| it.kind == "FlowSchema");
        let strategy = &kind.expect("a kind").strategy;
        for name in MANDATORY {
            let mut schema = default_schema(name).expect("a schema");
            strategy.default(&mut schema);
            assert_eq!(strategy.validate(&schema), [], "{schema}");
            schema["spec"]["matchingPrecedence"] = json!(9_999);
            let errors = messages(&found(flow_schema, &schema));
            let why = format!("spec of '{name}' must equal the fixed value");
            assert!(errors.iter().any(|it| it.ends_with(&why)), "{errors:?}");
        }
    }

    #[test]
    fn each_type_of_condition_occurs_once() {
        let object = json!({"status": {"conditions": [{"type": "A"}, {"type": "A"}, {}]}});
        assert_eq!(
            messages(&status(&object, &json!({}))),
            [
                "status.conditions[1].type: Duplicate value: \"A\"",
                "status.conditions[2].type: Required value"
            ]
        );
    }
}

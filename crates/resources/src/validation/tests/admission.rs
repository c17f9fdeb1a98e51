//! Refusals by the checks of webhooks, policies and bindings.
use ringwatch_apimachinery::path::{remove, set};
use serde_json::{Value, json};

use crate::admissionregistration::policy_status::policy_status;
use crate::admissionregistration::validation::{
    changed_webhooks, mutating_binding, mutating_policy, validating_binding, validating_policy,
    webhooks,
};
use crate::validation::{ObjectCheck, found, found_in_change, messages};

fn said(check: ObjectCheck, good: &Value, path: &str, value: &Value) -> Vec<String> {
    let mut changed = good.clone();
    let at = changed
        .pointer_mut("/webhooks/0")
        .filter(|_| path.starts_with("webhooks"));
    let (at, path) = match at {
        Some(hook) => (hook, path.trim_start_matches("webhooks[0].")),
        None => (&mut changed, path),
    };
    if value.is_null() {
        drop(remove(at, path));
    } else {
        set(at, path, value.clone());
    }
    messages(&found(check, &changed))
}

fn rule() -> Value {
    json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "*"})
}

fn configuration() -> Value {
    json!({"webhooks": [{"name": "a.example.com", "rules": [rule()], "failurePolicy": "Fail",
        "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 10,
        "clientConfig": {"url": "https://example.com/path"}, "admissionReviewVersions": ["v1"]}]})
}

#[allow(clippy::too_many_lines)] // a table
#[test]
fn webhooks_are_refused_as_kube_apiserver_does() {
    let good = configuration();
    assert_eq!(messages(&found(webhooks, &good)), [""; 0]);
    let service = json!({"service": {"name": "s", "namespace": "n", "port": 443, "path": "/a//B"}});
    for (path, value, wrong) in [
        (
            "webhooks[0].name",
            json!("a.b"),
            "name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
        ),
        ("webhooks[0].name", json!(null), "name: Required value"),
        (
            "webhooks[0].failurePolicy",
            json!("Other"),
            "failurePolicy: Unsupported value: \"Other\": supported values: \"Fail\", \"Ignore\"",
        ),
        (
            "webhooks[0].matchPolicy",
            json!("Other"),
            "matchPolicy: Unsupported value: \"Other\": supported values: \"Equivalent\", \"Exact\"",
        ),
        (
            "webhooks[0].sideEffects",
            json!("Some"),
            "sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
        ),
        (
            "webhooks[0].sideEffects",
            json!(null),
            "sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            "webhooks[0].timeoutSeconds",
            json!(31),
            "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            "webhooks[0].admissionReviewVersions",
            json!(null),
            "admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ),
        (
            "webhooks[0].admissionReviewVersions",
            json!(["v2"]),
            "admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1",
        ),
        (
            "webhooks[0].admissionReviewVersions",
            json!(["v1", "v1"]),
            "admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version",
        ),
        (
            "webhooks[0].reinvocationPolicy",
            json!("Always"),
            "reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \"Never\"",
        ),
        (
            "webhooks[0].objectSelector",
            json!({"matchLabels": {"a": "b c"}}),
            "objectSelector.matchLabels: Invalid value: \"b c\"",
        ),
        (
            "webhooks[0].clientConfig",
            json!({}),
            "clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            "webhooks[0].clientConfig.url",
            json!("HTTP://a"),
            "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
        (
            "webhooks[0].clientConfig.url",
            json!("HTTPS:/a"),
            "clientConfig.url: Invalid value: \"\": host must be specified; desired format: https://host[/path]",
        ),
        (
            "webhooks[0].clientConfig.url",
            json!("https://u@a"),
            "clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL",
        ),
        (
            "webhooks[0].clientConfig.url",
            json!("https://@a"),
            "clientConfig.url: Invalid value: \"\": user information is not permitted in the URL",
        ),
        (
            "webhooks[0].clientConfig.url",
            json!("https://a?b"),
            "clientConfig.url: Invalid value: \"b\": query parameters are not permitted in the URL",
        ),
        (
            "webhooks[0].clientConfig",
            service,
            "clientConfig.service.path: Invalid value: \"/a//B\": segment[1] may not be empty",
        ),
        (
            "webhooks[0].rules",
            json!([{"operations": ["*", "GET"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*", "pods"]}]),
            "rules[0].operations: Invalid value: [\"*\",\"GET\"]: if '*' is present, must not specify other operations",
        ),
    ] {
        let found = said(webhooks, &good, path, &value);
        let first = found.first().map_or("", String::as_str);
        assert!(
            first.starts_with(&format!("webhooks[0].{wrong}")),
            "{path} {value}: {found:?}"
        );
    }
}

#[test]
fn what_webhooks_were_before_they_may_stay() {
    let mut old = configuration();
    let twice = old["webhooks"][0].clone();
    old["webhooks"] = json!([twice, twice]);
    assert_eq!(
        messages(&found(webhooks, &old)),
        ["webhooks[1].name: Duplicate value: \"a.example.com\""]
    );
    old["webhooks"][0]["sideEffects"] = json!("Some");
    old["webhooks"][0]["admissionReviewVersions"] = json!(["v2"]);
    assert_eq!(
        messages(&found_in_change(changed_webhooks, &old, &old)),
        [""; 0]
    );
    let good = configuration();
    assert_eq!(found_in_change(changed_webhooks, &old, &good).len(), 3);
    let mut odd = configuration();
    odd["webhooks"][0]["objectSelector"] =
        json!({"matchExpressions": [{"key": "k", "operator": "In", "values": ["a b"]}]});
    assert_eq!(found_in_change(changed_webhooks, &odd, &good).len(), 1);
    assert_eq!(found_in_change(changed_webhooks, &odd, &odd), []);
    let mut nameless = configuration();
    nameless["webhooks"][0]["matchConditions"] = json!([{"expression": "true"}]);
    assert_eq!(found_in_change(changed_webhooks, &nameless, &good).len(), 1);
    assert_eq!(found_in_change(changed_webhooks, &nameless, &nameless), []);
}

#[test]
fn errors_of_a_policy_come_in_the_order_of_its_fields() {
    let policy = json!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "x",
        "paramKind": {"apiVersion": "v1"}, "matchConstraints": {"matchPolicy": "Exact"},
        "matchConditions": [{"name": "c"}], "variables": [{"name": "v"}], "validations": [{}],
        "auditAnnotations": [{"key": "k"}, {"key": "k", "valueExpression": "1"}]}});
    let errors = found(validating_policy, &policy);
    let fields: Vec<_> = errors.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "failurePolicy",
            "paramKind.kind",
            "matchConstraints.resourceRules",
            "matchConditions[0].expression",
            "variables[0].expression",
            "validations[0].expression",
            "auditAnnotations[0].valueExpression",
            "auditAnnotations[1].valueExpression",
            "auditAnnotations[1].key",
        ]
        .map(|it| format!("spec.{it}"))
    );
    let mut none = policy;
    none["spec"] = json!({"failurePolicy": "Fail"});
    assert_eq!(
        messages(&found(validating_policy, &none)),
        [
            "spec.matchConstraints: Required value",
            "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
            "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
        ]
    );
}

#[test]
fn warnings_in_the_status_of_a_policy_say_something_of_a_field() {
    let status = json!({"typeChecking": {"expressionWarnings": [{"fieldRef": " "},
        {"fieldRef": "spec.x", "warning": "w"}]}});
    assert_eq!(
        messages(&policy_status(&json!({"status": status}), &json!({}))),
        [
            "status.typeChecking.expressionWarnings[0].warning: Required value",
            "status.typeChecking.expressionWarnings[0].fieldRef: Required value",
        ]
    );
}

#[test]
fn policies_and_bindings_are_refused_as_kube_apiserver_does() {
    let good = json!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail",
        "matchConstraints": {"matchPolicy": "Exact", "resourceRules": [rule()]},
        "auditAnnotations": [{"key": "k", "valueExpression": "'a'"}]}});
    assert_eq!(messages(&found(validating_policy, &good)), [""; 0]);
    let keys = |keys: &[&str]| {
        let annotation = |key: &&str| json!({"key": key, "valueExpression": "'a'"});
        keys.iter().map(annotation).collect::<Vec<_>>()
    };
    for (path, value, wrong) in [
        (
            "spec.failurePolicy",
            json!("Warn"),
            "spec.failurePolicy: Unsupported value: \"Warn\": supported values: \"Fail\", \"Ignore\"",
        ),
        (
            "spec.auditAnnotations",
            json!(keys(&["a", "a"])),
            "spec.auditAnnotations[1].key: Duplicate value: \"a\"",
        ),
        (
            "spec.auditAnnotations",
            json!(keys(&["a b"])),
            "spec.auditAnnotations[0].key: Invalid value: \"p/a b\"",
        ),
        (
            "spec.matchConstraints.resourceRules",
            json!([{"operations": ["CREATE"], "apiGroups": ["*", ""], "apiVersions": [""], "resources": ["pods/*", "pods/log"]}]),
            "spec.matchConstraints.resourceRules[0].apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify other API groups",
        ),
    ] {
        let found = said(validating_policy, &good, path, &value);
        let first = found.first().map_or("", String::as_str);
        assert!(first.starts_with(wrong), "{path} {value}: {found:?}");
    }
    let good = json!({"spec": {"policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"name": "a", "parameterNotFoundAction": "Deny"}}});
    assert_eq!(messages(&found(validating_binding, &good)), [""; 0]);
    for (path, value, wrong) in [
        (
            "spec.policyName",
            json!(null),
            "spec.policyName: Required value",
        ),
        (
            "spec.validationActions",
            json!([]),
            "spec.validationActions: Required value: at least one validation action is required",
        ),
        (
            "spec.validationActions",
            json!(["Deny", "Warn"]),
            "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn",
        ),
        (
            "spec.validationActions",
            json!(["Audit", "Audit"]),
            "spec.validationActions[1]: Duplicate value: \"Audit\"",
        ),
        (
            "spec.paramRef.selector",
            json!({}),
            "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
        ),
        (
            "spec.paramRef.name",
            json!(null),
            "spec.paramRef: Required value: one of name or selector must be specified",
        ),
        (
            "spec.paramRef.parameterNotFoundAction",
            json!("Ask"),
            "spec.paramRef.parameterNotFoundAction: Unsupported value: \"Ask\": supported values: \"Deny\", \"Allow\"",
        ),
    ] {
        let found = said(validating_binding, &good, path, &value);
        let first = found.first().map_or("", String::as_str);
        assert!(first.starts_with(wrong), "{path} {value}: {found:?}");
    }
}

#[test]
fn what_is_deleted_is_not_mutated() {
    const PATCH: &str = "[JSONPatch{op: 'remove', path: '/spec'}]";
    let rules = |operation: &str| {
        json!({"resourceRules": [{"operations": [operation], "apiGroups": [""],
            "apiVersions": ["v1"], "resources": ["pods"]}]})
    };
    let policy = |operation: &str| {
        json!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail", "matchConstraints": rules(operation),
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}]}})
    };
    let binding =
        |operation: &str| json!({"spec": {"policyName": "p", "matchResources": rules(operation)}});
    for operation in ["*", "CREATE", "UPDATE", "CONNECT"] {
        assert_eq!(found(mutating_policy, &policy(operation)), []);
        assert_eq!(found(mutating_binding, &binding(operation)), []);
    }
    let why = "operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"";
    assert_eq!(
        messages(&found(mutating_policy, &policy("DELETE"))),
        [format!("spec.matchConstraints.resourceRules.{why}")]
    );
    assert_eq!(
        messages(&found(mutating_binding, &binding("DELETE"))),
        [format!("spec.matchResources.resourceRules.{why}")]
    );
}

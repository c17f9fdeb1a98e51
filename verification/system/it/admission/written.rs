//! Expressions of webhooks and policies that cannot be run are refused when they are written.

use http::Method;
use serde_json::{Value, json};

use super::{GROUP, ask, message};
use crate::support::server::Server;

const POLICIES: &str = "validatingadmissionpolicies";
const MUTATING: &str = "mutatingadmissionpolicies";
const WEBHOOKS: &str = "validatingwebhookconfigurations";

fn constraints() -> Value {
    json!({"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["configmaps"]}]})
}

/// An object of the plural with this in its spec or its webhook.
fn object(plural: &str, more: &Value) -> Value {
    let mut spec = match plural {
        POLICIES => {
            json!({"matchConstraints": constraints(), "validations": [{"expression": "true"}]})
        }
        MUTATING => json!({"matchConstraints": constraints(), "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]}),
        _ => json!({"name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
            "admissionReviewVersions": ["v1"], "sideEffects": "None"}),
    };
    for (member, value) in more.as_object().expect("members") {
        spec[member] = value.clone();
    }
    let (kind, member, spec) = match plural {
        POLICIES => ("ValidatingAdmissionPolicy", "spec", spec),
        MUTATING => ("MutatingAdmissionPolicy", "spec", spec),
        _ => ("ValidatingWebhookConfiguration", "webhooks", json!([spec])),
    };
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "a"}, member: spec})
}

/// Invalid configurations, with the field and a part of the message of their refusals.
#[allow(clippy::too_many_lines)] // a table
fn refused() -> Vec<(&'static str, Value, &'static str, String)> {
    let validation = |expression: &str| json!({"validations": [{"expression": expression}]});
    let condition =
        |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let mutation = |expression: &str| {
        json!({"mutations": [{"patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": expression}}]})
    };
    let patch = |expression: &str| json!({"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]});
    let at = "spec.validations[0].expression";
    let wrong =
        |place: &str, why: &str| format!("compilation failed: ERROR: <input>:{place}: {why}");
    let deep = format!("{}true{}", "(".repeat(300), ")".repeat(300));
    let long = format!("'{}' == ''", "a".repeat(100_000));
    vec![
        (POLICIES, validation("this is no program"), at, wrong("1:6", "Syntax error")),
        (POLICIES, validation("object.x"), at, "must evaluate to bool but got dyn".to_owned()),
        (POLICIES, validation("params.x == 1"), at, wrong("1:1", "undeclared reference to 'params'")),
        (POLICIES, validation("request.kinds.group == ''"), at, wrong("1:8", "undefined field 'kinds'")),
        (POLICIES, validation("variables.none == 1"), at, wrong("1:1", "undeclared reference to 'variables'")),
        (POLICIES, validation("request.name + 1 == ''"), at, wrong("1:14", "found no matching overload for '_+_' applied to '(string, int)'")),
        (POLICIES, validation("object.x.matches('(')"), at, wrong("1:18", "invalid matches argument")),
        (POLICIES, validation("object.x.matches('((a{1,100}){1,100}){1,100}')"), at, wrong("1:18", "invalid matches argument")),
        (POLICIES, validation(&deep), at, "expression is too large".to_owned()),
        (POLICIES, validation(&long), at, "expression code point size exceeds limit: size: 100008, limit 100000".to_owned()),
        (POLICIES, validation(" "), at, "expression is not specified".to_owned()),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "message": " \n"}]}),
            "spec.validations[0].message",
            "Invalid value: \" \\n\": must be non-empty if specified".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "message": "a\nb"}]}),
            "spec.validations[0].message",
            "Invalid value: \"a\\nb\": must not contain line breaks".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "messageExpression": " "}]}),
            "spec.validations[0].messageExpression",
            "must be non-empty if specified".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "messageExpression": "1"}]}),
            "spec.validations[0].messageExpression",
            "must evaluate to string but got int".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}]}),
            "spec.validations[0].messageExpression",
            wrong("1:1", "undeclared reference to 'authorizer'"),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "reason": "Because"}]}),
            "spec.validations[0].reason",
            "supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "reason": ""}]}),
            "spec.validations[0].reason",
            "Unsupported value: \"\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": [{"expression": "true", "reason": "Unauthorized"}]}),
            "spec.validations[0].reason",
            "Unsupported value: \"Unauthorized\"".to_owned(),
        ),
        (
            POLICIES,
            json!({"validations": []}),
            "spec.validations",
            "validations or auditAnnotations must contain at least one item".to_owned(),
        ),
        (
            POLICIES,
            json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}),
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of [string null_type] but got int".to_owned(),
        ),
        (
            POLICIES,
            json!({"variables": [{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 'x'"}]}),
            "spec.variables[1].expression",
            wrong("1:13", "found no matching overload for '_+_' applied to '(int, string)'"),
        ),
        (
            POLICIES,
            json!({"variables": [{"name": "a-b", "expression": "1"}]}),
            "spec.variables[0].name",
            "must be a valid CEL identifier".to_owned(),
        ),
        (POLICIES, condition("variables.a == 1"), "spec.matchConditions[0].expression", wrong("1:1", "undeclared reference to 'variables'")),
        (WEBHOOKS, condition("object"), "webhooks[0].matchConditions[0].expression", "must evaluate to bool but got dyn".to_owned()),
        (WEBHOOKS, condition("params == null"), "webhooks[0].matchConditions[0].expression", wrong("1:1", "undeclared reference to 'params'")),
        (MUTATING, mutation("{'a': 1}"), "spec.mutations[0].applyConfiguration.expression", "must evaluate to Object but got map(string, int)".to_owned()),
        (MUTATING, patch("Object{}"), "spec.mutations[0].jsonPatch.expression", "must evaluate to list(JSONPatch) but got Object".to_owned()),
        (MUTATING, patch("[JSONPatch{op: 1}]"), "spec.mutations[0].jsonPatch.expression", wrong("1:14", "expected type of field 'op' is 'string' but provided type is 'int'")),
        (MUTATING, patch("[JSONPatch{ops: ''}]"), "spec.mutations[0].jsonPatch.expression", wrong("1:15", "undefined field 'ops'")),
        (MUTATING, json!({"mutations": []}), "spec.mutations", "mutations must contain at least one item".to_owned()),
        (MUTATING, json!({"mutations": [{"patchType": "JSONPatch"}]}), "spec.mutations[0].jsonPatch", "must be specified when patchType is JSONPatch".to_owned()),
        (MUTATING, json!({"reinvocationPolicy": "Always"}), "spec.reinvocationPolicy", "supported values: \"IfNeeded\", \"Never\"".to_owned()),
    ]
}

#[tokio::test]
async fn expressions_that_cannot_be_run_are_refused() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let mut wrong = Vec::new();
    for (plural, more, field, why) in refused() {
        let path = format!("{GROUP}/{plural}");
        let answered = ask(&client, Method::POST, &path, &object(plural, &more)).await;
        let causes = answered.1["details"]["causes"].as_array();
        let told = causes.into_iter().flatten().any(|cause| {
            let message = cause["message"].as_str().unwrap_or_default();
            cause["field"] == field && message.contains(&why)
        });
        if answered.0 != 422 || !told {
            wrong.push(format!("{more}\n{field}: {why}\n{}", message(&answered)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn expressions_that_can_be_run_are_taken() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let condition = |expression: &str| json!([{"name": "c", "expression": expression}]);
    for (plural, more) in [
        (
            POLICIES,
            json!({
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "matchConditions": condition("request.userInfo.groups.exists(g, g == 'a') || params == null"),
                "variables": [{"name": "n", "expression": "object.spec.replicas"}, {"name": "m", "expression": "variables.n + 1"}],
                "validations": [
                    {"expression": "variables.m < 5 && object.?metadata.?labels['a'].orValue('') == ''", "messageExpression": "'at most ' + string(variables.m)"},
                    {"expression": "authorizer.requestResource.check('x').allowed() || namespaceObject.metadata.name == 'a'"},
                ],
            }),
        ),
        (
            WEBHOOKS,
            json!({"matchConditions": condition("authorizer.path('/x').check('get').allowed() && object.a.b == 1")}),
        ),
        (
            MUTATING,
            json!({"mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 1, ?paused: optional.of(true)}}"}},
                {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: Object.metadata.labels{a: '1'}}]"}},
            ]}),
        ),
    ] {
        let path = format!("{GROUP}/{plural}");
        let answered = ask(&client, Method::POST, &path, &object(plural, &more)).await;
        assert_eq!(answered.0, 201, "{more}: {}", message(&answered));
    }
}

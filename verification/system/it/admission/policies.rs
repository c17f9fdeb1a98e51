//! ValidatingAdmissionPolicies and their bindings.

use http::Method;
use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{Answered, GROUP, ask, config_map, create, message};
use crate::support::server::Server;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn made(client: &Client, path: &str, object: &Value) {
    let created = ask(client, Method::POST, path, object).await;
    assert_eq!(created.0, 201, "{path}: {}", message(&created));
}

/// Stores a policy for ConfigMaps that are labelled with its name, with this in its spec.
async fn policy(client: &Client, name: &str, more: Value) {
    let mut spec = json!({"matchConstraints": {
        "objectSelector": {"matchLabels": {"case": name}},
        "resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""],
            "apiVersions": ["v1"], "resources": ["configmaps"]}]}});
    for (member, value) in more.as_object().expect("members") {
        spec[member] = value.clone();
    }
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec});
    let path = format!("{GROUP}/validatingadmissionpolicies");
    made(client, &path, &policy).await;
}

async fn binding(client: &Client, name: &str, policy: &str, more: Value) {
    let mut spec = json!({"policyName": policy, "validationActions": ["Deny"]});
    for (member, value) in more.as_object().expect("members") {
        spec[member] = value.clone();
    }
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec});
    let path = format!("{GROUP}/validatingadmissionpolicybindings");
    made(client, &path, &binding).await;
}

/// Tries to create a ConfigMap with this data until the answer has the code.
async fn until(client: &Client, code: u16, case: &str, data: &Value) -> Answered {
    let mut object = config_map("a", case);
    object["data"] = data.clone();
    eventually(DEADLINE, format!("{case} is answered {code}"), async || {
        let answered = create(client, &object, "?dryRun=All").await;
        if answered.0 == code {
            Ok(answered)
        } else {
            Err(answered)
        }
    })
    .await
}

#[tokio::test]
async fn what_does_not_hold_is_refused_in_kube_apiservers_words() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let validations = json!([
        {"expression": "int(object.data.size) <= 5"},
        {"expression": "!object.data.size.endsWith('4')", "message": "not four", "reason": "Forbidden"},
        {"expression": "variables.doubled != 6", "message": "unused",
            "messageExpression": "'twice ' + object.data.size + ' is ' + string(variables.doubled)"},
    ]);
    let variables = json!([
        {"name": "size", "expression": "int(object.data.size)"},
        {"name": "doubled", "expression": "variables.size * 2"},
        {"name": "broken", "expression": "object.none"},
    ]);
    let conditions = json!([{"name": "sized", "expression": "has(object.data.size)"}]);
    policy(
        &client,
        "size",
        json!({"validations": validations, "variables": variables,
        "matchConditions": conditions}),
    )
    .await;
    binding(&client, "everywhere", "size", json!({})).await;
    let words = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'size' with binding 'everywhere' denied request:";
    for (size, code, reason, why) in [
        (
            "9",
            422,
            "Invalid",
            "failed expression: int(object.data.size) <= 5",
        ),
        ("4", 403, "Forbidden", "not four"),
        ("3", 422, "Invalid", "twice 3 is 6"),
        (
            "x",
            422,
            "Invalid",
            "expression 'int(object.data.size) <= 5' resulted in error:",
        ),
    ] {
        let answered = until(&client, code, "size", &json!({"size": size})).await;
        let text = message(&answered);
        let expected = format!("{code} {words} {why}");
        assert!(text.starts_with(&expected), "{text}\n{expected}");
        assert_eq!(answered.1["reason"], reason);
        let cause = &answered.1["details"]["causes"][0]["message"];
        assert!(cause.as_str().expect("a cause").contains(why), "{cause}");
    }
    for data in [json!({"size": "2"}), json!({"other": "9"})] {
        let mut object = config_map("b", "size");
        object["data"] = data;
        let answered = create(&client, &object, "?dryRun=All").await;
        assert_eq!(answered.0, 201, "{}", message(&answered));
    }
}

#[tokio::test]
async fn updates_are_compared_and_warned_about() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let growing = json!([{"expression":
        "oldObject == null || int(object.data.size) >= int(oldObject.data.size)"}]);
    policy(&client, "growing", json!({"validations": growing})).await;
    let only_default = json!({"matchResources": {"namespaceSelector": {"matchLabels": {
        "kubernetes.io/metadata.name": "default"}}}, "validationActions": ["Warn"]});
    binding(&client, "warning", "growing", only_default).await;
    let mut object = config_map("grows", "growing");
    object["data"] = json!({"size": "5"});
    assert_eq!(create(&client, &object, "").await.0, 201);
    let path = format!("{}/grows", super::CONFIG_MAPS);
    let smaller = json!({"data": {"size": "3"}});
    let warning = eventually(DEADLINE, "a warning", async || {
        let dry = format!("{path}?dryRun=All");
        let answered = ask(&client, Method::PATCH, &dry, &smaller).await;
        assert_eq!(answered.0, 200, "{}", message(&answered));
        answered.2.first().cloned()
    })
    .await;
    assert!(
        warning.contains("Validation failed for ValidatingAdmissionPolicy 'growing' with binding 'warning': failed expression: oldObject == null"),
        "{warning}"
    );
}

#[tokio::test]
async fn params_are_found_by_name_and_by_selector() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "object.data.k in params.data",
            "messageExpression": "'not in ' + params.metadata.name"}]});
    policy(&client, "named", spec.clone()).await;
    policy(&client, "selected", spec).await;
    let named = json!({"paramRef": {"name": "allowed", "namespace": "default",
        "parameterNotFoundAction": "Deny"}});
    binding(&client, "named", "named", named).await;
    let selected = json!({"paramRef": {"parameterNotFoundAction": "Allow",
        "selector": {"matchLabels": {"use": "params"}}}});
    binding(&client, "selected", "selected", selected).await;

    let refused = until(&client, 422, "named", &json!({"k": "v"})).await;
    assert_eq!(
        message(&refused),
        "422 configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'named' with binding 'named' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    );
    let answered = create(&client, &config_map("a", "selected"), "?dryRun=All").await;
    assert_eq!(answered.0, 201, "{}", message(&answered));

    for (name, key) in [("allowed", "v"), ("other", "w")] {
        let secret = json!({"metadata": {"name": name, "labels": {"use": "params"}},
            "stringData": {key: "x"}});
        made(&client, SECRETS, &secret).await;
    }
    until(&client, 201, "named", &json!({"k": "v"})).await;
    // All that are selected must agree.
    let refused = until(&client, 422, "selected", &json!({"k": "v"})).await;
    assert!(
        message(&refused).ends_with("denied request: not in other"),
        "{}",
        message(&refused)
    );
}

#[tokio::test]
async fn expressions_without_a_value_or_an_end_are_bounded() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let loops =
        "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a != 'x'))))";
    let spec = |expression: &str, failure: &str| json!({"failurePolicy": failure, "validations": [{"expression": expression}]});
    // Annotations for a log fail a request though the binding refuses nothing.
    let annotations = |expression: &str| json!({"auditAnnotations": [{"key": "k", "valueExpression": expression}]});
    for (name, expression) in [("noted", "string(object.data.none)"), ("silent", "null")] {
        policy(&client, name, annotations(expression)).await;
        let audited = json!({"validationActions": ["Audit"]});
        binding(&client, name, name, audited).await;
    }
    for (name, expression, failure) in [
        ("loops", loops, "Fail"),
        ("no-text", "object.data.none == 'x'", "Fail"),
        ("ignored", "object.data.none == 'x'", "Ignore"),
    ] {
        policy(&client, name, spec(expression, failure)).await;
        binding(&client, name, name, json!({})).await;
    }
    let doubled = |number: usize| match number {
        0 => json!({"name": "v0", "expression": "'0123456789'"}),
        _ => {
            let last = format!("variables.v{}", number - 1);
            json!({"name": format!("v{number}"), "expression": format!("{last} + {last}")})
        }
    };
    let variables: Vec<Value> = (0..40).map(doubled).collect();
    let mut chained = spec("variables.v39 != ''", "Fail");
    chained["variables"] = variables.into();
    policy(&client, "doubled", chained).await;
    binding(&client, "doubled", "doubled", json!({})).await;
    let data: serde_json::Map<String, Value> = (0..500)
        .map(|index| (format!("k{index}"), json!("v")))
        .collect();
    let data = Value::Object(data);
    for (name, why) in [
        ("loops", "actual cost limit exceeded"),
        ("doubled", "actual cost limit exceeded"),
        ("no-text", "no such key: none"),
        ("noted", "no such key: none"),
    ] {
        let refused = until(&client, 422, name, &data).await;
        let text = message(&refused);
        assert!(
            text.contains(&format!("'{name}' denied request: expression '")),
            "{text}"
        );
        assert!(text.contains(why), "{text}");
    }
    for (name, case) in [("a", "ignored"), ("b", "silent")] {
        let answered = create(&client, &config_map(name, case), "").await;
        assert_eq!(answered.0, 201, "{}", message(&answered));
    }
}

#[tokio::test]
async fn a_policy_whose_messages_cost_too_much_fails() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let message_of_all = "object.data.all(a, object.data.all(b, a != 'x')) ? 'some' : 'none'";
    let validation = json!({"expression": "false", "messageExpression": message_of_all});
    for (name, failure) in [("dear", "Fail"), ("ignored", "Ignore")] {
        let validations = vec![validation.clone(); 40];
        let spec = json!({"failurePolicy": failure, "validations": validations});
        policy(&client, name, spec).await;
        binding(&client, name, name, json!({})).await;
    }
    let few: Value = (0..10).map(|at| (format!("k{at}"), json!("v"))).collect();
    let many: Value = (0..300).map(|at| (format!("k{at}"), json!("v"))).collect();
    for (case, data, why) in [
        ("ignored", &few, "denied request: some"),
        ("dear", &few, "denied request: some"),
        (
            "dear",
            &many,
            "denied request: failed messageExpression: validation failed due to running out of cost budget, \
             no further validation rules will be run",
        ),
    ] {
        let refused = until(&client, 422, case, data).await;
        assert!(message(&refused).ends_with(why), "{}", message(&refused));
    }
    let mut ignored = config_map("a", "ignored");
    ignored["data"] = many;
    let answered = create(&client, &ignored, "").await;
    assert_eq!(answered.0, 201, "{}", message(&answered));
}

#[tokio::test]
async fn expressions_ask_who_may_do_what() {
    let (_server, client) =
        Server::ready(&["--storage-backend=memory", "--authorization-mode=RBAC"]).await;
    let asked = "authorizer.serviceAccount('default', object.data.who).group('').resource('secrets').namespace('default').check('get').allowed()";
    let validations = json!([
        {"expression": "authorizer.requestResource.check('create').allowed() && authorizer.path('/x').check('get').allowed()"},
        {"expression": asked, "message": "may not read secrets"},
        {"expression": "!authorizer.group('apps').resource('deployments').subresource('scale').name('a').check('get').errored()"},
    ]);
    policy(&client, "asks", json!({"validations": validations})).await;
    binding(&client, "asks", "asks", json!({})).await;
    let who = json!({"who": "reader"});
    let refused = until(&client, 422, "asks", &who).await;
    let text = message(&refused);
    assert!(
        text.ends_with("denied request: may not read secrets"),
        "{text}"
    );
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    made(&client, &format!("{group}/roles"), &role).await;
    let bound = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "reader"}]});
    made(&client, &format!("{group}/rolebindings"), &bound).await;
    until(&client, 201, "asks", &who).await;
    until(&client, 422, "asks", &json!({"who": "other"})).await;
}

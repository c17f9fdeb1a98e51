//! MutatingAdmissionPolicies and their bindings.

use base64::Engine as _;
use http::Method;
use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{
    Answered, CONFIG_MAPS, GROUP, agreed, ask, config_map, configure, create, hook, message,
};
use crate::support::server::Server;
use crate::support::webhook::Webhook;

async fn made(client: &Client, plural: &str, kind: &str, name: &str, spec: Value) {
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "spec": spec});
    let created = ask(client, Method::POST, &format!("{GROUP}/{plural}"), &object).await;
    assert_eq!(created.0, 201, "{name}: {}", message(&created));
}

/// Stores a policy for ConfigMaps that are labelled with `case`, with these changes, and binds it.
pub(super) async fn policy(
    client: &Client,
    (name, case): (&str, &str),
    mutations: Value,
    more: Value,
) {
    let mut spec = json!({"reinvocationPolicy": "Never", "mutations": mutations, "matchConstraints": {
        "objectSelector": {"matchLabels": {"case": case}},
        "resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""],
            "apiVersions": ["v1"], "resources": ["configmaps"]}]}});
    let mut binding = json!({"policyName": name});
    for (member, value) in more.as_object().expect("members") {
        let into = if member == "paramRef" {
            &mut binding
        } else {
            &mut spec
        };
        into[member] = value.clone();
    }
    made(
        client,
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        name,
        spec,
    )
    .await;
    let plural = "mutatingadmissionpolicybindings";
    made(
        client,
        plural,
        "MutatingAdmissionPolicyBinding",
        name,
        binding,
    )
    .await;
}

fn overlay(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Tries to create an object until what comes of it is as it should be.
async fn until(client: &Client, object: &Value, what: impl Fn(&Answered) -> bool) -> Answered {
    eventually(DEADLINE, "the policies are followed", async || {
        let answered = create(client, object, "?dryRun=All").await;
        if what(&answered) {
            Ok(answered)
        } else {
            Err(answered)
        }
    })
    .await
}

#[tokio::test]
async fn policies_change_objects_in_the_order_of_their_names() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let params = config_map("settings", "none");
    assert_eq!(create(&client, &params, "").await.0, 201);
    policy(
        &client,
        ("a-first", "ordered"),
        json!([overlay("Object{metadata: Object.metadata{labels: Object.metadata.labels{added: 'by-first'}}, data: Object.data{steps: 'first'}}")]),
        json!({}),
    )
    .await;
    policy(
        &client,
        ("b-second", "ordered"),
        json!([
            patch("[JSONPatch{op: 'test', path: '/data/steps', value: 'none'}, JSONPatch{op: 'remove', path: '/data'}]"),
            patch("[JSONPatch{op: 'replace', path: '/data/steps', value: variables.steps}]"),
            patch("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {jsonpatch.escapeKey('a'): params.data.k}}, JSONPatch{op: 'copy', from: '/data/k', path: '/data/copied'}]"),
            overlay("has(object.data.other) ? Object{data: Object.data{k: 'no'}} : Object{data: Object.data{seen: string(size(object.data)), user: request.userInfo.username}}"),
        ]),
        json!({
            "variables": [{"name": "steps", "expression": "object.data.steps + ', second'"}],
            "matchConditions": [{"name": "new", "expression": "request.operation == 'CREATE'"}],
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "paramRef": {"name": "settings", "parameterNotFoundAction": "Deny"},
        }),
    )
    .await;
    let object = config_map("ordered", "ordered");
    let done = until(&client, &object, |it| {
        it.1["data"]["steps"] == "first, second"
    })
    .await;
    assert_eq!(done.0, 201);
    assert_eq!(
        done.1["metadata"]["labels"],
        json!({"case": "ordered", "added": "by-first"})
    );
    assert_eq!(done.1["metadata"]["annotations"], json!({"a": "v"}));
    let data = &done.1["data"];
    assert_eq!(
        (&data["copied"], &data["seen"], &data["k"]),
        (&json!("v"), &json!("3"), &json!("v"))
    );
    assert_ne!(data["user"], Value::Null);
    // What the condition spares stays as it is written, but for the first policy.
    assert_eq!(create(&client, &object, "").await.0, 201);
    let path = format!("{CONFIG_MAPS}/ordered");
    let change = json!({"data": {"k": "w"}});
    let changed = ask(&client, Method::PATCH, &path, &change).await;
    assert_eq!(
        (changed.0, &changed.1["data"]["steps"]),
        (200, &json!("first"))
    );
    assert_eq!(changed.1["data"]["copied"], "v");
}

#[tokio::test]
async fn lists_are_merged_by_their_keys() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let rules = json!({"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["pods"]}]});
    let expression = "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'mesh', image: 'mesh:1', restartPolicy: 'Always'}], containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: 'A', value: c.name}]})}}";
    policy(
        &client,
        ("sidecars", ""),
        json!([overlay(expression)]),
        json!({"matchConstraints": rules}),
    )
    .await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "initContainers": [{"name": "own", "image": "own:1"}],
        "containers": [{"name": "a", "image": "a:1", "env": [{"name": "B", "value": "b"}]}, {"name": "c", "image": "c:1"}]}});
    let path = "/api/v1/namespaces/default/pods?dryRun=All";
    let done = eventually(DEADLINE, "the policy is followed", async || {
        let done = ask(&client, Method::POST, path, &pod).await;
        assert_eq!(done.0, 201, "{}", message(&done));
        let inits = done.1["spec"]["initContainers"].as_array();
        let is_changed = inits.is_some_and(|it| it.len() == 2);
        is_changed.then_some(done.1)
    })
    .await;
    let names = |list: &Value| -> Vec<String> {
        let items = list.as_array().expect("a list").iter();
        items
            .map(|it| it["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(&done["spec"]["initContainers"]), ["own", "mesh"]);
    let mesh = &done["spec"]["initContainers"][1];
    // What may be left out is filled in.
    assert_eq!(mesh["imagePullPolicy"], "IfNotPresent");
    let containers = &done["spec"]["containers"];
    assert_eq!(names(&containers[0]["env"]), ["B", "A"]);
    assert_eq!(containers[1]["env"], json!([{"name": "A", "value": "c"}]));
    assert_eq!(containers[0]["image"], "a:1");
}

#[tokio::test]
async fn policies_that_fail_refuse_or_are_ignored() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    for (name, mutation, failure) in [
        (
            "no-member",
            patch("[JSONPatch{op: 'add', path: '/data/x', value: object.data.none}]"),
            "Fail",
        ),
        (
            "no-place",
            patch("[JSONPatch{op: 'remove', path: '/data/none'}]"),
            "Fail",
        ),
        (
            "other-type",
            patch("[JSONPatch{op: 'replace', path: '/data', value: 'x'}]"),
            "Fail",
        ),
        (
            "other-kind",
            patch("[JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}]"),
            "Fail",
        ),
        (
            "doubled",
            patch(
                "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(i, JSONPatch{op: 'copy', from: '/data', path: '/data/x' + string(i)})",
            ),
            "Fail",
        ),
        (
            "endless",
            overlay(
                "object.data.all(a, object.data.all(b, object.data.all(c, a != 'x'))) ? Object{} : Object{data: Object.data{x: 'y'}}",
            ),
            "Fail",
        ),
        (
            "ignored",
            patch("[JSONPatch{op: 'remove', path: '/data/none'}]"),
            "Ignore",
        ),
    ] {
        let more = json!({"failurePolicy": failure});
        policy(&client, (name, name), json!([mutation]), more).await;
    }
    for (name, why) in [
        ("no-member", "no such key: none"),
        ("no-place", "JSONPath: "),
        ("other-type", ""),
        ("other-kind", "apiVersion and kind must not be changed"),
        ("doubled", ""),
        ("endless", "actual cost limit exceeded"),
    ] {
        let mut object = config_map("a", name);
        if name == "endless" {
            let data = (0..500).map(|index| (format!("k{index}"), json!("v")));
            object["data"] = data.collect::<serde_json::Map<_, _>>().into();
        }
        let refused = until(&client, &object, |it| it.0 == 403).await;
        let text = message(&refused);
        let start = format!("403 policy '{name}' with binding '{name}' denied request: ");
        assert!(text.starts_with(&start) && text.contains(why), "{text}");
        assert_eq!(refused.1["reason"], "Invalid");
        let cause = refused.1["details"]["causes"][0]["message"].as_str();
        assert!(cause.expect("a cause").contains(why), "{refused:?}");
    }
    let ignored = create(&client, &config_map("a", "ignored"), "?dryRun=All").await;
    assert_eq!(ignored.0, 201, "{}", message(&ignored));
}

#[tokio::test]
async fn policies_come_before_webhooks_and_see_their_changes_if_they_wish() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let webhook = Webhook::start(|path, review| {
        if path != "/turns" {
            return agreed(review, json!({}));
        }
        let seen = review["request"]["object"]["data"]["policy"]
            .as_str()
            .unwrap_or("none");
        let patch = json!([{"op": "add", "path": "/data/webhook", "value": format!("saw {seen}")}]);
        let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        agreed(review, json!({"patchType": "JSONPatch", "patch": patch}))
    })
    .await;
    let hooks = vec![hook(&webhook, "turns", json!({}))];
    configure(&client, &webhook, "mutatingwebhookconfigurations", hooks).await;
    let turn = |name: &str| {
        let expression = format!(
            "Object{{data: Object.data{{{name}: has(object.data.webhook) ? 'saw ' + object.data.webhook : 'saw nothing'}}}}"
        );
        json!([overlay(&expression)])
    };
    policy(&client, ("a", "turns"), turn("policy"), json!({})).await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    policy(&client, ("b", "turns"), turn("again"), again).await;
    let object = config_map("turns", "turns");
    let done = until(&client, &object, |it| {
        it.1["data"]["again"] == "saw saw saw nothing"
    })
    .await;
    assert_eq!(done.1["data"]["policy"], "saw nothing");
    assert_eq!(done.1["data"]["webhook"], "saw saw nothing");
}

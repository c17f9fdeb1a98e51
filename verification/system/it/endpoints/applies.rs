//! Server-side apply of null and of empty objects, and what it records.

use super::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

impl Fixture {
    async fn apply(&self, path: &str, manager: &str, force: bool, config: Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}&force={force}");
        self.patch(&path, "apply-patch+yaml", config).await
    }

    /// Applies, and gives the object.
    async fn applied(&self, path: &str, manager: &str, force: bool, config: Value) -> Value {
        let answer = self.apply(path, manager, force, config).await;
        assert!(answer.head.status.is_success(), "{}", answer.text());
        answer.json()
    }

    /// Applies a configuration that conflicts with the manager `one` in one field alone.
    async fn conflicts(&self, path: &str, config: Value, field: &str) {
        let before = self.get(path).await.json();
        let refused = self.apply(path, "two", false, config).await;
        let message = format!("Apply failed with 1 conflict: conflict with \"one\": {field}");
        assert_eq!(refused.failure(), (409, message));
        assert_eq!(self.get(path).await.json(), before, "nothing has changed");
    }

    /// Defines Things, whose members take null or not.
    async fn define_things(&self) {
        let text = json!({"type": "string"});
        let spec = json!({"type": "object", "properties": {
            "number": {"type": "number"}, "text": text, "maybe": {"type": "string", "nullable": true},
            "defaulted": {"type": "string", "default": "d"},
            "options": {"type": "object", "properties": {"x": text}},
            "pair": {"type": "object", "required": ["x"], "properties": {"x": text, "y": text}},
            "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "parts": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": text, "options": {"type": "object", "properties": {"x": text}}}}}}});
        let definition = json!({"metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema":
                        {"type": "object", "properties": {"spec": spec}}}}]}});
        let created = self.post(DEFINITIONS, definition).await;
        assert_eq!(created.head.status, 201, "{}", created.text());
        self.until_served(THINGS).await;
    }
}

fn thing(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})
}

/// Returns the fields of a manager, and the time of its entry.
fn entry(object: &Value, manager: &str) -> (Value, Value) {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries = entries.expect("entries").iter();
    let found = entries.find(|entry| entry["manager"] == manager);
    let found = found.unwrap_or_else(|| panic!("no {manager} in {object}"));
    (found["fieldsV1"].clone(), found["time"].clone())
}

#[tokio::test]
async fn null_in_a_custom_resource_is_a_value() {
    let fixture = Fixture::start(true).await;
    fixture.define_things().await;
    let path = &format!("{THINGS}/a");
    let first = json!({"text": "x", "maybe": "y"});
    fixture.applied(path, "one", false, thing("a", first)).await;
    for name in ["text", "maybe"] {
        let null = thing("a", json!({name: null}));
        fixture
            .conflicts(path, null, &format!(".spec.{name}"))
            .await;
    }
    // What is forced is stored if the schema has it, and refused if not.
    let null = thing("a", json!({"text": null}));
    let (code, message) = fixture.apply(path, "two", true, null).await.failure();
    assert_eq!(code, 422);
    let words =
        r#"spec.text: Invalid value: "null": spec.text in body must be of type string: "null""#;
    assert!(message.contains(words), "{message}");
    let null = thing("a", json!({"maybe": null}));
    let forced = fixture.applied(path, "two", true, null.clone()).await;
    let stored = json!({"text": "x", "maybe": null, "defaulted": "d"});
    assert_eq!(forced["spec"], stored);
    assert_eq!(entry(&forced, "two").0, json!({"f:spec": {"f:maybe": {}}}));
    assert_eq!(entry(&forced, "one").0, json!({"f:spec": {"f:text": {}}}));
    assert_eq!(fixture.applied(path, "two", false, null).await, forced);
    assert_eq!(fixture.get(path).await.json(), forced);
    // So it is at creation.
    let path = &format!("{THINGS}/b");
    let null = thing("b", json!({"maybe": null, "defaulted": null}));
    let created = fixture.applied(path, "one", false, null).await;
    assert_eq!(created["spec"], json!({"maybe": null, "defaulted": "d"}));
}

#[tokio::test]
async fn the_form_of_a_number_is_no_change() {
    let fixture = Fixture::start(true).await;
    fixture.define_things().await;
    let path = &format!("{THINGS}/a");
    let spec = json!({"number": 5, "numbers": [1, 2.5], "free": {"a": [1000, {"b": 0}]}});
    let first = fixture.applied(path, "one", false, thing("a", spec)).await;
    let floats = json!({"number": 5.0, "numbers": [1e0, 25e-1], "free": {"a": [1e3, {"b": -0.0}]}});
    let second = fixture
        .applied(path, "two", false, thing("a", floats.clone()))
        .await;
    assert_eq!(second["spec"], first["spec"]);
    assert_eq!(second["metadata"]["generation"], 1);
    for manager in ["one", "two"] {
        assert_eq!(entry(&second, manager).0, entry(&first, "one").0);
    }
    let again = fixture
        .applied(path, "two", false, thing("a", floats))
        .await;
    assert_eq!(again, second, "nothing is written");
    let names = json!({"parts": [{"name": "a<b"}]});
    let named = fixture.applied(path, "one", true, thing("a", names)).await;
    let key = r#"k:{"name":"a\u003cb"}"#;
    let parts = &entry(&named, "one").0["f:spec"]["f:parts"];
    assert_eq!(parts, &json!({key: {".": {}, "f:name": {}}}));
    // A port in another form is the same port.
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let deployment = |port: Value| {
        deployment(
            json!({"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "c", "image": "i", "ports": [{"containerPort": port}]}]}}}),
        )
    };
    let first = fixture
        .applied(path, "one", false, deployment(json!(80)))
        .await;
    let second = fixture
        .applied(path, "two", true, deployment(json!(80.0)))
        .await;
    assert_eq!(second["spec"], first["spec"]);
}

#[tokio::test]
async fn what_is_left_empty_in_a_custom_resource_stays() {
    let fixture = Fixture::start(true).await;
    fixture.define_things().await;
    let path = &format!("{THINGS}/a");
    for (full, less, left) in [
        (
            json!({"options": {"x": "1"}}),
            json!({"options": {}}),
            json!({"options": {}}),
        ),
        (
            json!({"free": {"a": {"b": 1}}}),
            json!({"free": {}}),
            json!({"free": {}}),
        ),
        (
            json!({"free": {"a": {"b": 1, "c": 1}}}),
            json!({"free": {"a": {"c": 1}}}),
            json!({"free": {"a": {"c": 1}}}),
        ),
        (
            json!({"parts": [{"name": "p", "options": {"x": "1"}}]}),
            json!({"parts": [{"name": "p", "options": {}}]}),
            json!({"parts": [{"name": "p", "options": {}}]}),
        ),
        (json!({"options": {"x": "1"}}), json!({}), json!({})),
    ] {
        fixture.applied(path, "one", true, thing("a", full)).await;
        let config = thing("a", less);
        let applied = fixture.applied(path, "one", false, config.clone()).await;
        let mut spec = applied["spec"].clone();
        assert_eq!(spec["defaulted"].take(), "d");
        let mut expected = left;
        expected["defaulted"] = json!(null);
        assert_eq!(spec, expected);
        assert_eq!(fixture.applied(path, "one", false, config).await, applied);
    }
    let pair = |pair: Value| thing("a", json!({"pair": pair}));
    fixture
        .applied(path, "one", false, pair(json!({"x": "1", "y": "1"})))
        .await;
    let (code, message) = fixture
        .apply(path, "one", false, pair(json!({})))
        .await
        .failure();
    assert_eq!(code, 422);
    assert!(message.contains("spec.pair.x: Required value"), "{message}");
}

#[tokio::test]
async fn null_conflicts_with_a_value_of_a_deployment() {
    let fixture = Fixture::start(true).await;
    let template = |spec: Value| {
        let mut template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "i"}]}});
        for (name, value) in spec.as_object().expect("an object") {
            template["spec"][name] = value.clone();
        }
        template
    };
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let full = deployment(
        json!({"replicas": 2, "paused": true, "selector": {"matchLabels": {"a": "b"}},
        "strategy": {"type": "Recreate"},
        "template": template(json!({"nodeSelector": {"n": "1"}, "terminationGracePeriodSeconds": 5}))}),
    );
    let first = fixture.applied(path, "one", false, full).await;
    for name in ["replicas", "paused"] {
        let null = deployment(json!({name: null}));
        fixture
            .conflicts(path, null, &format!(".spec.{name}"))
            .await;
    }
    for name in ["nodeSelector", "terminationGracePeriodSeconds"] {
        let null = deployment(json!({"template": {"spec": {name: null}}}));
        fixture
            .conflicts(path, null, &format!(".spec.template.spec.{name}"))
            .await;
    }
    // What merges by its members has no member less.
    for spec in [
        json!(null),
        json!({"strategy": null}),
        json!({"template": null}),
        json!({"template": {"spec": {"containers": null}}}),
        json!({"template": {"metadata": {"labels": null}}}),
    ] {
        let applied = fixture
            .applied(path, "two", false, deployment(spec.clone()))
            .await;
        assert_eq!(applied["spec"], first["spec"], "{spec}");
    }
    let forced = deployment(json!({"replicas": null}));
    let forced = fixture.applied(path, "two", true, forced).await;
    assert_eq!(forced["spec"]["replicas"], 1, "the default");
    assert_eq!(
        entry(&forced, "two").0,
        json!({"f:spec": {"f:replicas": {}}})
    );
    assert_eq!(entry(&forced, "one").0["f:spec"].get("f:replicas"), None);
}

#[tokio::test]
async fn null_conflicts_with_a_value_of_a_built_in_kind() {
    let fixture = Fixture::start(true).await;
    let namespaced = |group: &str, rest: &str| format!("/{group}/namespaces/default/{rest}");
    for (path, full, null, field) in [
        (
            namespaced("api/v1", "services/s"),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
            json!({"spec": {"selector": null}}),
            ".spec.selector",
        ),
        (
            namespaced("api/v1", "secrets/s"),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                "data": {"a": "eA=="}}),
            json!({"data": {"a": null}}),
            ".data.a",
        ),
        (
            namespaced("apis/networking.k8s.io/v1", "networkpolicies/n"),
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                "metadata": {"name": "n"}, "spec": {"podSelector": {}, "ingress": [{}]}}),
            json!({"spec": {"ingress": null}}),
            ".spec.ingress",
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b".to_owned(),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": "b"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}]}),
            json!({"subjects": null}),
            ".subjects",
        ),
        (
            "/api/v1/nodes/n".to_owned(),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
            json!({"spec": {"taints": null}}),
            ".spec.taints",
        ),
    ] {
        fixture.applied(&path, "one", false, full.clone()).await;
        let mut config = null;
        for name in ["apiVersion", "kind", "metadata"] {
            config[name] = full[name].clone();
        }
        fixture.conflicts(&path, config, field).await;
    }
    let path = &namespaced("api/v1", "services/s");
    let ports = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": null}});
    let applied = fixture.applied(path, "two", false, ports).await;
    assert_eq!(applied["spec"]["ports"][0]["port"], 80);
}

#[tokio::test]
async fn an_empty_block_takes_no_data_away() {
    let fixture = Fixture::start(true).await;
    let path = &format!("{CONFIG_MAPS}/m");
    let map = json!({"metadata": {"name": "m"}, "data": {"a": "1"}});
    fixture
        .post(&format!("{CONFIG_MAPS}?fieldManager=one"), map.clone())
        .await;
    let config = |rest: Value| {
        let mut config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        for (name, value) in rest.as_object().expect("an object") {
            config[name] = value.clone();
        }
        config
    };
    for manager in ["one", "two"] {
        for force in [false, true] {
            let applied = fixture.applied(path, manager, force, config(json!({"data": null})));
            let applied = applied.await;
            assert_eq!(applied["data"], map["data"], "{manager} {force}");
        }
    }
    let labels = config(json!({"metadata": {"name": "m", "labels": null}}));
    let labelled = fixture.applied(path, "three", false, labels).await;
    assert_eq!(labelled["metadata"].get("labels"), None);
    let owned = json!({"f:metadata": {"f:labels": {}}});
    assert_eq!(entry(&labelled, "three").0, owned);
    // A null entry of a map is the zero value of its type.
    let entry = config(json!({"data": {"b": null}}));
    let applied = fixture.applied(path, "four", false, entry).await;
    assert_eq!(applied["data"], json!({"a": "1", "b": ""}));
}

#[tokio::test]
async fn an_apply_that_changes_managers_alone_has_no_time() {
    let fixture = Fixture::start(true).await;
    let path = &format!("{CONFIG_MAPS}/m");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
        "data": {"a": "1"}});
    let first = fixture.applied(path, "one", false, config.clone()).await;
    assert!(entry(&first, "one").1.is_string());
    let second = fixture.applied(path, "two", false, config).await;
    assert_eq!(entry(&second, "two").1, json!(null));
    assert_eq!(entry(&second, "one"), entry(&first, "one"));
}

#[tokio::test]
async fn an_apply_does_not_change_the_uid() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("m", json!({"a": "1"})).await;
    let config = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": "u"}});
    let refused = fixture
        .apply(&format!("{CONFIG_MAPS}/m"), "one", true, config("m"))
        .await;
    let message =
        r#"ConfigMap "m" is invalid: metadata.uid: Invalid value: "u": field is immutable"#;
    assert_eq!(refused.failure(), (422, message.to_owned()));
    let refused = fixture
        .apply(&format!("{CONFIG_MAPS}/n"), "one", true, config("n"))
        .await;
    let message = "Operation cannot be fulfilled on configmaps \"n\": uid mismatch: the provided object \
        specified uid u, and no existing object was found";
    assert_eq!(refused.failure(), (409, message.to_owned()));
}

#[tokio::test]
async fn an_empty_list_is_told_where_it_means_something() {
    let fixture = Fixture::start(true).await;
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let slice = |name: &str, lists: Value| {
        let mut slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": name}, "spec": {"driver": "d.example.com", "allNodes": true,
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}});
        for (name, list) in lists.as_object().expect("lists") {
            slice["spec"][name] = list.clone();
        }
        slice
    };
    let both = slice(
        "a",
        json!({"sharedCounters": [], "devices": [{"name": "d"}]}),
    );
    let why = "only one of `sharedCounters` or `devices` is allowed";
    let posted = fixture.post(slices, both.clone()).await.failure();
    assert!(posted.0 == 422 && posted.1.contains(why), "{posted:?}");
    let path = &format!("{slices}/a");
    let applied = fixture.apply(path, "one", false, both).await.failure();
    assert!(applied.0 == 422 && applied.1.contains(why), "{applied:?}");
    let alone = slice("a", json!({"sharedCounters": []}));
    let stored = fixture.applied(path, "one", false, alone).await;
    assert_eq!(stored["spec"].get("sharedCounters"), None);

    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h";
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"}, "spec": {"maxReplicas": 2, "behavior": {"scaleUp": {"policies": []}},
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let (code, message) = fixture
        .apply(path, "one", false, autoscaler)
        .await
        .failure();
    let why = "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy";
    assert!(code == 422 && message.contains(why), "{code} {message}");

    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x", "capacity": {}}}]}}});
    let claim = fixture.post(claims, claim).await.json();
    let capacity = claim.pointer("/spec/devices/requests/0/exactly/capacity");
    assert_eq!(capacity, Some(&json!({})), "{claim}");
}

#[tokio::test]
async fn kubectl_takes_over_what_it_applied_without_the_server() {
    let fixture = Fixture::start(true).await;
    let list = "/api/v1/namespaces/default/configmaps";
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let config = |data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l", "namespace": "default"},
            "data": {"a": data}})
    };
    let mut object = config("1");
    object["metadata"]["annotations"] = json!({annotation: config("1").to_string()});
    let path = format!("{list}?fieldManager=kubectl-client-side-apply");
    let created = fixture.post(&path, object).await;
    assert_eq!(created.head.status, 201, "{}", created.text());
    let path = &format!("{list}/l");
    let refused = fixture
        .apply(path, "other", false, config("2"))
        .await
        .failure();
    assert_eq!(refused.0, 409);
    let taken = fixture.applied(path, "kubectl", false, config("<2>")).await;
    assert_eq!(taken["data"]["a"], "<2>");
    let last = config("<2>")
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    assert_eq!(taken["metadata"]["annotations"][annotation], last + "\n");
}

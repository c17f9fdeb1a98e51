//! The answers to verbs as `verification/peers/compare-verbs` compares them with kube-apiserver's.

use super::*;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

impl Fixture {
    async fn delete(&self, path: &str) -> Answer {
        self.ask(request("DELETE", path, Bytes::new())).await
    }
}

#[tokio::test]
async fn a_patched_object_keeps_its_name_and_namespace() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let name = |name: Value| json!({"metadata": {"name": name}});
    let replaced = json!([{"op": "replace", "path": "/metadata/name", "value": "b"}]);
    let other = "the name of the object (b) does not match the name on the URL (a)";
    let none = "the name of the object (a based on URL) was undeterminable: name must be provided";
    let elsewhere =
        "the namespace of the provided object does not match the namespace sent on the request";
    for (kind, patch, message) in [
        ("merge-patch+json", name("b".into()), other),
        ("strategic-merge-patch+json", name("b".into()), other),
        ("json-patch+json", replaced, other),
        ("merge-patch+json", name(Value::Null), none),
        ("merge-patch+json", json!({"metadata": null}), none),
        (
            "merge-patch+json",
            json!({"metadata": {"namespace": "other"}}),
            elsewhere,
        ),
    ] {
        let refused = fixture.patch(&path, kind, patch).await;
        assert_eq!(refused.failure(), (400, message.to_owned()));
    }
    let mut moved = fixture.get(&path).await.json();
    moved["metadata"]["namespace"] = "other".into();
    let put = request("PUT", &path, moved.to_string().into());
    assert_eq!(
        fixture.ask(put).await.failure(),
        (400, elsewhere.to_owned())
    );
    // An object of no namespace that names one loses it.
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    fixture.post(roles, role).await;
    let patch = json!({"metadata": {"namespace": "other"}});
    let patched = fixture
        .patch(&format!("{roles}/r"), "merge-patch+json", patch)
        .await;
    assert_eq!(patched.head.status, StatusCode::OK, "{}", patched.text());
    assert_eq!(patched.json()["metadata"]["namespace"], Value::Null);
}

#[tokio::test]
async fn broken_patches_are_bad_and_unknown_operations_unprocessable() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    for (kind, prefix) in [
        ("strategic-merge-patch+json", ""),
        ("merge-patch+json", "error decoding patch: "),
        ("json-patch+json", "error decoding patch: "),
    ] {
        let mut half = request("PATCH", &path, Bytes::from_static(b"{"));
        let media_type = format!("application/{kind}").parse().expect("a header");
        half.headers_mut().insert(CONTENT_TYPE, media_type);
        let message = format!("{prefix}unexpected end of JSON input");
        assert_eq!(fixture.ask(half).await.failure(), (400, message));
    }
    for patch in [
        json!([{"op": "x", "path": "/a"}]),
        json!([{"op": "add", "path": "x", "value": 1}]),
    ] {
        let refused = fixture.patch(&path, "json-patch+json", patch).await;
        let message = "the server rejected our request due to an error in our request";
        assert_eq!(refused.failure(), (422, message.to_owned()));
    }
}

#[tokio::test]
async fn accounts_keep_the_names_of_their_secrets_alone() {
    let fixture = Fixture::start(true).await;
    let secrets = json!([{"name": "s", "namespace": "n", "kind": "Secret", "uid": "u"}]);
    let account = json!({"metadata": {"name": "a"}, "secrets": secrets});
    let created = fixture.post(ACCOUNTS, account).await.json();
    assert_eq!(created["secrets"], json!([{"name": "s"}]));
    let patch = json!({"secrets": [{"name": "t", "fieldPath": "x"}]});
    let path = format!("{ACCOUNTS}/a");
    let patched = fixture.patch(&path, "merge-patch+json", patch).await.json();
    assert_eq!(patched["secrets"], json!([{"name": "t"}]));
}

#[tokio::test]
async fn deletions_answer_with_the_object_where_kubernetes_does() {
    let fixture = Fixture::start(true).await;
    let class = json!({"metadata": {"name": "c"}, "provisioner": "example.com/p"});
    fixture.post(CLASSES, class).await;
    for query in ["?dryRun=All", ""] {
        let deleted = fixture.delete(&format!("{CLASSES}/c{query}")).await.json();
        assert_eq!(deleted["kind"], "StorageClass");
        assert_eq!(deleted["metadata"]["name"], "c");
    }
}

#[tokio::test]
async fn a_deletion_of_jobs_that_leaves_their_pods_warns() {
    let fixture = Fixture::start(true).await;
    let container = json!([{"name": "c", "image": "i"}]);
    let template = json!({"spec": {"containers": container, "restartPolicy": "Never"}});
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
    fixture.post(JOBS, job).await;
    for (target, warns) in [
        ("/j?dryRun=All", true),
        ("?dryRun=All", true),
        ("/j?dryRun=All&propagationPolicy=Orphan", false),
        ("?dryRun=All&propagationPolicy=Background", false),
    ] {
        let deleted = fixture.delete(&format!("{JOBS}{target}")).await;
        assert_eq!(deleted.head.status, StatusCode::OK);
        let warnings: Vec<_> = deleted.head.headers.get_all("warning").iter().collect();
        assert_eq!(warnings.len(), usize::from(warns), "{target}: {warnings:?}");
    }
}

#[tokio::test]
async fn some_subresources_make_no_tables() {
    let fixture = Fixture::start(true).await;
    let container = json!([{"name": "c", "image": "i"}]);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": container}});
    let pods = "/api/v1/namespaces/default/pods";
    fixture.post(pods, pod).await;
    let ask = async |part: &str, accept: &'static str| {
        let mut request = request("GET", &format!("{pods}/p/{part}"), Bytes::new());
        request
            .headers_mut()
            .insert(ACCEPT, accept.parse().expect("a header"));
        fixture.ask(request).await
    };
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(ask("status", table).await.json()["kind"], "Table");
    for part in ["ephemeralcontainers", "resize"] {
        assert_eq!(
            ask(part, table).await.head.status,
            StatusCode::NOT_ACCEPTABLE
        );
        let either = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(ask(part, either).await.json()["kind"], "Pod");
    }
}

#[tokio::test]
async fn a_scale_has_metadata_alone_too() {
    let fixture = Fixture::start(true).await;
    let labels = json!({"a": "b"});
    let container = json!([{"name": "c", "image": "i"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": container}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    fixture
        .post(sets, json!({"metadata": {"name": "r"}, "spec": spec}))
        .await;
    let mut request = request("GET", &format!("{sets}/r/scale"), Bytes::new());
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    request
        .headers_mut()
        .insert(ACCEPT, accept.parse().expect("a header"));
    let metadata = fixture.ask(request).await.json();
    assert_eq!(metadata["kind"], "PartialObjectMetadata");
    assert_eq!(metadata["metadata"]["name"], "r");
    assert_eq!(metadata["spec"], Value::Null);
}

#[tokio::test]
async fn events_of_both_groups_are_refused_alike() {
    let fixture = Fixture::start(true).await;
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event =
        json!({"metadata": {"name": "e"}, "reason": "r", "regarding": {"namespace": "default"}});
    let refused = fixture.post(events, event).await;
    let (code, message) = refused.failure();
    assert_eq!(code, 422);
    assert!(message.starts_with("Event \"e\" is invalid: "), "{message}");
    assert_eq!(refused.json()["details"]["group"], Value::Null);
}

#[tokio::test]
async fn slices_of_names_are_warned_of_and_runtime_classes_made_by_updates() {
    let fixture = Fixture::start(true).await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = json!({"metadata": {"name": "s"}, "addressType": "FQDN", "endpoints": []});
    let created = fixture.post(slices, slice).await;
    assert_eq!(created.head.status, StatusCode::CREATED);
    let warning = created.head.headers["warning"].to_str().expect("text");
    assert!(
        warning.contains("FQDN endpoints are deprecated"),
        "{warning}"
    );
    let class = json!({"metadata": {"name": "c"}, "handler": "h"});
    let put = request(
        "PUT",
        "/apis/node.k8s.io/v1/runtimeclasses/c",
        class.to_string().into(),
    );
    assert_eq!(fixture.ask(put).await.head.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_bad_version_of_a_collection_is_a_bad_request() {
    let fixture = Fixture::start(true).await;
    let refused = fixture
        .delete(&format!("{CONFIG_MAPS}?resourceVersion=x"))
        .await;
    let (code, message) = refused.failure();
    assert_eq!(code, 400);
    assert!(
        message.starts_with("invalid resource version: "),
        "{message}"
    );
}

#[tokio::test]
async fn options_of_deletions_are_objects() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({})).await;
    for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}/a")] {
        for (body, found) in [
            ("[]", "array"),
            (r#"["DeleteOptions"]"#, "array"),
            ("1", "number"),
        ] {
            let refused = fixture.ask(request("DELETE", &path, body.into())).await;
            let message = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
                 value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
                 string \"json:\\\"kind,omitempty\\\"\" }}"
            );
            assert_eq!(refused.failure(), (400, message), "{path} {body}");
        }
    }
    assert_eq!(
        fixture.get(&format!("{CONFIG_MAPS}/a")).await.head.status,
        200
    );
}

#[tokio::test]
async fn preconditions_of_deletions_are_parameters_too() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    for (query, message) in [
        (
            "uid=other",
            "the UID in the precondition (other) does not match the UID in record",
        ),
        (
            "resourceVersion=1",
            "the ResourceVersion in the precondition (1) does not match",
        ),
    ] {
        let refused = fixture.delete(&format!("{path}?{query}")).await;
        let (code, found) = refused.failure();
        assert!(code == 409 && found.contains(message), "{code} {found}");
    }
    // With a body, the parameters do not count.
    let body = r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}"#;
    let dry = fixture
        .ask(request("DELETE", &format!("{path}?uid=other"), body.into()))
        .await;
    assert_eq!(dry.head.status, 200);
    let whole = fixture.get(&path).await.json();
    // A collection is listed by the parameters too, so this version takes it from the cache, which may not have the
    // object yet.
    let version = whole["metadata"]["resourceVersion"].as_str();
    let not_older = format!(
        "{CONFIG_MAPS}?resourceVersion={}&resourceVersionMatch=NotOlderThan",
        version.unwrap_or_default()
    );
    assert_eq!(fixture.get(&not_older).await.head.status, 200);
    let refused = fixture
        .delete(&format!("{CONFIG_MAPS}?resourceVersion=0"))
        .await;
    assert_eq!(refused.head.status, 409, "{}", refused.text());
    let query = |it: &str| {
        whole["metadata"][it]
            .as_str()
            .map(|value| format!("{it}={value}"))
    };
    let both = [query("uid"), query("resourceVersion")].map(Option::unwrap_or_default);
    let gone = fixture.delete(&format!("{path}?{}", both.join("&"))).await;
    assert_eq!(gone.head.status, 200, "{}", gone.text());
}

#[tokio::test]
async fn component_statuses_are_selected_by_name_and_not_watched() {
    let fixture = Fixture::start(true).await;
    let statuses = "/api/v1/componentstatuses";
    let one = fixture
        .get(&format!("{statuses}?fieldSelector=metadata.name%3Detcd-0"))
        .await;
    let items = one.json()["items"].clone();
    assert_eq!(items.as_array().map(Vec::len), Some(1), "{items}");
    assert_eq!(items[0]["metadata"]["name"], "etcd-0");
    let refused = fixture.get(&format!("{statuses}?watch=1")).await;
    let message = "watch is not supported on resources of kind \"componentstatuses\"";
    assert_eq!(refused.failure(), (405, message.to_owned()));
    assert_eq!(
        refused.json()["details"],
        json!({"kind": "componentstatuses"})
    );
}

/// kube-apiserver gives kinds without namespaces that have fields of their own, and custom ones, no
/// `metadata.namespace`.
#[tokio::test]
async fn nodes_are_not_selected_by_namespace() {
    let fixture = Fixture::start(true).await;
    for resource in ["nodes", "namespaces"] {
        let refused = fixture
            .get(&format!(
                "/api/v1/{resource}?fieldSelector=metadata.namespace%3Da"
            ))
            .await;
        let message = "field label not supported: metadata.namespace";
        assert_eq!(refused.failure(), (400, message.to_owned()), "{resource}");
    }
    let volumes = fixture
        .get("/api/v1/persistentvolumes?fieldSelector=metadata.namespace%3Da")
        .await;
    assert_eq!(volumes.head.status, 200);
}

#[tokio::test]
async fn parameters_that_are_not_encoded_well_are_left_out() {
    let fixture = Fixture::start(true).await;
    for query in [
        "limit=%zz",
        "limit=x;y",
        "limit=%",
        "limit%=x",
        "labelSelector=%2",
        "limit=x%00%",
    ] {
        let list = fixture.get(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(list.head.status, 200, "{query}: {}", list.text());
    }
}

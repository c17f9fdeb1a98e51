//! Patches, and their limits.

use super::*;

#[tokio::test]
async fn a_patch_makes_nothing_of_another_kind() {
    let fixture = Fixture::start(true).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "v"}});
    let created = fixture.post(maps, map).await;
    assert_eq!(created.head.status, StatusCode::CREATED);
    let path = format!("{maps}/m");
    let before = fixture.get(&path).await.json();
    let replace = |member: &str, value: &str| json!([{"op": "replace", "path": format!("/{member}"), "value": value}]);
    for (syntax, patch, words) in [
        (
            "merge-patch+json",
            json!({"kind": "Secret"}),
            r#"converting (v1.Secret) to (core.ConfigMap): unknown conversion"#,
        ),
        (
            "json-patch+json",
            replace("kind", "Nonsense"),
            r#"no kind "Nonsense" is registered for version "v1""#,
        ),
        (
            "json-patch+json",
            replace("apiVersion", "v2"),
            r#"no kind "ConfigMap" is registered for version "v2""#,
        ),
    ] {
        let refused = fixture.patch(&path, syntax, patch).await;
        assert_eq!(
            refused.head.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{words}"
        );
        let status = refused.json();
        let message = status["message"].as_str().expect("a message");
        assert!(
            message.starts_with(" \"\" is invalid: patch: Invalid value: "),
            "{message}"
        );
        assert!(message.contains(words), "{message}");
    }
    let none = json!({"kind": null});
    let patched = fixture.patch(&path, "merge-patch+json", none).await;
    assert_eq!(patched.json(), before, "taken away is as good as unchanged");
    // A strategic merge patch changes fields of a type, and never the type.
    let other = json!({"kind": "Secret", "apiVersion": "v2"});
    for patch in [other, json!(null)] {
        let patched = fixture
            .patch(&path, "strategic-merge-patch+json", patch)
            .await;
        assert_eq!(patched.json(), before);
    }
}

#[tokio::test]
async fn a_configuration_says_its_version() {
    let fixture = Fixture::start(true).await;
    let path = "/api/v1/namespaces/default/configmaps/m";
    for (config, found) in [
        (
            json!({"kind": "ConfigMap", "metadata": {"name": "m"}}),
            "/, Kind=ConfigMap",
        ),
        (
            json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "m"}}),
            "/v2, Kind=ConfigMap",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Other", "metadata": {"name": "m"}}),
            "apps/v1, Kind=Other",
        ),
        (json!(null), "/, Kind="),
    ] {
        let applied = format!("{path}?fieldManager=me");
        let refused = fixture.patch(&applied, "apply-patch+yaml", config).await;
        assert_eq!(refused.head.status, StatusCode::BAD_REQUEST);
        let status = refused.json();
        assert_eq!(status["reason"], "BadRequest");
        assert_eq!(status["message"], format!("invalid object type: {found}"));
        let found = fixture.get(path).await.head.status;
        assert_eq!(found, StatusCode::NOT_FOUND);
    }
}

/// A zero value that is written where none was is no change: neither of the generation nor of immutable fields.
#[tokio::test]
async fn zeros_that_are_said_change_nothing() {
    let fixture = Fixture::start(true).await;
    let template = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "hostNetwork": false, "nodeSelector": {}, "restartPolicy": "",
            "containers": [{"name": "c", "image": "i", "args": [], "tty": false,
                "terminationMessagePath": "",
                "env": [{"name": "EMPTY", "value": ""}, {"name": "LIMIT", "valueFrom": {
                    "resourceFieldRef": {"resource": "limits.cpu"}}}],
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}],
        },
    });
    let selector = json!({"matchLabels": {"a": "b"}});
    let deployment =
        json!({"metadata": {"name": "o"}, "spec": {"selector": selector, "template": template}});
    let pod = json!({"metadata": {"name": "o"}, "spec": template["spec"]});
    for (kind, body) in [
        ("apis/apps/v1/namespaces/default/deployments", deployment),
        ("api/v1/namespaces/default/pods", pod),
    ] {
        let created = fixture.post(&format!("/{kind}"), body.clone()).await;
        assert_eq!(created.head.status, StatusCode::CREATED, "{kind}");
        let created = created.json();
        let path = format!("/{kind}/o");
        let patch = json!({"spec": body["spec"]});
        for syntax in ["merge-patch+json", "strategic-merge-patch+json"] {
            let patched = fixture.patch(&path, syntax, patch.clone()).await;
            assert_eq!(patched.head.status, StatusCode::OK, "{:?}", patched.json());
            assert_eq!(
                patched.json()["metadata"],
                created["metadata"],
                "{kind} {syntax}"
            );
        }
        let limits = created.pointer("/spec/template/spec/containers/0/resources/limits");
        let limits = limits.or_else(|| created.pointer("/spec/containers/0/resources/limits"));
        assert_eq!(limits, Some(&json!({"cpu": "500m", "memory": "1Gi"})));
    }
}

/// The time of an apply that changes nothing is not noted, even where what is no value is written.
#[tokio::test]
async fn what_is_applied_again_later_is_not_written() {
    let fixture = Fixture::start(true).await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/all?fieldManager=me";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "all"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let apply = async || fixture.patch(path, "apply-patch+yaml", role.clone()).await;
    let first = apply().await.json();
    assert_eq!(first["rules"], json!(null));
    let time = first["metadata"]["managedFields"][0]["time"].clone();
    let now = || {
        let now = jiff::Timestamp::now();
        json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    eventually(DEADLINE, "another second", async || now() != time).await;
    assert_eq!(apply().await.json(), first);
}

/// Go's decoder finds fields that a patch has twice; the last counts.
#[tokio::test]
async fn fields_that_a_patch_has_twice_are_told() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("m", json!({"k": "v"})).await;
    let path = format!("{CONFIG_MAPS}/m");
    let send = async |kind: &str, body: &str, validation: &str| {
        let path = format!("{path}?fieldValidation={validation}");
        let mut request = request("PATCH", &path, body.to_owned().into());
        let media_type = format!("application/{kind}").parse().expect("a header");
        request.headers_mut().insert(CONTENT_TYPE, media_type);
        fixture.ask(request).await
    };
    let merge = r#"{"data":{"k":"a","k":"b"},"x":1}"#;
    let json = r#"[{"op":"replace","op":"replace","path":"/data/k","value":"b"}]"#;
    for (kind, body, told) in [
        (
            "merge-patch+json",
            merge,
            &["duplicate field \"data.k\"", "unknown field \"x\""][..],
        ),
        (
            "strategic-merge-patch+json",
            merge,
            &["duplicate field \"data.k\"", "unknown field \"x\""],
        ),
        (
            "json-patch+json",
            json,
            &["json patch duplicate field \"[0].op\""],
        ),
    ] {
        let refused = send(kind, body, "Strict").await;
        let (code, message) = refused.failure();
        let all = format!("strict decoding error: {}", told.join(", "));
        assert!(code == 422 && message.ends_with(&all), "{kind}: {message}");
        let kept = fixture.get(&path).await.json();
        assert_eq!(kept["data"]["k"], "v", "{kind}");
        let warned = send(kind, body, "Warn").await;
        assert_eq!(warned.json()["data"]["k"], "b", "{kind}");
        let warnings = warned.head.headers.get_all("warning").into_iter();
        let warnings: Vec<_> = warnings
            .map(|it| it.to_str().expect("text").replace('\\', ""))
            .collect();
        assert_eq!(warnings.len(), told.len(), "{warnings:?}");
        for (warning, told) in warnings.iter().zip(told) {
            assert!(warning.contains(told), "{warning}");
        }
        let ignored = send(kind, &body.replace("\"b\"", "\"v\""), "Ignore").await;
        assert_eq!(ignored.json()["data"]["k"], "v", "{kind}");
        assert_eq!(ignored.head.headers.get("warning"), None);
    }
}

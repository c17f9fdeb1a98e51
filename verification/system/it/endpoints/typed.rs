//! Values of wrong types, and fields that there are not: refused, told or dropped, never changed.

use super::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";

fn deployment() -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
}

/// The deployment with some other value at a pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut object = deployment();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    object.pointer_mut(parent).expect("a parent")[name] = value;
    object
}

#[tokio::test]
async fn wrong_types_in_bodies_are_refused() {
    let fixture = Fixture::start(true).await;
    let wrong = [
        (
            "/spec/replicas",
            json!("x"),
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "/spec/replicas",
            json!(99_999_999_999_i64),
            "number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "/spec/template/spec/nodeName",
            json!([1]),
            "array into Go struct field PodSpec.spec.template.spec.nodeName of type string",
        ),
    ];
    let expected = |words: &str| {
        let start = "Deployment in version \"v1\" cannot be handled as a Deployment";
        (400, format!("{start}: json: cannot unmarshal {words}"))
    };
    for (pointer, value, words) in &wrong {
        let answer = fixture
            .post(DEPLOYMENTS, with(pointer, value.clone()))
            .await;
        assert_eq!(answer.failure(), expected(words));
    }
    let created = fixture.post(DEPLOYMENTS, deployment()).await;
    created.has_created();
    for (pointer, value, words) in &wrong {
        let body = with(pointer, value.clone()).to_string();
        let answer = fixture.ask(request("PUT", DEPLOYMENT, body.into())).await;
        assert_eq!(answer.failure(), expected(words));
    }
    let bytes = json!({"metadata": {"name": "b"}, "binaryData": {"a": "!!"}});
    let (code, message) = fixture.post(CONFIG_MAPS, bytes).await.failure();
    assert_eq!(code, 400);
    assert!(
        message.ends_with("illegal base64 data at input byte 0"),
        "{message}"
    );
}

#[tokio::test]
async fn wrong_types_in_patches_are_refused() {
    let fixture = Fixture::start(true).await;
    let created = fixture.post(DEPLOYMENTS, deployment()).await.json();
    let scale = format!("{DEPLOYMENT}/scale");
    let status = format!("{DEPLOYMENT}/status");
    for value in [json!("x"), json!(99_999_999_999_i64)] {
        let merge = json!({"spec": {"replicas": value}});
        let json_patch = json!([{"op": "replace", "path": "/spec/replicas", "value": value}]);
        let status_patch = json!({"status": {"replicas": value}});
        for (path, kind, patch) in [
            (DEPLOYMENT, "merge-patch+json", &merge),
            (DEPLOYMENT, "json-patch+json", &json_patch),
            (&scale, "merge-patch+json", &merge),
            (&status, "merge-patch+json", &status_patch),
        ] {
            let path = format!("{path}?fieldManager=test");
            let answer = fixture.patch(&path, kind, patch.clone()).await;
            let (code, message) = answer.failure();
            assert_eq!(code, 422, "{path} {kind}: {message}");
            assert!(message.contains(".replicas of type int32"), "{message}");
        }
    }
    assert_eq!(fixture.get(DEPLOYMENT).await.json(), created);
}

#[tokio::test]
async fn wrong_types_in_what_is_merged_are_told_by_the_converter() {
    let fixture = Fixture::start(true).await;
    let created = fixture.post(DEPLOYMENTS, deployment()).await.json();
    // A strategic merge patch is no JSON when it is converted.
    for (patch, shown, why) in [
        (
            json!({"spec": {"replicas": "x"}}),
            "map[spec:map[replicas:x]]",
            "unrecognized type: int32",
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            "map[spec:map[replicas:1.5]]",
            "cannot convert float64 to int32",
        ),
        (
            json!({"spec": []}),
            "map[spec:[]]",
            "cannot restore struct from: slice",
        ),
        (
            json!({"apiVersion": 5}),
            "map[apiVersion:5]",
            "cannot convert int64 to string",
        ),
        (
            json!({"spec": {"strategy": {"type": 5}}}),
            "map[spec:map[strategy:map[type:5]]]",
            "cannot convert int64 to v1.DeploymentStrategyType",
        ),
    ] {
        let answer = fixture
            .patch(DEPLOYMENT, "strategic-merge-patch+json", patch)
            .await;
        let message = format!(" \"\" is invalid: patch: Invalid value: \"{shown}\": {why}");
        assert_eq!(answer.failure(), (422, message));
    }
    for (spec, why) in [
        (
            json!({"replicas": "x"}),
            "create typed patch object (/d; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or \
             float), got string",
        ),
        (
            json!({"replicas": 1.5}),
            "convert new object (/d; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured \
             object to apps/v1, Kind=Deployment: cannot convert float64 to int32",
        ),
    ] {
        let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec});
        let path = format!("{DEPLOYMENT}?fieldManager=test&force=true");
        let answer = fixture.patch(&path, "apply-patch+yaml", config).await;
        assert_eq!(answer.failure(), (500, format!("failed to {why}")));
    }
    let after = fixture.get(DEPLOYMENT).await.json();
    assert_eq!(after, created);
    // Of what is too large for it, an integer keeps the lowest bits.
    let large = json!({"spec": {"replicas": 4_294_967_298_i64}});
    let patched = fixture.patch(DEPLOYMENT, "strategic-merge-patch+json", large);
    assert_eq!(patched.await.json()["spec"]["replicas"], 2);
    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 4_294_967_299_i64}});
    let path = format!("{DEPLOYMENT}?fieldManager=test&force=true");
    let applied = fixture.patch(&path, "apply-patch+yaml", config).await;
    assert_eq!(applied.json()["spec"]["replicas"], 3);
}

#[tokio::test]
async fn a_patch_is_read_when_there_is_an_object_for_it() {
    let fixture = Fixture::start(true).await;
    fixture.post(DEPLOYMENTS, deployment()).await.has_created();
    let other = format!("{DEPLOYMENTS}/other");
    for (kind, patch) in [
        ("json-patch+json", json!({})),
        ("merge-patch+json", json!([])),
        ("strategic-merge-patch+json", json!(5)),
    ] {
        let missing = fixture.patch(&other, kind, patch);
        let message = "deployments.apps \"other\" not found".to_owned();
        assert_eq!(missing.await.failure(), (404, message));
    }
    let mixed = json!({"spec": {"template": {"spec": {"containers": [5]}}}});
    let mixed = fixture
        .patch(DEPLOYMENT, "strategic-merge-patch+json", mixed)
        .await;
    let (code, message) = mixed.failure();
    assert_eq!(code, 500);
    assert!(
        message.starts_with("list element types are not identical"),
        "{message}"
    );
}

#[tokio::test]
async fn an_object_of_no_version_has_no_name() {
    let fixture = Fixture::start(true).await;
    fixture.post(DEPLOYMENTS, deployment()).await.has_created();
    let nameless =
        "the name of the object (d based on URL) was undeterminable: name must be provided";
    for path in [
        DEPLOYMENT,
        &format!("{DEPLOYMENT}/status"),
        &format!("{DEPLOYMENT}/scale"),
    ] {
        for version in [json!(""), json!(null)] {
            let patch = json!({"apiVersion": version});
            let merge = fixture.patch(path, "merge-patch+json", patch.clone());
            assert_eq!(merge.await.failure(), (400, nameless.to_owned()));
            let strict = format!("{path}?fieldValidation=Strict");
            let (code, message) = fixture
                .patch(&strict, "merge-patch+json", patch)
                .await
                .failure();
            assert_eq!(code, 422);
            let unknown = r#"strict decoding error: unknown field "metadata", unknown field "spec", unknown field "status""#;
            assert!(message.ends_with(unknown), "{message}");
        }
        let removed = json!([{"op": "remove", "path": "/apiVersion"}]);
        let removed = fixture.patch(path, "json-patch+json", removed);
        assert_eq!(removed.await.failure(), (400, nameless.to_owned()));
        for (kind, patch) in [
            ("merge-patch+json", json!({"kind": ""})),
            ("strategic-merge-patch+json", json!({"apiVersion": ""})),
        ] {
            let answer = fixture.patch(path, kind, patch).await;
            assert!(answer.head.status.is_success(), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn unknown_fields_are_told_wherever_they_are() {
    let fixture = Fixture::start(true).await;
    let mut object = with("/spec/fooo", json!(1));
    object["spec"]["template"]["spec"]["containers"][0]["imagee"] = json!("nginx");
    let unknown = [
        "unknown field \"spec.fooo\"",
        "unknown field \"spec.template.spec.containers[0].imagee\"",
    ];
    let validated = |path: &str, how: &str| format!("{path}?fieldValidation={how}");
    let strict = validated(DEPLOYMENTS, "Strict");
    let (code, message) = fixture.post(&strict, object.clone()).await.failure();
    let words = format!("strict decoding error: {}", unknown.join(", "));
    assert_eq!(code, 400);
    assert!(message.ends_with(&words), "{message}");
    let warnings = |answer: &Answer| {
        let values = answer.head.headers.get_all("warning").into_iter();
        let texts = values.map(|it| it.to_str().expect("text").replace('\\', ""));
        texts.collect::<Vec<String>>()
    };
    let expected = unknown.map(|it| format!("299 - \"{it}\""));
    let answer = fixture.post(DEPLOYMENTS, object.clone()).await;
    answer.has_created();
    assert_eq!(warnings(&answer), expected);
    let created = answer.json();
    assert!(created["spec"].get("fooo").is_none());
    let patch = json!({"spec": {"fooo": 1, "replicas": 3}});
    for kind in ["merge-patch+json", "strategic-merge-patch+json"] {
        let path = validated(DEPLOYMENT, "Strict");
        let (code, message) = fixture.patch(&path, kind, patch.clone()).await.failure();
        assert_eq!(code, 422, "{message}");
        assert!(message.contains(unknown[0]), "{message}");
        let answer = fixture.patch(DEPLOYMENT, kind, patch.clone()).await;
        assert_eq!(warnings(&answer), expected[..1]);
        assert_eq!(answer.json()["spec"]["replicas"], 3);
        let path = validated(DEPLOYMENT, "Ignore");
        let answer = fixture.patch(&path, kind, patch.clone()).await;
        assert!(warnings(&answer).is_empty());
    }
}

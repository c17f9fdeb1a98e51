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
        let config =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": value}});
        let json_patch = json!([{"op": "replace", "path": "/spec/replicas", "value": value}]);
        let status_patch = json!({"status": {"replicas": value}});
        for (path, kind, patch) in [
            (DEPLOYMENT, "merge-patch+json", &merge),
            (DEPLOYMENT, "strategic-merge-patch+json", &merge),
            (DEPLOYMENT, "json-patch+json", &json_patch),
            (DEPLOYMENT, "apply-patch+yaml", &config),
            (&scale, "merge-patch+json", &merge),
            (&status, "merge-patch+json", &status_patch),
        ] {
            let path = format!("{path}?fieldManager=test");
            let answer = fixture.patch(&path, kind, patch.clone()).await;
            let (code, message) = answer.failure();
            let is_apply = kind.starts_with("apply");
            assert_eq!(
                code,
                if is_apply { 400 } else { 422 },
                "{path} {kind}: {message}"
            );
            assert!(message.contains(".replicas of type int32"), "{message}");
        }
    }
    let strategic = json!({"spec": {"replicas": "x"}});
    let answer = fixture
        .patch(DEPLOYMENT, "strategic-merge-patch+json", strategic)
        .await;
    assert_eq!(
        answer.failure().1,
        " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:x]]\": json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
    let after = fixture.get(DEPLOYMENT).await.json();
    assert_eq!(after, created);
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

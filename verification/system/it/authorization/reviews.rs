//! Reviews of access, and what kubectl makes of them.

use http::Method;
use serde_json::{Value, json};

use super::{Fixture, ask};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

async fn status(client: &kube::Client, path: &str, spec: Value) -> Value {
    let review = json!({"spec": spec});
    let answer = ask(client, Method::POST, &format!("{REVIEWS}/{path}"), &review).await;
    let answer: Value = serde_json::from_str(&answer.expect(path)).expect("JSON");
    answer["status"].clone()
}

#[tokio::test]
async fn reviews_say_what_the_authorizer_would() {
    let fixture = Fixture::start("RBAC").await;
    let rules = json!([
        {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
    ]);
    fixture.grant(None, "reader", rules, "/api/v1/pods").await;
    let pods = |verb: &str| json!({"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}});
    let own = "selfsubjectaccessreviews";
    let allowed = status(&fixture.jane, own, pods("list")).await;
    let reason =
        r#"RBAC: allowed by ClusterRoleBinding "reader" of ClusterRole "reader" to Group "devs""#;
    assert_eq!(allowed, json!({"allowed": true, "reason": reason}));
    let refused = status(&fixture.jane, own, pods("delete")).await;
    assert_eq!(refused, json!({"allowed": false}));
    let path = json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}});
    assert_eq!(status(&fixture.jane, own, path).await["allowed"], true);

    let of = |user: &str, groups: &[&str]| {
        let mut spec = pods("list");
        spec["user"] = json!(user);
        spec["groups"] = json!(groups);
        spec
    };
    for (user, groups, allowed) in [
        ("nobody", &[][..], false),
        ("nobody", &["devs"], true),
        ("nobody", &["system:masters"], true),
    ] {
        let answer = status(&fixture.admin, "subjectaccessreviews", of(user, groups)).await;
        assert_eq!(answer["allowed"], allowed, "{user} {groups:?}");
        let local = "namespaces/default/localsubjectaccessreviews";
        let answer = status(&fixture.admin, local, of(user, groups)).await;
        assert_eq!(answer["allowed"], allowed, "{user} {groups:?}");
    }

    let rules = status(
        &fixture.jane,
        "selfsubjectrulesreviews",
        json!({"namespace": "default"}),
    )
    .await;
    assert!(
        rules["resourceRules"]
            .as_array()
            .expect("rules")
            .contains(&json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]})),
        "{rules}"
    );
    assert!(
        rules["nonResourceRules"]
            .as_array()
            .expect("rules")
            .contains(&json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]})),
        "{rules}"
    );
}

#[tokio::test]
async fn reviews_that_make_no_sense_are_refused() {
    let fixture = Fixture::start("AlwaysAllow").await;
    let local = format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews");
    let any = format!("{REVIEWS}/subjectaccessreviews");
    let elsewhere = json!({"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}});
    for (path, spec, words) in [
        (
            &any,
            json!({"resourceAttributes": {"verb": "get"}}),
            "at least one of user or group must be specified",
        ),
        (
            &any,
            json!({"user": "x"}),
            "exactly one of nonResourceAttributes or resourceAttributes",
        ),
        (&local, elsewhere, "must match metadata.namespace"),
        (
            &local,
            json!({"user": "x", "nonResourceAttributes": {"path": "/"}}),
            "disallowed on this kind of request",
        ),
    ] {
        let review = json!({"metadata": {}, "spec": spec});
        let refused = ask(&fixture.admin, Method::POST, path, &review).await;
        let refused = refused.expect_err(words);
        assert!(
            refused.starts_with("422 ") && refused.contains(words),
            "{refused}"
        );
    }
}

//! What a patch may not change.

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
            r#"ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"#,
        ),
        (
            "strategic-merge-patch+json",
            json!({"kind": "Secret"}),
            "unknown conversion",
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
        assert_eq!(refused.head.status, StatusCode::BAD_REQUEST, "{words}");
        let status = refused.json();
        let message = status["message"].as_str().expect("a message");
        assert!(message.contains(words), "{message}");
    }
    let none = json!({"kind": null, "apiVersion": null});
    let patched = fixture.patch(&path, "merge-patch+json", none).await;
    assert_eq!(patched.json(), before, "taken away is as good as unchanged");
}

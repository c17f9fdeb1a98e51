//! Fields that a kind does not have, and fields that come twice.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Admin, gear};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"app": "x"}},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "string"},
        "parts": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}}}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}}}}}})
}

#[tokio::test]
async fn fields_are_told_as_kube_apiserver_tells_them() {
    let admin = Admin::start().await;
    let (_, gears) = admin.define_gears(schema()).await;
    strict_bodies(&admin, &gears).await;
    undeclared_configurations(&admin, &gears).await;
    repeated_configurations(&admin, &gears).await;
    finalizers(&admin, &gears).await;
}

/// Strict readers tell fields in the order of the document; of custom objects those of metadata come first, and those
/// of embedded objects last.
async fn strict_bodies(admin: &Admin, gears: &str) {
    let text = deployment().to_string();
    let begin = r#""spec":{"unknownField":"foo","replicas":2,"replicas":3,"alsoUnknown":1,"#;
    let twice = text.replacen(r#""spec":{"#, begin, 1);
    let mut odd = gear("odd");
    odd["metadata"]["bogus"] = json!(1);
    odd["spec"] = json!({"more": 1, "template": {"apiVersion": "v1", "kind": "X",
        "metadata": {"name": "x", "odd": 1}}});
    for (path, body, kind, words) in [
        (
            DEPLOYMENTS,
            twice,
            "Deployment",
            r#"unknown field "spec.unknownField", duplicate field "spec.replicas", unknown field "spec.alsoUnknown""#,
        ),
        (
            gears,
            odd.to_string(),
            "Gear",
            r#"unknown field "metadata.bogus", unknown field "spec.more", unknown field "spec.template.metadata.odd""#,
        ),
    ] {
        let path = format!("{path}?fieldValidation=Strict");
        let answer = admin.send(Method::POST, &path, "application/json", &body);
        let message = format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: strict decoding error: {words}"
        );
        let answer = answer.await;
        assert_eq!(answer.failure(), (400, "BadRequest", &*message));
    }
    let twice = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: c\ndata:\n  a: x\n  a: y\ndata:\n  b: z\n";
    let path = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict";
    let answer = admin.send(Method::POST, path, "application/yaml", twice);
    let message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n  \
        line 7: key \"a\" already set in map\n  line 9: key \"data\" already set in map";
    assert_eq!(answer.await.failure(), (400, "BadRequest", message));
}

/// A field that the type does not have cannot be applied, whatever the client asks for.
async fn undeclared_configurations(admin: &Admin, gears: &str) {
    let mut odd = deployment();
    odd["spec"]["template"]["spec"]["containers"][0]["bogus"] = json!(1);
    let mut two = gear("two");
    two["unknown"] = json!("x");
    two["metadata"]["unknownMeta"] = json!("x");
    two["spec"] = json!({"parts": [{"name": "p", "odd": 1}]});
    let declared = "field not declared in schema";
    for (path, body, of, words) in [
        (
            DEPLOYMENTS,
            odd,
            "/d; apps/v1, Kind=Deployment",
            format!(".spec.template.spec.containers[name=\"c\"].bogus: {declared}"),
        ),
        (
            gears,
            two,
            "/two; example.com/v1, Kind=Gear",
            format!(
                "errors:\n  .metadata.unknownMeta: {declared}\n  .spec.parts[name=\"p\"].odd: {declared}\n  .unknown: {declared}"
            ),
        ),
    ] {
        let name = body["metadata"]["name"].as_str().expect("a name");
        for how in ["Strict", "Warn", "Ignore"] {
            let path = format!("{path}/{name}?fieldManager=m&fieldValidation={how}");
            let kind = "application/apply-patch+yaml";
            let answer = admin.send(Method::PATCH, &path, kind, &body);
            let message = format!("failed to create typed patch object ({of}): {words}");
            assert_eq!(answer.await.failure(), (500, "", &*message), "{how}");
        }
    }
}

/// Keys that come twice are told by their lines.
async fn repeated_configurations(admin: &Admin, gears: &str) {
    let body = "\napiVersion: example.com/v1\nkind: Gear\nmetadata:\n  name: twice\nspec:\n  size: a\n  size: b\n";
    let line = "line 8: key \"size\" already set in map";
    let apply = async |how: &str| {
        let path = format!("{gears}/twice?fieldManager=m&fieldValidation={how}");
        let kind = "application/apply-patch+yaml";
        admin.send(Method::PATCH, &path, kind, body).await
    };
    let message = format!(
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {line}"
    );
    let strict = apply("Strict").await;
    assert_eq!(strict.failure(), (400, "BadRequest", &*message));
    let warned = apply("Warn").await;
    assert_eq!(warned.status, StatusCode::CREATED, "{}", warned.body);
    assert_eq!(warned.body["spec"]["size"], "b");
    let quoted = line.replace('"', "\\\"");
    assert_eq!(warned.warnings, [format!("299 - \"{quoted}\"")]);
    let ignored = apply("Ignore").await;
    assert_eq!(ignored.status, StatusCode::OK, "{}", ignored.body);
    assert!(ignored.warnings.is_empty(), "{:?}", ignored.warnings);
}

/// Finalizers without a prefix are Kubernetes' own where its core looks at them, and anybody's elsewhere.
async fn finalizers(admin: &Admin, gears: &str) {
    let mut finalized = gear("finalized");
    finalized["metadata"]["finalizers"] = json!(["test-finalizer"]);
    admin.create(gears, &finalized).await;
    let none = json!({"metadata": {"finalizers": []}});
    let path = format!("{gears}/finalized");
    admin.patch(&path, "merge-patch+json", &none).await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "finalizers": ["test-finalizer"]}});
    let path = "/api/v1/namespaces/default/configmaps";
    let answer = admin.send(Method::POST, path, "application/json", &body);
    let message = "ConfigMap \"c\" is invalid: metadata.finalizers[0]: Invalid value: \"test-finalizer\": \
        name is neither a standard finalizer name nor is it fully qualified";
    assert_eq!(answer.await.failure(), (422, "Invalid", message));
}

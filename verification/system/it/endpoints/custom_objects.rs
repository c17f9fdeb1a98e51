//! Decoding, defaults, refusals and warnings of custom resources.

use super::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

/// Returns a server with a definition, and the warnings about that.
async fn defined() -> (Fixture, Vec<String>) {
    let fixture = Fixture::start(true).await;
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let spec = json!({"type": "object", "properties": {
        "i": {"type": "integer", "format": "int32"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "odd": {"type": "string", "format": "odd"},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}});
    let status = json!({"type": "object", "default": {"phase": "New"},
        "properties": {"phase": {"type": "string"}}});
    let definition = json!({"metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [column("Last", ".spec.list[-1:]")],
                "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": spec, "status": status}}}}]}});
    let created = fixture.post(DEFINITIONS, definition).await;
    assert_eq!(created.head.status, 201, "{}", created.text());
    fixture.until_served(THINGS).await;
    (fixture, warnings(&created))
}

fn warnings(answer: &Answer) -> Vec<String> {
    let values = answer.head.headers.get_all("warning").into_iter();
    let texts = values.map(|it| it.to_str().expect("text").replace('\\', ""));
    texts.collect()
}

fn thing(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn custom_objects_are_answered_as_they_are_read() {
    let (fixture, warned) = defined().await;
    assert_eq!(warned, [r#"299 - "unrecognized format "odd"""#]);
    for query in ["", "?dryRun=All"] {
        let path = format!("{THINGS}{query}");
        let created = fixture.post(&path, thing("a", json!({"list": [1, 2]})));
        let created = created.await.json();
        assert_eq!(created["status"], json!({"phase": "New"}), "{created}");
        if query.is_empty() {
            let read = fixture.get(&format!("{THINGS}/a")).await.json();
            assert_eq!(read, created);
            let path = format!("{THINGS}/a");
            fixture.ask(request("DELETE", &path, Bytes::new())).await;
        }
    }
    let integers = thing("b", json!({"list": [1, 2], "i": 7})).to_string();
    let floats = integers
        .replace(":7", ":7.0")
        .replace("[1,2]", "[1e0,2E+0]");
    let created = fixture.ask(request("POST", THINGS, floats.clone().into()));
    let created = created.await;
    assert!(
        created.text().contains(r#""i":7,"list":[1,2]"#),
        "{}",
        created.text()
    );
    let path = format!("{THINGS}/b");
    let replace = async |body: &str, version: &Value| {
        let named = format!(r#""name":"b","resourceVersion":{version}"#);
        let body = body.replace(r#""name":"b""#, &named);
        let replaced = fixture.ask(request("PUT", &path, body.into())).await;
        assert_eq!(replaced.head.status, 200, "{}", replaced.text());
        assert!(
            replaced.text().contains(r#""i":7,"list":[1,2]"#),
            "{}",
            replaced.text()
        );
        replaced.json()["metadata"].clone()
    };
    let mut last = created.json()["metadata"].clone();
    for generation in 2..4 {
        let replaced = replace(&floats, &last["resourceVersion"]).await;
        assert_eq!(
            replaced["generation"], generation,
            "a float is no integer, though both are written alike"
        );
        assert_ne!(replaced["resourceVersion"], last["resourceVersion"]);
        last = replaced;
    }
    assert_eq!(replace(&integers, &last["resourceVersion"]).await, last);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = fixture.accepting(THINGS, table).await.json();
    assert_eq!(table["rows"][0]["cells"], json!(["b", "2"]));
}

#[tokio::test]
async fn the_type_and_the_metadata_of_custom_objects_are_decoded() {
    let (fixture, _) = defined().await;
    let created = fixture.post(THINGS, thing("a", json!({}))).await;
    assert_eq!(created.head.status, 201, "{}", created.text());
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": "yes"});
    let (wrong_owner, wrong_labels) = (json!([owner]), json!({"metadata": {"labels": 5}}));
    let without = |name: &str, value: Value| {
        let mut thing = thing("b", json!({}));
        thing[name] = value;
        thing
    };
    let mut owned = thing("b", json!({}));
    owned["metadata"]["ownerReferences"] = wrong_owner.clone();
    let kind = "Object 'Kind' is missing in";
    let version =
        "the API version in the data () does not match the expected API version (example.com/v1)";
    let null_version = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
    let of_owner = "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool";
    let inner = "spec.inner.metadata: Invalid value: ";
    for (object, words) in [
        (without("kind", json!(null)), kind),
        (without("kind", json!("")), kind),
        (without("apiVersion", json!(null)), null_version),
        (without("apiVersion", json!("")), version),
        (owned, of_owner),
        (thing("b", json!({"inner": wrong_labels})), inner),
    ] {
        let (code, message) = fixture.post(THINGS, object).await.failure();
        assert_eq!(code, 400, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let path = format!("{THINGS}/a");
    for (patch, code, words) in [
        (json!({"kind": null}), 422, kind),
        (
            json!({"apiVersion": null}),
            500,
            "Object 'apiVersion' is missing in 'object has no apiVersion field'",
        ),
        (
            json!({"metadata": {"ownerReferences": wrong_owner}}),
            422,
            of_owner,
        ),
        (json!({"spec": {"inner": wrong_labels}}), 422, inner),
    ] {
        let (found, message) = fixture
            .patch(&path, "merge-patch+json", patch)
            .await
            .failure();
        assert_eq!(found, code, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let labels = json!({"metadata": {"labels": {"a": "b"}, "creationTimestamp": null}});
    let mut labelled = thing(
        "c",
        json!({"inner": {"apiVersion": "v1", "kind": "Pod",
        "metadata": labels["metadata"]}}),
    );
    labelled["metadata"]["labels"] = json!({"a": null});
    let labelled = fixture.post(THINGS, labelled).await.json();
    assert_eq!(
        labelled["metadata"]["labels"],
        json!({"a": ""}),
        "{labelled}"
    );
    assert_eq!(
        labelled["spec"]["inner"]["metadata"],
        json!({"labels": {"a": "b"}})
    );
}

#[tokio::test]
async fn the_metadata_of_custom_objects_have_the_form_of_their_type() {
    let (fixture, _) = defined().await;
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    let mut owner = whole.clone();
    owner["controller"] = Value::Null;
    let metadata = json!({"name": "a", "generation": 1.0, "ownerReferences": [owner, whole],
        "labels": {}, "deletionTimestamp": "2020-01-01T00:00:00.5+01:00"});
    let inner = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    let mut owned = thing("a", json!({"inner": inner}));
    owned["metadata"] = metadata;
    let created = fixture.post(THINGS, owned).await;
    let warned = warnings(&created);
    assert!(warned[0].contains("duplicate entries"), "{warned:?}");
    let created = created.json();
    assert_eq!(
        created["metadata"]["ownerReferences"],
        json!([whole]),
        "{created}"
    );
    assert_eq!(
        created["spec"]["inner"]["metadata"],
        json!({"name": "a", "generation": 1, "ownerReferences": [whole, whole],
            "deletionTimestamp": "2019-12-31T23:00:00Z"})
    );
}

#[tokio::test]
async fn unknown_fields_of_patches_of_custom_objects_are_told() {
    let (fixture, _) = defined().await;
    let created = fixture.post(THINGS, thing("a", json!({}))).await;
    assert_eq!(created.head.status, 201, "{}", created.text());
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "bogus": 1});
    let merge = json!({"spec": {"frob": 1}, "metadata": {"ownerReferences": [owner]}});
    let json = json!([{"op": "add", "path": "/spec/frob", "value": 1, "why": "so"}]);
    for (path, kind, patch, unknown) in [
        (
            "a",
            "merge-patch+json",
            &merge,
            ["metadata.ownerReferences[0].bogus", "spec.frob"],
        ),
        ("a", "json-patch+json", &json, ["[0].why", "spec.frob"]),
        (
            "a/status",
            "json-patch+json",
            &json,
            ["[0].why", "spec.frob"],
        ),
    ] {
        let ask = async |how: &str| {
            let path = format!("{THINGS}/{path}?fieldValidation={how}&dryRun=All");
            fixture.patch(&path, kind, patch.clone()).await
        };
        let (code, message) = ask("Strict").await.failure();
        assert_eq!(code, 422, "{message}");
        let warned = warnings(&ask("Warn").await);
        for (unknown, warned) in unknown.iter().zip(&warned) {
            let told = format!("unknown field \"{unknown}\"");
            assert!(message.contains(&told), "{message}");
            assert!(warned.contains(&told), "{warned}");
        }
        assert_eq!(warned.len(), unknown.len(), "{warned:?}");
        let ignored = ask("Ignore").await;
        assert_eq!(ignored.head.status, 200, "{}", ignored.text());
        assert!(warnings(&ignored).is_empty());
    }
}

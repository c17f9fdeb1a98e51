//! Properties of the documents of all built-in resources.

mod gnostic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{PrinterColumns, Resource, Verb};
use ringwatch_resources::built_in;
use serde_json::{Value, json};

use super::built_in::BuiltIn;
use super::document::Assembly;
use super::{CustomSchemas, OpenApi, OpenApiVersion, Syntax, roots, v2};

/// Returns the API of all built-in resources, without stores.
fn api() -> OpenApi {
    api_of(&built_in())
}

fn api_of(resources: &[Arc<Resource>]) -> OpenApi {
    OpenApi {
        remote: BTreeMap::new(),
        roots: roots::collect(resources.iter(), &[]),
        custom: CustomSchemas::new(&[]),
        build: "v1.36.2".to_owned(),
        version: "1.36".to_owned(),
    }
}

async fn documents(form: OpenApiVersion) -> Vec<(String, Value)> {
    documents_of(&api(), form).await
}

async fn documents_of(api: &OpenApi, form: OpenApiVersion) -> Vec<(String, Value)> {
    let schemas = BuiltIn::unpack().await;
    let index = schemas.index();
    let mut documents = Vec::new();
    let mut all = Assembly::new(form, Syntax::Json, &index);
    for (path, root) in &api.roots {
        let mut own = Assembly::new(form, Syntax::Json, &index);
        api.add(
            if form == OpenApiVersion::V2 {
                &mut all
            } else {
                &mut own
            },
            path,
            root,
        )
        .await;
        let document = own.finish(&api.version, &api.custom).await;
        documents.push((path.clone(), document));
    }
    if form == OpenApiVersion::V2 {
        documents = vec![(
            "all".to_owned(),
            all.finish(&api.version, &api.custom).await,
        )];
    }
    let read = |(path, document): (String, Vec<u8>)| {
        let document = serde_json::from_slice(&document).expect("JSON");
        (path, document)
    };
    documents.into_iter().map(read).collect()
}

/// Visits all values below a value, and itself.
fn visit(value: &Value, look: &mut impl FnMut(&Value)) {
    look(value);
    match value {
        Value::Array(items) => items.iter().for_each(|it| visit(it, look)),
        Value::Object(members) => members.values().for_each(|it| visit(it, look)),
        _ => {}
    }
}

#[tokio::test]
async fn what_is_referred_to_is_there_once_and_nothing_else() {
    for form in [OpenApiVersion::V2, OpenApiVersion::V3] {
        for (path, document) in documents(form).await {
            let schemas = match form {
                OpenApiVersion::V2 => &document["definitions"],
                OpenApiVersion::V3 => &document["components"]["schemas"],
            };
            let schemas = schemas.as_object().expect("schemas");
            let (mut referred, mut ids) = (BTreeSet::new(), BTreeSet::new());
            visit(&document, &mut |it| {
                if let Some(reference) = it.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').expect("a local reference");
                    assert!(document.pointer(pointer).is_some(), "{path}: {reference}");
                    referred.insert(reference.rsplit('/').next().expect("a name").to_owned());
                }
                if let Some(id) = it.get("operationId").and_then(Value::as_str) {
                    assert!(ids.insert(id.to_owned()), "{path}: {id} twice");
                }
            });
            let unused: Vec<_> = schemas
                .keys()
                .filter(|it| !referred.contains(*it))
                .collect();
            assert!(unused.is_empty(), "{path}: {unused:?}");
            assert!(!ids.is_empty(), "{path}");
        }
    }
}

#[tokio::test]
async fn every_kind_that_is_built_in_has_its_schema() {
    let schemas = BuiltIn::unpack().await;
    let index = schemas.index();
    for resource in built_in() {
        let version = &resource.group_version;
        let mut kinds = vec![(version.clone(), resource.kind.clone())];
        if resource.verbs.contains(&Verb::List) {
            kinds.push((version.clone(), resource.list_kind.clone()));
        }
        for below in &resource.subresources {
            let own = below.group_version.as_ref().unwrap_or(version);
            if !below.kind.ends_with("Options") {
                kinds.push((own.clone(), below.kind.clone()));
            }
        }
        for (version, kind) in kinds {
            let name = index.name(&version, &kind);
            let schema = name.and_then(|it| index.schema(it));
            assert!(schema.is_some(), "{version} {kind}");
        }
    }
    let name = index.name(&GroupVersion::new("apps", "v1"), "Deployment");
    assert_eq!(name, Some("io.k8s.api.apps.v1.Deployment"));
}

#[tokio::test]
async fn one_version_names_its_own_options_alone() {
    let documents = documents(OpenApiVersion::V3).await;
    let apps = documents.iter().find(|(path, _)| path == "apis/apps/v1");
    let schemas = &apps.expect("apps").1["components"]["schemas"];
    let options = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    assert_eq!(
        options["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "kind": "DeleteOptions", "version": "v1"}])
    );
    let strategy = &schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
    assert_eq!(strategy["default"], json!({}));
    assert_eq!(strategy["x-kubernetes-patch-strategy"], "retainKeys");
}

#[tokio::test]
async fn the_second_version_has_what_it_can_say() {
    let documents = documents(OpenApiVersion::V2).await;
    let definitions = &documents[0].1["definitions"];
    let port = &definitions["io.k8s.api.core.v1.ServicePort"]["properties"];
    let target = &port["targetPort"]["$ref"];
    assert_eq!(
        target,
        "#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString"
    );
    assert_eq!(port["protocol"].get("default"), None);
    let either = &definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(
        (&either["type"], either.get("oneOf")),
        (&json!("string"), None)
    );
    // A member may be called like a keyword.
    let schema = json!({"properties": {"default": {"type": "string", "default": "x"}}});
    let stripped = json!({"properties": {"default": {"type": "string"}}});
    assert_eq!(v2::to_v2(schema), stripped);
}

#[tokio::test]
async fn documents_of_custom_resources_have_what_apiextensions_tells() {
    let built_in = built_in();
    let scaled = built_in
        .iter()
        .find(|it| it.plural == "replicationcontrollers");
    let mut widget = Resource::clone(scaled.expect("a resource with a scale"));
    widget.group_version = GroupVersion::new("example.com", "v1");
    (widget.kind, widget.plural) = ("Widget".to_owned(), "widgets".to_owned());
    widget.printer_columns = Some(Arc::new(PrinterColumns::read(&json!({}))));
    let api = api_of(&[Arc::new(widget)]);
    let documents = documents_of(&api, OpenApiVersion::V3).await;
    let found = |root: &str| documents.iter().find(|(path, _)| path == root);
    assert!(found("apis/example.com").is_none());
    let document = &found("apis/example.com/v1").expect("a document").1;
    let info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
    assert_eq!(document["info"], info);
    assert_eq!(document["components"].get("securitySchemes"), None);
    let paths = &document["paths"];
    assert_eq!(paths.get("/apis/example.com/v1/"), None);
    let all = "/apis/example.com/v1/namespaces/{namespace}/widgets";
    let (all, one) = (&paths[all], &paths[format!("{all}/{{name}}")]);
    assert_eq!(all["get"]["description"], "list objects of kind Widget");
    assert_eq!(all["delete"].get("requestBody"), None);
    assert_eq!(all["delete"]["parameters"], all["get"]["parameters"]);
    assert_eq!(one["get"]["parameters"][0]["name"], "resourceVersion");
    assert_eq!(one["patch"]["responses"].get("201"), None);
    let scale = &paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/scale"];
    let kind = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
    assert_eq!(scale["get"]["x-kubernetes-group-version-kind"], kind);
}

#[tokio::test]
async fn hashes_follow_what_documents_are_made_of() {
    let one = api();
    let root = &one.roots["apis/apps/v1"];
    let hash = one.hash_of("apis/apps/v1", root).await;
    assert_eq!(hash.len(), 128);
    let mut other = api();
    let Some(super::Root::Version(_, resources)) = other.roots.get_mut("apis/apps/v1") else {
        panic!("no apps");
    };
    Arc::make_mut(&mut resources[0]).verbs.pop();
    let changed = other
        .hash_of("apis/apps/v1", &other.roots["apis/apps/v1"])
        .await;
    assert_ne!(hash, changed);
    assert_ne!(one.hash_of_all().await, other.hash_of_all().await);
    let same = one
        .hash_of("apis/batch/v1", &one.roots["apis/batch/v1"])
        .await;
    assert_eq!(
        same,
        other
            .hash_of("apis/batch/v1", &other.roots["apis/batch/v1"])
            .await
    );
}

#[tokio::test]
async fn others_have_their_turn_while_a_document_is_made() {
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        made = documents(OpenApiVersion::V2) => assert_eq!(made.len(), 1),
        () = others => {}
    }
    // Unpacking, each resource, and each group of schemas are steps.
    let steps = built_in().len();
    assert!(turns > steps, "{turns} turns in {steps} steps and more");
}

//! Custom resources on a real server: defined, served, kept over a restart, and gone with their
//! definition.

use futures::StreamExt;
use kube::api::WatchParams;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, WatchEvent};
use kube::{Client, Error};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    let kind = resource("apiextensions.k8s.io", "CustomResourceDefinition");
    Api::all_with(client.clone(), &kind)
}

fn gears(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &resource("example.com", "Gear"))
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

fn definition(plural: &str, kind: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.teeth", "statusReplicasPath": ".status.teeth"}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [
                    {"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string"},
                        "teeth": {"type": "integer", "default": 8, "minimum": 1}}},
                    "status": {"type": "object", "properties": {
                        "teeth": {"type": "integer"}}}}}},
            }],
        },
    }))
}

fn gear(name: &str, spec: Value) -> DynamicObject {
    object(json!({"apiVersion": "example.com/v1", "kind": "Gear",
        "metadata": {"name": name}, "spec": spec}))
}

/// The status of a condition, once there is one.
async fn condition(client: &Client, name: &str, kind: &str) -> (String, String) {
    eventually(DEADLINE, kind, async || {
        let definition = definitions(client).get(name).await.ok()?;
        let conditions = definition.data["status"]["conditions"].as_array()?.clone();
        let found = conditions.into_iter().find(|it| it["type"] == kind)?;
        let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
        Some((text("status"), text("reason")))
    })
    .await
}

async fn create(api: &Api<DynamicObject>, object: DynamicObject) -> Result<DynamicObject, Error> {
    api.create(&PostParams::default(), &object).await
}

async fn delete(api: &Api<DynamicObject>, name: &str) {
    let deleted = api.delete(name, &DeleteParams::default()).await;
    deleted.expect("a deletion");
}

async fn select(api: &Api<DynamicObject>, fields: &str) -> Result<Vec<String>, Error> {
    let list = api.list(&ListParams::default().fields(fields)).await?;
    let names = list.items.into_iter().filter_map(|it| it.metadata.name);
    Ok(names.collect())
}

async fn define(client: &Client) {
    let created = create(&definitions(client), definition("gears", "Gear")).await;
    created.expect("a definition");
    wait_until_established(client, "gears.example.com").await;
    // Whoever sees that it is established finds it served.
    select(&gears(client), "").await.expect("a list");
}

/// Waits until a definition is established.
async fn wait_until_established(client: &Client, name: &str) {
    eventually(DEADLINE, "the definition to be established", async || {
        condition(client, name, "Established").await.0 == "True"
    })
    .await;
}

fn code<T>(result: Result<T, Error>) -> u16 {
    match result {
        Err(Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
        Ok(_) => 200,
    }
}

#[tokio::test]
async fn what_is_defined_is_served_and_outlives_a_restart() {
    let (mut server, client) = Server::ready(&[]).await;
    define(&client).await;
    let gears_of = gears(&client);
    let small = gear("small", json!({"color": "red", "bogus": 1}));
    let small = create(&gears_of, small).await.expect("a gear");
    assert_eq!(small.data["spec"], json!({"color": "red", "teeth": 8}));
    let wrong = create(&gears_of, gear("wrong", json!({"teeth": 0}))).await;
    assert_eq!(code(wrong), 422);
    let large = gear("large", json!({"color": "blue", "teeth": 64}));
    create(&gears_of, large).await.expect("a gear");
    let blue = select(&gears_of, "spec.color=blue").await;
    assert_eq!(blue.expect("a list"), ["large"]);
    assert_eq!(code(select(&gears_of, "spec.teeth=8").await), 400);

    // The status is written by itself, and is no new generation.
    let status = Patch::Merge(json!({"status": {"teeth": 7}, "spec": {"color": "green"}}));
    let params = PatchParams::default();
    let patched = gears_of.patch_status("small", &params, &status).await;
    let patched = patched.expect("a status");
    assert_eq!(patched.data["status"], json!({"teeth": 7}));
    assert_eq!(patched.data["spec"]["color"], "red");
    assert_eq!(patched.metadata.generation, Some(1));
    for status in [json!({"teeth": "many"}), json!(7), json!([1])] {
        let wrong = Patch::Merge(json!({"status": status}));
        let refused = gears_of.patch_status("small", &params, &wrong).await;
        assert_eq!(code(refused), 422, "{status}");
    }
    let scaled = Patch::Merge(json!({"spec": {"replicas": 9}}));
    let scaled = gears_of.patch_scale("small", &params, &scaled).await;
    assert_eq!(
        scaled.expect("a scale").spec.and_then(|it| it.replicas),
        Some(9)
    );

    let client = server.restart().await;
    let gears_of = gears(&client);
    let served = async || gears_of.get("small").await;
    let small = eventually(DEADLINE, "the resource after a restart", served).await;
    assert_eq!(small.data["spec"]["teeth"], 9);
    assert_eq!(small.metadata.generation, Some(2));
}

#[tokio::test]
async fn appliers_share_a_list_whose_items_have_keys() {
    let (_server, client) = Server::ready(&[]).await;
    let mut shared = definition("gears", "Gear");
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    *shared.data.pointer_mut(spec).expect("a schema") = json!({"parts": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "count": {"type": "integer"}}}}});
    let version = shared.data.pointer_mut("/spec/versions/0");
    let version = version.and_then(Value::as_object_mut).expect("a version");
    version.remove("selectableFields");
    let created = create(&definitions(&client), shared).await;
    created.expect("a definition");
    let gears_of = gears(&client);
    let served = async || select(&gears_of, "").await;
    eventually(DEADLINE, "the resource", served).await;
    let apply = async |manager: &str, parts: Value| {
        let params = PatchParams::apply(manager);
        let config = Patch::Apply(gear("shared", json!({"parts": parts})));
        gears_of.patch("shared", &params, &config).await
    };
    let parts =
        |gear: Result<DynamicObject, Error>| gear.expect("applied").data["spec"]["parts"].take();
    let (one, two) = (json!({"name": "a", "count": 1}), json!({"name": "b"}));
    assert_eq!(parts(apply("one", json!([one])).await), json!([one]));
    assert_eq!(parts(apply("two", json!([two])).await), json!([one, two]));
    let taken = apply("two", json!([{"name": "a", "count": 2}])).await;
    let Err(Error::Api(status)) = taken else {
        panic!("another's field is taken");
    };
    let told = r#"conflict with "one": .spec.parts[name="a"].count"#;
    assert_eq!(status.code, 409);
    assert!(status.message.ends_with(told), "{}", status.message);
    assert_eq!(parts(apply("two", json!([])).await), json!([one]));
}

#[tokio::test]
async fn another_kind_or_version_is_refused() {
    let (_server, client) = Server::ready(&[]).await;
    define(&client).await;
    let gears_of = gears(&client);
    let params = PatchParams::default();
    let small = create(&gears_of, gear("small", json!({}))).await;
    small.expect("a gear");
    let mut gadget = gear("gadget", json!({"bogus": 1}));
    gadget.types.as_mut().expect("types").kind = "Gadget".to_owned();
    let Err(Error::Api(status)) = create(&gears_of, gadget).await else {
        panic!("another kind is taken");
    };
    assert_eq!(status.code, 422);
    assert_eq!(
        status.message,
        r#"Gadget.example.com "gadget" is invalid: kind: Invalid value: "Gadget": must be Gear"#
    );
    let renamed = Patch::Merge(json!({"kind": "Gadget"}));
    let renamed = gears_of.patch("small", &params, &renamed).await;
    assert_eq!(code(renamed), 422);
    let mut later = gear("later", json!({}));
    later.types.as_mut().expect("types").api_version = "example.com/v2".to_owned();
    let Err(Error::Api(status)) = create(&gears_of, later).await else {
        panic!("another version is taken");
    };
    assert_eq!(
        (status.code, status.message.as_str()),
        (
            400,
            "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"
        )
    );
}

#[tokio::test]
async fn a_definition_goes_with_its_objects_and_ends_their_watches() {
    let (_server, client) = Server::ready(&[]).await;
    define(&client).await;
    let created = create(&gears(&client), gear("one", json!({}))).await;
    let created = created.expect("a gear");
    let version = created.metadata.resource_version.expect("a version");
    let gears_of = gears(&client);
    let watch = gears_of.watch(&WatchParams::default(), &version).await;
    let mut watch = watch.expect("a watch").boxed();

    delete(&definitions(&client), "gears.example.com").await;
    let seen = async {
        let mut deleted = 0;
        while let Some(event) = watch.next().await {
            deleted += u32::from(matches!(event, Ok(WatchEvent::Deleted(_))));
        }
        deleted
    };
    let seen = tokio::time::timeout(DEADLINE, seen).await;
    assert_eq!(seen.expect("the end of the watch"), 1);
    eventually(DEADLINE, "the end of the resource", async || {
        code(select(&gears(&client), "").await) == 404
    })
    .await;
    assert_eq!(
        code(definitions(&client).get("gears.example.com").await),
        404
    );

    // What is defined anew begins empty.
    define(&client).await;
    let list = select(&gears(&client), "").await.expect("a list");
    assert_eq!(list.len(), 0);
}

/// A document about the API.
async fn document(client: &Client, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path).header("accept", accept);
    let request = requests::with_document(request, &Value::Null);
    client.request(request).await.unwrap_or_default()
}

/// The description of gears in OpenAPI and discovery.
struct Described {
    /// The description of their teeth.
    teeth: String,
    /// The URL of their document in OpenAPI v3.
    url: String,
    storage_version_hash: String,
}

/// Returns the description in all documents; `None` while one of them has none.
async fn described(client: &Client) -> Option<Described> {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let index = document(client, "/openapi/v3", "*/*").await;
    let groups = document(client, "/apis", AGGREGATED).await.to_string();
    let v2 = document(client, "/openapi/v2", "*/*").await;
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str();
    let there = [
        url.is_some(),
        groups.contains("\"example.com\""),
        v2["definitions"].get("com.example.v1.Gear").is_some(),
    ];
    let url = there.iter().all(|it| *it).then_some(url)??;
    let v3 = document(client, url, "*/*").await;
    let teeth = "/properties/spec/properties/teeth/description";
    let of_v2 = v2["definitions"]["com.example.v1.Gear"].pointer(teeth);
    let of_v3 = v3["components"]["schemas"]["com.example.v1.Gear"].pointer(teeth);
    if of_v2 != of_v3 {
        return None;
    }
    let resources = document(client, "/apis/example.com/v1", "*/*").await;
    let stored = resources["resources"][0]["storageVersionHash"].as_str();
    let teeth = of_v3.and_then(Value::as_str).unwrap_or_default();
    Some(Described {
        teeth: teeth.to_owned(),
        url: url.to_owned(),
        storage_version_hash: stored?.to_owned(),
    })
}

#[tokio::test]
async fn watches_go_on_where_they_were_before_a_restart() {
    let (mut server, client) = Server::ready(&[]).await;
    define(&client).await;
    let first = create(&gears(&client), gear("first", json!({}))).await;
    let version = first.expect("a gear").metadata.resource_version;
    let second = create(&gears(&client), gear("second", json!({}))).await;
    second.expect("a gear");

    server.kill();
    server.start_again();
    let client = server.client().await;
    let gears_of = gears(&client);
    let version = version.expect("a version");
    let watch = gears_of.watch(&WatchParams::default(), &version).await;
    let mut watch = watch.expect("a watch").boxed();
    let next = tokio::time::timeout(DEADLINE, watch.next()).await;
    let Ok(Some(Ok(WatchEvent::Added(seen)))) = next else {
        panic!("the watch goes on: {next:?}");
    };
    assert_eq!(seen.metadata.name.as_deref(), Some("second"));
}

#[tokio::test]
async fn openapi_and_discovery_follow_a_definition() {
    let (_server, client) = Server::ready(&[]).await;
    define(&client).await;
    let documents = async || described(&client).await;
    let first = eventually(DEADLINE, "the documents", documents).await;
    assert_eq!(first.teeth, "");
    assert_eq!(first.storage_version_hash.len(), "uQpaEJ3yMk0=".len());

    let told =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/teeth/description";
    let told = json!([{"op": "add", "path": told, "value": "How many it has."}]);
    let told = Patch::Json::<()>(serde_json::from_value(told).expect("a patch"));
    let (definitions_of, params) = (definitions(&client), PatchParams::default());
    let patched = definitions_of
        .patch("gears.example.com", &params, &told)
        .await;
    patched.expect("a description");
    // The index may have been read just before all of them changed, so that its URL is still the first.
    let later = eventually(DEADLINE, "the description, at another URL", async || {
        let later = described(&client).await;
        later.filter(|it| !it.teeth.is_empty() && it.url != first.url)
    })
    .await;
    assert_eq!(later.teeth, "How many it has.");

    delete(&definitions(&client), "gears.example.com").await;
    eventually(DEADLINE, "the end of the documents", async || {
        let all = document(&client, "/openapi/v2", "*/*").await.to_string();
        let index = document(&client, "/openapi/v3", "*/*").await.to_string();
        let left = all.contains("com.example.v1") || all.contains("apis/example.com");
        !left && !index.contains("example.com")
    })
    .await;
    assert!(described(&client).await.is_none());
}

#[tokio::test]
async fn names_belong_to_whoever_had_them_first() {
    let (_server, client) = Server::ready(&[]).await;
    define(&client).await;
    let other = create(&definitions(&client), definition("cogs", "Gear")).await;
    other.expect("a definition");
    let accepted = condition(&client, "cogs.example.com", "NamesAccepted").await;
    assert_eq!(
        accepted,
        ("False".to_owned(), "ListKindConflict".to_owned())
    );
    let established = condition(&client, "cogs.example.com", "Established").await;
    assert_eq!(established, ("False".to_owned(), "NotAccepted".to_owned()));

    // Once the name is free, whoever waits for it has it.
    delete(&definitions(&client), "gears.example.com").await;
    wait_until_established(&client, "cogs.example.com").await;
}

#[tokio::test]
async fn a_definition_shows_each_step_of_its_controllers() {
    let (_server, client) = Server::ready(&[]).await;
    let definitions_of = definitions(&client);
    let params = WatchParams::default().fields("metadata.name=gears.example.com");
    let params = params.disable_bookmarks();
    let watch = definitions_of.watch(&params, "0").await;
    let mut watch = watch.expect("a watch").boxed();
    define(&client).await;
    delete(&definitions_of, "gears.example.com").await;
    let seen = async {
        let mut seen = Vec::new();
        while let Some(event) = watch.next().await {
            match event.expect("an event") {
                WatchEvent::Added(it) | WatchEvent::Modified(it) => seen.push(conditions_of(&it)),
                WatchEvent::Deleted(_) => break,
                other => panic!("{other:?}"),
            }
        }
        seen
    };
    let seen = tokio::time::timeout(DEADLINE, seen).await;
    let served = "NamesAccepted: NoConflicts, Established: InitialNamesAccepted";
    assert_eq!(
        seen.expect("the deletion"),
        [
            "",
            "NamesAccepted: NoConflicts, Established: Installing",
            served,
            &format!("{served}, Terminating: InstanceDeletionPending"),
            &format!("{served}, Terminating: InstanceDeletionInProgress"),
        ]
    );
}

/// Returns the conditions of a definition with their reasons.
fn conditions_of(definition: &DynamicObject) -> String {
    let conditions = definition.data["status"]["conditions"].as_array();
    let shown = conditions.into_iter().flatten().map(|it| {
        let text = |member: &str| it[member].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("type"), text("reason"))
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn a_definition_whose_conditions_are_taken_away_is_not_served_until_its_names_change() {
    let (_server, client) = Server::ready(&[]).await;
    define(&client).await;
    let definitions_of = definitions(&client);
    let params = PatchParams::default();
    let nothing = Patch::Merge(json!({"status": {"conditions": []}}));
    let patched = definitions_of.patch_status("gears.example.com", &params, &nothing);
    patched.await.expect("a status");
    eventually(DEADLINE, "the end of the resource", async || {
        code(select(&gears(&client), "").await) == 404
    })
    .await;
    let renamed = Patch::Merge(json!({"spec": {"names": {"shortNames": ["g"]}}}));
    let patched = definitions_of.patch("gears.example.com", &params, &renamed);
    patched.await.expect("a definition");
    wait_until_established(&client, "gears.example.com").await;
    select(&gears(&client), "").await.expect("a list");
}

#[tokio::test]
async fn a_definition_that_cannot_be_read_is_in_nobodys_way() {
    const BAD: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/bad.example.com";
    let test = "custom_resources::a_definition_that_cannot_be_read_is_in_nobodys_way";
    for cache in ["--watch-cache=true", "--watch-cache=false"] {
        let Some(etcd) = Etcd::start(test) else {
            return;
        };
        etcd.etcdctl(&["put", BAD, "nonsense"]);
        let (mut server, client) =
            Server::ready(&["--etcd-servers", &etcd.endpoint(), cache]).await;
        define(&client).await;
        let created = create(&gears(&client), gear("one", json!({}))).await;
        created.expect("a gear");

        let client = server.restart().await;
        let list = select(&gears(&client), "").await;
        assert_eq!(list.expect("a list"), ["one"]);
        let definitions = select(&definitions(&client), "").await;
        assert_eq!(code(definitions), 500);
    }
}

#[tokio::test]
async fn a_definition_that_cannot_be_cleaned_up_is_in_nobodys_way() {
    const BAD: &str = "/registry/example.com/gears/default/bad";
    let test = "custom_resources::a_definition_that_cannot_be_cleaned_up_is_in_nobodys_way";
    let Some(etcd) = Etcd::start(test) else {
        return;
    };
    let (mut server, client) = Server::ready(&["--etcd-servers", &etcd.endpoint()]).await;
    define(&client).await;
    etcd.etcdctl(&["put", BAD, "nonsense"]);
    delete(&definitions(&client), "gears.example.com").await;

    let client = server.restart().await;
    let other = create(&definitions(&client), definition("cogs", "Cog")).await;
    other.expect("a definition");
    let cogs = resource("example.com", "Cog");
    let cogs: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &cogs);
    let served = async || select(&cogs, "").await;
    eventually(DEADLINE, "the other to be served", served).await;
    let held = definitions(&client).get("gears.example.com").await;
    assert!(
        held.expect("a definition")
            .metadata
            .deletion_timestamp
            .is_some()
    );

    // Once it can be cleaned up, it is.
    etcd.etcdctl(&["del", BAD]);
    eventually(DEADLINE, "the end of the definition", async || {
        code(definitions(&client).get("gears.example.com").await) == 404
    })
    .await;
}

//! Custom resources of an upstream that are defined, change and go, as a front shows them.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::front::Fronted;
use crate::support::{ask, client_by, create};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GEARS: &str = "/apis/example.com/v1/namespaces/default/gears";
const ANY: &str = "/apis/example.com/v1/namespaces/default/gears?resourceVersion=0";
const BLUE: &str = "/apis/example.com/v1/namespaces/default/gears?resourceVersion=0&fieldSelector=spec.color%3Dblue";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PLAIN: &str = "application/json";
/// The time that passes between two looks.
const STEP: Duration = Duration::from_secs(1);

fn definition(columns: &Value, selectable: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gears", "kind": "Gear"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": columns, "selectableFields": selectable,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string"}, "teeth": {"type": "integer"}}}}}}}]}})
}

async fn establish(upstream: &InProcessServer, definition: &Value) {
    create(upstream, DEFINITIONS, definition).await;
    eventually(DEADLINE, "the definition is served", async || {
        ask(upstream, Method::GET, GEARS, None).await.0 == 200
    })
    .await;
    for (name, color) in [("a", "blue"), ("b", "red")] {
        let gear = json!({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": name},
            "spec": {"color": color, "teeth": 8}});
        create(upstream, GEARS, &gear).await;
    }
}

fn columns(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array();
    let names = columns
        .into_iter()
        .flatten()
        .filter_map(|it| it["name"].as_str());
    names.collect()
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array();
    let names = items
        .into_iter()
        .flatten()
        .filter_map(|it| it["metadata"]["name"].as_str());
    names.collect()
}

#[tokio::test]
async fn tables_and_selectors_follow_the_definition() {
    let upstream = InProcessServer::start().await.unwrap();
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let fronted = Fronted::new(client_by(&upstream, clock.clone()), clock);
    assert_eq!(
        fronted.get(ANY, PLAIN).await.0,
        404,
        "there is no definition yet"
    );
    let teeth = json!([{"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth"}]);
    establish(&upstream, &definition(&teeth, &json!([]))).await;
    let (status, table) = fronted.get_json(ANY, TABLE).await;
    assert_eq!(
        (status, columns(&table)),
        (200, vec!["Name", "Teeth"]),
        "{table}"
    );
    assert_eq!(
        fronted.get(BLUE, PLAIN).await.0,
        400,
        "no such field is selectable"
    );

    let path = format!("{DEFINITIONS}/gears.example.com");
    let (_, known) = ask(&upstream, Method::GET, &path, None).await;
    let mut changed = known.clone();
    let color = json!({"name": "Color", "type": "string", "jsonPath": ".spec.color"});
    let version = &mut changed["spec"]["versions"][0];
    version["additionalPrinterColumns"]
        .as_array_mut()
        .unwrap()
        .push(color);
    version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    let (status, _) = ask(&upstream, Method::PUT, &path, Some(&changed)).await;
    assert_eq!(status, 200);
    eventually(DEADLINE, "there is another column", async || {
        fronted.clock.advance(STEP);
        let (status, table) = fronted.get_json(ANY, TABLE).await;
        status == 200 && columns(&table) == ["Name", "Teeth", "Color"]
    })
    .await;
    eventually(DEADLINE, "the field can be selected", async || {
        let (status, list) = fronted.get_json(BLUE, PLAIN).await;
        status == 200 && names(&list) == ["a"]
    })
    .await;
    let (status, list) = fronted.get_json(ANY, PLAIN).await;
    assert_eq!((status, names(&list)), (200, vec!["a", "b"]));

    assert_eq!(ask(&upstream, Method::DELETE, &path, None).await.0, 200);
    eventually(DEADLINE, "it is gone", async || {
        fronted.clock.advance(STEP);
        fronted.get(ANY, PLAIN).await.0 == 404
    })
    .await;
    // The clock stands still, so one that is away stays so.
    eventually(
        DEADLINE,
        "a cache that is forgotten is not away",
        async || fronted.caches.longest_away().is_zero(),
    )
    .await;

    // Another one of the same name shows nothing of the first.
    let colors = json!([{"jsonPath": ".spec.color"}]);
    establish(&upstream, &definition(&json!([]), &colors)).await;
    // The upstream may answer, whose own cache may be older than the second object.
    eventually(DEADLINE, "the new one's objects are shown", async || {
        let (status, list) = fronted.get_json(BLUE, PLAIN).await;
        (status, names(&list)) == (200, vec!["a"])
    })
    .await;
    let (_, table) = fronted.get_json(ANY, TABLE).await;
    assert_eq!(columns(&table), ["Name", "Age"]);
}

/// A definition that is replaced by another of the same name within the time for which it is known has other objects.
#[tokio::test]
async fn a_definition_that_is_made_again_has_objects_of_its_own() {
    let upstream = InProcessServer::start().await.unwrap();
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let fronted = Fronted::new(client_by(&upstream, clock.clone()), clock);
    establish(&upstream, &definition(&json!([]), &json!([]))).await;
    assert_eq!(fronted.get(ANY, PLAIN).await.0, 200);
    let path = format!("{DEFINITIONS}/gears.example.com");
    assert_eq!(ask(&upstream, Method::DELETE, &path, None).await.0, 200);
    eventually(DEADLINE, "it is gone upstream", async || {
        ask(&upstream, Method::GET, &path, None).await.0 == 404
    })
    .await;
    let teeth = json!([{"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth"}]);
    establish(&upstream, &definition(&teeth, &json!([]))).await;
    let (_, new) = ask(&upstream, Method::GET, &format!("{GEARS}/a"), None).await;
    eventually(DEADLINE, "the new one is shown", async || {
        fronted.clock.advance(STEP);
        let (status, table) = fronted.get_json(ANY, TABLE).await;
        status == 200 && columns(&table) == ["Name", "Teeth"]
    })
    .await;
    eventually(DEADLINE, "its objects are shown", async || {
        fronted.clock.advance(STEP);
        let (_, one) = fronted
            .get_json(&format!("{GEARS}/a?resourceVersion=0"), PLAIN)
            .await;
        one["metadata"]["uid"] == new["metadata"]["uid"]
    })
    .await;
}

//! Objects are read by what their definition says now.

use http::{Method, StatusCode};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{Admin, gear};

const A: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/a";
const B: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/b";

#[tokio::test]
async fn objects_are_read_with_the_defaults_and_fields_of_today() {
    let admin = Admin::start().await;
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}}});
    let (definition, gears) = admin.define_gears(schema).await;
    let (first, second) = (format!("{gears}/first"), format!("{gears}/second"));
    let created = admin.create(&gears, &gear("first")).await;
    assert_eq!(created.get("a"), None);

    // A default that comes later is read, and not written.
    let default = json!([{"op": "add", "path": format!("{A}/default"), "value": "A"}]);
    admin.patch(&definition, "json-patch+json", &default).await;
    let found = admin.until(&first, |it| it["a"] == "A").await;
    assert_eq!(found["metadata"], created["metadata"]);
    let list = admin.get(&gears).await;
    assert_eq!(list["items"][0], found);
    let selected = format!("{gears}?resourceVersion=0&fieldSelector=metadata.name%3Dfirst");
    assert_eq!(admin.get(&selected).await["items"][0]["a"], "A");
    let created = admin.create(&gears, &gear("second")).await;
    assert_eq!(created["a"], "A");

    // What was written with a default keeps it when that goes, and gets those that come.
    let others = json!([
        {"op": "remove", "path": format!("{A}/default")},
        {"op": "add", "path": format!("{B}/default"), "value": "B"},
    ]);
    admin.patch(&definition, "json-patch+json", &others).await;
    let found = admin.until(&second, |it| it["b"] == "B").await;
    assert_eq!(found["a"], "A");
    let found = admin.get(&first).await;
    assert_eq!((found.get("a"), &found["b"]), (None, &json!("B")));

    // An update that changes nothing of what is read writes what was not stored so.
    let written = admin.send(Method::PUT, &first, "application/json", &found);
    let written = written.await;
    assert_eq!(written.status, StatusCode::OK, "{}", written.body);
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_ne!(version(&written.body), version(&found));
    let again = admin.send(Method::PUT, &first, "application/json", &written.body);
    assert_eq!(version(&again.await.body), version(&written.body));

    // A field that is no longer defined is not read any more.
    let without = json!([{"op": "remove", "path": A}]);
    admin.patch(&definition, "json-patch+json", &without).await;
    let found = admin.until(&second, |it| it.get("a").is_none()).await;
    assert_eq!(found["b"], "B");

    // What the schema came to refuse may stay, but not come.
    let narrow = json!([{"op": "add", "path": format!("{B}/enum"), "value": ["C"]},
        {"op": "remove", "path": format!("{B}/default")}]);
    admin.patch(&definition, "json-patch+json", &narrow).await;
    until_refused(&admin, &gears).await;
    let label = json!({"metadata": {"labels": {"foo": "bar"}}});
    admin.patch(&second, "merge-patch+json", &label).await;
    let other = json!({"b": "D"});
    let refused = admin.send(
        Method::PATCH,
        &second,
        "application/merge-patch+json",
        other,
    );
    let refused = refused.await;
    let message = "Gear.example.com \"second\" is invalid: b: Unsupported value: \"D\": supported values: \"C\"";
    assert_eq!(refused.failure(), (422, "Invalid", message));
}

/// Waits until the definition's schema refuses a value that it took before.
async fn until_refused(admin: &Admin, gears: &str) {
    let mut tried = gear("tried");
    tried["b"] = json!("X");
    let path = format!("{gears}?dryRun=All");
    eventually(DEADLINE, "the schema refuses it", async || {
        let answer = admin.send(Method::POST, &path, "application/json", &tried);
        answer.await.status == StatusCode::UNPROCESSABLE_ENTITY
    })
    .await;
}

//! Tables: what people want to see of objects, with the cells made by the server.

use super::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// The Accept header of kubectl.
const TABLE_OR_JSON: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                             application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn asking(method: &str, path: &str, accept: &str, body: &Value) -> Request<Bytes> {
    let body = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    let mut request = request(method, path, body);
    let accept = accept.parse().expect("a header");
    request.headers_mut().insert(ACCEPT, accept);
    request
}

async fn get(fixture: &Fixture, path: &str, accept: &str) -> Answer {
    fixture.ask(asking("GET", path, accept, &Value::Null)).await
}

/// The cells of all rows, ages left out.
fn cells(table: &Value) -> Value {
    let rows = table["rows"].as_array().expect("rows").iter();
    rows.map(|row| {
        let cells = row["cells"].as_array().expect("cells");
        let age = |cell: &&Value| cell.as_str().is_some_and(is_age);
        json!(cells.iter().filter(|cell| !age(cell)).collect::<Vec<_>>())
    })
    .collect()
}

fn is_age(text: &str) -> bool {
    let digits = text.strip_suffix('s').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[tokio::test]
async fn a_list_is_a_table_with_columns_and_rows() {
    for cached in [false, true] {
        let fixture = Fixture::start(cached).await;
        let a = fixture.config_map("a", json!({"k": "v"})).await;
        fixture.config_map("b", json!({"k": "v", "l": "w"})).await;
        let answer = get(&fixture, CONFIG_MAPS, TABLE_OR_JSON).await;
        assert_eq!(answer.head.headers[CONTENT_TYPE], "application/json");
        assert!(answer.body.ends_with(b"}\n"));
        let table = answer.json();
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
        let list = fixture.get(CONFIG_MAPS).await.json();
        assert_eq!(table["metadata"], list["metadata"]);
        let columns = table["columnDefinitions"].as_array().expect("columns");
        let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "Data", "Age"]);
        let name = columns[0].as_object().expect("a column");
        assert_eq!(
            (&name["type"], &name["format"]),
            (&json!("string"), &json!("name"))
        );
        assert_eq!(name["priority"], 0);
        assert_eq!(cells(&table), json!([["a", 1], ["b", 2]]));
        let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": a["metadata"]});
        assert_eq!(table["rows"][0]["object"], object);

        let paged = get(&fixture, &format!("{CONFIG_MAPS}?limit=1"), TABLE)
            .await
            .json();
        assert_eq!(paged["metadata"]["remainingItemCount"], 1);
        let token = paged["metadata"]["continue"].as_str().expect("a token");
        let rest = get(&fixture, &format!("{CONFIG_MAPS}?continue={token}"), TABLE).await;
        assert_eq!(cells(&rest.json()), json!([["b", 2]]));
        let none = get(
            &fixture,
            &format!("{CONFIG_MAPS}?labelSelector=no=where"),
            TABLE,
        )
        .await;
        assert_eq!(none.json()["rows"], json!([]));
    }
}

#[tokio::test]
async fn the_query_says_what_comes_with_the_rows() {
    let fixture = Fixture::start(true).await;
    let created = fixture.config_map("a", json!({"k": "v"})).await;
    let object = async |query: &str, accept: &str| {
        let answer = get(
            &fixture,
            &format!("{CONFIG_MAPS}/a?includeObject={query}"),
            accept,
        )
        .await;
        answer.json()["rows"][0]["object"].clone()
    };
    assert_eq!(object("None", TABLE).await, Value::Null);
    assert_eq!(object("Object", TABLE).await, created);
    assert_eq!(
        object("Metadata", TABLE).await["kind"],
        "PartialObjectMetadata"
    );
    let old = TABLE.replace("v=v1", "v=v1beta1");
    assert_eq!(
        object("Metadata", &old).await["apiVersion"],
        "meta.k8s.io/v1beta1"
    );
    let refused = get(&fixture, &format!("{CONFIG_MAPS}?includeObject=All"), TABLE).await;
    let (code, message) = refused.failure();
    assert_eq!(code, 400);
    assert!(
        message.starts_with("Unable to convert to Table as requested: "),
        "{message}"
    );
    let plain = get(
        &fixture,
        &format!("{CONFIG_MAPS}/a?includeObject=All"),
        "*/*",
    )
    .await;
    assert_eq!(plain.json(), created);
}

#[tokio::test]
async fn writes_are_answered_with_tables_but_statuses_never_are() {
    let fixture = Fixture::start(true).await;
    let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let created = fixture
        .ask(asking("POST", CONFIG_MAPS, TABLE_OR_JSON, &object))
        .await;
    assert_eq!(created.head.status, StatusCode::CREATED);
    let created = created.json();
    assert_eq!(cells(&created), json!([["a", 1]]));
    let stored = fixture.get(&format!("{CONFIG_MAPS}/a")).await.json();
    let version = json!({"resourceVersion": stored["metadata"]["resourceVersion"]});
    assert_eq!(created["metadata"], version);

    let again = fixture
        .ask(asking("POST", CONFIG_MAPS, TABLE, &object))
        .await;
    assert_eq!(again.failure().0, 409);
    let dry = json!({"metadata": {"name": "dry"}});
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let dry = fixture.ask(asking("POST", &path, TABLE, &dry)).await.json();
    assert_eq!(
        (&dry["metadata"], cells(&dry)),
        (&json!({}), json!([["dry", 0]]))
    );
    let path = format!("{CONFIG_MAPS}/a");
    let replaced = json!({"metadata": {"name": "a"}, "data": {}});
    let replaced = fixture.ask(asking("PUT", &path, TABLE, &replaced)).await;
    assert_eq!(cells(&replaced.json()), json!([["a", 0]]));
    let deleted = fixture
        .ask(asking("DELETE", &path, TABLE, &Value::Null))
        .await;
    assert_eq!(deleted.json()["kind"], "Status");
    let missing = get(&fixture, &path, TABLE).await;
    assert_eq!(missing.failure().0, 404);
}

#[tokio::test]
async fn tables_come_in_yaml_but_not_in_protobuf() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({"k": "v"})).await;
    for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}/a")] {
        let yaml = get(&fixture, &path, &TABLE.replace("json", "yaml")).await;
        assert_eq!(yaml.head.headers[CONTENT_TYPE], "application/yaml");
        assert!(yaml.text().contains("kind: Table\n"), "{}", yaml.text());
        let pretty = get(&fixture, &format!("{path}?pretty=1"), TABLE).await;
        assert!(
            pretty.text().starts_with("{\n  \"kind\": \"Table\""),
            "{}",
            pretty.text()
        );
        assert_eq!(cells(&pretty.json()), json!([["a", 1]]));
        let protobuf = TABLE.replace("json", "vnd.kubernetes.protobuf");
        let refused = get(&fixture, &path, &protobuf).await;
        assert_eq!(refused.head.status, StatusCode::NOT_ACCEPTABLE);
        let instead = get(&fixture, &path, &format!("{protobuf},{TABLE}")).await;
        assert_eq!(instead.json()["kind"], "Table");
    }
}

#[tokio::test]
async fn a_scale_has_columns_of_its_own() {
    let fixture = Fixture::start(true).await;
    let labels = json!({"app": "d"});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 3,
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    fixture.post(DEPLOYMENTS, deployment).await;
    let table = get(&fixture, &format!("{DEPLOYMENTS}/d"), TABLE)
        .await
        .json();
    assert_eq!(
        cells(&table),
        json!([["d", "0/3", 0, 0, "c", "i", "app=d"]])
    );
    let table = get(&fixture, &format!("{DEPLOYMENTS}/d/scale"), TABLE)
        .await
        .json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Desired");
    assert_eq!(cells(&table), json!([["d", 3, 0]]));
}

#[tokio::test]
async fn kinds_that_are_converted_show_the_same_in_both_versions() {
    let fixture = Fixture::start(true).await;
    let event = json!({"metadata": {"name": "e"}, "reason": "Scheduled", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "count": 3,
        "message": "ok"});
    fixture
        .post("/api/v1/namespaces/default/events", event)
        .await;
    let table = async |path: &str| {
        let table = get(&fixture, path, TABLE).await.json();
        assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "e");
        table["rows"][0]["cells"].clone()
    };
    let core = table("/api/v1/namespaces/default/events").await;
    assert_eq!((&core[3], &core[8]), (&json!("pod/p"), &json!(3)));
    let newer = table("/apis/events.k8s.io/v1/namespaces/default/events").await;
    assert_eq!(newer, core);
}

#[tokio::test]
async fn a_watch_tells_the_columns_once_and_follows_its_selector() {
    let fixture = Fixture::start(true).await;
    let labelled = |name: &str, value: &str| json!({"metadata": {"name": name, "labels": {"l": value}}, "data": {"k": "v"}});
    fixture.post(CONFIG_MAPS, labelled("a", "in")).await;
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&labelSelector=l%3Din\
                 &resourceVersionMatch=NotOlderThan";
    let path = format!("{CONFIG_MAPS}?{query}");
    let watch = asking("GET", &path, TABLE_OR_JSON, &Value::Null);
    let response = fixture.send(watch).await;
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let read = frames(response, |frames| {
        frames.iter().filter(|it| it["type"] == "DELETED").count() == 2
    });
    let changes = async {
        let path = |name: &str| format!("{CONFIG_MAPS}/{name}");
        let relabel = |value: &str| json!({"metadata": {"labels": {"l": value}}});
        let merge = "merge-patch+json";
        fixture.patch(&path("a"), merge, relabel("out")).await;
        fixture.patch(&path("a"), merge, relabel("in")).await;
        let more = json!({"data": {"l": "w"}});
        let changed = fixture.patch(&path("a"), merge, more).await.json();
        let delete = request("DELETE", &path("a"), Bytes::new());
        fixture.ask(delete).await;
        changed
    };
    let (frames, changed) = tokio::join!(read, changes);
    let shown: Vec<Value> = frames
        .iter()
        .map(|frame| json!([frame["type"], cells(&frame["object"])[0]]))
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            ["ADDED", ["a", 1]],
            ["BOOKMARK", ["", 0, "<unknown>"]],
            ["DELETED", ["a", 1]],
            ["ADDED", ["a", 1]],
            ["MODIFIED", ["a", 2]],
            ["DELETED", ["a", 2]],
        ])
    );
    let columns = |frame: &Value| frame["object"]["columnDefinitions"].is_array();
    assert!(columns(&frames[0]));
    assert!(frames[1..].iter().all(|frame| !columns(frame)));
    assert_eq!(frames[1]["object"]["columnDefinitions"], Value::Null);
    let end = &frames[1]["object"]["rows"][0]["object"];
    assert_eq!(end["kind"], "PartialObjectMetadata");
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    assert_eq!(end["metadata"]["annotations"], annotations);
    let modified = &frames[4]["object"];
    let version = &changed["metadata"]["resourceVersion"];
    assert_eq!(modified["metadata"], json!({"resourceVersion": version}));
    assert_eq!(
        modified["rows"][0]["object"]["metadata"],
        changed["metadata"]
    );
}

#[tokio::test]
async fn the_end_of_the_initial_events_comes_with_an_object() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({"k": "v"})).await;
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&includeObject=None\
                 &resourceVersionMatch=NotOlderThan";
    let watch = asking(
        "GET",
        &format!("{CONFIG_MAPS}?{query}"),
        TABLE,
        &Value::Null,
    );
    let frames = frames(fixture.send(watch).await, |frames| {
        frames.iter().any(|it| it["type"] == "BOOKMARK")
    })
    .await;
    let object = |frame: &Value| frame["object"]["rows"][0]["object"].clone();
    let (end, others) = frames.split_last().expect("events");
    assert!(others.iter().all(|it| object(it).is_null()));
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    assert_eq!(object(end)["metadata"]["annotations"], annotations);
}

#[tokio::test]
async fn a_watch_of_tables_fails_with_a_status() {
    let fixture = Fixture::start(true).await;
    let future = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                  &resourceVersion=999999999";
    let path = format!("{CONFIG_MAPS}?{future}");
    let watch = asking("GET", &path, TABLE, &Value::Null);
    let frames = frames(fixture.send(watch).await, |_| false).await;
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0]["type"], "ERROR");
    assert_eq!(frames[0]["object"]["kind"], "Status");
    assert_eq!(frames[0]["object"]["code"], 504);
    let yaml = format!("{CONFIG_MAPS}?watch=1");
    let refused = get(&fixture, &yaml, &TABLE.replace("json", "yaml")).await;
    assert_eq!(refused.failure().0, 406);
}

#[tokio::test]
async fn a_long_table_is_sent_while_it_is_written() {
    use hyper::body::Body;
    let fixture = Fixture::start(true).await;
    let padding = json!({"annotations": {"padding": "x".repeat(8 * 1024)}});
    for index in 0..64 {
        let mut object = json!({"metadata": padding, "data": {}});
        object["metadata"]["name"] = json!(format!("c{index:02}"));
        fixture.post(CONFIG_MAPS, object).await;
    }
    let response = fixture
        .send(asking("GET", CONFIG_MAPS, TABLE, &Value::Null))
        .await;
    assert_eq!(response.body().size_hint().exact(), None);
    let mut body = response.into_body();
    let mut chunks = Vec::new();
    while let Some(frame) = body.frame().await {
        chunks.push(frame.expect("a frame").into_data().expect("data"));
    }
    // What is enough to be compressed comes at once, the rest little by little.
    assert!(
        chunks.len() > 4 && chunks[1].len() < 64 * 1024,
        "{}",
        chunks.len()
    );
    let table: Value = serde_json::from_slice(&chunks.concat()).expect("a table");
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(64));

    let mut zipped = asking("GET", CONFIG_MAPS, TABLE, &Value::Null);
    let gzip = "gzip".parse().expect("a header");
    zipped.headers_mut().insert(ACCEPT_ENCODING, gzip);
    let zipped = fixture.ask(zipped).await;
    assert_eq!(zipped.head.headers["content-encoding"], "gzip");
    let mut reader = flate2::read::GzDecoder::new(&zipped.body[..]);
    let unzipped: Value = serde_json::from_reader(&mut reader).expect("a table");
    assert_eq!(cells(&unzipped), cells(&table));
    let short = get(&fixture, &format!("{CONFIG_MAPS}?limit=1"), TABLE).await;
    assert!(short.json()["rows"].is_array());
}

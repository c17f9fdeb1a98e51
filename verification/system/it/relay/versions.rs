//! Resource versions through a relay are the upstream's: clients move between both, and read what they wrote.

use serde_json::{Value, json};

use super::support::*;

/// The number of writes after each of which is read.
const WRITES: usize = 100;
/// The number of events of a watch that moves.
const MOVES: usize = 30;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn watch(version: &str) -> String {
    format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}")
}

#[tokio::test]
async fn a_watch_goes_on_at_the_other_door() {
    let pair = Pair::start(&[], &[]).await;
    pair.create(CONFIG_MAPS, &config_map("first")).await;
    let any = format!("{CONFIG_MAPS}?resourceVersion=0");
    let list = until_listed(&pair.relayed, &any, &["first"]).await;
    let mut version = list.version();
    let names: Vec<_> = (0..MOVES).map(|number| format!("c{number}")).collect();
    for name in &names {
        pair.create(CONFIG_MAPS, &config_map(name)).await;
    }
    for (number, name) in names.iter().enumerate() {
        let door = match number % 2 {
            0 => &pair.relayed,
            _ => &pair.direct,
        };
        let mut events = Watch::open(door, &watch(&version)).await;
        let event = events.next().await.expect("an event");
        assert_eq!(event["type"], "ADDED");
        assert_eq!(
            event["object"]["metadata"]["name"], **name,
            "nothing is lost or repeated"
        );
        version = super::support::version(&event["object"]);
    }
}

#[tokio::test]
async fn a_list_goes_on_at_the_other_door() {
    let pair = Pair::start(&[], &[]).await;
    for number in 0..6 {
        pair.create(CONFIG_MAPS, &config_map(&format!("c{number}")))
            .await;
    }
    for first in ["limit=2", "limit=2&resourceVersion=0"] {
        for (from, to) in [(&pair.relayed, &pair.direct), (&pair.direct, &pair.relayed)] {
            // A list of the newest state, for which the cache waits until it has the deletion of the round before.
            get(from, CONFIG_MAPS).await;
            let page = get(from, &format!("{CONFIG_MAPS}?{first}")).await;
            // What a cache answers at any version it may answer as a whole.
            if page.names().len() > 2 {
                continue;
            }
            assert_eq!(page.names(), ["c0", "c1"]);
            let (version, mut token) =
                (page.version(), page.json()["metadata"]["continue"].clone());
            let extra = create(to, CONFIG_MAPS, &config_map("c11")).await;
            let mut names = page.names();
            let mut doors = [to, from].into_iter().cycle();
            while let Some(text) = token.as_str().map(str::to_owned) {
                let door = doors.next().unwrap();
                let page = get(door, &format!("{CONFIG_MAPS}?limit=2&continue={text}")).await;
                assert_eq!(page.version(), version, "{page:?}");
                names.extend(page.names());
                token = page.json()["metadata"]["continue"].clone();
            }
            assert_eq!(
                names,
                ["c0", "c1", "c2", "c3", "c4", "c5"],
                "those of the first page's version"
            );
            let path = format!(
                "{CONFIG_MAPS}/{}",
                extra["metadata"]["name"].as_str().unwrap()
            );
            assert_eq!(
                send(&pair.direct, "DELETE", &path, &[], &Value::Null)
                    .await
                    .status,
                200
            );
        }
    }
}

#[tokio::test]
async fn lists_at_a_version_are_the_same_in_every_form() {
    let pair = Pair::start(&[], &[]).await;
    // A cache that is there before knows the versions after.
    get(&pair.relayed, &format!("{CONFIG_MAPS}?resourceVersion=0")).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    let old = pair.create(CONFIG_MAPS, &config_map("b")).await;
    let old = version(&old);
    let patch = json!({"data": {"k": "w"}});
    let merge = [("Content-Type", "application/merge-patch+json")];
    let patched = send(
        &pair.relayed,
        "PATCH",
        &format!("{CONFIG_MAPS}/a"),
        &merge,
        &patch,
    )
    .await;
    let new = patched.version();
    pair.create(CONFIG_MAPS, &config_map("c")).await;
    let meta = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for accept in [
        "application/json",
        "application/yaml",
        PROTOBUF,
        meta,
        table,
        &format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        &format!("{table},{meta},application/json"),
    ] {
        for query in [
            format!("resourceVersion={old}&resourceVersionMatch=Exact"),
            format!("resourceVersion={new}&resourceVersionMatch=Exact"),
            format!("resourceVersion={new}&resourceVersionMatch=Exact&limit=1"),
            format!(
                "resourceVersion={new}&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Da"
            ),
            format!("resourceVersion={new}&resourceVersionMatch=NotOlderThan"),
            format!("resourceVersion={new}"),
            "resourceVersion=0".to_owned(),
            String::new(),
            "labelSelector=no%3Dsuch".to_owned(),
        ] {
            let path = format!("{CONFIG_MAPS}?{query}");
            let accept = [("Accept", accept)];
            let what = format!("{path} as {accept:?}");
            let asked = async |client| send(client, "GET", &path, &accept, &Value::Null).await;
            let expected = asked(&pair.direct).await;
            assert_eq!(expected.status, 200, "{what}: {expected:?}");
            // The version of a list that need not be exact moves with other resources.
            let through = asked(&pair.relayed).await;
            let is_exact = query.contains("Exact");
            match is_exact {
                true => through.is_like(&expected, &what),
                false => assert_eq!(through.status, 200, "{what}: {through:?}"),
            }
        }
        let one = format!("{CONFIG_MAPS}/a?resourceVersion={new}");
        let accept = accept.replace("MetadataList", "Metadata");
        let accept = [("Accept", accept.as_str())];
        let expected = send(&pair.direct, "GET", &one, &accept, &Value::Null).await;
        let through = send(&pair.relayed, "GET", &one, &accept, &Value::Null).await;
        through.is_like(&expected, &format!("{one} as {accept:?}"));
    }
}

#[tokio::test]
async fn versions_that_are_not_there_are_refused_as_upstream() {
    let pair = Pair::start(&[], &[]).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    get(&pair.relayed, &format!("{CONFIG_MAPS}?resourceVersion=0")).await;
    for query in [
        "resourceVersion=x",
        "resourceVersion=5&resourceVersionMatch=Never",
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "limit=x",
        "continue=x",
        "watch=1&resourceVersion=x",
        "watch=1&sendInitialEvents=true",
        "fieldSelector=no.such%3Dfield",
        "labelSelector=%3D%3D",
        "sendInitialEvents=true",
    ] {
        let path = format!("{CONFIG_MAPS}?{query}");
        let expected = get(&pair.direct, &path).await;
        assert!(expected.status >= 400, "{path}: {expected:?}");
        get(&pair.relayed, &path).await.is_like(&expected, &path);
    }
    let gone = format!("{CONFIG_MAPS}/no?resourceVersion=0");
    get(&pair.relayed, &gone)
        .await
        .is_like(&get(&pair.direct, &gone).await, "no such object");
}

#[tokio::test]
async fn a_watch_list_gives_the_newest_state_and_then_what_changes() {
    let pair = Pair::start(&[], &[]).await;
    for name in ["a", "b"] {
        pair.create(CONFIG_MAPS, &config_map(name)).await;
    }
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for door in [&pair.relayed, &pair.direct] {
        let mut events = Watch::open(door, &format!("{CONFIG_MAPS}?{query}")).await;
        let mut names = [events.next_name().await, events.next_name().await];
        names.sort();
        let added = |name: &str| ("ADDED".to_owned(), name.to_owned());
        assert_eq!(names, [added("a"), added("b")]);
        let end = events.next().await.unwrap();
        assert_eq!(end["type"], "BOOKMARK");
        assert_eq!(
            end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        create(door, CONFIG_MAPS, &config_map("c")).await;
        assert_eq!(events.next_name().await, added("c"));
        let path = format!("{CONFIG_MAPS}/c");
        assert_eq!(
            send(door, "DELETE", &path, &[], &Value::Null).await.status,
            200
        );
        assert_eq!(
            events.next_name().await,
            ("DELETED".to_owned(), "c".to_owned())
        );
        // Elsewhere it goes on after the bookmark.
        let other = watch(&version(&end["object"]));
        for elsewhere in [&pair.relayed, &pair.direct] {
            let mut events = Watch::open(elsewhere, &other).await;
            assert_eq!(events.next_name().await, added("c"));
        }
    }
}

#[tokio::test]
async fn watches_come_as_tables_and_as_metadata() {
    let pair = Pair::start(&[], &[]).await;
    let first = pair.create(CONFIG_MAPS, &config_map("a")).await;
    get(&pair.relayed, &format!("{CONFIG_MAPS}?resourceVersion=0")).await;
    pair.create(CONFIG_MAPS, &config_map("b")).await;
    // Both caches have the second one now, so that a watch has it at once.
    for door in [&pair.direct, &pair.relayed] {
        get(door, CONFIG_MAPS).await;
    }
    let path = format!("{}&timeoutSeconds=5", watch(&version(&first)));
    let protobuf = format!("{PROTOBUF};stream=watch");
    let accepted = [
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        &protobuf,
    ];
    let watches = accepted.map(async |accepted| {
        let accept = [("Accept", accepted)];
        let watched = |door| send(door, "GET", &path, &accept, &Value::Null);
        let (expected, through) = futures::join!(watched(&pair.direct), watched(&pair.relayed));
        assert!(!expected.body.is_empty());
        through.is_like(&expected, &format!("{path} as {accept:?}"));
    });
    futures::future::join_all(watches).await;
}

#[tokio::test]
async fn a_write_through_either_door_is_read_through_the_other() {
    let pair = Pair::start(&[], &[]).await;
    let name = format!("{CONFIG_MAPS}/counter");
    pair.create(CONFIG_MAPS, &config_map("counter")).await;
    // Filled before, so that it must keep up.
    get(&pair.relayed, &format!("{CONFIG_MAPS}?resourceVersion=0")).await;
    let merge = [("Content-Type", "application/merge-patch+json")];
    for number in 0..WRITES {
        let (writer, reader) = match number % 2 {
            0 => (&pair.direct, &pair.relayed),
            _ => (&pair.relayed, &pair.direct),
        };
        let patch = json!({"data": {"k": number.to_string()}});
        let written = send(writer, "PATCH", &name, &merge, &patch).await;
        assert_eq!(written.status, 200, "{written:?}");
        let version = written.version();
        for path in [
            name.clone(),
            CONFIG_MAPS.to_owned(),
            format!("{name}?resourceVersion={version}"),
            format!("{CONFIG_MAPS}?resourceVersion={version}"),
            format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"),
            format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dcounter"),
            format!(
                "/api/v1/configmaps?resourceVersion={version}&fieldSelector=metadata.name%3Dcounter"
            ),
        ] {
            let read = get(reader, &path).await;
            assert_eq!(read.status, 200, "{path}: {read:?}");
            let object = read.json();
            let items = object["items"].as_array();
            let mut items = items.map_or_else(|| vec![&object], |it| it.iter().collect());
            items.retain(|it| it["metadata"]["name"] == "counter");
            assert_eq!(items.len(), 1, "{path}: {read:?}");
            assert_eq!(
                items[0]["data"]["k"],
                number.to_string(),
                "{path} after write {number}"
            );
        }
    }
}

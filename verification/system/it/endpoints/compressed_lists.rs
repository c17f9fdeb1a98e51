//! Lists that are compressed in blocks: the same text as uncompressed, and only what has changed is compressed again.

use std::io::Read;

use super::*;

const OBJECTS: usize = 400;
/// The size of an object's data in bytes: so many objects have more of it than a list needs to be compressed.
const DATA_BYTES: usize = 1_000;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Text that does not repeat itself soon.
fn data(number: usize) -> Value {
    let mut state = number as u64 + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    json!({"k": (0..DATA_BYTES).map(|_| next()).collect::<String>()})
}

/// Lists in a form, with gzip and without, which must be the same. Returns how long they are.
async fn list(fixture: &Fixture, query: &str, accept: &str) -> (usize, usize) {
    list_of(fixture, &format!("{CONFIG_MAPS}{query}"), accept).await
}

/// Lists as [`list`] does, of any path.
async fn list_of(fixture: &Fixture, path: &str, accept: &str) -> (usize, usize) {
    let ask = async |encoding: &str| {
        let mut asking = request("GET", path, Bytes::new());
        let headers = asking.headers_mut();
        headers.insert(ACCEPT, accept.parse().expect("a header"));
        headers.insert(ACCEPT_ENCODING, encoding.parse().expect("a header"));
        fixture.ask(asking).await
    };
    let plain = ask("identity").await;
    assert!(!plain.head.headers.contains_key("content-encoding"));
    let zipped = ask("gzip").await;
    assert_eq!(zipped.head.headers["content-encoding"], "gzip", "{path}");
    assert_eq!(zipped.head.headers["vary"], "Accept-Encoding");
    let mut text = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(&zipped.body[..]);
    reader.read_to_end(&mut text).expect("gzip");
    assert!(text == plain.body, "{path}, {accept}: another text");
    (zipped.body.len(), plain.body.len())
}

async fn made(fixture: &Fixture) -> u64 {
    fixture.metric("ringwatch_encoding_cache_made_total").await
}

#[tokio::test]
async fn they_say_the_same_and_only_changes_are_compressed_again() {
    let fixture = Fixture::start(true).await;
    for number in 0..OBJECTS {
        fixture
            .config_map(&format!("c{number:03}"), data(number))
            .await;
    }
    let (zipped, plain) = list(&fixture, "", JSON).await;
    assert!(zipped < plain * 4 / 5, "{zipped} of {plain} bytes");
    for accept in [JSON, PROTOBUF, METADATA] {
        for query in ["?limit=390", "?resourceVersion=0", ""] {
            list(&fixture, query, accept).await;
        }
    }
    let before = made(&fixture).await;
    for accept in [JSON, PROTOBUF, METADATA] {
        list(&fixture, "", accept).await;
    }
    assert_eq!(made(&fixture).await, before, "all of it was kept");
    // A change in the middle, an object that goes, one that comes first and one that comes last.
    let patch = json!({"data": {"k": "y".repeat(10)}});
    let path = |name: &str| format!("{CONFIG_MAPS}/{name}");
    let changes = [
        fixture
            .patch(&path("c200"), "merge-patch+json", patch)
            .await,
        fixture
            .ask(request("DELETE", &path("c100"), Bytes::new()))
            .await,
        fixture
            .post(
                CONFIG_MAPS,
                json!({"metadata": {"name": "a"}, "data": data(1_000)}),
            )
            .await,
        fixture
            .post(
                CONFIG_MAPS,
                json!({"metadata": {"name": "z"}, "data": data(1_001)}),
            )
            .await,
    ];
    for change in changes {
        assert!(change.head.status.is_success(), "{}", change.text());
        list(&fixture, "", JSON).await;
    }
    let again = made(&fixture).await - before;
    // Each is in one block or two. The plain lists encode the four objects that are new.
    assert!(again <= 4 * 2 + 4, "{again} encodings were made again");
}

/// Two selections whose blocks begin with the same object are told apart.
#[tokio::test]
async fn blocks_are_used_for_the_same_objects_only() {
    let fixture = Fixture::start(true).await;
    for number in 0..OBJECTS {
        let labels = json!({"half": (number % 2).to_string(), "all": "yes"});
        let labels = if number == 0 {
            json!({"half": "1", "all": "yes"})
        } else {
            labels
        };
        let object = json!({"metadata": {"name": format!("c{number:03}"), "labels": labels}, "data": data(number)});
        let created = fixture.post(CONFIG_MAPS, object).await;
        assert_eq!(created.head.status, 201, "{}", created.text());
    }
    for _ in 0..2 {
        for query in ["", "?labelSelector=half%3D1", "?labelSelector=all%3Dyes"] {
            list(&fixture, query, JSON).await;
        }
    }
}

/// A webhook may convert the objects of a list in another way than the last time, so nothing of it is kept.
#[tokio::test]
async fn no_block_of_custom_resources_is_kept() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const BLOBS: &str = "/apis/example.com/v1/namespaces/default/blobs";
    let fixture = Fixture::start(true).await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": "blobs.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "blobs", "kind": "Blob"}, "versions": [{"name": "v1",
        "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let defined = fixture.post(DEFINITIONS, definition).await;
    assert_eq!(defined.head.status, 201, "{}", defined.text());
    fixture.until_served(BLOBS).await;
    for number in 0..OBJECTS {
        let blob = json!({"apiVersion": "example.com/v1", "kind": "Blob",
            "metadata": {"name": format!("b{number:03}")}, "data": data(number)});
        let created = fixture.post(BLOBS, blob).await;
        assert_eq!(created.head.status, 201, "{}", created.text());
    }
    let before = made(&fixture).await;
    for _ in 0..2 {
        list_of(&fixture, BLOBS, JSON).await;
    }
    assert_eq!(made(&fixture).await, before);
}

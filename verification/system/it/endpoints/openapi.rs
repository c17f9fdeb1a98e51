//! The documents of OpenAPI over HTTP: forms, tags, hashes.

use http::header::{ETAG, IF_NONE_MATCH, LOCATION};

use super::*;

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

async fn asking(fixture: &Fixture, path: &str, headers: &[(&'static str, &str)]) -> Answer {
    let mut ask = request("GET", path, Bytes::new());
    for (name, value) in headers {
        ask.headers_mut()
            .insert(*name, value.parse().expect("a header"));
    }
    fixture.ask(ask).await
}

/// Returns the URL that the index gives for a document.
async fn indexed(fixture: &Fixture, root: &str) -> String {
    let index = fixture.get("/openapi/v3").await.json();
    let url = index["paths"][root]["serverRelativeURL"].as_str();
    url.expect("a document").to_owned()
}

#[tokio::test]
async fn a_document_under_its_hash_is_for_ever() {
    let fixture = Fixture::start(false).await;
    let url = indexed(&fixture, "apis/apps/v1").await;
    let answer = fixture.get(&url).await;
    assert_eq!(answer.head.headers["cache-control"], "public, immutable");
    assert_eq!(answer.head.headers["vary"], "Accept");
    let expires = answer.head.headers["expires"].to_str().expect("text");
    let expires = jiff::fmt::rfc2822::parse(expires)
        .expect("a date")
        .timestamp();
    let hours = expires.duration_since(jiff::Timestamp::now()).as_hours();
    assert!((364 * 24..=365 * 24).contains(&hours), "{hours}");
    let hash = url.split_once('=').expect("a hash").1;
    assert_eq!(answer.head.headers[ETAG], format!("\"{hash}\""));
    let spec = "/components/schemas/io.k8s.api.apps.v1.DeploymentSpec/properties/replicas";
    let document = answer.json();
    assert_eq!(document.pointer(spec).expect("a field")["format"], "int32");

    let plain = fixture.get("/openapi/v3/apis/apps/v1").await;
    assert_eq!(plain.head.headers["cache-control"], "no-cache, private");
    assert_eq!(plain.body, answer.body);
    let known = format!("\"{hash}\"");
    let known = [(IF_NONE_MATCH.as_str(), known.as_str())];
    let again = asking(&fixture, "/openapi/v3/apis/apps/v1", &known).await;
    assert_eq!(again.head.status, StatusCode::NOT_MODIFIED);
    assert!(again.body.is_empty());
    let old = fixture.get("/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!(old.head.status, StatusCode::MOVED_PERMANENTLY);
    assert_eq!(old.head.headers[LOCATION], url);
    let nowhere = fixture.get("/openapi/v3/apis/nowhere/v1").await;
    assert_eq!(nowhere.head.status, StatusCode::NOT_FOUND);
    // kube-apiserver looks at no method here.
    let posted = fixture.post("/openapi/v3/apis/apps/v1", json!({})).await;
    assert_eq!(posted.head.status, StatusCode::OK);
}

#[tokio::test]
async fn documents_come_in_json_and_protobuf() {
    let fixture = Fixture::start(false).await;
    let apps = "/openapi/v3/apis/apps/v1";
    for (path, accept, media_type) in [
        (apps, "*/*", "application/json"),
        (apps, V3_PROTOBUF, V3_PROTOBUF),
        (
            apps,
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
            V3_PROTOBUF,
        ),
        ("/openapi/v2", "application/json", "application/json"),
        ("/openapi/v2", V2_PROTOBUF, V2_PROTOBUF),
        (
            "/openapi/v2",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            V2_PROTOBUF,
        ),
    ] {
        let answer = asking(&fixture, path, &[("accept", accept)]).await;
        assert_eq!(answer.head.status, StatusCode::OK, "{accept}");
        assert_eq!(answer.head.headers[CONTENT_TYPE], media_type);
    }
    for (path, accept) in [(apps, V2_PROTOBUF), ("/openapi/v2", "application/yaml")] {
        let answer = asking(&fixture, path, &[("accept", accept)]).await;
        assert_eq!(answer.head.status, StatusCode::NOT_ACCEPTABLE, "{accept}");
    }
}

#[tokio::test]
async fn the_second_version_is_compressed_and_the_third_is_not() {
    let fixture = Fixture::start(false).await;
    let gzip = [(ACCEPT_ENCODING.as_str(), "gzip")];
    let second = asking(&fixture, "/openapi/v2", &gzip).await;
    assert_eq!(second.head.headers["content-encoding"], "gzip");
    let vary: Vec<_> = second.head.headers.get_all("vary").iter().collect();
    assert_eq!(vary, ["Accept-Encoding", "Accept"]);
    let third = asking(&fixture, "/openapi/v3/api/v1", &gzip).await;
    assert_eq!(third.head.headers.get("content-encoding"), None);
    assert_eq!(third.json()["openapi"], "3.0.0");
}

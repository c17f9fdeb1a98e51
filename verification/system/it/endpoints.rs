//! The API of a server in this process, with and without the watch cache: what clients see.

mod applies;
mod compressed_lists;
mod custom_objects;
mod encodings;
mod evictions;
mod figures;
mod openapi;
mod patches;
mod protobuf;
mod refusals;
mod shards;
mod storage_versions;
mod subresources;
mod tables;
mod typed;
mod verbs;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use ringwatch::codec;
use ringwatch_http::Body;
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server, asked as the admin.
struct Fixture {
    server: InProcessServer,
}

/// An answer that was read to its end.
struct Answer {
    head: http::response::Parts,
    body: Bytes,
}

impl Fixture {
    /// A server with or without watch caches.
    async fn start(cached: bool) -> Self {
        let server = InProcessServer::builder().flag(format!("--watch-cache={cached}"));
        Self {
            server: server.start().await.expect("a server"),
        }
    }

    /// A server with watch caches, and with so many bytes for encodings.
    async fn with_encodings(encodings_bytes_max: usize) -> Self {
        let server = InProcessServer::builder().encodings_bytes_max(encodings_bytes_max);
        Self {
            server: server.start().await.expect("a server"),
        }
    }

    async fn send(&self, request: Request<Bytes>) -> Response<Body> {
        self.server.answer(request).await
    }

    async fn ask(&self, request: Request<Bytes>) -> Answer {
        let (head, body) = self.send(request).await.into_parts();
        let body = tokio::time::timeout(DEADLINE, body.collect()).await;
        let body = body.expect("an end").expect("a body").to_bytes();
        Answer { head, body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(request("GET", path, Bytes::new())).await
    }

    async fn accepting(&self, path: &str, accept: &str) -> Answer {
        let mut request = request("GET", path, Bytes::new());
        request
            .headers_mut()
            .insert(ACCEPT, accept.parse().expect("a header"));
        self.ask(request).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(request("POST", path, body.to_string().into()))
            .await
    }

    async fn patch(&self, path: &str, kind: &str, body: Value) -> Answer {
        let mut request = request("PATCH", path, body.to_string().into());
        let media_type = format!("application/{kind}").parse().expect("a header");
        request.headers_mut().insert(CONTENT_TYPE, media_type);
        self.ask(request).await
    }

    /// Waits until a path of a new definition is served.
    async fn until_served(&self, path: &str) {
        let what = format!("{path} is served");
        eventually(DEADLINE, what, async || {
            self.get(path).await.head.status == StatusCode::OK
        })
        .await;
    }

    /// Reads all metrics.
    async fn metrics(&self) -> String {
        self.get("/metrics").await.text()
    }

    /// Reads a metric without labels.
    async fn metric(&self, name: &str) -> u64 {
        let metrics = self.metrics().await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|it| it.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
    }

    /// Creates a ConfigMap and gives it as stored.
    async fn config_map(&self, name: &str, data: Value) -> Value {
        let object = json!({"metadata": {"name": name}, "data": data});
        let answer = self.post(CONFIG_MAPS, object).await;
        answer.has_created();
        answer.json()
    }
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Checks that something was created.
    #[track_caller]
    fn has_created(&self) {
        assert_eq!(self.head.status, StatusCode::CREATED, "{}", self.text());
    }

    /// The code and message of a Status.
    fn failure(&self) -> (u16, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], self.head.status.as_u16());
        let message = status["message"].as_str().unwrap_or_default();
        (self.head.status.as_u16(), message.to_owned())
    }
}

fn request(method: &str, path: &str, body: Bytes) -> Request<Bytes> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(body)
        .expect("a request")
}

/// Reads the frames of a watch until `enough` says so, or to its end.
async fn frames(response: Response<Body>, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let mut text = Vec::new();
    let mut frames = Vec::new();
    let read = async {
        while !enough(&frames) {
            let Some(frame) = body.frame().await else {
                break;
            };
            text.extend_from_slice(&frame.expect("a frame").into_data().expect("data"));
            let lines = text
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty());
            frames = lines
                .map(|line| serde_json::from_slice(line).expect("an event"))
                .collect();
        }
    };
    tokio::time::timeout(DEADLINE, read)
        .await
        .expect("the frames in time");
    frames
}

#[tokio::test]
async fn objects_are_created_read_listed_and_deleted() {
    for cached in [false, true] {
        let fixture = Fixture::start(cached).await;
        let created = fixture.config_map("a", json!({"k": "v"})).await;
        assert_eq!(created["metadata"]["namespace"], "default");
        let version = created["metadata"]["resourceVersion"]
            .as_str()
            .expect("a version");
        let read = fixture
            .get(&format!("{CONFIG_MAPS}/a?resourceVersion={version}"))
            .await;
        assert_eq!(read.json(), created);
        assert!(read.body.ends_with(b"}\n"));
        assert_eq!(read.head.headers["cache-control"], "no-cache, private");
        assert!(!read.head.headers["audit-id"].is_empty());
        fixture.config_map("b", json!({})).await;
        let list = fixture.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
        assert_eq!(list["kind"], "ConfigMapList");
        assert_eq!(list["items"][0]["metadata"], created["metadata"]);
        assert!(list["items"][0].get("kind").is_none());
        assert_eq!(list["metadata"]["remainingItemCount"], 1);
        let token = list["metadata"]["continue"].as_str().expect("a token");
        let rest = fixture
            .get(&format!("{CONFIG_MAPS}?continue={token}"))
            .await
            .json();
        assert_eq!(rest["items"][0]["metadata"]["name"], "b");
        assert!(rest["metadata"].get("continue").is_none());
        let path = format!("{CONFIG_MAPS}/a");
        let gone = fixture
            .ask(request("DELETE", &path, Bytes::new()))
            .await
            .json();
        assert_eq!(
            gone["details"],
            json!({"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]})
        );
        let missing = fixture.get(&path).await.failure();
        assert_eq!(missing, (404, "configmaps \"a\" not found".to_owned()));
    }
}

#[tokio::test]
async fn wrong_paths_and_methods_are_told_apart() {
    let fixture = Fixture::start(false).await;
    let unknown = fixture
        .get("/api/v1/namespaces/default/bogus")
        .await
        .failure();
    assert_eq!(
        unknown,
        (
            404,
            "the server could not find the requested resource".to_owned()
        )
    );
    for path in [
        "/api/v2/things",
        "/apis/apps/v9",
        "/apis/apps/v9/things",
        "/apis/batch/v1beta1/cronjobs",
        "/version/x",
    ] {
        assert_eq!(fixture.get(path).await.failure(), unknown, "{path}");
    }
    let nowhere = fixture.get("/apis/nope.example.com/v1/things").await;
    assert_eq!(nowhere.text(), "404 page not found\n");
    let put = fixture
        .ask(request("PUT", CONFIG_MAPS, Bytes::new()))
        .await
        .failure();
    assert_eq!(
        put,
        (
            405,
            "the server does not allow this method on the requested resource".to_owned()
        )
    );
    assert_eq!(fixture.get("/api/v1/configmaps/a").await.head.status, 404);
    assert_eq!(
        fixture
            .get("/api/v1/namespaces/default/nodes")
            .await
            .head
            .status,
        404
    );
}

/// kube-apiserver looks at the method of some documents alone.
#[tokio::test]
async fn methods_other_than_get_are_answered_where_kube_apiserver_does() {
    let fixture = Fixture::start(false).await;
    let definition = json!({"metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = fixture.post(definitions, definition).await;
    assert_eq!(created.head.status, 201);
    fixture.until_served("/apis/example.com/v1/foos").await;
    for (path, head, post) in [
        ("/", 200, 200),
        ("/api", 405, 405),
        ("/api/v1", 405, 405),
        ("/apis", 200, 200),
        ("/apis/apps", 200, 200),
        ("/apis/apps/v1", 405, 405),
        ("/apis/example.com/v1", 200, 200),
        ("/apis/example.com/v1/foos", 200, 400),
        ("/api/v1/namespaces", 405, 400),
        ("/api/v1/namespaces/default", 405, 405),
        ("/api/v1/namespaces/default/pods/p/log", 405, 405),
        ("/api/v1/nope", 404, 404),
        ("/version", 405, 405),
        ("/statusz", 200, 200),
        ("/flagz", 200, 200),
    ] {
        for (method, status) in [("HEAD", head), ("POST", post)] {
            let answer = fixture.ask(request(method, path, Bytes::new())).await;
            assert_eq!(answer.head.status, status, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn forms_and_encodings_follow_the_accept_headers() {
    let fixture = Fixture::start(true).await;
    fixture
        .config_map("a", json!({"k": "x".repeat(200_000)}))
        .await;
    let with = |name: http::HeaderName, value: &str| {
        let mut request = request("GET", CONFIG_MAPS, Bytes::new());
        request
            .headers_mut()
            .insert(name, value.parse().expect("a header"));
        request
    };
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = fixture.ask(with(ACCEPT, partial)).await.json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list["items"][0].get("data").is_none());
    // Partial metadata of no objects is null, and no objects are an empty list.
    for (form, items, pages) in [
        (
            "application/json",
            "\"items\":[]}\n",
            "?labelSelector=a%3Db",
        ),
        (partial, "\"items\":null}\n", "?labelSelector=a%3Db"),
        (partial, "\"items\":null}\n", "?labelSelector=a%3Db&limit=1"),
    ] {
        let path = format!("{CONFIG_MAPS}{pages}");
        let mut request = request("GET", &path, Bytes::new());
        let headers = request.headers_mut();
        headers.insert(ACCEPT, form.parse().expect("a header"));
        let empty = fixture.ask(request).await.text();
        assert!(empty.ends_with(items), "{form}: {empty}");
    }
    let yaml = fixture.ask(with(ACCEPT, "application/yaml")).await;
    assert!(
        yaml.text().starts_with("apiVersion: v1\nitems:\n- data:\n"),
        "{}",
        &yaml.text()[..80]
    );
    let refused = fixture.ask(with(ACCEPT, "application/xml")).await;
    assert_eq!(refused.head.status, 406);
    assert!(refused.text().starts_with("{\n  \"kind\": \"Status\""));
    let zipped = fixture.ask(with(ACCEPT_ENCODING, "gzip")).await;
    assert_eq!(zipped.head.headers["content-encoding"], "gzip");
    assert_eq!(zipped.head.headers["vary"], "Accept-Encoding");
    let list: Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(&zipped.body[..])).expect("a list");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_watch_shows_the_state_then_its_end_then_changes() {
    let fixture = Fixture::start(true).await;
    let created = fixture.config_map("a", json!({"k": "v"})).await;
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true\
                 &resourceVersionMatch=NotOlderThan";
    let watch = request("GET", &format!("{CONFIG_MAPS}?{query}"), Bytes::new());
    let response = fixture.send(watch).await;
    let read = frames(response, |frames| {
        frames.iter().any(|it| it["type"] == "MODIFIED")
    });
    let change = async {
        let path = format!("{CONFIG_MAPS}/a");
        let patch = json!({"data": {"k": "w"}});
        fixture.patch(&path, "merge-patch+json", patch).await.json()
    };
    let (frames, changed) = tokio::join!(read, change);
    assert_eq!(frames[0], json!({"type": "ADDED", "object": created}));
    assert_eq!(frames[1]["type"], "BOOKMARK");
    let object = &frames[1]["object"];
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    assert_eq!(
        object["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(frames[2], json!({"type": "MODIFIED", "object": changed}));
    let running = fixture.metrics().await;
    assert!(
        running.contains(
            "apiserver_watch_events_total{group=\"\",version=\"v1\",resource=\"configmaps\"} 3"
        ),
        "{running}"
    );
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout_and_errors_come_in_band() {
    let fixture = Fixture::start(true).await;
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    let response = fixture.send(request("GET", &path, Bytes::new())).await;
    assert!(frames(response, |_| false).await.is_empty());
    let future = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                  &resourceVersion=999999999";
    let path = format!("{CONFIG_MAPS}?{future}");
    let response = fixture.send(request("GET", &path, Bytes::new())).await;
    let frames = frames(response, |_| false).await;
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0]["type"], "ERROR");
    assert_eq!(frames[0]["object"]["code"], 504);
    let bogus = fixture
        .get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=abc"))
        .await;
    assert_eq!(bogus.failure().0, 500);
}

#[tokio::test]
async fn patches_of_all_kinds_change_the_object() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({"k": "v"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let patch = json!([{"op": "add", "path": "/data/x", "value": "1"}]);
    let patched = fixture.patch(&path, "json-patch+json", patch).await.json();
    assert_eq!(patched["data"], json!({"k": "v", "x": "1"}));
    let patch = json!({"data": {"k": null}});
    let patched = fixture
        .patch(&path, "strategic-merge-patch+json", patch)
        .await
        .json();
    assert_eq!(patched["data"], json!({"x": "1"}));
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"q": "1"}});
    let refused = fixture
        .patch(&path, "merge-patch+json", stale)
        .await
        .failure();
    assert_eq!(refused.0, 409);
    let failing = json!([{"op": "test", "path": "/data/x", "value": "2"}]);
    let refused = fixture
        .patch(&path, "json-patch+json", failing)
        .await
        .failure();
    let words = "the server rejected our request due to an error in our request";
    assert_eq!(refused, (422, words.to_owned()));
    assert_eq!(
        fixture.patch(&path, "json", json!({})).await.failure().0,
        415
    );
    let missing = format!("{CONFIG_MAPS}/nope");
    let refused = fixture
        .patch(&missing, "merge-patch+json", json!({}))
        .await
        .failure();
    assert_eq!(refused.0, 404);
}

#[tokio::test]
async fn racing_patches_are_all_kept() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let writes = (0..20).map(|n| {
        let mut data = serde_json::Map::new();
        data.insert(format!("k{n}"), json!("v"));
        fixture.patch(&path, "merge-patch+json", json!({"data": data}))
    });
    for answer in futures::future::join_all(writes).await {
        assert_eq!(answer.head.status, StatusCode::OK, "{}", answer.text());
    }
    let object = fixture.get(&path).await.json();
    assert_eq!(
        object["data"].as_object().map(serde_json::Map::len),
        Some(20)
    );
}

#[tokio::test]
async fn replacing_checks_name_version_and_uid() {
    let fixture = Fixture::start(true).await;
    let created = fixture.config_map("a", json!({"k": "v"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let put = |object: &Value| fixture.ask(request("PUT", &path, object.to_string().into()));
    let other = json!({"metadata": {"name": "b"}});
    assert_eq!(
        put(&other).await.failure(),
        (
            400,
            "the name of the object (b) does not match the name on the URL (a)".to_owned()
        )
    );
    let mut next = created.clone();
    next["data"]["k"] = json!("w");
    assert_eq!(put(&next).await.json()["data"]["k"], "w");
    assert_eq!(put(&next).await.failure().0, 409);
    let foreign = json!({"metadata": {"name": "a", "uid": "11111111-2222-3333-4444-555555555555"}});
    let (code, message) = put(&foreign).await.failure();
    assert_eq!(code, 409);
    assert!(message.contains("Precondition failed: UID"), "{message}");
}

#[tokio::test]
async fn discovery_is_cached_by_its_etag() {
    let fixture = Fixture::start(false).await;
    let mut ask = request("GET", "/apis", Bytes::new());
    let accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    ask.headers_mut()
        .insert(ACCEPT, accept.parse().expect("a header"));
    let answer = fixture.ask(ask.clone()).await;
    assert_eq!(answer.json()["kind"], "APIGroupDiscoveryList");
    assert_eq!(answer.head.headers["vary"], "Accept");
    let etag = answer.head.headers["etag"].clone();
    ask.headers_mut().insert(IF_NONE_MATCH, etag);
    let again = fixture.ask(ask).await;
    assert_eq!(again.head.status, StatusCode::NOT_MODIFIED);
    assert!(again.body.is_empty());
    let core = fixture.get("/api/v1").await.json();
    assert_eq!(core["kind"], "APIResourceList");
    let root = fixture.get("/").await.json();
    let paths = root["paths"].as_array().expect("paths");
    for path in ["/apis/apps/v1", "/healthz", "/statusz", "/flagz"] {
        assert!(paths.contains(&json!(path)), "{path}");
    }
    let status = fixture.get("/statusz").await.text();
    assert!(status.contains("/statusz /version\n"), "{status}");
    let flags = fixture.get("/flagz").await.text();
    assert!(flags.contains("\nwatch-cache false\n"), "{flags}");
    assert_eq!(fixture.get("/version").await.json()["minor"], "36");
}

#[tokio::test]
async fn bad_bodies_change_nothing() {
    let fixture = Fixture::start(false).await;
    let post = |body: &str| fixture.ask(request("POST", CONFIG_MAPS, body.to_owned().into()));
    for body in [
        "hello",
        "",
        "{\"metadata\":",
        "[]",
        "{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}",
    ] {
        assert_eq!(post(body).await.failure().0, 400, "{body}");
    }
    let huge = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(3_200_000));
    assert_eq!(
        post(&huge).await.failure(),
        (413, "Request entity too large: limit is 3145728".to_owned())
    );
    let list = fixture.get(CONFIG_MAPS).await.json();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn users_learn_who_they_are_and_what_they_may_do() {
    let fixture = Fixture::start(false).await;
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let answer = fixture.post(who, review).await;
    answer.has_created();
    let answer = answer.json();
    let info = answer["status"]["userInfo"].as_object().expect("a user");
    let id = &info["extra"]["authentication.kubernetes.io/credential-id"][0];
    let id = id.as_str().expect("an id of the certificate");
    assert!(id.starts_with("X509SHA256="), "{id}");
    assert_eq!(info["username"], "kubernetes-admin");
    assert_eq!(
        info["groups"],
        json!(["system:masters", "system:authenticated"])
    );
    assert_eq!(info.len(), 3);
    assert!(answer["metadata"]["creationTimestamp"].is_string());
    let may = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let spec = json!({"resourceAttributes": {"verb": "list", "resource": "pods"}});
    let review = json!({"spec": spec, "status": {"allowed": false, "reason": "made up"}});
    let answer = fixture.post(may, review).await.json();
    assert_eq!(answer["status"], json!({"allowed": true}));
    assert_eq!(answer["spec"], spec);
    assert_eq!(
        answer["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:resourceAttributes": {".": {}, "f:resource": {}, "f:verb": {}}},
            "f:status": {"f:reason": {}}})
    );
    let neither = fixture.post(may, json!({"spec": {}})).await.failure();
    assert_eq!(neither.0, 422);
    assert!(neither.1.contains("exactly one of"), "{}", neither.1);
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let answer = fixture
        .post(rules, json!({"spec": {"namespace": "default"}}))
        .await
        .json();
    assert_eq!(answer["status"]["resourceRules"][0]["verbs"], json!(["*"]));
    assert_eq!(fixture.post(rules, json!({})).await.failure().0, 400);
    assert_eq!(fixture.get(who).await.failure().0, 405);
}

/// A request that speaks protobuf.
fn in_protobuf(method: &str, path: &str, accept: &str, body: Vec<u8>) -> Request<Bytes> {
    let mut request = request(method, path, body.into());
    let headers = request.headers_mut();
    let protobuf = http::HeaderValue::from_static("application/vnd.kubernetes.protobuf");
    headers.insert(CONTENT_TYPE, protobuf);
    headers.insert(ACCEPT, accept.parse().expect("a header"));
    request
}

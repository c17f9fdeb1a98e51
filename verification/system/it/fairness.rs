//! One user's requests do not keep another's out.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::requests;
use crate::support::server::Server;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// Large requests that one user has under way.
const FLOOD: usize = 20;

/// A server with the token users `jane` and `joe`, and a kubelet.
struct Fixture {
    _server: Server,
    admin: kube::Client,
    jane: kube::Client,
    joe: kube::Client,
    node: kube::Client,
    _tokens: tempfile::TempDir,
}

impl Fixture {
    async fn start(flags: &[&str]) -> Self {
        let tokens = tempfile::tempdir().expect("a folder");
        let path = tokens.path().join("tokens.csv");
        let users =
            "jane-token,jane,1\njoe-token,joe,2\nnode-token,system:node:one,3,system:nodes\n";
        fs::write(&path, users).expect("tokens");
        let path = path.display().to_string();
        let users = [
            "--token-auth-file",
            &path,
            "--authorization-mode=AlwaysAllow",
        ];
        let flags = [flags, &users].concat();
        let (server, admin) = Server::ready(&flags).await;
        Self {
            jane: server.client_with_token("jane-token").await,
            joe: server.client_with_token("joe-token").await,
            node: server.client_with_token("node-token").await,
            admin,
            _server: server,
            _tokens: tokens,
        }
    }
}

/// The answer, of which nothing but the head has been read.
async fn send(client: &kube::Client, path: &str) -> Response<Body> {
    client.send(requests::get(path)).await.expect("an answer")
}

async fn create(client: &kube::Client, path: &str, object: &Value) -> Value {
    let created = client
        .request(requests::request("POST", path, object))
        .await;
    created.expect("created")
}

fn header(response: &Response<Body>, name: &str) -> String {
    let value = response.headers().get(name);
    value
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_flood_of_slow_lists_of_one_user_leaves_room_for_another() {
    let flags = [
        "--max-requests-inflight=4",
        "--max-mutating-requests-inflight=2",
        // Longer than the whole test: what is served to a client that does not read stays in progress, and a fourth of
        // it, the time that a request may wait, is longer than the deadline.
        "--request-timeout=10m",
    ];
    let fixture = Fixture::start(&flags).await;
    // More than all buffers on the way to a client that does not read.
    for number in 0..60 {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("m{number}")}, "data": {"x": "x".repeat(500_000)}});
        create(&fixture.admin, CONFIG_MAPS, &object).await;
    }
    let flood = (0..80).map(|_| {
        let jane = fixture.jane.clone();
        tokio::spawn(async move { send(&jane, CONFIG_MAPS).await })
    });
    let mut flood: Vec<_> = flood.collect();
    // Some are being served, as far as she reads; some wait; and those for whom there is no room are refused.
    let mut answers = Vec::new();
    let refused = eventually(DEADLINE, "some are served and some refused", async || {
        for answer in flood.extract_if(.., |it| it.is_finished()) {
            answers.push(answer.await.expect("an answer"));
        }
        let codes: Vec<_> = answers.iter().map(Response::status).collect();
        let wanted = [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS];
        let all = codes.len() >= 20 && wanted.iter().all(|it| codes.contains(it));
        all.then_some(()).ok_or(codes)
    });
    refused.await;
    for _ in 0..20 {
        let path = format!("{CONFIG_MAPS}/m0");
        let answer = tokio::time::timeout(DEADLINE, send(&fixture.joe, &path)).await;
        assert_eq!(answer.expect("in time").status(), StatusCode::OK);
    }
    let metrics = requests::text(&fixture.admin, "/metrics").await;
    let of = r#"flow_schema="global-default",priority_level="global-default""#;
    for (name, at_least) in [
        (
            format!(r#"rejected_requests_total{{{of},reason="queue-full"}}"#),
            1.0,
        ),
        (format!("dispatched_requests_total{{{of}}}"), 1.0),
        (format!("current_executing_requests{{{of}}}"), 1.0),
        (format!("current_executing_seats{{{of}}}"), 1.0),
        (format!("current_inqueue_requests{{{of}}}"), 0.0),
        (
            r#"nominal_limit_seats{priority_level="global-default"}"#.to_owned(),
            1.0,
        ),
    ] {
        let name = format!("apiserver_flowcontrol_{name} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        let value: f64 = line.expect(&name).parse().expect("a number");
        assert!(value >= at_least, "{name}{value}");
    }
    for answer in answers {
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            assert_eq!(header(&answer, "retry-after"), "1");
        }
    }
}

/// Writes of 20 KB, which move to the threads for large work: the path, the media type of a patch, the body.
fn writes_of_20_kilobytes() -> [(&'static str, Value); 2] {
    let images =
        (0..150).map(|number| json!({"names": [format!("image-{number}-{}", "0".repeat(90))]}));
    let images: Vec<_> = images.collect();
    [
        (
            "/api/v1/nodes/one/status",
            json!({"status": {"images": images}}),
        ),
        (
            "/api/v1/namespaces/default/configmaps/m",
            json!({"data": {"x": "x".repeat(20_000)}}),
        ),
    ]
}

async fn patch(client: &kube::Client, path: &str, patch: &Value) {
    let answer = client.request::<Value>(requests::request("PATCH", path, patch));
    let answer = tokio::time::timeout(DEADLINE, answer).await;
    answer.expect("in time").expect("it is not refused");
}

/// A write of others is answered before most of what a user has sent before it.
#[tokio::test]
async fn a_flood_of_large_bodies_of_one_user_leaves_room_for_others() {
    let fixture = Fixture::start(&["--storage-backend=memory"]).await;
    let metadata = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    create(&fixture.admin, "/api/v1/nodes", &metadata("Node", "one")).await;
    create(&fixture.admin, CONFIG_MAPS, &metadata("ConfigMap", "m")).await;
    let body = format!(r#"{{"unknown":[{{"":0}}{}]}}"#, r#",{"":0}"#.repeat(20_000));
    let answers = Arc::new(AtomicUsize::new(0));
    let mut flood = JoinSet::new();
    for _ in 0..FLOOD {
        let (jane, body, answers) = (fixture.jane.clone(), body.clone(), Arc::clone(&answers));
        flood.spawn(async move {
            loop {
                let request = Request::post(format!("{CONFIG_MAPS}?dryRun=All"));
                let request = request.header("content-type", "application/json");
                let request = request.body(Body::from(body.clone().into_bytes()));
                let answer = jane.send(request.expect("a request")).await;
                answer.expect("an answer");
                answers.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let waiting = async || {
        let metrics = requests::text(&fixture.admin, "/metrics").await;
        let mut lines = metrics.lines();
        let value = lines.find_map(|it| it.strip_prefix("ringwatch_large_work_requests "));
        value.expect("told").parse::<usize>().expect("a number")
    };
    let [status, config_map] = writes_of_20_kilobytes();
    for (client, (path, body)) in [
        (&fixture.node, &status),
        (&fixture.joe, &config_map),
        (&fixture.admin, &config_map),
    ] {
        eventually(DEADLINE, "many of hers wait", async || {
            let waiting = waiting().await;
            (waiting > FLOOD * 3 / 4).then_some(()).ok_or(waiting)
        })
        .await;
        let before = answers.load(Ordering::Relaxed);
        patch(client, path, body).await;
        let passed = answers.load(Ordering::Relaxed) - before;
        assert!(passed < FLOOD / 2, "{passed} of hers came before {path}");
    }
}

/// Reviews have no reason to be large: such ones are refused before they are read, whoever sends them.
#[tokio::test]
async fn large_reviews_are_refused() {
    let fixture = Fixture::start(&["--storage-backend=memory"]).await;
    let authorization = "/apis/authorization.k8s.io/v1";
    let body = "x".repeat(128 * 1024 + 1);
    for path in [
        format!("{authorization}/selfsubjectaccessreviews"),
        format!("{authorization}/subjectaccessreviews"),
        format!("{authorization}/selfsubjectrulesreviews"),
        format!("{authorization}/namespaces/default/localsubjectaccessreviews"),
        "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(),
        "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(),
        "/api/v1/namespaces/default/pods/p/eviction".to_owned(),
        "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned(),
    ] {
        let request = Request::post(&path).header("content-type", "application/json");
        let request = request.body(body.clone().into_bytes()).expect("a request");
        let refused = fixture.admin.request::<Value>(request).await;
        let Err(kube::Error::Api(status)) = refused else {
            panic!("{path}: {refused:?}");
        };
        assert_eq!(
            (status.code, &*status.reason),
            (413, "RequestEntityTooLarge")
        );
        assert_eq!(status.message, "Request entity too large: limit is 131072");
    }
}

#[tokio::test]
async fn a_user_has_so_many_watches_and_no_more() {
    let fixture = Fixture::start(&["--max-watches-per-user=3"]).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut standing = Vec::new();
    for _ in 0..3 {
        let watch = send(&fixture.jane, &path).await;
        assert_eq!(watch.status(), StatusCode::OK);
        standing.push(watch);
    }
    let refused = send(&fixture.jane, &path).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&refused, "retry-after"), "1");
    let list = send(&fixture.jane, CONFIG_MAPS).await;
    assert_eq!(list.status(), StatusCode::OK, "it is no watch");
    for client in [&fixture.joe, &fixture.admin] {
        let watch = send(client, &path).await;
        assert_eq!(watch.status(), StatusCode::OK);
    }
    standing.pop();
    let free = eventually(DEADLINE, "the place is free", async || {
        send(&fixture.jane, &path).await.status() == StatusCode::OK
    });
    free.await;
}

#[tokio::test]
async fn answers_tell_by_which_stored_schema_requests_wait() {
    const SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";
    const LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";
    let fixture = Fixture::start(&[]).await;
    let uid = async |path: &str| {
        let object: Value = fixture
            .admin
            .request(requests::get(path))
            .await
            .expect("there");
        object["metadata"]["uid"]
            .as_str()
            .expect("a uid")
            .to_owned()
    };
    let levels = SCHEMAS.replace("flowschemas", "prioritylevelconfigurations");
    let (usual, usual_level) = (
        uid(&format!("{SCHEMAS}/global-default")).await,
        uid(&format!("{levels}/global-default")).await,
    );
    let until = async |client: &kube::Client, wanted: [&str; 2]| {
        let what = format!("requests wait by {wanted:?}");
        eventually(DEADLINE, what, async || {
            let answer = send(client, CONFIG_MAPS).await;
            let found = [header(&answer, SCHEMA), header(&answer, LEVEL)];
            (found == wanted).then_some(()).ok_or(found)
        })
        .await;
    };
    until(&fixture.jane, [&usual, &usual_level]).await;
    let mine = json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": {"name": "janes"}, "spec": {"matchingPrecedence": 50,
            "priorityLevelConfiguration": {"name": "workload-low"},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": "jane"}}],
                "resourceRules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"],
                    "namespaces": ["*"]}]}]}});
    let mine = create(&fixture.admin, SCHEMAS, &mine).await;
    let mine = mine["metadata"]["uid"].as_str().expect("a uid");
    let low = uid(&format!("{levels}/workload-low")).await;
    until(&fixture.jane, [mine, &low]).await;
    until(&fixture.joe, [&usual, &usual_level]).await;
    let exempt = [
        uid(&format!("{SCHEMAS}/exempt")).await,
        uid(&format!("{levels}/exempt")).await,
    ];
    until(&fixture.admin, [&exempt[0], &exempt[1]]).await;
}

//! Profiles and the log level of a running server, the lines for slow requests, and SIGHUP.

use std::io::Read;

use flate2::read::GzDecoder;
use http::Request;
use kube::Client;
use kube::client::Body;
use prost::Message;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::json;

use crate::support::requests;
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

const PROFILE: &str = "/debug/pprof/profile?seconds=1";
const FLAGS: &str = "/debug/flags";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A profile, as far as it is looked at (`profile.proto` of google/pprof).
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(bytes = "vec", repeated, tag = "2")]
    samples: Vec<Vec<u8>>,
    #[prost(string, repeated, tag = "6")]
    strings: Vec<String>,
}

async fn ask(client: &Client, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
    let answer = requests::send(client, request).await;
    (answer.status().as_u16(), answer.into_body().into())
}

async fn text(client: &Client, method: &str, path: &str, body: &str) -> (u16, String) {
    let (status, body) = ask(client, method, path, body).await;
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Takes a profile while the server has something to do.
async fn busy_profile(client: &Client) -> Profile {
    let profile = ask(client, "GET", PROFILE, "");
    tokio::pin!(profile);
    let (status, body) = loop {
        tokio::select! {
            profile = &mut profile => break profile,
            _ = ask(client, "GET", "/openapi/v2", "") => {}
        }
    };
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let mut bytes = Vec::new();
    GzDecoder::new(&*body).read_to_end(&mut bytes).unwrap();
    Profile::decode(&*bytes).unwrap()
}

#[tokio::test]
async fn a_profile_of_a_busy_server_has_its_functions() {
    let (server, client) = Server::ready(&["--storage-backend=memory"]).await;
    // The server may get next to nothing of the processors in a second.
    let sampled = eventually(DEADLINE, "a profile with the runtime", async || {
        let Profile { samples, strings } = busy_profile(&client).await;
        let has_runtime = strings.iter().any(|it| it.contains("tokio::"));
        let sampled = !samples.is_empty() && has_runtime;
        sampled.then_some(()).ok_or(strings)
    });
    sampled.await;
    let (status, text) = text(&client, "GET", "/debug/pprof/cmdline", "").await;
    assert_eq!(status, 200);
    assert!(text.contains("serve\0"), "{text}");
    // Who has no right to it gets nothing.
    let stranger = server.client_without_credentials().await;
    for (method, path) in [("GET", PROFILE), ("PUT", "/debug/flags/v")] {
        assert_eq!(ask(&stranger, method, path, "").await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn the_log_level_is_changed_while_a_server_runs() {
    let (server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let asked = |path: &str| {
        let log = server.log();
        log.lines()
            .any(|line| line.contains("DEBUG") && line.contains(path))
    };
    let one = "/api/v1/namespaces/default/pods/one";
    ask(&client, "GET", one, "").await;
    let answer = text(&client, "PUT", &format!("{FLAGS}/v"), "4").await;
    assert_eq!(
        answer,
        (
            200,
            "successfully set klog.logging.verbosity to 4\n".to_owned()
        )
    );
    let two = "/api/v1/namespaces/default/pods/two";
    ask(&client, "GET", two, "").await;
    let (status, message) = text(&client, "PUT", &format!("{FLAGS}/log"), "warn,a=b=c").await;
    assert_eq!(status, 400, "{message}");
    let directives = "off,ringwatch_load=info";
    let (status, _) = text(&client, "PUT", &format!("{FLAGS}/log"), directives).await;
    assert_eq!(status, 200);
    let shown = text(&client, "GET", &format!("{FLAGS}/log"), "").await;
    assert_eq!(shown, (200, format!("{directives}\n")));
    let three = "/api/v1/namespaces/default/pods/three";
    ask(&client, "GET", three, "").await;
    assert_eq!([one, two, three].map(asked), [false, true, false]);
}

#[tokio::test]
async fn nothing_is_served_without_profiling() {
    let (_server, client) = Server::ready(&["--storage-backend=memory", "--profiling=false"]).await;
    for (method, path) in [("GET", "/debug/pprof/"), ("PUT", "/debug/flags/v")] {
        assert_eq!(ask(&client, method, path, "4").await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn sighup_ends_nothing() {
    let (server, client) = Server::ready(&["--storage-backend=memory", "-v=1"]).await;
    server.hang_up();
    server
        .logged("SIGHUP: files that are followed are read now")
        .await;
    assert_eq!(ask(&client, "GET", "/readyz", "").await.0, 200);
}

#[tokio::test]
async fn a_slow_request_is_logged_with_the_step_that_took_long() {
    let webhook = Webhook::start(|_, _| Reply::Hang).await;
    let (server, client) = Server::ready(&["--storage-backend=memory", "-v=1"]).await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]});
    let hook = json!({"name": "slow.example.com", "clientConfig": webhook.client_config("/"),
        "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore", "timeoutSeconds": 1});
    let configuration = json!({"metadata": {"name": "slow"}, "webhooks": [hook]});
    let created = text(&client, "POST", HOOKS, &configuration.to_string()).await;
    assert_eq!(created.0, 201, "{created:?}");
    let object = json!({"metadata": {"generateName": "number-"}}).to_string();
    let asked = eventually(DEADLINE, "the webhook is asked", async || {
        let created = text(&client, "POST", CONFIG_MAPS, &object).await;
        assert_eq!(created.0, 201, "{created:?}");
        !webhook.take("/").is_empty()
    });
    asked.await;
    let slow = "---\"Call mutating webhook\" ";
    server.logged(slow).await;
    let log = server.log();
    let line = log.lines().find(|it| it.contains(slow));
    let line = line.unwrap();
    for words in [
        "Trace: \"Create\" ",
        "resource:configmaps",
        "verb:POST",
        "(total time: ",
    ] {
        assert!(line.contains(words), "{line}");
    }
}

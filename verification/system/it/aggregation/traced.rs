//! The trace of a request, which the server of an aggregated API continues.

use std::fs;

use serde_json::json;

use super::stand_in::{Reply, StandIn};
use super::{Front, Proxy, encoded};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn respond(path: &str) -> Reply {
    let list = r#"{"groupVersion": "odd/v1", "resources": [{"name": "things", "kind": "Thing"}]}"#;
    match path {
        "/apis/odd/v1" => Reply::Json(list.to_owned()),
        _ => Reply::Json("{}".to_owned()),
    }
}

#[tokio::test]
async fn the_server_of_an_aggregated_api_continues_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tracing.yaml");
    // Nothing listens there, which does not matter.
    let config = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:1\n";
    fs::write(&file, config).expect("written");
    let flag = format!("--tracing-config-file={}", file.display());
    let front = Front::start(&Proxy::new(folder.path()), &[vec![flag]]).await;
    let mut remote = StandIn::start(folder.path(), "odd", respond).await;
    front.local_service("odd").await;
    let trust = json!({"caBundle": encoded(&remote.pem)});
    front.aggregate("odd", "odd", remote.port, &trust).await;
    front.condition("odd", "True", "Passed").await;
    let request = "GET /apis/odd/v1/things/traced";
    let parent = format!("Traceparent: 00-{TRACE}-{CALLER}-01");
    // The condition is in the store before the proxy has followed it.
    front
        .answers("secret", request, &parent, |it| it.status == 200)
        .await;
    let mut seen = None;
    while let Ok(head) = remote.heads.try_recv() {
        if head.starts_with(request) {
            seen = Some(head.to_lowercase());
        }
    }
    let head = seen.expect("the request");
    let parents: Vec<&str> = head
        .lines()
        .filter_map(|line| line.strip_prefix("traceparent: "))
        .collect();
    assert_eq!(parents.len(), 1, "{head}");
    assert!(parents[0].starts_with(&format!("00-{TRACE}-")), "{head}");
    assert!(
        parents[0].ends_with("-01") && !parents[0].contains(CALLER),
        "{head}"
    );
}

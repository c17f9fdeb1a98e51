//! A server in this process, as the tests of an operator have it, and kube-rs.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use ringwatch_server::InProcessServer;
use serde_json::json;

use crate::support::in_process::client;

#[tokio::test]
async fn kube_rs_works_on_servers_in_this_process() {
    let servers = [
        InProcessServer::start().await.expect("a server"),
        InProcessServer::start().await.expect("another server"),
    ];
    let hello: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "hello"}})).expect("an object");
    let one: Api<ConfigMap> = Api::default_namespaced(client(&servers[0]).await);
    one.create(&PostParams::default(), &hello)
        .await
        .expect("created");
    let other: Api<ConfigMap> = Api::default_namespaced(client(&servers[1]).await);
    assert!(other.get_opt("hello").await.expect("an answer").is_none());
    let [first, _second] = servers;
    let url = first.url().trim_start_matches("https://").to_owned();
    drop(first);
    assert!(
        std::net::TcpStream::connect(&url).is_err(),
        "{url} is closed"
    );
    one.get("hello").await.expect_err("nobody answers");
}

#[tokio::test]
async fn a_wrong_flag_of_a_server_in_this_process_is_refused() {
    let started = InProcessServer::builder()
        .flag("--authorization-mode=Nobody")
        .start()
        .await;
    let error = started.expect_err("refused").to_string();
    assert!(error.contains("Nobody") && !error.contains('\n'), "{error}");
}

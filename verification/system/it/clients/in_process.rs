//! A server in this process, as the tests of an operator have it, and kube-rs.

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, PostParams};
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch_server::InProcessServer;
use ringwatch_testing::reserved_port::ReservedPort;
use serde_json::json;

use crate::support::in_process::{client, client_with};

#[tokio::test]
async fn kube_rs_works_on_servers_in_this_process() {
    // So that nobody else listens there later.
    let port = ReservedPort::new();
    let first = InProcessServer::builder().flag(format!("--secure-port={}", port.number()));
    let servers = [
        first.start().await.expect("a server"),
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

#[tokio::test]
async fn flags_of_a_server_in_this_process_replace_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = InProcessServer::builder()
        .flag("--storage-backend=embedded")
        .flag(format!("--data-dir={}", folder.path().display()))
        .flag("--bind-address=127.0.0.2")
        .flag("--secure-port=1")
        .flag("--secure-port=0")
        .start()
        .await
        .expect("a server");
    assert!(
        server.url().starts_with("https://127.0.0.2:"),
        "{}",
        server.url()
    );
    let kubeconfig = std::fs::read_to_string(folder.path().join("kubeconfig"));
    assert_eq!(kubeconfig.expect("a kubeconfig"), server.kubeconfig());
    let key = folder.path().join("pki/sa.key");
    assert!(key.exists(), "tokens are as good after the next start");
    drop(server);
    InProcessServer::builder()
        .flag(format!(
            "--service-account-signing-key-file={}",
            key.display()
        ))
        .start()
        .await
        .expect("a server with a key of the caller's");
}

#[tokio::test]
async fn servers_in_this_process_with_one_store_take_each_others_tokens() {
    let store: Arc<dyn Backend> = Arc::new(Embedded::in_memory(Clock::real()));
    let builder = InProcessServer::builder().backend(store);
    let one = builder.clone().start().await.expect("a server");
    let other = builder.start().await.expect("another server");
    let admin = client(&one).await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(admin);
    let robot = serde_json::from_value(json!({"metadata": {"name": "robot"}})).expect("an account");
    accounts
        .create(&PostParams::default(), &robot)
        .await
        .expect("created");
    let token: TokenRequest =
        serde_json::from_value(json!({"spec": {"audiences": []}})).expect("a request");
    let token = accounts
        .create_token_request("robot", &PostParams::default(), &token)
        .await;
    let token = token.expect("a token").status.expect("a status").token;
    let robot = client_with(&other, |user| {
        user.client_certificate_data = None;
        user.client_key_data = None;
        user.token = token.map(Into::into);
    });
    let reviews: Api<SelfSubjectReview> = Api::all(robot.await);
    let review = serde_json::from_value(json!({"metadata": {}})).expect("a review");
    let review = reviews.create(&PostParams::default(), &review).await;
    let user = review.expect("a review").status.and_then(|it| it.user_info);
    let name = user.and_then(|it| it.username);
    assert_eq!(name.as_deref(), Some("system:serviceaccount:default:robot"));
}

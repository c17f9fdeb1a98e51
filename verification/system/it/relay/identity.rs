//! Users of a relay: by tokens that the upstream knows, by certificates, by front proxies, and without credentials.
//! Nobody sees through the relay what the upstream would not show.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::Client;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::support::*;
use crate::certificates::Authority;
use crate::support::server::Server;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ROBOT: &str = "system:serviceaccount:default:robot";
const ANY: &str = "/api/v1/namespaces/default/configmaps?resourceVersion=0";

/// Creates the service account `robot` and returns a token of it.
async fn robot_token(pair: &Pair) -> String {
    robot_token_with(pair, json!({})).await
}

/// The same with what the request for the token says.
async fn robot_token_with(pair: &Pair, spec: Value) -> String {
    pair.create(ACCOUNTS, &json!({"metadata": {"name": "robot"}}))
        .await;
    let path = format!("{ACCOUNTS}/robot/token");
    let made = pair.create(&path, &json!({"spec": spec})).await;
    made["status"]["token"].as_str().unwrap().to_owned()
}

/// Waits until the upstream answers with a status.
async fn until(client: &Client, path: &str, status: u16) {
    eventually(DEADLINE, &format!("{path} is {status}"), async || {
        get(client, path).await.status == status
    })
    .await;
}

#[tokio::test]
async fn an_account_reads_from_the_cache_what_it_may_and_nothing_else() {
    let pair = Pair::start(&[], &["--cache-secrets"]).await;
    let token = robot_token(&pair).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    pair.create(
        "/api/v1/namespaces/default/secrets",
        &json!({"metadata": {"name": "s"}}),
    )
    .await;
    pair.grant(ROBOT, Some("default"), &may_read()).await;
    let direct = pair.upstream.client_with_token(&token).await;
    let relayed = pair.relay.client_with_token(&token).await;
    until(&direct, CONFIG_MAPS, 200).await;
    // Secrets are in the cache, since somebody else has read them.
    let secrets = "/api/v1/namespaces/default/secrets?resourceVersion=0";
    pair.until_cached(&pair.relayed, secrets, "secrets").await;
    until_listed(&pair.relayed, secrets, &["s"]).await;

    until_listed(&relayed, ANY, &["a"]).await;
    pair.until_cached(&relayed, ANY, "configmaps").await;
    let asked = pair.upstream_requests("LIST", "configmaps").await;
    for _ in 0..10 {
        assert_eq!(get(&relayed, ANY).await.names(), ["a"]);
        let one = get(&relayed, &format!("{CONFIG_MAPS}/a?resourceVersion=0")).await;
        assert_eq!(one.json()["data"]["k"], "v");
    }
    let again = pair.upstream_requests("LIST", "configmaps").await;
    // The cache's own check of the history is one at most.
    assert!(again - asked < 1.5, "{} lists more", again - asked);

    for path in [
        secrets,
        "/api/v1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default/secrets/s?resourceVersion=0",
        "/api/v1/namespaces/default/secrets?watch=1",
        "/api/v1/configmaps?resourceVersion=0",
        "/api/v1/configmaps?watch=1&resourceVersion=0",
        "/api/v1/namespaces/kube-system/configmaps?resourceVersion=0",
        "/api/v1/namespaces/kube-system/configmaps?watch=1",
        "/api/v1/watch/configmaps",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication?resourceVersion=0",
    ] {
        let through = get(&relayed, path).await;
        assert_eq!(through.status, 403, "{path}: {through:?}");
        through.is_like(&get(&direct, path).await, path);
    }
}

#[tokio::test]
async fn a_right_that_is_withdrawn_lasts_as_long_as_the_cache_keeps_it() {
    let short = ["--authorization-webhook-cache-authorized-ttl=0s"];
    let pair = Pair::start(&[], &short).await;
    let long = ["--authorization-webhook-cache-authorized-ttl=1h"];
    let mut other = Server::relay(&pair.upstream.kubeconfig(), &long);
    other.client().await;
    pair.grant("ann", Some("default"), &may_read()).await;
    let direct = pair.upstream.client_with_token("ann-token").await;
    let relayed = pair.relay.client_with_token("ann-token").await;
    let kept = other.client_with_token("ann-token").await;
    until(&direct, ANY, 200).await;
    assert_eq!(get(&relayed, ANY).await.status, 200);
    assert_eq!(get(&kept, ANY).await.status, 200);
    pair.withdraw("ann").await;
    until(&direct, ANY, 403).await;
    until(&relayed, ANY, 403).await;
    assert_eq!(
        get(&kept, ANY).await.status,
        200,
        "its answer is kept for an hour"
    );
    let consistent = get(&kept, &format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(consistent.status, 403, "no answer is kept for this one");
}

#[tokio::test]
async fn a_right_that_is_given_is_noticed_after_the_time_of_refusals() {
    let flag = "--authorization-webhook-cache-unauthorized-ttl=0s";
    let pair = Pair::start(&[], &[flag]).await;
    let relayed = pair.relay.client_with_token("ann-token").await;
    assert_eq!(get(&relayed, ANY).await.status, 403);
    pair.grant("ann", Some("default"), &may_read()).await;
    until(&relayed, ANY, 200).await;
}

/// Deletes what a token of the robot relies on, and sees the token refused at both doors.
async fn revoke(pair: &Pair, token: &str, relies_on: &str) {
    pair.grant(ROBOT, Some("default"), &may_read()).await;
    let direct = pair.upstream.client_with_token(token).await;
    let relayed = pair.relay.client_with_token(token).await;
    until(&direct, ANY, 200).await;
    assert_eq!(get(&relayed, ANY).await.status, 200);
    let deleted = send(&pair.direct, "DELETE", relies_on, &[], &Value::Null).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    until(&direct, ANY, 401).await;
    until(&relayed, ANY, 401).await;
}

#[tokio::test]
async fn a_revoked_token_is_refused_after_the_time_of_its_review() {
    let pair = Pair::start(&[], &["--authentication-token-webhook-cache-ttl=1s"]).await;
    let token = robot_token(&pair).await;
    revoke(&pair, &token, &format!("{ACCOUNTS}/robot")).await;
    let never = pair.relay.client_with_token("no-such-token").await;
    assert_eq!(get(&never, ANY).await.status, 401);
    assert_eq!(get(&never, "/version").await.status, 401);
}

#[tokio::test]
async fn a_token_ends_with_the_secret_that_it_is_bound_to() {
    let pair = Pair::start(&[], &["--authentication-token-webhook-cache-ttl=1s"]).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "bound"}});
    pair.create(secrets, &secret).await;
    let bound = json!({"kind": "Secret", "apiVersion": "v1", "name": "bound"});
    let token = robot_token_with(&pair, json!({"boundObjectRef": bound})).await;
    revoke(&pair, &token, &format!("{secrets}/bound")).await;
}

#[tokio::test]
async fn a_user_with_a_certificate_is_the_same_user_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("clients");
    let file = write(folder.path(), "ca", &authority.pem);
    let flag = format!("--client-ca-file={}", file.display());
    let pair = Pair::start(&[], &[&flag]).await;
    let cat = with(&pair.relay, certified(&authority, "cat", "menders")).await;
    let me = send(&cat, "POST", WHO, &[], &json!({})).await.json();
    let me = &me["status"]["userInfo"];
    assert_eq!(me["username"], "cat");
    assert_eq!(me["groups"], json!(["menders", "system:authenticated"]));
    let refused = send(&cat, "POST", CONFIG_MAPS, &[], &config_map("a")).await;
    let words = r#"configmaps is forbidden: User "cat" cannot create resource "configmaps" in API group "" in the namespace "default""#;
    assert_eq!((refused.status, refused.message().as_str()), (403, words));

    let api_group = "certificates.k8s.io";
    let requests = format!("/apis/{api_group}/v1/certificatesigningrequests");
    let rules = json!([{"apiGroups": [api_group], "resources": ["certificatesigningrequests"],
        "verbs": ["create", "get"]}]);
    pair.grant("cat", None, &rules).await;
    let key = KeyPair::generate().unwrap();
    let asked = CertificateParams::new(Vec::new())
        .unwrap()
        .serialize_request(&key)
        .unwrap();
    let request = json!({"metadata": {"name": "r"}, "spec": {"signerName": "example.com/s",
        "usages": ["client auth"], "request": BASE64_STANDARD.encode(asked.pem().unwrap())}});
    eventually(DEADLINE, "cat may create requests", async || {
        let answer = send(&cat, "POST", &requests, &[], &request).await;
        assert!([201, 403].contains(&answer.status), "{answer:?}");
        answer.status == 201
    })
    .await;
    let stored = get(&pair.direct, &format!("{requests}/r")).await.json();
    assert_eq!(stored["spec"]["username"], "cat");
    assert_eq!(
        stored["spec"]["groups"],
        json!(["menders", "system:authenticated"])
    );
    let stranger = with(
        &pair.relay,
        certified(&Authority::new("clients"), "cat", "menders"),
    )
    .await;
    let refused = try_send(&stranger, "GET", ANY, &[], &Value::Null).await;
    let is_refused = refused.map_or(true, |answer| answer.status == 401);
    assert!(is_refused, "a certificate of another authority");
}

#[tokio::test]
async fn a_relay_that_may_not_impersonate_says_so_with_the_upstreams_words() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("clients");
    let file = write(folder.path(), "ca", &authority.pem);
    let flag = format!("--client-ca-file={}", file.display());
    let pair = Pair::start_as(&[], &[&flag], Some("relay-token")).await;
    let rules = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        may_read()[0],
    ]);
    pair.grant("relay", None, &rules).await;
    let writes = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    pair.grant("ann", Some("default"), &writes).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    let as_ann = with(&pair.relay, certified(&authority, "ann", "makers")).await;
    let token = pair.relay.client_with_token("ann-token").await;
    until(&as_ann, ANY, 200).await;
    assert_eq!(get(&as_ann, CONFIG_MAPS).await.names(), ["a"]);
    let refused = send(&as_ann, "POST", CONFIG_MAPS, &[], &config_map("b")).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(
        refused
            .message()
            .contains(r#"User "relay" cannot impersonate"#),
        "{refused:?}"
    );
    // A token is shown as it is.
    until(&token, ANY, 200).await;
    create(&token, CONFIG_MAPS, &config_map("b")).await;
}

#[tokio::test]
async fn requests_without_credentials_are_the_upstreams_to_judge() {
    for flag in ["--anonymous-auth=true", "--anonymous-auth=false"] {
        let pair = Pair::start(&[flag], &[]).await;
        let direct = pair.upstream.client_without_credentials().await;
        let relayed = pair.relay.client_without_credentials().await;
        for path in [
            "/version",
            "/apis",
            "/api/v1",
            CONFIG_MAPS,
            ANY,
            "/no/such/path",
        ] {
            let through = get(&relayed, path).await;
            through.is_like(&get(&direct, path).await, &format!("{path} with {flag}"));
        }
        let unknown = [("impersonate-x", "1")];
        let through = send(&relayed, "GET", "/version", &unknown, &Value::Null).await;
        let expected = send(&direct, "GET", "/version", &unknown, &Value::Null).await;
        through.is_like(&expected, &format!("an unknown header with {flag}"));
        let write = send(&relayed, "POST", CONFIG_MAPS, &[], &config_map("a")).await;
        let expected = send(&direct, "POST", CONFIG_MAPS, &[], &config_map("a")).await;
        write.is_like(&expected, flag);
        assert!([401, 403].contains(&write.status));
        assert_eq!(get(&relayed, "/metrics").await.status, 403);
        assert_eq!(get(&relayed, "/livez").await.status, 200);
    }
}

#[tokio::test]
async fn clients_read_what_the_relay_itself_may_not() {
    let pair = Pair::start_as(&[], &[], Some("relay-token")).await;
    let reviews = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]);
    pair.grant("relay", None, &reviews).await;
    pair.grant("ann", Some("default"), &may_read()).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    let relayed = pair.relay.client_with_token("ann-token").await;
    until(&relayed, CONFIG_MAPS, 200).await;
    for path in [CONFIG_MAPS, ANY] {
        assert_eq!(get(&relayed, path).await.names(), ["a"], "{path}");
    }
}

#[tokio::test]
async fn the_relays_own_credentials_follow_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = write(folder.path(), "tokens", "newer,relay,1,system:masters\n");
    let known = format!("--token-auth-file={}", tokens.display());
    let (upstream, _) = Server::ready(&[&known]).await;
    let token = write(folder.path(), "token", "expired");
    let kubeconfig = kubeconfig_with(&upstream, &json!({"tokenFile": token}));
    let mut relay = Server::relay(&kubeconfig, &["-v=1"]);
    relay.client().await;
    let relayed = admin(&relay).await;
    let refused = send(&relayed, "POST", CONFIG_MAPS, &[], &config_map("a")).await;
    assert!(refused.status >= 400, "{refused:?}");
    // Written in two steps, it is no token for a moment.
    write(folder.path(), "token", "new\nline");
    relay.hang_up();
    relay.logged("have changed and cannot be used").await;
    write(folder.path(), "token", "newer\n");
    relay
        .logged("the credentials for the upstream have changed path=")
        .await;
    create(&relayed, CONFIG_MAPS, &config_map("a")).await;
}

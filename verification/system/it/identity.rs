//! Users without credentials, with bootstrap tokens, and whom a webhook knows.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::authorization::{ask, user_of};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

const NODES: &str = "/api/v1/nodes";

async fn get(client: &kube::Client, path: &str) -> Result<String, String> {
    ask(client, Method::GET, path, &Value::Null).await
}

async fn post(client: &kube::Client, path: &str, body: Value) {
    let created = ask(client, Method::POST, path, &body).await;
    created.unwrap_or_else(|why| panic!("{path}: {why}"));
}

/// The user and groups of a token; an error if it is nobody's.
async fn who(server: &Server, token: &str) -> Result<(String, Vec<String>), String> {
    let user = user_of(server, token).await?;
    let groups = serde_json::from_value(user["groups"].clone()).expect("groups");
    Ok((
        user["username"].as_str().expect("a name").to_owned(),
        groups,
    ))
}

#[tokio::test]
async fn who_shows_nothing_may_read_what_is_public() {
    let (server, admin) = Server::ready(&[]).await;
    let nobody = server.client_without_credentials().await;
    for path in ["/livez", "/readyz", "/healthz", "/version"] {
        get(&nobody, path)
            .await
            .unwrap_or_else(|why| panic!("{path}: {why}"));
    }
    let refused = get(&nobody, NODES).await.expect_err("not public");
    let message = r#"403 nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope"#;
    assert_eq!(refused, message);
    for path in ["/metrics", "/api", "/livez/ping"] {
        let refused = get(&nobody, path).await.expect_err(path);
        assert!(refused.starts_with("403 "), "{path}: {refused}");
    }
    let wrong = server.client_with_token("wrong").await;
    let refused = get(&wrong, "/livez")
        .await
        .expect_err("a bad token is not none");
    assert!(refused.starts_with("401 "), "{refused}");

    // As kubeadm does for nodes that join.
    let public = "/api/v1/namespaces/kube-public/configmaps";
    let info = format!("{public}/cluster-info");
    post(
        &admin,
        public,
        json!({"metadata": {"name": "cluster-info"}, "data": {"a": "b"}}),
    )
    .await;
    assert!(get(&nobody, &info).await.is_err());
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public";
    let role = json!({"metadata": {"name": "info"}, "rules": [{"apiGroups": [""],
        "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}]});
    post(&admin, &format!("{rbac}/roles"), role).await;
    let binding = json!({"metadata": {"name": "info"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "info"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
            "name": "system:anonymous"}]});
    post(&admin, &format!("{rbac}/rolebindings"), binding).await;
    let readable = eventually(DEADLINE, "the binding counts", async || {
        get(&nobody, &info).await
    });
    readable.await;
    assert!(get(&nobody, public).await.is_err(), "and no more than that");
}

#[tokio::test]
async fn nobody_is_anonymous_where_that_is_off_or_everybody_may_do_everything() {
    for (flag, logged) in [
        ("--anonymous-auth=false", ""),
        (
            "--authorization-mode=AlwaysAllow",
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false.",
        ),
    ] {
        let (server, _) = Server::ready(&[flag]).await;
        let nobody = server.client_without_credentials().await;
        let refused = get(&nobody, "/livez").await.expect_err(flag);
        assert!(refused.starts_with("401 "), "{refused}");
        let log = server.log();
        assert!(log.contains(logged), "{log}");
        let warned = log.contains("since the authorization mode is AlwaysAllow");
        assert_eq!(warned, !logged.is_empty(), "{log}");
    }
}

fn bootstrap_secret(id: &str, secret: &str) -> Value {
    let data = json!({"token-id": STANDARD.encode(id), "token-secret": STANDARD.encode(secret),
        "usage-bootstrap-authentication": STANDARD.encode("true"),
        "auth-extra-groups": STANDARD.encode("system:bootstrappers:kubeadm:default-node-token")});
    json!({"type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": format!("bootstrap-token-{id}")}, "data": data})
}

#[tokio::test]
async fn nodes_join_by_bootstrap_tokens() {
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let token = "abcdef.0123456789abcdef";
    let (server, admin) = Server::ready(&["--enable-bootstrap-token-auth"]).await;
    assert!(who(&server, token).await.is_err());
    post(
        &admin,
        secrets,
        bootstrap_secret("abcdef", "0123456789abcdef"),
    )
    .await;
    let known = eventually(DEADLINE, "known once its Secret is there", async || {
        who(&server, token).await
    });
    let (name, groups) = known.await;
    assert_eq!(name, "system:bootstrap:abcdef");
    assert_eq!(
        groups,
        [
            "system:bootstrappers",
            "system:bootstrappers:kubeadm:default-node-token",
            "system:authenticated"
        ]
    );
    assert!(who(&server, "abcdef.0123456789abcdee").await.is_err());
    let path = format!("{secrets}/bootstrap-token-abcdef");
    ask(&admin, Method::DELETE, &path, &Value::Null)
        .await
        .expect("deleted");
    let unknown = eventually(DEADLINE, "unknown once its Secret is gone", async || {
        who(&server, token).await.is_err()
    });
    unknown.await;

    let (without, admin) = Server::ready(&[]).await;
    post(
        &admin,
        secrets,
        bootstrap_secret("abcdef", "0123456789abcdef"),
    )
    .await;
    assert!(who(&without, token).await.is_err(), "it has to be enabled");
}

/// Knows the token `ann`, and fails for another.
fn answer(_: &str, review: &Value) -> Reply {
    let mut answer = review.clone();
    answer["status"] = match review["spec"]["token"].as_str() {
        Some("ann-token") => json!({"authenticated": true,
            "user": {"username": "ann", "groups": ["a"]}}),
        Some("broken-token") => return Reply::Text(403, "no".to_owned()),
        _ => json!({"authenticated": false}),
    };
    Reply::Json(answer)
}

#[tokio::test]
async fn a_webhook_knows_tokens_that_nobody_else_does() {
    let folder = tempfile::tempdir().expect("a folder");
    for version in ["v1", "v1beta1"] {
        let webhook = Webhook::start(answer).await;
        let file = folder.path().join(version);
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "w", "cluster": {"server": format!("https://{}/review", webhook.address),
                "certificate-authority-data": webhook.ca_bundle()}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "c", "context": {"cluster": "w", "user": "u"}}]});
        fs::write(&file, config.to_string()).expect("written");
        let (server, admin) = Server::ready(&[
            &format!(
                "--authentication-token-webhook-config-file={}",
                file.display()
            ),
            &format!("--authentication-token-webhook-version={version}"),
        ])
        .await;
        for _ in 0..2 {
            let (name, groups) = who(&server, "ann-token").await.expect("a user");
            assert_eq!(name, "ann");
            assert_eq!(groups, ["a", "system:authenticated"]);
            for wrong in ["other-token", "broken-token"] {
                let refused = who(&server, wrong).await.expect_err(wrong);
                assert!(refused.starts_with("401 "), "{refused}");
            }
        }
        let asked = webhook.take("/review");
        let of = |token: &str| {
            asked
                .iter()
                .filter(|it| it["spec"]["token"] == token)
                .count()
        };
        assert_eq!(
            (of("ann-token"), of("other-token")),
            (1, 1),
            "answers are kept"
        );
        assert_eq!(of("broken-token"), 2, "failures are not");
        let first = &asked[0];
        assert_eq!(first["kind"], "TokenReview");
        assert_eq!(
            first["apiVersion"],
            format!("authentication.k8s.io/{version}")
        );
        let audiences = json!(["https://kubernetes.default.svc.cluster.local"]);
        assert_eq!(first["spec"]["audiences"], audiences);
        assert!(
            server
                .log()
                .contains("Failed to make webhook authenticator request")
        );
        // Reviews by this server know these users too.
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": "ann-token"}});
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let reviewed = ask(&admin, Method::POST, path, &review).await;
        let reviewed: Value = serde_json::from_str(&reviewed.expect("a review")).expect("JSON");
        assert_eq!(reviewed["status"]["user"]["username"], "ann");
    }
}

//! Nobody gives away what they do not have.

use http::Method;
use serde_json::{Value, json};

use super::{Fixture, RBAC, ask};

/// Jane may write roles and bindings, and get pods; everything else she would have to be given.
async fn fixture() -> Fixture {
    let fixture = Fixture::start("RBAC").await;
    let verbs = ["create", "get", "list", "update", "patch", "delete"];
    let rules = json!([
        {"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
    ]);
    fixture.grant(None, "keeper", rules, "/api/v1/pods").await;
    fixture
}

fn role(name: &str, verbs: &[&str], resource: &str) -> Value {
    json!({"metadata": {"name": name},
        "rules": [{"verbs": verbs, "apiGroups": [""], "resources": [resource]}]})
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": "joe"}]})
}

#[tokio::test]
async fn a_role_may_have_no_rules_that_its_writer_lacks() {
    let fixture = fixture().await;
    let jane = &fixture.jane;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let refused = ask(
        jane,
        Method::POST,
        &roles,
        &role("r", &["get", "watch", "delete"], "pods"),
    )
    .await;
    let message = r#"403 roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}"#;
    assert_eq!(refused, Err(message.to_owned()));
    let created = ask(jane, Method::POST, &roles, &role("r", &["get"], "pods")).await;
    created.expect("she has that herself");
    let path = format!("{roles}/r");
    for (method, body) in [
        (Method::PUT, role("r", &["get"], "secrets")),
        (Method::PUT, role("r", &["*"], "pods")),
    ] {
        let refused = ask(jane, method, &path, &body).await.expect_err("more");
        assert!(refused.contains("not currently held"), "{refused}");
    }
    let smaller = ask(jane, Method::PUT, &path, &role("r", &["list"], "pods")).await;
    smaller.expect("less");
    let new = ask(
        jane,
        Method::PUT,
        &format!("{roles}/new"),
        &role("new", &["*"], "*"),
    )
    .await;
    let new = new.expect_err("created on update");
    assert!(new.contains("not currently held"), "{new}");
    let mut aggregated = role("a", &[], "pods");
    aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    aggregated["rules"] = json!([]);
    let refused = ask(
        jane,
        Method::POST,
        &format!("{RBAC}/clusterroles"),
        &aggregated,
    )
    .await;
    let message = r#"403 clusterroles.rbac.authorization.k8s.io "a" is forbidden: must have cluster-admin privileges to use an aggregationRule"#;
    assert_eq!(refused, Err(message.to_owned()));
}

#[tokio::test]
async fn a_binding_gives_no_role_that_its_writer_lacks() {
    let fixture = fixture().await;
    let jane = &fixture.jane;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let refused = ask(
        jane,
        Method::POST,
        &bindings,
        &binding("b", "ClusterRole", "system:kube-dns"),
    )
    .await;
    let message = r#"403 rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["endpoints"], Verbs:["list" "watch"]}
{APIGroups:[""], Resources:["services"], Verbs:["list" "watch"]}"#;
    assert_eq!(refused, Err(message.to_owned()));
    let refused = ask(
        jane,
        Method::POST,
        &bindings,
        &binding("b", "ClusterRole", "admin"),
    )
    .await;
    let refused = refused.expect_err("an aggregated role has rules too");
    assert!(refused.contains("not currently held"), "{refused}");
    let refused = ask(jane, Method::POST, &bindings, &binding("b", "Role", "gone")).await;
    let message = r#"404 roles.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(refused, Err(message.to_owned()));
    // A role that was made a moment ago counts.
    let roles = format!("{RBAC}/namespaces/default/roles");
    for name in ["one", "two", "three"] {
        let created = ask(jane, Method::POST, &roles, &role(name, &["get"], "pods")).await;
        created.expect("she has that herself");
        let bound = ask(jane, Method::POST, &bindings, &binding(name, "Role", name)).await;
        bound.expect("she has what it gives");
    }
}

#[tokio::test]
async fn who_may_escalate_or_bind_may_give_what_they_lack() {
    let fixture = fixture().await;
    let rules = json!([
        {"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]},
        {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
            "resourceNames": ["view"]},
        {"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]},
    ]);
    fixture.grant(None, "giver", rules, "/api/v1/nodes").await;
    let jane = &fixture.jane;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let created = ask(jane, Method::POST, &roles, &role("r", &["*"], "secrets")).await;
    created.expect("she may escalate");
    let bindings = format!("{RBAC}/clusterrolebindings");
    let bound = ask(
        jane,
        Method::POST,
        &bindings,
        &binding("b", "ClusterRole", "view"),
    )
    .await;
    bound.expect("she may bind");
    let refused = ask(
        jane,
        Method::POST,
        &bindings,
        &binding("c", "ClusterRole", "edit"),
    )
    .await;
    let refused = refused.expect_err("only view");
    assert!(refused.contains("not currently held"), "{refused}");
}

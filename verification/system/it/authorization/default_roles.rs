//! The permissions of the default roles, as kubectl asks and as requests find.

use std::fs;
use std::process::Command;

use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{Fixture, RBAC, ask, get};
use crate::support::tools::{self, run, skipped};

#[tokio::test]
async fn kubectl_tells_users_what_view_and_edit_give_them() {
    let Some(program) = tools::find("kubectl") else {
        return skipped("kubectl auth", "no kubectl");
    };
    let fixture = Fixture::start("RBAC").await;
    for (name, user) in [("view", "jane"), ("admin", "joe")] {
        let binding = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user}]});
        let path = format!("{RBAC}/namespaces/default/rolebindings");
        fixture.create(&path, binding).await;
    }
    let pods = "/api/v1/namespaces/default/pods";
    eventually(DEADLINE, "the bindings count", async || {
        get(&fixture.jane, pods)
            .await
            .and(get(&fixture.joe, pods).await)
    })
    .await;
    let kubeconfig = fixture.server.kubeconfig();
    let text = fs::read_to_string(&kubeconfig).expect("a kubeconfig");
    let server = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("server: "));
    let server = server.expect("a server").trim_matches('"').to_owned();
    let kubectl = |token: &str, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--kubeconfig", "/dev/null", "--server", &server]);
        command.args(["--insecure-skip-tls-verify", "--token", token]);
        command.env("HOME", fixture.server.folder());
        let output = run(command.args(arguments));
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).expect("text").trim().to_owned()
    };
    for (token, arguments, answer) in [
        ("jane-token", "list pods", "yes"),
        ("jane-token", "get pods --subresource=log", "yes"),
        ("jane-token", "create pods", "no"),
        ("jane-token", "get secrets", "no"),
        ("jane-token", "list pods -n kube-system", "no"),
        ("jane-token", "get /version", "yes"),
        ("jane-token", "get /metrics", "no"),
        ("joe-token", "create deployments.apps", "yes"),
        ("joe-token", "get secrets", "yes"),
        ("joe-token", "create rolebindings", "yes"),
        ("joe-token", "create resourcequotas", "no"),
    ] {
        let words: Vec<&str> = ["auth", "can-i"]
            .into_iter()
            .chain(arguments.split(' '))
            .collect();
        let told = kubectl(token, &words);
        assert!(told.ends_with(answer), "{token} {arguments}: {told}");
    }
    let list = kubectl("jane-token", &["auth", "can-i", "--list"]);
    assert!(list.contains("endpointslices.discovery.k8s.io"), "{list}");
    assert!(list.contains("/openapi/*"), "{list}");
    let whoami = kubectl("jane-token", &["auth", "whoami"]);
    assert!(
        whoami.contains("jane") && whoami.contains("devs"),
        "{whoami}"
    );
    let refused = kubectl("jane-token", &["get", "secrets"]);
    assert!(
        refused.contains(r#"secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default""#),
        "{refused}"
    );
}

#[tokio::test]
async fn at_each_start_default_roles_get_back_what_they_lack() {
    let mut fixture = Fixture::start("RBAC").await;
    let (roles, bindings) = (
        format!("{RBAC}/clusterroles"),
        format!("{RBAC}/clusterrolebindings"),
    );
    let object = async |client: &kube::Client, path: String| -> Value {
        let text = get(client, &path).await.expect("there");
        serde_json::from_str(&text).expect("JSON")
    };
    let change = async |path: String, change: fn(&mut Value)| {
        let mut changed = object(&fixture.admin, path.clone()).await;
        change(&mut changed);
        let updated = ask(&fixture.admin, Method::PUT, &path, &changed).await;
        updated.expect("updated");
    };
    change(format!("{roles}/system:kube-dns"), |role| {
        role["rules"] = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}]);
    })
    .await;
    change(format!("{roles}/system:heapster"), |role| {
        role["rules"] = json!([]);
        role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] =
            json!("false");
    })
    .await;
    change(format!("{bindings}/system:node-proxier"), |binding| {
        binding["subjects"] = json!([{"kind": "User", "name": "joe"}]);
    })
    .await;
    let other = format!("{bindings}/system:kube-scheduler");
    let gone = ask(&fixture.admin, Method::DELETE, &other, &Value::Null).await;
    gone.expect("deleted");
    let admin = fixture.server.restart().await;
    let dns = object(&admin, format!("{roles}/system:kube-dns")).await;
    assert_eq!(
        dns["rules"],
        json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]},
            {"verbs": ["list"], "apiGroups": [""], "resources": ["endpoints"]},
            {"verbs": ["watch"], "apiGroups": [""], "resources": ["endpoints"]},
            {"verbs": ["list"], "apiGroups": [""], "resources": ["services"]},
            {"verbs": ["watch"], "apiGroups": [""], "resources": ["services"]}])
    );
    let heapster = object(&admin, format!("{roles}/system:heapster")).await;
    assert_eq!(heapster["rules"], Value::Null);
    let proxier = object(&admin, format!("{bindings}/system:node-proxier")).await;
    let subjects = proxier["subjects"].as_array().expect("subjects");
    let names: Vec<_> = subjects.iter().map(|it| it["name"].as_str()).collect();
    assert_eq!(names, [Some("joe"), Some("system:kube-proxy")]);
    object(&admin, other).await;
    let ready = get(&admin, "/readyz?verbose").await.expect("ready");
    assert!(
        ready.contains("[+]poststarthook/rbac/bootstrap-roles ok\n"),
        "{ready}"
    );
}

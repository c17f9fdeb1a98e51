//! What users may do, with roles and bindings that are stored while the server runs.

mod default_roles;
mod escalation;
mod impersonation;
mod nodes;
mod restart;
mod reviews;
mod webhook;

use std::fs;
use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::server::Server;

/// Within what time a change of roles is followed, and how often it is looked.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 1500;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A server with token users `jane`, in the group `devs`, and `joe`.
struct Fixture {
    server: Server,
    admin: kube::Client,
    jane: kube::Client,
    joe: kube::Client,
    _tokens: tempfile::TempDir,
}

impl Fixture {
    async fn start(modes: &str) -> Self {
        Self::start_with(modes, &[]).await
    }

    async fn start_with(modes: &str, flags: &[&str]) -> Self {
        let tokens = tempfile::tempdir().expect("a folder");
        let path = tokens.path().join("tokens.csv");
        fs::write(&path, "jane-token,jane,1,devs\njoe-token,joe,2\n").expect("tokens");
        let modes = format!("--authorization-mode={modes}");
        let path = path.display().to_string();
        let flags = [&[&*modes, "--token-auth-file", &path], flags].concat();
        let mut server = Server::start(&flags);
        let admin = server.client().await;
        let fixture = Self {
            jane: server.client_with_token("jane-token").await,
            joe: server.client_with_token("joe-token").await,
            admin,
            server,
            _tokens: tokens,
        };
        // The default roles are followed a moment after the server serves.
        fixture.until_allowed(&fixture.joe, "/api").await;
        fixture
    }

    async fn until_allowed(&self, client: &kube::Client, path: &str) {
        for _ in 0..LOOKS_MAX {
            if get(client, path).await.is_ok() {
                return;
            }
            tokio::time::sleep(LOOK_PERIOD).await;
        }
        panic!("{path} is still refused: {:?}", get(client, path).await);
    }

    async fn create(&self, path: &str, object: Value) {
        let created = ask(&self.admin, Method::POST, path, &object).await;
        created.expect("created");
    }

    /// Gives jane a role, and waits until she has it: then `path` is not refused any more.
    async fn grant(&self, namespace: Option<&str>, name: &str, rules: Value, path: &str) {
        let (scope, prefix) = match namespace {
            Some(namespace) => (format!("{RBAC}/namespaces/{namespace}"), ""),
            None => (RBAC.to_owned(), "cluster"),
        };
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.create(&format!("{scope}/{prefix}roles"), role).await;
        let kind = if namespace.is_some() {
            "Role"
        } else {
            "ClusterRole"
        };
        let binding = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "Group", "name": "devs"}]});
        self.create(&format!("{scope}/{prefix}rolebindings"), binding)
            .await;
        self.until_allowed(&self.jane, path).await;
    }
}

/// The answer, or the message of a refusal.
pub(crate) async fn ask(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<String, String> {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body)
        .expect("a request");
    match client.request_text(request).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
        Err(error) => panic!("{path}: {error:?}"),
    }
}

async fn get(client: &kube::Client, path: &str) -> Result<String, String> {
    ask(client, Method::GET, path, &Value::Null).await
}

#[tokio::test]
async fn what_no_role_allows_is_refused_in_kube_apiservers_words() {
    let fixture = Fixture::start("RBAC").await;
    let jane = &fixture.jane;
    for (method, path, message) in [
        (
            Method::GET,
            "/api/v1/namespaces/default/pods",
            r#"403 pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::GET,
            "/api/v1/pods?watch=1",
            r#"403 pods is forbidden: User "jane" cannot watch resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            Method::GET,
            "/api/v1/watch/pods",
            r#"403 pods is forbidden: User "jane" cannot watch resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            Method::GET,
            "/api/v1/watch/namespaces/default/pods/p",
            r#"403 pods "p" is forbidden: User "jane" cannot watch resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::GET,
            "/apis/apps/v1/namespaces/default/deployments/d/scale",
            r#"403 deployments.apps "d" is forbidden: User "jane" cannot get resource "deployments/scale" in API group "apps" in the namespace "default""#,
        ),
        (
            Method::DELETE,
            "/api/v1/namespaces/default/pods",
            r#"403 pods is forbidden: User "jane" cannot deletecollection resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::GET,
            "/metrics",
            r#"403 forbidden: User "jane" cannot get path "/metrics""#,
        ),
        (
            Method::GET,
            "/apis/no.such.group/v1/things",
            r#"403 things.no.such.group is forbidden: User "jane" cannot list resource "things" in API group "no.such.group" at the cluster scope"#,
        ),
    ] {
        let refused = ask(jane, method, path, &Value::Null).await;
        assert_eq!(refused, Err(message.to_owned()), "{path}");
    }
    get(&fixture.admin, "/metrics")
        .await
        .expect("the admin may");
}

#[tokio::test]
async fn a_watch_is_allowed_as_a_watch_and_by_the_name_that_it_selects() {
    let fixture = Fixture::start("RBAC").await;
    let rules = json!([
        {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]},
        {"verbs": ["watch", "get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
    ]);
    let secrets = "/api/v1/namespaces/default/secrets";
    fixture
        .grant(Some("default"), "reader", rules, secrets)
        .await;
    let jane = &fixture.jane;
    for path in [
        "/api/v1/namespaces/default/secrets?watch=1",
        "/api/v1/namespaces/default/secrets?watch=true&watch=0",
        "/api/v1/watch/namespaces/default/secrets",
        "/api/v1/namespaces/other/secrets",
        "/api/v1/secrets",
        "/api/v1/secrets?fieldSelector=metadata.namespace%3Ddefault",
        "/api/v1/namespaces/default/configmaps?watch=1",
        "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Dyours",
        "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name!%3Dmine",
        "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=&fieldSelector=metadata.name%3Dmine",
        "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dmine",
        "/api/v1/watch/namespaces/default/configmaps/yours",
    ] {
        let refused = get(jane, path).await.expect_err(path);
        assert!(refused.starts_with("403 "), "{path}: {refused}");
    }
    for path in [
        "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dmine",
        "/api/v1/watch/namespaces/default/configmaps/mine?timeoutSeconds=1",
    ] {
        get(jane, path).await.expect(path);
    }
}

#[tokio::test]
async fn who_may_update_may_not_therefore_create() {
    let fixture = Fixture::start("RBAC").await;
    let rules = json!([{"verbs": ["get", "list", "update", "patch"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}]);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    fixture
        .grant(Some("default"), "updater", rules, leases)
        .await;
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    let path = format!("{leases}/l");
    let refused = ask(&fixture.jane, Method::PUT, &path, &lease).await;
    let message = r#"403 leases.coordination.k8s.io "l" is forbidden: User "jane" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default""#;
    assert_eq!(refused, Err(message.to_owned()));
    fixture.create(leases, lease.clone()).await;
    let read = get(&fixture.jane, &path).await.expect("the lease");
    let read = serde_json::from_str(&read).expect("JSON");
    let updated = ask(&fixture.jane, Method::PUT, &path, &read).await;
    updated.expect("updated");
}

#[tokio::test]
async fn a_binding_that_goes_takes_its_rights_along() {
    let fixture = Fixture::start("RBAC").await;
    let rules = json!([{"verbs": ["list"], "apiGroups": ["*"], "resources": ["*"]}]);
    fixture
        .grant(None, "lister", rules, "/api/v1/secrets")
        .await;
    let refused = get(&fixture.joe, "/api/v1/secrets").await;
    assert!(refused.is_err(), "joe is no dev");
    let binding = format!("{RBAC}/clusterrolebindings/lister");
    let deleted = ask(&fixture.admin, Method::DELETE, &binding, &Value::Null).await;
    deleted.expect("deleted");
    for _ in 0..LOOKS_MAX {
        if get(&fixture.jane, "/api/v1/secrets").await.is_err() {
            return;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    panic!("jane may still list:\n{}", fixture.server.log());
}

/// CVE-2022-3162: a list of custom resources reached other types of the group by tricks in the path.
#[tokio::test]
async fn cve_2022_3162_no_list_of_one_type_reaches_another() {
    let fixture = Fixture::start("RBAC").await;
    let rules = json!([{"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"]}]);
    fixture
        .grant(None, "reader", rules, "/api/v1/configmaps")
        .await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"word": "hidden"}});
    fixture
        .create("/api/v1/namespaces/default/secrets", secret)
        .await;
    for path in [
        "/api/v1/namespaces/../secrets/configmaps",
        "/api/v1/namespaces/..%2F..%2Fsecrets/configmaps",
        "/api/v1/namespaces/..%2F..%2Fsecrets%2Fdefault/configmaps/s",
        "/api/v1/namespaces/default/configmaps/..%2F..%2Fsecrets%2Fdefault%2Fs",
        "/api/v1/namespaces/default/configmaps/..%2F..%2Fsecrets",
        "/api/v1/namespaces/default%2F..%2F..%2Fsecrets/configmaps?watch=1&timeoutSeconds=1",
        "/api/v1/namespaces/%2E%2E/configmaps",
        "/api/v1/configmaps?fieldSelector=metadata.name%3D..%2Fsecrets%2Fdefault%2Fs",
        "/api/v1/configmaps?fieldSelector=metadata.namespace%3D..%2Fsecrets",
        "/api/v1/watch/namespaces/..%2Fsecrets/configmaps?timeoutSeconds=1",
    ] {
        let answer = get(&fixture.jane, path).await;
        let text = answer.unwrap_or_else(|refusal| refusal);
        let secret = ["aGlkZGVu", "\"s\"", "hidden"];
        assert!(!secret.iter().any(|it| text.contains(it)), "{path}: {text}");
    }
}

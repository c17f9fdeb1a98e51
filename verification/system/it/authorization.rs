//! Authorization by roles and bindings that are stored while the server runs.

mod default_roles;
mod escalation;
mod impersonation;
mod nodes;
mod restart;
mod reviews;
mod webhook;

use std::fs;

use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::server::Server;

/// The path of reviews that tell who asks.
pub(crate) const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
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
        let (server, admin) = Server::ready(&flags).await;
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
        let answer = async || get(client, path).await;
        eventually(DEADLINE, format!("{path} is allowed"), answer).await;
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

/// Returns what a server knows of the user of a token.
pub(crate) async fn user_of(server: &Server, token: &str) -> Result<Value, String> {
    let client = server.client_with_token(token).await;
    let answer = ask(&client, Method::POST, WHO, &json!({})).await?;
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    Ok(answer["status"]["userInfo"].clone())
}

/// Returns the answer, or the message of a refusal.
pub(crate) async fn ask(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<String, String> {
    let request = requests::request(method, path, body);
    client
        .request_text(request)
        .await
        .map_err(requests::refusal)
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

/// A client upgrades with a GET, and deletes what cannot be read with a DELETE, but needs more than `get` and `delete`
/// for it.
#[tokio::test]
async fn some_requests_need_a_verb_beside_their_own() {
    let gate = "--feature-gates=AllowUnsafeMalformedObjectDeletion=true";
    let fixture = Fixture::start_with("RBAC", &[gate]).await;
    let rules = json!([
        {"verbs": ["get"], "apiGroups": [""],
            "resources": ["pods/exec", "pods/attach", "pods/portforward"]},
        {"verbs": ["list", "delete"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let namespace = Some("default");
    fixture.grant(namespace, "reader", rules, config_maps).await;
    for subresource in ["exec", "attach", "portforward"] {
        let path = format!("/api/v1/namespaces/default/pods/p/{subresource}");
        let refused = get(&fixture.jane, &path).await.expect_err("refused");
        let words = format!(
            r#"403 pods "p" is forbidden: User "jane" cannot create resource "pods/{subresource}" in API group "" in the namespace "default""#
        );
        assert_eq!(refused, words);
    }
    let unsafely = json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true});
    let path = format!("{config_maps}/a");
    let refused = ask(&fixture.jane, Method::DELETE, &path, &unsafely).await;
    let words = r#"403 configmaps "a" is forbidden: User "jane" cannot unsafe-delete-ignore-read-errors resource "configmaps" in API group "" in the namespace "default""#;
    assert_eq!(refused.expect_err("refused"), words);
    let gone = ask(&fixture.admin, Method::DELETE, &path, &unsafely).await;
    let gone = gone.expect_err("nothing is there");
    assert!(!gone.starts_with("403"), "{gone}");
}

/// Refusals of a policy show values of its parameters, so its author must be allowed to read them.
#[tokio::test]
async fn policies_have_no_parameters_that_their_author_may_not_read() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str =
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let fixture = Fixture::start("RBAC").await;
    let jane = &fixture.jane;
    let rules = json!([{"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]}]);
    fixture.grant(None, "author", rules, POLICIES).await;
    let policy = |name: &str, kind: Value| {
        json!({"metadata": {"name": name}, "spec": {"paramKind": kind,
            "matchConstraints": {"resourceRules": [{"apiGroups": ["none.example.com"], "apiVersions": ["*"],
                "operations": ["CREATE"], "resources": ["none"]}]},
            "validations": [{"expression": "true"}]}})
    };
    let secrets = json!({"apiVersion": "v1", "kind": "Secret"});
    let refused = ask(
        jane,
        Method::POST,
        POLICIES,
        &policy("mine", secrets.clone()),
    )
    .await;
    // As Go prints it.
    let user = "&{jane 1 [devs system:authenticated] map[]}";
    let words = "spec.paramKind: Forbidden: user &{jane 1 [devs system:authenticated] map[]} must have \"get\" permission on all objects of the \
                 referenced paramKind (kind=Secret, apiVersion=v1)";
    let refused = refused.expect_err("refused");
    assert!(
        refused.starts_with("422") && refused.ends_with(words),
        "{refused}"
    );
    let mut wrong = policy("mine", secrets.clone());
    wrong["spec"]["failurePolicy"] = json!("Never");
    let refused = ask(jane, Method::POST, POLICIES, &wrong).await;
    let refused = refused.expect_err("refused");
    assert!(
        refused.contains("spec.failurePolicy: Unsupported value") && !refused.contains("paramKind"),
        "{refused}"
    );
    let without = ask(jane, Method::POST, POLICIES, &policy("mine", Value::Null)).await;
    without.expect("a policy without parameters");
    fixture.create(POLICIES, policy("theirs", secrets)).await;

    let binding = |reference: Value| {
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "theirs", "validationActions": ["Deny"],
            "paramRef": reference}})
    };
    let named = json!({"name": "a", "namespace": "default", "parameterNotFoundAction": "Deny"});
    let selected =
        json!({"selector": {}, "namespace": "default", "parameterNotFoundAction": "Deny"});
    for (reference, verb) in [(&named, "get"), (&selected, "list")] {
        let refused = ask(jane, Method::POST, BINDINGS, &binding(reference.clone())).await;
        let words = format!(
            "spec.paramRef: Forbidden: user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
        );
        let refused = refused.expect_err("refused");
        assert!(
            refused.starts_with("422") && refused.ends_with(&words),
            "{refused}"
        );
    }
    let secret = json!({"metadata": {"name": "a"}});
    fixture
        .create("/api/v1/namespaces/default/secrets", secret)
        .await;
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]}]);
    let path = "/api/v1/namespaces/default/secrets/a";
    fixture.grant(Some("default"), "a", rules, path).await;
    let bound = ask(jane, Method::POST, BINDINGS, &binding(named)).await;
    bound.expect("jane may read the parameter");
}

#[tokio::test]
async fn claims_to_devices_need_labels_and_rights_of_their_own() {
    const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    const TEMPLATES: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
    let fixture = Fixture::start("RBAC").await;
    let rules = json!([{"verbs": ["*"], "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims", "resourceclaims/status"]}]);
    fixture
        .grant(Some("default"), "claims", rules, CLAIMS)
        .await;
    let spec = |access: Value| {
        json!({"devices": {"requests": [{"name": "r",
            "exactly": {"deviceClassName": "c", "adminAccess": access}}]}})
    };
    let claim = json!({"metadata": {"name": "c"}, "spec": spec(json!(true))});
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": spec(json!(true))}});
    for (path, object) in [(CLAIMS, &claim), (TEMPLATES, &template)] {
        let refused = ask(&fixture.admin, Method::POST, path, object).await;
        let words = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the \
                     `resource.kubernetes.io/admin-access: true` label on the containing namespace";
        let refused = refused.expect_err("refused");
        assert!(
            refused.starts_with("422") && refused.ends_with(words),
            "{refused}"
        );
    }
    let namespace = "/api/v1/namespaces/default";
    let labelled = get(&fixture.admin, namespace).await.expect("there");
    let mut labelled: Value = serde_json::from_str(&labelled).expect("json");
    labelled["metadata"]["labels"]["resource.kubernetes.io/admin-access"] = "true".into();
    let changed = ask(&fixture.admin, Method::PUT, namespace, &labelled).await;
    changed.expect("labelled");
    fixture.create(TEMPLATES, template).await;
    let created = ask(&fixture.jane, Method::POST, CLAIMS, &claim).await;
    let mut created: Value = serde_json::from_str(&created.expect("created")).expect("json");

    created["status"] = json!({"allocation": {"devices": {"results": [
        {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}});
    let status = format!("{CLAIMS}/c/status");
    let refused = ask(&fixture.jane, Method::PUT, &status, &created).await;
    let words = "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires \
                 resource=\"resourceclaims/binding\", verb=\"update\" permission: resourceclaims.resource.k8s.io is forbidden: \
                 User \"jane\" cannot update resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope";
    let refused = refused.expect_err("refused");
    assert!(
        refused.starts_with("422") && refused.contains(words),
        "{refused}"
    );
    let allocated = ask(&fixture.admin, Method::PUT, &status, &created).await;
    let mut allocated: Value = serde_json::from_str(&allocated.expect("allocated")).expect("json");

    allocated["status"]["devices"] =
        json!([{"driver": "d.example.com", "pool": "p", "device": "x", "data": {"a": "b"}}]);
    let refused = ask(&fixture.jane, Method::PUT, &status, &allocated).await;
    let refused = refused.expect_err("refused");
    let words = "status.devices: Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", \
         verb=\"[arbitrary-node:update]\" permission: resourceclaims.resource.k8s.io \"d.example.com\" is forbidden: \
         User \"jane\" cannot arbitrary-node:update resource \"resourceclaims/driver\"";
    assert!(
        refused.starts_with("422") && refused.contains(words),
        "{refused}"
    );
    // The right to patch does not allow updates.
    let rules = json!([{"verbs": ["patch"], "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/driver"]},
        {"verbs": ["arbitrary-node:patch"], "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/driver"]}]);
    fixture
        .grant(Some("default"), "patches", rules, CLAIMS)
        .await;
    let refused = ask(&fixture.jane, Method::PUT, &status, &allocated).await;
    assert!(refused.expect_err("refused").contains(words));
    let told = ask(&fixture.admin, Method::PUT, &status, &allocated).await;
    told.expect("the driver has its say");
}

/// A tenant of one namespace reaches no other by a path that names it behind the own one.
#[tokio::test]
async fn no_namespace_is_within_another() {
    let fixture = Fixture::start("RBAC").await;
    let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let pods = "/api/v1/namespaces/default/pods";
    fixture
        .grant(Some("default"), "tenant", everything, pods)
        .await;
    let own = "/api/v1/namespaces/default/namespaces";
    let created = json!({"metadata": {"name": "made"}});
    for (method, path, body) in [
        (Method::GET, own.to_owned(), &Value::Null),
        (Method::GET, format!("{own}?watch=1"), &Value::Null),
        (Method::POST, own.to_owned(), &created),
        (Method::GET, format!("{own}/kube-system"), &Value::Null),
        (Method::DELETE, format!("{own}/kube-system"), &Value::Null),
        (Method::DELETE, own.to_owned(), &Value::Null),
        (
            Method::GET,
            "/api/v1/watch/namespaces/default/namespaces".to_owned(),
            &Value::Null,
        ),
    ] {
        let refused = ask(&fixture.jane, method.clone(), &path, body).await;
        let words = "404 the server could not find the requested resource";
        assert_eq!(refused.expect_err("refused"), words, "{method} {path}");
    }
    get(&fixture.admin, "/api/v1/namespaces/made")
        .await
        .expect_err("never made");
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
        "/api/v1/watch/namespaces/default/configmaps?fieldSelector=metadata.name%3Dmine",
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
    eventually(DEADLINE, "jane may no longer list", async || {
        get(&fixture.jane, "/api/v1/secrets").await.is_err()
    })
    .await;
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

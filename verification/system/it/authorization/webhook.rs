//! Webhooks that decide: what they are asked, what their answers mean, and what becomes of requests that they do not
//! answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::support::webhook::{Reply, Webhook};

/// The number of times that a webhook fails that is asked again, and the number of times that it has been asked.
const FAILURES_MAX: usize = 2;
static FAILURES: AtomicUsize = AtomicUsize::new(0);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Says what the user's name says, and misbehaves by path.
fn answer(path: &str, review: &Value) -> Reply {
    match path {
        "/hangs" => return Reply::Hang,
        "/floods" => return Reply::Flood(100 << 20),
        "/lies" => return Reply::Json(json!({"kind": "Pod", "status": {"allowed": true}})),
        "/flaky" if FAILURES.fetch_add(1, Ordering::Relaxed) < FAILURES_MAX => {
            return Reply::Text(500, "soon".to_owned());
        }
        "/both" => return Reply::Json(answered(review, json!({"allowed": true, "denied": true}))),
        _ => {}
    }
    let status = match review["spec"]["user"].as_str() {
        Some("jane") => json!({"allowed": true}),
        Some("joe" | "system:serviceaccount:default:joe") => {
            json!({"allowed": false, "denied": true, "reason": "not joe"})
        }
        _ => json!({"allowed": false}),
    };
    Reply::Json(answered(review, status))
}

fn answered(review: &Value, status: Value) -> Value {
    let mut review = review.clone();
    review["status"] = status;
    review
}

/// A kubeconfig for a path of the webhook.
fn kubeconfig(folder: &Path, webhook: &Webhook, path: &str) -> PathBuf {
    let file = folder.join(format!("{}.yaml", path.trim_start_matches('/')));
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "w", "cluster": {"server": format!("https://{}{path}", webhook.address),
            "certificate-authority-data": webhook.ca_bundle()}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "w", "user": "u"}}]});
    fs::write(&file, config.to_string()).expect("written");
    file
}

/// A webhook of a configuration.
fn authorizer(file: &Path, name: &str, members: Value) -> Value {
    let mut webhook = json!({"timeout": "30s", "subjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": file}});
    for (name, value) in members.as_object().expect("members") {
        webhook[name] = value.clone();
    }
    json!({"type": "Webhook", "name": name, "webhook": webhook})
}

/// The clients of jane and joe, of a server with these flags.
async fn start(folder: &Path, flags: &[&str]) -> (Server, kube::Client, kube::Client) {
    let tokens = folder.join("tokens.csv");
    fs::write(&tokens, "jane-token,jane,1,devs\njoe-token,joe,2\n").expect("tokens");
    let tokens = tokens.display().to_string();
    let flags = [flags, &["--token-auth-file", &tokens]].concat();
    let (server, _) = Server::ready(&flags).await;
    let jane = server.client_with_token("jane-token").await;
    let joe = server.client_with_token("joe-token").await;
    (server, jane, joe)
}

async fn configured(folder: &Path, authorizers: &[Value]) -> (Server, kube::Client, kube::Client) {
    let file = folder.join("authorization.json");
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration", "authorizers": authorizers});
    fs::write(&file, config.to_string()).expect("written");
    start(
        folder,
        &["--authorization-config", &file.display().to_string()],
    )
    .await
}

#[tokio::test]
async fn a_webhook_decides_and_its_answers_count_for_a_time() {
    let webhook = Webhook::start(answer).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = kubeconfig(folder.path(), &webhook, "/decide");
    let file = format!("--authorization-webhook-config-file={}", file.display());
    let flags = [
        "--authorization-mode=Webhook",
        &file,
        "--authorization-webhook-version=v1",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
    ];
    let (_server, jane, joe) = start(folder.path(), &flags).await;
    for _ in 0..3 {
        get(&jane, MAPS).await.expect("allowed");
        let refused = get(&joe, MAPS).await.expect_err("denied");
        assert!(refused.contains("not joe"), "{refused}");
    }
    let asked = webhook.take("/decide");
    let of = |user: &str| asked.iter().filter(|it| it["spec"]["user"] == user).count();
    assert_eq!(
        (of("jane"), of("joe")),
        (1, 3),
        "what is refused is not kept here"
    );
    let jane = asked.iter().find(|it| it["spec"]["user"] == "jane");
    assert_eq!(
        jane.expect("asked")["spec"],
        json!({"user": "jane", "uid": "1", "groups": ["devs", "system:authenticated"],
            "resourceAttributes": {"namespace": "default", "verb": "list", "version": "v1",
                "resource": "configmaps"}})
    );
}

#[tokio::test]
async fn several_authorizers_are_asked_in_their_order() {
    let webhook = Webhook::start(answer).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = kubeconfig(folder.path(), &webhook, "/decide");
    let joes = json!({"matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [{"expression": "request.user == 'joe'"}]});
    let authorizers = [
        authorizer(&file, "joes", joes),
        json!({"type": "AlwaysAllow", "name": "rest"}),
    ];
    let (server, jane, joe) = configured(folder.path(), &authorizers).await;
    get(&jane, MAPS).await.expect("allowed by the second");
    let refused = get(&joe, MAPS).await.expect_err("denied by the first");
    assert!(refused.contains("not joe"), "{refused}");
    let asked = webhook.take("/decide");
    assert_eq!(asked.len(), 1, "the other is none of its business");
    assert_eq!(
        asked[0]["spec"]["resourceAttributes"].get("fieldSelector"),
        None
    );
    // A review tells of a refusal that nobody could overrule.
    let review = json!({"spec": {"user": "joe", "resourceAttributes": {"verb": "list", "resource": "pods",
        "fieldSelector": {"rawSelector": "a=b"},
        "labelSelector": {"requirements": [{"key": "c", "operator": "In", "values": ["d"]},
            {"key": "e", "operator": "Near"}]}}}});
    let mut server = server;
    let admin = server.client().await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let told = ask(&admin, Method::POST, path, &review)
        .await
        .expect("told");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(
        told["status"],
        json!({"allowed": false, "denied": true, "reason": "not joe",
            "evaluationError": "spec.resourceAttributes.labelSelector partially ignored due to parse error"})
    );
    let selecting = format!("{MAPS}?fieldSelector=metadata.name%3Da&labelSelector=b!%3Dc");
    get(&joe, &selecting).await.expect_err("denied");
    let asked = webhook.take("/decide");
    let told = |place: usize, member: &str| {
        let attributes = &asked[place]["spec"]["resourceAttributes"];
        attributes[member]["requirements"].clone()
    };
    let one = |key: &str, operator: &str, value: &str| json!([{"key": key, "operator": operator, "values": [value]}]);
    assert_eq!(told(0, "fieldSelector"), one("a", "In", "b"));
    assert_eq!(told(0, "labelSelector"), one("c", "In", "d"));
    assert_eq!(asked[0]["spec"]["resourceAttributes"]["version"], "*");
    assert_eq!(told(1, "fieldSelector"), one("metadata.name", "In", "a"));
    assert_eq!(told(1, "labelSelector"), one("b", "NotIn", "c"));
}

#[tokio::test]
async fn the_file_is_read_again_and_webhooks_are_asked_again() {
    let webhook = Webhook::start(answer).await;
    let folder = tempfile::tempdir().expect("a folder");
    let flaky = kubeconfig(folder.path(), &webhook, "/flaky");
    let asked_again = authorizer(&flaky, "flaky", json!({}));
    let everybody = json!({"type": "AlwaysAllow", "name": "rest"});
    let first = [asked_again, everybody.clone()];
    let (_server, jane, joe) = configured(folder.path(), &first).await;
    get(&joe, MAPS).await.expect_err("denied in the end");
    assert_eq!(webhook.take("/flaky").len(), FAILURES_MAX + 1);
    let write = |authorizers: Value| {
        let config = json!({"apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration", "authorizers": authorizers});
        let file = folder.path().join("authorization.json");
        fs::write(file, config.to_string()).expect("written");
    };
    let until = async |client: &kube::Client, allowed: bool| {
        eventually(DEADLINE, format!("it is allowed: {allowed}"), async || {
            get(client, MAPS).await.is_ok() == allowed
        })
        .await;
    };
    write(json!([everybody]));
    until(&joe, true).await;
    // Neither what makes no sense nor what needs another start counts.
    write(json!([{"type": "AlwaysAllow"}]));
    write(json!([{"type": "RBAC", "name": "roles"}]));
    let decide = kubeconfig(folder.path(), &webhook, "/decide");
    let usual = authorizer(&decide, "usual", json!({}));
    write(json!([usual, everybody]));
    until(&joe, false).await;
    get(&jane, MAPS).await.expect("allowed");
    expressions_ask_webhooks(&jane).await;
    let asked = webhook.take("/decide");
    let mut attributes = asked.iter().map(|it| &it["spec"]["resourceAttributes"]);
    let pods = attributes
        .find(|it| it["resource"] == "pods")
        .expect("asked");
    assert_eq!(
        pods["fieldSelector"]["requirements"],
        json!([{"key": "a", "operator": "In", "values": ["b"]}])
    );
    assert_eq!(
        pods["labelSelector"]["requirements"],
        json!([{"key": "c", "operator": "Exists"}])
    );
}

/// Checks in expressions ask the webhook too.
async fn expressions_ask_webhooks(jane: &kube::Client) {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    let post = async |path: &str, object: Value| {
        let request = requests::request("POST", path, &object);
        let answer = jane.request::<Value>(request).await;
        answer.map(|_| ()).map_err(|error| error.to_string())
    };
    let joe = "!authorizer.serviceAccount('default', 'joe')";
    let pods = "group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('list')";
    let path = "path('/x').check('get')";
    let expression =
        format!("object.metadata.name != 'no' && {joe}.{path}.allowed() && {joe}.{pods}.allowed()");
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let policy = json!({"kind": "ValidatingAdmissionPolicy", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "no"}]}});
    let made = post(&format!("{POLICIES}ies"), policy).await;
    made.expect("a policy");
    let binding = json!({"kind": "ValidatingAdmissionPolicyBinding", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let made = post(&format!("{POLICIES}ybindings"), binding).await;
    made.expect("a binding");
    let map =
        |name: &str| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
    let dry = format!("{MAPS}?dryRun=All");
    let is_refused = async || post(&dry, map("no")).await.is_err();
    eventually(DEADLINE, "the policy is followed", is_refused).await;
    post(MAPS, map("yes"))
        .await
        .expect("joe may not, says the webhook");
}

#[tokio::test]
async fn webhooks_that_do_not_answer_refuse_or_leave_it_to_others_soon() {
    let webhook = Webhook::start(answer).await;
    for (path, policy, allowed) in [
        ("/hangs", "Deny", false),
        ("/floods", "Deny", false),
        ("/lies", "Deny", false),
        ("/both", "Deny", false),
        ("/hangs", "NoOpinion", true),
        ("/floods", "NoOpinion", true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = kubeconfig(folder.path(), &webhook, path);
        let authorizers = [
            authorizer(
                &file,
                "bad",
                json!({"timeout": "2s", "failurePolicy": policy}),
            ),
            json!({"type": "AlwaysAllow", "name": "rest"}),
        ];
        let (_server, jane, _) = configured(folder.path(), &authorizers).await;
        let answer = tokio::time::timeout(DEADLINE, get(&jane, MAPS)).await;
        match &answer.expect("in time") {
            Ok(_) => assert!(allowed, "{path} {policy}"),
            // Nobody has refused it.
            Err(why) => assert!(
                !allowed && why.starts_with("500 "),
                "{path} {policy}: {why}"
            ),
        }
    }
}

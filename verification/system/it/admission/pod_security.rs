//! PodSecurity over HTTP: refusals, warnings, metrics, and the file that configures it.

use http::Method;
use kube::Client;
use ringwatch_server::{Builder, InProcessServer};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{Answered, ask, message};
use crate::support::in_process::client;
use crate::support::requests;

const NAMESPACES: &str = "/api/v1/namespaces";

/// A server that leaves the refusal of privileged containers to PodSecurity.
fn privileged() -> Builder {
    InProcessServer::builder().flag("--allow-privileged=true")
}

fn namespace(name: &str, labels: &[(&str, &str)]) -> Value {
    let labels = labels
        .iter()
        .map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), json!(value)));
    let labels: serde_json::Map<String, Value> = labels.collect();
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

fn pod(name: &str, more: &Value) -> Value {
    let mut container = json!({"name": "a", "image": "i"});
    container["securityContext"] = more.clone();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container]}})
}

async fn create(client: &Client, path: &str, object: &Value) -> Answered {
    ask(client, Method::POST, path, object).await
}

#[tokio::test]
async fn pods_are_refused_and_what_makes_them_is_warned_of() {
    let server = privileged().start().await.expect("a server");
    let client = client(&server).await;
    let modes = [("enforce", "restricted"), ("enforce-version", "v1.36")];
    let created = create(&client, NAMESPACES, &namespace("strict", &modes)).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    let pods = "/api/v1/namespaces/strict/pods";
    let refused = create(&client, pods, &pod("p", &json!({"privileged": true}))).await;
    assert_eq!(
        message(&refused),
        "403 pods \"p\" is forbidden: violates PodSecurity \"restricted:v1.36\": \
         privileged (container \"a\" must not set securityContext.privileged=true), \
         allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    assert_eq!(refused.1["reason"], "Forbidden");
    assert_eq!(refused.1["details"], json!({"name": "p", "kind": "pods"}));
    assert!(refused.2.is_empty(), "{:?}", refused.2);

    let allowed = json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}});
    let created = create(&client, pods, &pod("p", &allowed)).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    assert!(created.2.is_empty(), "{:?}", created.2);

    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": pod("", &json!({"hostPort": 1}))["spec"]}}});
    let path = "/apis/apps/v1/namespaces/strict/deployments";
    let created = create(&client, path, &deployment).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    let warning = "299 - \"would violate PodSecurity \\\"restricted:v1.36\\\": allowPrivilegeEscalation != false (";
    assert!(
        created.2.iter().any(|it| it.starts_with(warning)),
        "{:?}",
        created.2
    );

    let text = requests::text(&client, "/metrics").await;
    for line in [
        "# TYPE pod_security_evaluations_total counter",
        "pod_security_evaluations_total{decision=\"deny\",policy_level=\"restricted\",policy_version=\"v1.36\",\
         mode=\"enforce\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1",
        "pod_security_evaluations_total{decision=\"deny\",policy_level=\"restricted\",policy_version=\"v1.36\",\
         mode=\"warn\",request_operation=\"create\",resource=\"controller\",subresource=\"\"} 1",
        "pod_security_exemptions_total{request_operation=\"update\",resource=\"controller\",subresource=\"\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}");
    }
}

#[tokio::test]
async fn labels_of_namespaces_are_checked_and_warn_of_their_pods() {
    let server = privileged().start().await.expect("a server");
    let client = client(&server).await;
    let wrong = namespace("wrong", &[("enforce", "none"), ("audit-version", "1")]);
    let refused = create(&client, NAMESPACES, &wrong).await;
    assert_eq!(refused.0, 422);
    assert_eq!(refused.1["reason"], "Invalid");
    let cause = &refused.1["details"]["causes"][0];
    assert_eq!(
        cause["field"],
        "metadata.labels[pod-security.kubernetes.io/enforce]"
    );
    assert_eq!(
        refused.1["details"]["causes"].as_array().map(Vec::len),
        Some(2)
    );

    let created = create(&client, NAMESPACES, &namespace("loose", &[])).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    for name in ["one", "two"] {
        let pods = "/api/v1/namespaces/loose/pods";
        let created = create(&client, pods, &pod(name, &json!({"privileged": true}))).await;
        assert_eq!(created.0, 201, "{}", message(&created));
    }
    // Warnings read the cache.
    let cached = "/api/v1/namespaces/loose/pods?resourceVersion=0";
    eventually(DEADLINE, "the cache has both pods", async || {
        let list = ask(&client, Method::GET, cached, &Value::Null).await;
        list.1["items"].as_array().map(Vec::len) == Some(2)
    })
    .await;
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    for query in ["?dryRun=All", ""] {
        let path = format!("{NAMESPACES}/loose{query}");
        let labelled = ask(&client, Method::PATCH, &path, &labels).await;
        assert_eq!(labelled.0, 200, "{}", message(&labelled));
        assert_eq!(
            labelled.2,
            [
                "299 - \"existing pods in namespace \\\"loose\\\" violate the new PodSecurity enforce level \
                 \\\"baseline:latest\\\"\"",
                "299 - \"one (and 1 other pod): privileged\"",
            ]
        );
    }
}

#[tokio::test]
async fn a_file_sets_defaults_and_exemptions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("admission.yaml");
    let config = |user: &str| {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
             - name: PodSecurity\n  configuration:\n    apiVersion: pod-security.admission.config.k8s.io/v1\n    \
             kind: PodSecurityConfiguration\n    defaults: {{enforce: baseline}}\n    \
             exemptions: {{namespaces: [free], usernames: [\"{user}\"]}}\n"
        )
    };
    std::fs::write(&path, config("nobody")).expect("a file");
    let flag = format!("--admission-control-config-file={}", path.display());
    let server = privileged().flag(&flag).start().await;
    let server = server.expect("a server");
    let client = client(&server).await;
    for (name, code) in [("free", 201), ("bound", 403)] {
        let created = create(&client, NAMESPACES, &namespace(name, &[])).await;
        assert_eq!(created.0, 201, "{}", message(&created));
        let pods = format!("{NAMESPACES}/{name}/pods");
        let created = create(&client, &pods, &pod("p", &json!({"privileged": true}))).await;
        assert_eq!(created.0, code, "{}", message(&created));
    }

    std::fs::write(&path, config("")).expect("a file");
    let error = privileged().flag(&flag).start().await;
    let error = error.expect_err("a wrong file").to_string();
    assert!(
        error.starts_with("cannot use the admission configuration "),
        "{error}"
    );
    assert!(
        error.contains("exemptions.usernames[0]: Invalid value: \"\": username must not be empty"),
        "{error}"
    );

    let disabled = privileged()
        .flag("--admission-control=NamespaceLifecycle")
        .flag(&flag)
        .start();
    disabled
        .await
        .expect("a plugin that does not run needs no configuration");
}

/// Waits until the audit log has an annotation of PodSecurity with a value that begins so.
async fn until_annotated(log: &std::path::Path, key: &str, begin: &str) {
    let key = format!("pod-security.kubernetes.io/{key}");
    eventually(DEADLINE, format!("{key} is {begin}"), async || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let events = text
            .lines()
            .filter_map(|it| serde_json::from_str::<Value>(it).ok());
        let values: Vec<String> = events
            .filter_map(|it| Some(it["annotations"][&key].as_str()?.to_owned()))
            .collect();
        values.iter().any(|it| it.starts_with(begin))
    })
    .await;
}

#[tokio::test]
async fn decisions_are_annotated_in_the_audit_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (policy, log) = (
        folder.path().join("policy.yaml"),
        folder.path().join("audit.log"),
    );
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    std::fs::write(&policy, rules).expect("a file");
    let server = privileged()
        .flag(format!("--audit-policy-file={}", policy.display()))
        .flag(format!("--audit-log-path={}", log.display()))
        .start();
    let server = server.await.expect("a server");
    let client = client(&server).await;
    let modes = [("enforce", "baseline"), ("audit", "restricted")];
    let created = create(&client, NAMESPACES, &namespace("audited", &modes)).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    let pods = format!("{NAMESPACES}/audited/pods");
    let refused = create(&client, &pods, &pod("p", &json!({"privileged": true}))).await;
    assert_eq!(refused.0, 403, "{}", message(&refused));
    until_annotated(&log, "enforce-policy", "baseline:latest").await;
    let violations = "would violate PodSecurity \"restricted:latest\": privileged (container";
    until_annotated(&log, "audit-violations", violations).await;
}

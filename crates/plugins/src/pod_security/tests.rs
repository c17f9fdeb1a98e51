//! Tests of the plugin over real stores: namespaces, pods and what makes pods.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_admission::Chain;
use ringwatch_apimachinery::{Error, User};
use ringwatch_audit::backend::{
    BackendMode, BatchOptions, LogFormat, LogOptions, LogWriter, QueueOptions,
};
use ringwatch_audit::{Auditor, Metrics, Policy, Recording, RequestHead};
use ringwatch_authorization::Attributes;
use ringwatch_registry::testing::{MemoryStorage, context, patch};
use ringwatch_registry::{RequestContext, Store};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{PodSecurity, PodSecurityConfiguration, PodSecurityMetrics};

/// Stores that the plugin admits to.
struct Cluster {
    storage: Arc<MemoryStorage>,
    plugin: Arc<Chain>,
    registry: Registry,
    context: RequestContext,
}

impl Cluster {
    fn new() -> Self {
        Self::configured(&json!({}), &json!({}))
    }

    fn configured(defaults: &Value, exemptions: &Value) -> Self {
        let configuration = json!({"apiVersion": "pod-security.admission.config.k8s.io/v1",
            "kind": "PodSecurityConfiguration", "defaults": defaults, "exemptions": exemptions});
        let configuration = PodSecurityConfiguration::read(&configuration).expect("valid");
        let storage = MemoryStorage::new("/namespaces");
        let mut registry = Registry::default();
        let plugin = PodSecurity::new(
            configuration,
            PodSecurityMetrics::register(&mut registry),
            Arc::clone(&storage) as _,
            Arc::clone(&storage) as _,
        );
        Self {
            storage,
            plugin: Arc::new(Chain::new(vec![Arc::new(plugin)])),
            registry,
            context: context(),
        }
    }

    fn store(&self, plural: &str) -> Store {
        let resources = ringwatch_resources::built_in();
        let resource = resources.into_iter().find(|it| it.plural == plural);
        let resource = resource.expect("it is built in");
        Store::new(resource, Arc::clone(&self.storage) as _)
            .with_admission(Arc::clone(&self.plugin) as _)
    }

    /// Begins another request, which is recorded for audit.
    fn next_recorded_request(&mut self) -> Audited {
        self.next_request();
        let audited = Audited::new();
        self.context.recording = Some(Arc::clone(&audited.recording));
        audited
    }

    /// Begins another request, without warnings and annotations.
    fn next_request(&mut self) {
        self.context = context();
    }

    async fn create(&mut self, plural: &str, object: Value) -> Result<Arc<Object>, Error> {
        self.next_request();
        let namespace = if plural == "namespaces" { "" } else { "ns" };
        let (store, options) = (self.store(plural), Default::default());
        store
            .create(&self.context, namespace, object, &options)
            .await
    }

    async fn update(
        &mut self,
        plural: &str,
        name: &str,
        change: impl FnMut(&mut Value) + Send,
    ) -> Result<(), Error> {
        let namespace = if plural == "namespaces" { "" } else { "ns" };
        let (store, options) = (self.store(plural), Default::default());
        let mut update = patch(change);
        let updated = store.update(&self.context, namespace, name, &mut update, &options);
        updated.await.map(drop)
    }

    async fn label(&mut self, labels: &Value) -> Result<(), Error> {
        self.next_request();
        self.update("namespaces", "ns", |it| {
            it["metadata"]["labels"] = labels.clone()
        })
        .await
    }

    fn metric(&self, line: &str) -> bool {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("text");
        text.lines().any(|it| it == line)
    }
}

/// The record of one request, and the audit log that it is written to.
struct Audited {
    recording: Arc<Recording>,
    log: LogWriter<Log>,
    lines: Log,
    end: CancellationToken,
}

/// The lines of an audit log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("sound").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Audited {
    fn new() -> Self {
        let (lines, end, clock) = (Log::default(), CancellationToken::new(), Clock::real());
        let options = LogOptions {
            format: LogFormat::Json,
            queue: QueueOptions {
                mode: BackendMode::Batch,
                events_max: 10,
            },
            batches: BatchOptions {
                events_max: 1,
                wait_max: Duration::ZERO,
                throttle: None,
            },
            truncation: None,
        };
        let metrics = Metrics::default();
        let (queue, log) = LogWriter::new(
            lines.clone(),
            options,
            metrics.clone(),
            end.clone(),
            clock.clone(),
        );
        let rules = "rules: [{level: Metadata, omitStages: [RequestReceived]}]";
        let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
        let policy = Policy::parse(&policy).expect("a policy");
        let ledger = Ledger::unlimited();
        let auditor = Auditor::new(policy, vec![queue], metrics, ledger, clock.clone());
        let user = User::default();
        let head = RequestHead {
            audit_id: "a",
            uri: "/",
            user_agent: "",
            source_ips: Vec::new(),
            began: (clock.now(), clock.wall()),
        };
        let recording = auditor.begin(&Attributes::of_path(&user, "get", "/"), head);
        Self {
            recording: recording.expect("recorded"),
            log,
            lines,
            end,
        }
    }

    /// Returns the plugin's annotations of the request.
    async fn annotations(self) -> Value {
        self.recording.complete_now(None);
        self.end.cancel();
        self.log.run().await;
        let lines = self.lines.0.lock().expect("sound").clone();
        let event: Value = serde_json::from_slice(&lines).expect("one event");
        let annotations = event["annotations"].as_object().into_iter().flatten();
        let annotations = annotations.filter_map(|(key, value)| {
            let key = key.strip_prefix("pod-security.kubernetes.io/")?;
            Some((key.to_owned(), value.clone()))
        });
        Value::Object(annotations.collect())
    }
}

fn labels(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), json!(value)));
    Value::Object(pairs.collect())
}

fn namespace(pairs: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "ns", "labels": labels(pairs)}})
}

fn spec() -> Value {
    json!({"containers": [{"name": "a", "image": "i"}]})
}

fn pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

fn privileged() -> Value {
    json!({"containers": [{"name": "a", "image": "i", "securityContext": {"privileged": true}}]})
}

const PRIVILEGED: &str =
    "privileged (container \"a\" must not set securityContext.privileged=true)";

#[tokio::test]
async fn without_labels_everything_is_allowed() {
    let mut cluster = Cluster::new();
    cluster
        .create("namespaces", namespace(&[]))
        .await
        .expect("created");
    cluster
        .create("pods", pod("p", privileged()))
        .await
        .expect("allowed");
    assert!(cluster.metric(
        "pod_security_evaluations_total{decision=\"allow\",policy_level=\"privileged\",policy_version=\"latest\",\
         mode=\"enforce\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1"
    ));
}

#[tokio::test]
async fn each_mode_has_its_level() {
    let mut cluster = Cluster::new();
    let modes = [
        ("enforce", "baseline"),
        ("enforce-version", "v1.30"),
        ("audit", "restricted"),
        ("audit-version", "v1.20"),
        ("warn", "restricted"),
    ];
    cluster
        .create("namespaces", namespace(&modes))
        .await
        .expect("created");
    let error = cluster.create("pods", pod("p", privileged())).await;
    assert_eq!(
        error.expect_err("refused").to_string(),
        format!("pods \"p\" is forbidden: violates PodSecurity \"baseline:v1.30\": {PRIVILEGED}")
    );
    assert!(cluster.context.warnings().is_empty());

    cluster
        .create("pods", pod("p", spec()))
        .await
        .expect("allowed");
    let warnings = cluster.context.warnings();
    let begin = "would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"a\" must";
    assert!(warnings[0].starts_with(begin), "{warnings:?}");
    for (decision, level, version, mode) in [
        ("deny", "baseline", "v1.30", "enforce"),
        ("allow", "baseline", "v1.30", "enforce"),
        ("deny", "restricted", "latest", "warn"),
    ] {
        assert!(cluster.metric(&format!(
            "pod_security_evaluations_total{{decision=\"{decision}\",policy_level=\"{level}\",policy_version=\"{version}\",\
             mode=\"{mode}\",request_operation=\"create\",resource=\"pod\",subresource=\"\"}} 1"
        )));
    }
}

/// Returns an object of each kind that makes pods of this template, with its plural.
fn makers(template: &Value) -> Vec<(&'static str, Value)> {
    let selector = json!({"matchLabels": {"a": "b"}});
    let selecting = json!({"selector": selector, "template": template});
    let plain = json!({"template": template});
    let mut once = plain.clone();
    once["template"]["spec"]["restartPolicy"] = json!("Never");
    let scheduled = json!({"schedule": "* * * * *", "jobTemplate": {"spec": once}});
    let with_spec = |api_version: &str, kind: &str, spec: &Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    vec![
        (
            "deployments",
            with_spec("apps/v1", "Deployment", &selecting),
        ),
        ("daemonsets", with_spec("apps/v1", "DaemonSet", &selecting)),
        (
            "replicasets",
            with_spec("apps/v1", "ReplicaSet", &selecting),
        ),
        (
            "statefulsets",
            with_spec("apps/v1", "StatefulSet", &selecting),
        ),
        (
            "replicationcontrollers",
            with_spec("v1", "ReplicationController", &plain),
        ),
        ("jobs", with_spec("batch/v1", "Job", &once)),
        ("cronjobs", with_spec("batch/v1", "CronJob", &scheduled)),
        (
            "podtemplates",
            json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"},
                "template": template}),
        ),
    ]
}

#[tokio::test]
async fn what_makes_pods_is_warned_of_and_never_refused() {
    let mut cluster = Cluster::new();
    let modes = [("enforce", "baseline")];
    cluster
        .create("namespaces", namespace(&modes))
        .await
        .expect("created");
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": privileged()});
    for (plural, object) in makers(&template) {
        cluster.create(plural, object).await.expect(plural);
        assert_eq!(
            cluster.context.warnings(),
            [format!(
                "would violate PodSecurity \"baseline:latest\": {PRIVILEGED}"
            )],
            "{plural}"
        );
    }
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    cluster.create("configmaps", object).await.expect("created");
    assert!(cluster.context.warnings().is_empty());
}

#[tokio::test]
async fn updates_that_change_no_image_are_allowed() {
    let mut cluster = Cluster::new();
    cluster
        .create("namespaces", namespace(&[]))
        .await
        .expect("created");
    let mut spec = privileged();
    spec["initContainers"] = json!([{"name": "i", "image": "i"}]);
    cluster
        .create("pods", pod("p", spec))
        .await
        .expect("allowed");
    cluster
        .label(&labels(&[("enforce", "baseline")]))
        .await
        .expect("labelled");
    cluster.next_request();
    let relabelled = cluster.update("pods", "p", |pod| {
        pod["metadata"]["labels"] = json!({"a": "b"});
    });
    relabelled.await.expect("nothing that counts");
    for kind in ["containers", "initContainers"] {
        let updated = cluster.update("pods", "p", |pod| {
            pod["spec"][kind][0]["image"] = json!("j")
        });
        let error = updated.await.expect_err("another image").to_string();
        assert!(error.ends_with(PRIVILEGED), "{error}");
    }
    let debugger = json!([{"name": "debug", "image": "d", "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always"}]);
    for (subresource, refused) in [("status", false), ("ephemeralcontainers", true)] {
        cluster.next_request();
        cluster.context.subresource = subresource.to_owned();
        let updated = cluster.update("pods", "p", |pod| {
            pod["spec"]["ephemeralContainers"] = debugger.clone();
        });
        assert_eq!(updated.await.is_err(), refused, "{subresource}");
    }
    cluster.label(&labels(&[])).await.expect("labelled");
    cluster.next_request();
    cluster.context.subresource = "ephemeralcontainers".to_owned();
    let debugged = cluster.update("pods", "p", |pod| {
        pod["spec"]["ephemeralContainers"] = debugger.clone();
    });
    debugged.await.expect("allowed");
    cluster
        .label(&labels(&[("enforce", "baseline")]))
        .await
        .expect("labelled");
    cluster.next_request();
    let relabelled = cluster.update("pods", "p", |pod| pod["metadata"]["labels"] = json!({}));
    relabelled.await.expect("the debugger is as it was");
}

#[tokio::test]
async fn users_namespaces_and_runtime_classes_are_exempt() {
    let baseline = json!({"enforce": "baseline"});
    for (exemptions, reason) in [
        (json!({"namespaces": ["ns"]}), "namespace"),
        (json!({"usernames": ["alice"]}), "user"),
        (json!({"runtimeClasses": ["sandbox"]}), "runtimeClass"),
        (json!({}), ""),
    ] {
        let mut cluster = Cluster::configured(&baseline, &exemptions);
        cluster
            .create("namespaces", namespace(&[]))
            .await
            .expect("created");
        let audited = cluster.next_recorded_request();
        cluster.context.user.name = "alice".to_owned();
        let mut spec = privileged();
        spec["runtimeClassName"] = json!("sandbox");
        let (store, options) = (cluster.store("pods"), Default::default());
        let created = store.create(&cluster.context, "ns", pod("p", spec), &options);
        assert_eq!(created.await.is_err(), reason.is_empty(), "{reason}");
        let counted = "pod_security_exemptions_total{request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1";
        assert_eq!(cluster.metric(counted), !reason.is_empty());
        let expected = match reason {
            "" => json!({"enforce-policy": "baseline:latest"}),
            reason => json!({"exempt": reason}),
        };
        assert_eq!(audited.annotations().await, expected, "{reason}");
    }
}

#[tokio::test]
async fn errors_are_annotated() {
    let mut cluster = Cluster::new();
    let audited = cluster.next_recorded_request();
    let (store, options) = (cluster.store("pods"), Default::default());
    let created = store.create(&cluster.context, "ns", pod("p", spec()), &options);
    let error = created.await.expect_err("there is no such namespace");
    assert!(
        error
            .to_string()
            .contains("failed to lookup namespace \"ns\""),
        "{error}"
    );
    let annotations = audited.annotations().await;
    let error = annotations["error"].as_str().expect("an error");
    let begin = "Internal error occurred: failed to lookup namespace \"ns\": ";
    assert!(error.starts_with(begin), "{error}");

    // A controller is served, and a label that is wrong is told of.
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec()});
    let deployment = || makers(&template).remove(0).1;
    let audited = cluster.next_recorded_request();
    let store = cluster.store("deployments");
    let created = store.create(&cluster.context, "ns", deployment(), &options);
    created.await.expect("created");
    let annotations = audited.annotations().await;
    let error = annotations["error"].as_str().expect("an error");
    assert!(
        error.starts_with("failed to lookup namespace \"ns\": "),
        "{error}"
    );

    let resources = ringwatch_resources::built_in();
    let resource = resources.into_iter().find(|it| it.plural == "namespaces");
    let bare = Store::new(
        resource.expect("built in"),
        Arc::clone(&cluster.storage) as _,
    );
    let wrong = namespace(&[("enforce", "none")]);
    let created = bare.create(&cluster.context, "", wrong, &options);
    created.await.expect("nobody is asked");
    let audited = cluster.next_recorded_request();
    let store = cluster.store("pods");
    let created = store.create(&cluster.context, "ns", pod("p", spec()), &options);
    created
        .await
        .expect_err("an unknown level is the strictest");
    let annotations = audited.annotations().await;
    assert_eq!(annotations["enforce-policy"], "restricted:latest");
    let error = annotations["error"].as_str().expect("an error");
    let begin = "Failed to parse policy: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"none\"";
    assert!(error.starts_with(begin), "{error}");
}

#[tokio::test]
async fn labels_must_be_valid_unless_they_were_not() {
    let mut cluster = Cluster::new();
    let error = cluster
        .create("namespaces", namespace(&[("enforce", "none")]))
        .await;
    let words = "Namespace \"ns\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \
        \"none\": must be one of privileged, baseline, restricted";
    assert_eq!(error.expect_err("refused").to_string(), words);
    cluster
        .create("namespaces", namespace(&[]))
        .await
        .expect("created");
    let error = cluster.label(&labels(&[("enforce", "none")])).await;
    assert_eq!(error.expect_err("refused").to_string(), words);

    // As stored by a server without the plugin.
    let resources = ringwatch_resources::built_in();
    let resource = resources.into_iter().find(|it| it.plural == "namespaces");
    let bare = Store::new(
        resource.expect("built in"),
        Arc::clone(&cluster.storage) as _,
    );
    let mut update = patch(|it| it["metadata"]["labels"] = labels(&[("enforce", "none")]));
    let options = Default::default();
    let updated = bare.update(&cluster.context, "", "ns", &mut update, &options);
    updated.await.expect("nobody is asked");
    cluster.next_request();
    let annotated = cluster.update("namespaces", "ns", |it| {
        it["metadata"]["annotations"] = json!({"a": "b"})
    });
    annotated.await.expect("the label is as it was");
    let error = cluster.label(&labels(&[("enforce", "other")])).await;
    error.expect_err("another wrong label");

    // A level that is not known is the strictest one.
    let error = cluster
        .create("pods", pod("p", spec()))
        .await
        .expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("violates PodSecurity \"restricted:latest\""),
        "{error}"
    );
    assert!(cluster.metric(
        "pod_security_errors_total{fatal=\"false\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1"
    ));
}

#[tokio::test]
async fn a_stricter_level_warns_of_the_pods_that_are_there() {
    let mut cluster = Cluster::new();
    cluster
        .create("namespaces", namespace(&[]))
        .await
        .expect("created");
    for name in ["b", "a"] {
        cluster
            .create("pods", pod(name, privileged()))
            .await
            .expect("allowed");
    }
    let baseline = [("enforce", "baseline")];
    cluster.label(&labels(&baseline)).await.expect("labelled");
    assert_eq!(
        cluster.context.warnings(),
        [
            "existing pods in namespace \"ns\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 1 other pod): privileged",
        ]
    );
    // Nothing new is enforced.
    for same in [
        &[("enforce", "baseline"), ("warn", "restricted")][..],
        &[("enforce", "privileged"), ("enforce-version", "v1.30")],
        &[],
    ] {
        cluster.label(&labels(same)).await.expect("labelled");
        assert!(cluster.context.warnings().is_empty(), "{same:?}");
    }
    cluster
        .label(&labels(&[("enforce", "restricted")]))
        .await
        .expect("labelled");
    assert_eq!(cluster.context.warnings().len(), 2);
    // Another version may be stricter, though the level is not.
    cluster
        .label(&labels(&[
            ("enforce", "baseline"),
            ("enforce-version", "v1.30"),
        ]))
        .await
        .expect("labelled");
    assert_eq!(cluster.context.warnings().len(), 2);
}

#[tokio::test]
async fn labels_of_an_exempt_namespace_have_no_effect() {
    let mut cluster = Cluster::configured(&json!({}), &json!({"namespaces": ["ns"]}));
    let modes = [
        ("enforce", "baseline"),
        ("audit", "privileged"),
        ("warn-version", "v1.30"),
    ];
    cluster
        .create("namespaces", namespace(&modes))
        .await
        .expect("created");
    let warning = |policy: &str| {
        format!(
            "namespace \"ns\" is exempt from Pod Security, and the policy ({policy}) will be ignored"
        )
    };
    let both = warning("enforce=baseline:latest, warn=baseline:v1.30");
    assert_eq!(cluster.context.warnings(), [both]);
    cluster
        .label(&labels(&[("enforce", "restricted")]))
        .await
        .expect("labelled");
    assert_eq!(
        cluster.context.warnings(),
        [warning("enforce=restricted:latest")]
    );
    cluster.label(&labels(&[])).await.expect("labelled");
    assert!(cluster.context.warnings().is_empty());
}

#[tokio::test]
async fn a_namespace_that_cannot_be_found_is_an_error_for_pods_alone() {
    let mut cluster = Cluster::new();
    let error = cluster
        .create("pods", pod("p", spec()))
        .await
        .expect_err("no namespace");
    assert!(matches!(error, Error::Internal(_)));
    assert_eq!(error.to_string(), "failed to lookup namespace \"ns\"");
    let job = json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"},
        "template": {"metadata": {}, "spec": spec()}});
    cluster.create("podtemplates", job).await.expect("created");
    assert!(cluster.metric(
        "pod_security_errors_total{fatal=\"true\",request_operation=\"create\",resource=\"controller\",subresource=\"\"} 1"
    ));
}

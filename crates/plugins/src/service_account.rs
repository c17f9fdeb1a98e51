//! Sets the service account of a pod, and mounts its token. Kubernetes' ServiceAccount plugin.
//!
//! Accounts named `default` are made by a controller, soon after their namespace: a pod that comes too early waits
//! a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ringwatch::storage::Interface;
use ringwatch_admission::Plugin;
use ringwatch_admission::lookup::{find_tree, unaskable};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::names::generate_name;
use ringwatch_apimachinery::path::{get, get_mut, list, set, text};
use ringwatch_registry::Request;
use serde_json::{Value, json};

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";

/// Maximum number of look-ups of an account `default` that does not exist yet, and the time between two.
const LOOKS_MAX: u32 = 10;
const LOOK_PERIOD: Duration = Duration::from_millis(150);

/// Lifetime of mounted tokens, in seconds; the odd number marks them as injected ones.
const TOKEN_SECONDS: i64 = 3607;

/// The mode of the files of a mounted token: 0644.
const FILE_MODE: i64 = 420;

/// The plugin, with the storage of ServiceAccounts.
#[derive(Debug)]
pub struct ServiceAccount {
    accounts: Arc<dyn Interface>,
    /// True once the log says why pods are refused.
    explained: AtomicBool,
}

impl ServiceAccount {
    /// Creates the plugin, which looks ServiceAccounts up in this storage.
    #[must_use]
    pub fn new(accounts: Arc<dyn Interface>) -> Self {
        Self {
            accounts,
            explained: AtomicBool::new(false),
        }
    }

    /// Returns the account of a pod.
    async fn account(&self, request: &Request<'_>, pod: &Value) -> Result<Value, Error> {
        let (namespace, name) = (request.namespace, text(pod, "spec.serviceAccountName"));
        let refuse = |why: &str| {
            let message = format!("error looking up service account {namespace}/{name}: {why}");
            request.forbid(pod, message)
        };
        if let Some(error) = unaskable(name) {
            return Err(refuse(&error));
        }
        let key = format!("/serviceaccounts/{namespace}/{name}");
        let looks = if name == DEFAULT { LOOKS_MAX } else { 1 };
        for look in 0..looks {
            if look > 0 {
                request.context.clock.sleep(LOOK_PERIOD).await;
            }
            if let Some(account) = find_tree(&*self.accounts, &key).await? {
                return Ok(account);
            }
        }
        if name == DEFAULT {
            self.explain(namespace);
        }
        Err(refuse(&format!("serviceaccount {name:?} not found")))
    }

    /// Logs once what to do about pods of namespaces in which nobody makes accounts.
    fn explain(&self, namespace: &str) {
        // Relaxed: at worst two threads log it.
        if self.explained.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!(
            namespace,
            "pods are refused in namespaces without a ServiceAccount {DEFAULT:?}, which kube-controller-manager creates: \
             run it, create the account, or start with --disable-admission-plugins=ServiceAccount"
        );
    }
}

#[async_trait]
impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    async fn admit(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Error> {
        if !request.creates("", "pods") || is_mirror(pod) {
            return Ok(());
        }
        if text(pod, "spec.serviceAccountName").is_empty() {
            for member in ["spec.serviceAccountName", "spec.serviceAccount"] {
                set(pod, member, DEFAULT.into());
            }
        }
        let account = self.account(request, pod).await?;
        if wants_token(&account, pod) {
            mount_token(pod);
        }
        let secrets = list(&account, "imagePullSecrets");
        if list(pod, "spec.imagePullSecrets").is_empty() && !secrets.is_empty() {
            set(pod, "spec.imagePullSecrets", secrets.into());
        }
        Ok(())
    }

    async fn validate(&self, request: &Request<'_>, pod: &Value) -> Result<(), Error> {
        if !request.creates("", "pods") {
            return Ok(());
        }
        if is_mirror(pod) {
            return match mirror_fault(pod) {
                Some(message) => Err(request.forbid(pod, message)),
                None => Ok(()),
            };
        }
        self.account(request, pod).await.map(drop)
    }
}

/// Returns true if a pod is the mirror of a static pod, which the node would not have changed.
fn is_mirror(pod: &Value) -> bool {
    let annotations = get(pod, "metadata.annotations");
    annotations.is_some_and(|all| all.get(MIRROR).is_some())
}

/// Returns the field that a mirror pod may not have, since a node could get at secrets by it.
fn mirror_fault(pod: &Value) -> Option<&'static str> {
    let spec = &pod["spec"];
    if !text(spec, "serviceAccountName").is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if names_secret(spec) {
        return Some("a mirror pod may not reference secrets");
    }
    let mut sources = list(spec, "volumes")
        .iter()
        .flat_map(|volume| list(volume, "projected.sources"));
    let has_token = sources.any(|source| get(source, "serviceAccountToken").is_some());
    has_token.then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

/// Returns true if a secret is named in any of the fields that can name one.
fn names_secret(value: &Value) -> bool {
    const PLACES: [&str; 6] = [
        "imagePullSecrets",
        "nodePublishSecretRef",
        "secret",
        "secretKeyRef",
        "secretName",
        "secretRef",
    ];
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            (PLACES.contains(&name.as_str()) && !empty) || names_secret(value)
        }),
        Value::Array(items) => items.iter().any(names_secret),
        _ => false,
    }
}

/// Returns true if a token is to be mounted: the pod decides, then its account, and the default is true.
fn wants_token(account: &Value, pod: &Value) -> bool {
    let said = [
        get(pod, "spec.automountServiceAccountToken"),
        get(account, "automountServiceAccountToken"),
    ];
    let said = said.into_iter().flatten().find_map(Value::as_bool);
    said.unwrap_or(true)
}

/// Mounts a token, the server's authority and the namespace into every container that has nothing there.
fn mount_token(pod: &mut Value) {
    let volumes = list(pod, "spec.volumes");
    let mut names = volumes.iter().map(|volume| text(volume, "name"));
    let there = names.find(|name| name.starts_with(VOLUME_PREFIX));
    let name = there.map_or_else(|| generate_name(VOLUME_PREFIX), str::to_owned);
    let is_there = there.is_some();
    let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut mounted = false;
    for containers in ["spec.initContainers", "spec.containers"] {
        let containers = get_mut(pod, containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = list(container, "volumeMounts");
            if mounts.iter().all(|it| text(it, "mountPath") != MOUNT_PATH) {
                let mounts = [mounts, std::slice::from_ref(&mount)].concat();
                set(container, "volumeMounts", mounts.into());
                mounted = true;
            }
        }
    }
    if mounted && !is_there {
        let volumes = [list(pod, "spec.volumes"), &[token_volume(&name)]].concat();
        set(pod, "spec.volumes", volumes.into());
    }
}

fn token_volume(name: &str) -> Value {
    json!({"name": name, "projected": {"defaultMode": FILE_MODE, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}})
}

#[cfg(test)]
mod tests {
    use ringwatch_registry::testing::{MemoryStorage, context};
    use ringwatch_registry::{CreateOptions, Operation, Store};

    use super::*;

    /// Returns a plugin that knows one account.
    async fn plugin(account: Value) -> ServiceAccount {
        let storage = MemoryStorage::new("/serviceaccounts");
        let resources = ringwatch_resources::built_in();
        let accounts = resources
            .into_iter()
            .find(|it| it.plural == "serviceaccounts");
        let store = Store::new(accounts.expect("built in"), Arc::clone(&storage) as _);
        let (context, options) = (context(), CreateOptions::default());
        let created = store.create(&context, "ns", account, &options).await;
        created.expect("created");
        ServiceAccount::new(storage)
    }

    fn account(name: &str, more: Value) -> Value {
        let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "ns"}});
        for (member, value) in more.as_object().expect("members") {
            account[member] = value.clone();
        }
        account
    }

    async fn admitted(plugin: &ServiceAccount, mut pod: Value) -> Result<Value, String> {
        let resources = ringwatch_resources::built_in();
        let pods = resources.iter().find(|it| it.plural == "pods");
        let request = Request {
            context: &context(),
            operation: Operation::Create,
            resource: pods.expect("built in"),
            namespace: "ns",
            name: "p",
            old: None,
            dry_run: false,
        };
        let admitted = plugin.admit(&request, &mut pod).await;
        admitted.map_err(|error| error.to_string())?;
        let valid = plugin.validate(&request, &pod).await;
        valid.map_err(|error| error.to_string())?;
        Ok(pod["spec"].take())
    }

    #[tokio::test]
    async fn a_pod_runs_as_the_default_account_and_can_prove_it() {
        let secrets = json!({"imagePullSecrets": [{"name": "pull"}]});
        let plugin = plugin(account(DEFAULT, secrets)).await;
        let pod = json!({"spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "c"},
            {"name": "own", "volumeMounts": [{"name": "mine", "mountPath": MOUNT_PATH}]}]}});
        let spec = admitted(&plugin, pod).await.expect("admitted");
        assert_eq!(spec["serviceAccountName"], DEFAULT);
        assert_eq!(spec["serviceAccount"], DEFAULT);
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
        let name = spec["volumes"][0]["name"].as_str().expect("a volume");
        assert!(name.starts_with(VOLUME_PREFIX), "{name}");
        assert_eq!(spec["volumes"], json!([token_volume(name)]));
        let mount = json!([{"name": name, "readOnly": true, "mountPath": MOUNT_PATH}]);
        assert_eq!(spec["initContainers"][0]["volumeMounts"], mount);
        assert_eq!(spec["containers"][0]["volumeMounts"], mount);
        assert_eq!(spec["containers"][1]["volumeMounts"][0]["name"], "mine");
    }

    #[tokio::test]
    async fn what_is_there_is_used_and_what_is_not_wanted_is_not_mounted() {
        let plugin = plugin(account("a", json!({"automountServiceAccountToken": false}))).await;
        let pod = |more: Value| {
            let mut pod =
                json!({"spec": {"serviceAccountName": "a", "containers": [{"name": "c"}]}});
            for (member, value) in more.as_object().expect("members") {
                pod["spec"][member] = value.clone();
            }
            pod
        };
        let spec = admitted(&plugin, pod(json!({}))).await.expect("admitted");
        assert_eq!(spec.get("volumes"), None, "the account does not want it");
        let wanted = pod(json!({"automountServiceAccountToken": true,
            "imagePullSecrets": [{"name": "own"}],
            "volumes": [{"name": "kube-api-access-mine"}]}));
        let spec = admitted(&plugin, wanted).await.expect("admitted");
        assert_eq!(spec["volumes"], json!([{"name": "kube-api-access-mine"}]));
        let mounts = &spec["containers"][0]["volumeMounts"];
        assert_eq!(mounts[0]["name"], "kube-api-access-mine");
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "own"}]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_of_no_account_is_refused() {
        let plugin = plugin(account("a", json!({}))).await;
        for (spec, name, why) in [
            (json!({}), DEFAULT, r#"serviceaccount "default" not found"#),
            (
                json!({"serviceAccountName": "none"}),
                "none",
                r#"serviceaccount "none" not found"#,
            ),
            (
                json!({"serviceAccountName": "a/b"}),
                "a/b",
                r#"invalid resource name "a/b": [may not contain '/']"#,
            ),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": spec});
            let message = format!(
                r#"pods "p" is forbidden: error looking up service account ns/{name}: {why}"#
            );
            assert_eq!(admitted(&plugin, pod).await, Err(message));
        }
    }

    #[tokio::test]
    async fn mirrors_are_left_alone_and_have_no_secrets() {
        let plugin = plugin(account(DEFAULT, json!({}))).await;
        let mirror = |spec: Value| json!({"metadata": {"name": "p", "annotations": {MIRROR: "x"}}, "spec": spec});
        let plain = json!({"containers": [{"name": "c", "env": [{"name": "a", "value": "b"}]}],
            "imagePullSecrets": []});
        assert_eq!(admitted(&plugin, mirror(plain.clone())).await, Ok(plain));
        for (spec, words) in [
            (
                json!({"serviceAccountName": "default"}),
                "may not reference service accounts",
            ),
            (
                json!({"volumes": [{"secret": {"secretName": "s"}}]}),
                "may not reference secrets",
            ),
            (
                json!({"imagePullSecrets": [{"name": "s"}]}),
                "may not reference secrets",
            ),
            (
                json!({"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s"}}}]}]}),
                "may not reference secrets",
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}),
                "may not use ServiceAccountToken volume projections",
            ),
        ] {
            let refused = admitted(&plugin, mirror(spec)).await.expect_err(words);
            assert!(refused.contains(words), "{refused}");
        }
    }
}

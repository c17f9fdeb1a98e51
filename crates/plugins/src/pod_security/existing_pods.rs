//! Checks the pods that a namespace has against a level that is newly enforced in it.
//!
//! The number of pods and the time are bounded. Pods of a controller are mostly alike, so the first of each controller
//! comes before its others.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::ListOptions;
use ringwatch_offload::{Work, is_abandoned, offload};
use ringwatch_registry::Request;
use serde_json::Value;

use super::PodSecurity;
use super::level::LevelVersion;
use super::pod::{CheckedPod, items, text};
use super::verdict::PodVerdict;

/// Maximum number of pods that are checked, as in kube-apiserver.
const PODS_MAX: usize = 3_000;
/// Maximum time of the checks, as in kube-apiserver.
const TIME_MAX: Duration = Duration::from_secs(1);

impl PodSecurity {
    /// Returns the warnings about pods in the namespace of this name that violate a level.
    pub(super) async fn warnings_of_pods(
        &self,
        request: &Request<'_>,
        level: LevelVersion,
    ) -> Vec<String> {
        let clock = &request.context.clock;
        let deadline = clock.now() + TIME_MAX;
        let options = ListOptions {
            resource_version: Some(ResourceVersion(0)),
            recursive: true,
            ..ListOptions::default()
        };
        let key = format!("/pods/{}/", request.name);
        let list = match self.pods.get_list(&key, options).await {
            Ok(list) => list,
            Err(error) => {
                tracing::warn!(namespace = request.name, %error, "cannot list pods for PodSecurity");
                return vec![
                    "failed to list pods while checking new PodSecurity enforce level".to_owned(),
                ];
            }
        };
        if list.items.is_empty() {
            return Vec::new();
        }
        offload(Work::Object).await;
        let mut survey = Survey::new(level, list.items.len());
        let exempt = &self.configuration.exempt_runtime_classes;
        let is_over = || clock.now() >= deadline || is_abandoned();
        survey.check(&list.items, exempt, is_over);
        survey.warnings(request.name)
    }
}

/// The pods of a namespace as far as they have been checked.
struct Survey {
    level: LevelVersion,
    /// The number of pods, without those known to be exempt.
    total: usize,
    checked: usize,
    /// The reasons of violations.
    violations: BTreeMap<String, Violators>,
}

/// The pods that violate a level for the same reasons.
struct Violators {
    /// The first of their names.
    name: String,
    count: usize,
}

impl Survey {
    fn new(level: LevelVersion, total: usize) -> Self {
        Self {
            level,
            total,
            checked: 0,
            violations: BTreeMap::new(),
        }
    }

    /// Checks pods until enough are or the time is over.
    fn check(
        &mut self,
        pods: &[Arc<Object>],
        exempt: &HashSet<String>,
        is_over: impl Fn() -> bool,
    ) {
        let mut controllers = HashSet::new();
        let mut alike = Vec::new();
        for pod in pods {
            if self.checked == PODS_MAX {
                return;
            }
            let Some(tree) = tree(pod) else {
                continue;
            };
            if exempt.contains(CheckedPod::new(&tree).runtime_class()) {
                self.total -= 1;
                continue;
            }
            let is_first = controller(&tree).is_none_or(|uid| controllers.insert(uid.to_owned()));
            if is_first {
                self.check_one(pod.name(), &tree);
            } else {
                alike.push(pod);
            }
            if is_over() {
                return;
            }
        }
        for pod in alike {
            if self.checked == PODS_MAX {
                return;
            }
            if let Some(tree) = tree(pod) {
                self.check_one(pod.name(), &tree);
            }
            if is_over() {
                return;
            }
        }
    }

    fn check_one(&mut self, name: &str, tree: &Value) {
        self.checked += 1;
        let verdict = PodVerdict::new(self.level, CheckedPod::new(tree));
        if verdict.is_allowed() {
            return;
        }
        let violators = self
            .violations
            .entry(verdict.reasons())
            .or_insert_with(|| Violators {
                name: name.to_owned(),
                count: 0,
            });
        violators.count += 1;
        if *name < *violators.name {
            name.clone_into(&mut violators.name);
        }
    }

    fn warnings(self, namespace: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.checked < self.total {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {} of {} existing pods",
                self.checked, self.total
            ));
        }
        if !self.violations.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{}\"",
                self.level
            ));
        }
        let mut lines: Vec<String> = self
            .violations
            .into_iter()
            .map(|(reasons, Violators { name, count })| match count {
                1 => format!("{name}: {reasons}"),
                2 => format!("{name} (and 1 other pod): {reasons}"),
                _ => format!("{name} (and {} other pods): {reasons}", count - 1),
            })
            .collect();
        lines.sort();
        warnings.extend(lines);
        warnings
    }
}

/// Returns the content of a pod; `None`, with a log line, if it cannot be read.
fn tree(pod: &Object) -> Option<Value> {
    let tree = codec::tree(pod);
    tree.inspect_err(|error| {
        tracing::warn!(pod = pod.name(), %error, "cannot read a pod for PodSecurity");
    })
    .ok()
}

/// Returns the uid of the controller that owns a pod.
fn controller(pod: &Value) -> Option<&str> {
    let mut owners = items(&pod["metadata"]["ownerReferences"]);
    let owner = owners.find(|it| it["controller"] == true)?;
    Some(text(&owner["uid"]))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ringwatch::meta::FieldSchema;
    use serde_json::json;

    use super::*;
    use crate::pod_security::level::{Level, StandardVersion};

    const BASELINE: LevelVersion = LevelVersion {
        level: Level::Baseline,
        version: StandardVersion::Latest,
    };

    /// Makes a pod of this controller, if there is one, with this in its spec.
    fn pod(name: &str, controller: Option<&str>, more: Value) -> Arc<Object> {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "a", "image": "i"}]}});
        if let Some(uid) = controller {
            pod["metadata"]["ownerReferences"] =
                json!([{"uid": "x"}, {"uid": uid, "controller": true}]);
        }
        for (member, value) in more.as_object().expect("members") {
            pod["spec"][member] = value.clone();
        }
        Arc::new(Object::from_value(&pod, 1, &FieldSchema::default()).expect("an object"))
    }

    fn warnings(pods: &[Arc<Object>], exempt: &[&str], is_over: impl Fn() -> bool) -> Vec<String> {
        let exempt = exempt.iter().map(|it| (*it).to_owned()).collect();
        let mut survey = Survey::new(BASELINE, pods.len());
        survey.check(pods, &exempt, is_over);
        survey.warnings("ns")
    }

    #[test]
    fn pods_with_the_same_reasons_are_told_together() {
        let host = json!({"hostNetwork": true});
        let both = json!({"hostPID": true,
            "containers": [{"name": "a", "securityContext": {"privileged": true}}]});
        let pods = [
            pod("c", None, host.clone()),
            pod("b", Some("u"), host.clone()),
            pod("fine", None, json!({})),
            pod("d", Some("u"), host),
            pod("z", None, both.clone()),
            pod("y", None, both.clone()),
            pod(
                "only",
                None,
                json!({"hostIPC": true, "runtimeClassName": "sandbox"}),
            ),
        ];
        let head = "existing pods in namespace \"ns\" violate the new PodSecurity enforce level \"baseline:latest\"";
        assert_eq!(
            warnings(&pods, &["sandbox"], || false),
            [
                head,
                "b (and 2 other pods): host namespaces",
                "y (and 1 other pod): host namespaces, privileged",
            ]
        );
        assert_eq!(
            warnings(&pods[4..5], &[], || false),
            [head, "z: host namespaces, privileged"]
        );
        assert!(warnings(&pods[2..3], &[], || false).is_empty());
        assert!(warnings(&pods[6..], &["sandbox"], || true).is_empty());
    }

    #[test]
    fn a_bounded_number_of_pods_is_checked_first_those_of_different_controllers() {
        let fine = |uid| pod("fine", Some(uid), json!({}));
        let mut pods = vec![fine("one"); PODS_MAX];
        pods.push(pod("last", Some("two"), json!({"hostIPC": true})));
        let told = warnings(&pods, &[], || false);
        assert_eq!(
            told[0],
            "new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods"
        );
        assert_eq!(told[2], "last: host namespaces");
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn checks_end_with_their_time() {
        let pods = vec![pod("a", None, json!({})); 10];
        let looks = Cell::new(0);
        let is_over = || {
            looks.set(looks.get() + 1);
            looks.get() == 4
        };
        assert_eq!(
            warnings(&pods, &[], is_over),
            ["new PodSecurity enforce level only checked against the first 4 of 10 existing pods"]
        );
    }
}

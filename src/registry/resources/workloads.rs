//! What keeps pods: their templates are checked as pods are, and their selectors select what the
//! template makes, for ever.

use serde_json::{Value, json};

use super::defaults;
use super::path::{get, list, set, text};
use super::peculiar::Peculiar;
use super::pods::validation::{one_of, pod_spec};
use crate::registry::{FieldError, RequestContext};

/// What is peculiar about deployments, replica sets, daemon sets and stateful sets.
#[derive(Debug)]
pub(super) struct Workloads {
    /// The members of the spec that may change; empty if all but the selector may.
    changeable: &'static [&'static str],
}

/// What is peculiar about replication controllers.
#[derive(Debug)]
pub(super) struct ReplicationControllers;

/// What is peculiar about jobs.
#[derive(Debug)]
pub(super) struct Jobs;

/// What is peculiar about cron jobs.
#[derive(Debug)]
pub(super) struct CronJobs;

/// What a stateful set may change.
const STATEFUL_SET_CHANGEABLE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

const TEMPLATE_SPEC: &str = "spec.template.spec";

impl Workloads {
    pub(super) const fn new() -> Self {
        Self { changeable: &[] }
    }

    pub(super) const fn stateful() -> Self {
        Self {
            changeable: STATEFUL_SET_CHANGEABLE,
        }
    }
}

impl Peculiar for Workloads {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = counts(object);
        match get(object, "spec.selector") {
            None => errors.push(FieldError::required("spec.selector")),
            Some(selector) if is_empty(selector) => {
                let kind = if self.is_stateful() {
                    "statefulset"
                } else {
                    "deployment"
                };
                let why = format!("empty selector is invalid for {kind}");
                errors.push(FieldError::invalid("spec.selector", selector, why));
            }
            Some(selector) => errors.extend(mismatch(object, selects(selector, &labels(object)))),
        }
        // What a stateful set mounts need not be in its template: it may be a claim of its own. So
        // kube-apiserver leaves its template's spec alone.
        if !self.is_stateful() {
            errors.extend(pod_spec(get(object, TEMPLATE_SPEC), TEMPLATE_SPEC));
        }
        errors.extend(always_again(object));
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        if self.is_stateful() {
            return self.other_changes(object, old);
        }
        let selector = get(object, "spec.selector");
        if selector == get(old, "spec.selector") {
            return Vec::new();
        }
        let selector = selector.unwrap_or(&Value::Null);
        vec![FieldError::invalid(
            "spec.selector",
            selector,
            "field is immutable",
        )]
    }
}

impl Workloads {
    fn is_stateful(&self) -> bool {
        !self.changeable.is_empty()
    }

    fn other_changes(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let rest = |it: &Value| {
            let mut spec = get(it, "spec").cloned().unwrap_or_default();
            if let Some(members) = spec.as_object_mut() {
                members.retain(|name, _| !self.changeable.contains(&name.as_str()));
            }
            spec
        };
        if rest(object) == rest(old) {
            return Vec::new();
        }
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        vec![FieldError::forbidden("spec", why)]
    }
}

impl Peculiar for ReplicationControllers {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = counts(object);
        let selector = get(object, "spec.selector").and_then(Value::as_object);
        match selector.filter(|selector| !selector.is_empty()) {
            None => errors.push(FieldError::required("spec.selector")),
            Some(selector) => {
                let labels = labels(object);
                let all = selector
                    .iter()
                    .all(|(key, value)| labels.get(key) == Some(value));
                errors.extend(mismatch(object, all));
            }
        }
        errors.extend(pod_spec(get(object, TEMPLATE_SPEC), TEMPLATE_SPEC));
        errors.extend(always_again(object));
        errors
    }
}

impl Peculiar for Jobs {
    /// A job's pods are told from all others by the job's uid.
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        if get(object, "spec.manualSelector") == Some(&Value::Bool(true)) {
            return;
        }
        let uid = text(object, "metadata.uid").to_owned();
        let name = text(object, "metadata.name").to_owned();
        let mut labels = labels(object);
        if let Some(labels) = labels.as_object_mut() {
            for prefix in ["", "batch.kubernetes.io/"] {
                labels.insert(format!("{prefix}controller-uid"), json!(uid));
                labels.insert(format!("{prefix}job-name"), json!(name));
            }
        }
        set(object, "spec.template.metadata.labels", labels);
        if get(object, "spec.selector").is_none() {
            let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
            set(object, "spec.selector", selector);
        }
        // The template's labels are the job's by default, and kube-apiserver fills in defaults once more when
        // it reads what it has stored.
        defaults::batch::label_like_the_template(object);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = pod_spec(get(object, TEMPLATE_SPEC), TEMPLATE_SPEC);
        errors.extend(ending(object, TEMPLATE_SPEC));
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for member in [
            "selector",
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
        ] {
            let path = format!("spec.{member}");
            if get(object, &path) != get(old, &path) {
                let value = get(object, &path).unwrap_or(&Value::Null);
                errors.push(FieldError::invalid(&path, value, "field is immutable"));
            }
        }
        errors
    }
}

impl Peculiar for CronJobs {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let path = "spec.jobTemplate.spec.template.spec";
        let mut errors = Vec::new();
        if text(object, "spec.schedule").is_empty() {
            errors.push(FieldError::required("spec.schedule"));
        }
        errors.extend(pod_spec(get(object, path), path));
        errors.extend(ending(object, path));
        errors
    }
}

/// Numbers that are not negative.
fn counts(object: &Value) -> Vec<FieldError> {
    [
        "spec.replicas",
        "spec.minReadySeconds",
        "spec.revisionHistoryLimit",
    ]
    .into_iter()
    .filter_map(|path| {
        let value = get(object, path)?;
        let why = "must be greater than or equal to 0";
        (value.as_i64()? < 0).then(|| FieldError::invalid(path, value, why))
    })
    .collect()
}

/// Pods that run for ever begin again whatever happens.
fn always_again(object: &Value) -> Option<FieldError> {
    let path = "spec.template.spec.restartPolicy";
    // A policy that no pod may have is told already.
    matches!(text(object, path), "OnFailure" | "Never")
        .then(|| one_of(object, path, path.to_owned(), &["Always"]))
        .flatten()
}

/// Pods that run to their end do not begin again whatever happens.
fn ending(object: &Value, spec: &str) -> Option<FieldError> {
    let path = format!("{spec}.restartPolicy");
    let supported = ["OnFailure", "Never"];
    (text(object, &path) == "Always")
        .then(|| one_of(object, &path, path.clone(), &supported))
        .flatten()
}

fn labels(object: &Value) -> Value {
    get(object, "spec.template.metadata.labels")
        .cloned()
        .unwrap_or_else(|| json!({}))
}

fn mismatch(object: &Value, matches: bool) -> Option<FieldError> {
    (!matches).then(|| {
        let why = "`selector` does not match template `labels`";
        FieldError::invalid("spec.template.metadata.labels", &labels(object), why)
    })
}

fn is_empty(selector: &Value) -> bool {
    list(selector, "matchExpressions").is_empty()
        && get(selector, "matchLabels")
            .and_then(Value::as_object)
            .is_none_or(serde_json::Map::is_empty)
}

/// Whether a LabelSelector selects these labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let exact = get(selector, "matchLabels").and_then(Value::as_object);
    let expression = |it: &Value| {
        let value = labels.get(text(it, "key"));
        match text(it, "operator") {
            "In" => value.is_some_and(|value| list(it, "values").contains(value)),
            "NotIn" => value.is_none_or(|value| !list(it, "values").contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    exact
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && list(selector, "matchExpressions").iter().all(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(errors: &[FieldError]) -> Vec<String> {
        errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect()
    }

    fn deployment() -> Value {
        json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}}}})
    }

    #[test]
    fn a_deployment_selects_its_own_pods_for_ever() {
        let good = deployment();
        assert_eq!(Workloads::new().validate(&good), []);
        let mut wrong = good.clone();
        set(
            &mut wrong,
            "spec.template.metadata.labels",
            json!({"a": "c"}),
        );
        set(&mut wrong, "spec.template.spec.containers", json!([]));
        assert_eq!(
            messages(&Workloads::new().validate(&wrong)),
            [
                "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`",
                "spec.template.spec.containers: Required value",
            ]
        );
        let mut moved = good.clone();
        set(
            &mut moved,
            "spec.selector",
            json!({"matchLabels": {"a": "x"}}),
        );
        assert_eq!(
            messages(&Workloads::new().validate_update(&moved, &good)),
            ["spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"x\"}}: field is immutable"]
        );
        let mut once = good;
        set(
            &mut once,
            "spec.template.spec.restartPolicy",
            json!("Never"),
        );
        set(&mut once, "spec.replicas", json!(-1));
        assert_eq!(
            messages(&Workloads::new().validate(&once)),
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
            ]
        );
    }

    #[test]
    fn expressions_select() {
        let labels = json!({"a": "b"});
        let one = |operator: &str, key: &str, values: Value| {
            let expression = json!({"key": key, "operator": operator, "values": values});
            selects(&json!({"matchExpressions": [expression]}), &labels)
        };
        assert!(one("In", "a", json!(["b", "c"])));
        assert!(!one("In", "x", json!(["b"])));
        assert!(one("NotIn", "x", json!(["b"])));
        assert!(!one("NotIn", "a", json!(["b"])));
        assert!(one("Exists", "a", Value::Null));
        assert!(!one("DoesNotExist", "a", Value::Null));
        assert!(!one("Likes", "a", Value::Null));
    }

    #[test]
    fn a_job_tells_its_pods_by_its_uid() {
        use crate::clock::Clock;
        use crate::registry::User;
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {}}});
        Jobs.prepare_for_create(&context, &mut job);
        assert_eq!(
            job["spec"]["selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        );
        assert_eq!(
            job["spec"]["template"]["metadata"]["labels"]["job-name"],
            "j"
        );
        assert_eq!(job["metadata"]["labels"]["job-name"], "j");
    }

    #[test]
    fn a_stateful_set_changes_little() {
        let old = deployment();
        let mut new = old.clone();
        set(&mut new, "spec.replicas", json!(3));
        assert_eq!(Workloads::stateful().validate_update(&new, &old), []);
        set(&mut new, "spec.serviceName", json!("s"));
        assert_eq!(Workloads::stateful().validate_update(&new, &old).len(), 1);
    }

    #[test]
    fn a_stateful_set_mounts_its_claims() {
        let mut set_of = deployment();
        let mounts = json!([{"name": "data", "mountPath": "/data"}]);
        set_of["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = mounts;
        assert_eq!(Workloads::stateful().validate(&set_of), []);
        assert_eq!(Workloads::new().validate(&set_of).len(), 1);
    }
}

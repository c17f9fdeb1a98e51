//! The ReplicaSets of a Deployment, one for each template that it has had: which is the new one, and the annotations
//! that number them.
//!
//! Source of the semantics: `SetNewReplicaSetAnnotations` and `FindNewReplicaSet` of
//! `pkg/controller/deployment/util/deployment_util.go` of kube-controller-manager 1.36.

use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::path;
use serde_json::{Value, json};

use super::limits::RolloutLimits;
use super::templates::{self, HASH_LABEL};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// The annotations that a set does not get from its Deployment.
const OWN: [&str; 6] = [
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
];

/// Maximum length of the list of a set's former revisions, in bytes.
const HISTORY_MAX: usize = 2000;

/// A limit that stands for none.
const NO_LIMIT: i64 = i32::MAX as i64;

/// Splits sets into the new one of a Deployment, which is the oldest that has its template, and the others, the oldest
/// first.
pub(super) fn split(deployment: &Value, mut sets: Vec<Value>) -> (Option<Value>, Vec<Value>) {
    sets.sort_by_cached_key(age_order);
    let template = &deployment["spec"]["template"];
    let is_new = |set: &Value| templates::are_same(&set["spec"]["template"], template);
    let new = sets.iter().position(is_new);
    (new.map(|at| sets.remove(at)), sets)
}

/// Returns the key by which sets are in the order of their creation.
pub(super) fn age_order(set: &Value) -> (String, String) {
    (
        accessor::text(set, "creationTimestamp").to_owned(),
        accessor::text(set, "name").to_owned(),
    )
}

/// Returns a new set for a Deployment's template with this hash.
pub(super) fn new_set(
    deployment: &Value,
    hash: &str,
    reference: Value,
    size: i64,
    others: &[Value],
) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH_LABEL] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH_LABEL] = hash.into();
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": templates::set_name(accessor::text(deployment, "name"), hash),
            "namespace": deployment["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [reference],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": min_ready_seconds(deployment),
            "selector": selector,
            "template": template,
        },
    });
    note_revision(deployment, &mut set, others);
    note_size(&mut set, &RolloutLimits::of(deployment));
    set
}

/// Has the new set of a Deployment follow what may change without a new template, and gives it a higher revision than
/// the others have.
pub(super) fn follow(deployment: &Value, set: &mut Value, others: &[Value]) {
    let seconds = min_ready_seconds(deployment);
    if min_ready_seconds(set) != seconds {
        set["spec"]["minReadySeconds"] = seconds.into();
    }
    note_revision(deployment, set, others);
}

fn note_revision(deployment: &Value, set: &mut Value, others: &[Value]) {
    let annotations = deployment["metadata"]["annotations"].as_object();
    for (key, value) in annotations.into_iter().flatten() {
        if !OWN.contains(&key.as_str()) {
            set["metadata"]["annotations"][key] = value.clone();
        }
    }
    let before = annotation(set, REVISION).map(str::to_owned);
    let number = before.as_deref().map_or(Ok(0), str::parse::<i64>);
    // A revision that is no number was given by somebody else.
    let Ok(number) = number else { return };
    let next = others.iter().map(revision).max().unwrap_or(0).max(0) + 1;
    if number >= next {
        return;
    }
    annotate(set, REVISION, &next.to_string());
    if let Some(before) = before {
        let history = history(annotation(set, HISTORY).unwrap_or_default(), &before);
        annotate(set, HISTORY, &history);
    }
}

/// Returns the former revisions with one more, without the oldest if they are too long.
fn history(former: &str, revision: &str) -> String {
    let mut history = former;
    while !history.is_empty() && history.len() + 1 + revision.len() > HISTORY_MAX {
        history = history.split_once(',').map_or("", |(_, newer)| newer);
    }
    if history.is_empty() {
        revision.to_owned()
    } else {
        format!("{history},{revision}")
    }
}

/// Notes on a set the number of pods of its Deployment when it gets its size.
pub(super) fn note_size(set: &mut Value, limits: &RolloutLimits) {
    annotate(set, DESIRED, &limits.replicas.to_string());
    annotate(set, MAX, &limits.max_total().to_string());
}

/// Returns a number that is noted on a set by [`note_size`]; `None` if there is none that can be read.
pub(super) fn noted(set: &Value, key: &str) -> Option<i64> {
    let number: i32 = annotation(set, key)?.parse().ok()?;
    (number >= 0).then_some(number.into())
}

/// Returns the revision of a set; 0 if it has none that can be read.
fn revision(set: &Value) -> i64 {
    let revision = annotation(set, REVISION).and_then(|it| it.parse().ok());
    revision.unwrap_or_default()
}

/// Returns those of the old sets, which have no pods, that are beyond the history that a Deployment keeps.
pub(super) fn superfluous<'a>(deployment: &Value, old: &'a [Value]) -> Vec<&'a Value> {
    let limit = path::get(deployment, "spec.revisionHistoryLimit").and_then(Value::as_i64);
    let Some(limit) = limit.filter(|it| *it < NO_LIMIT) else {
        return Vec::new();
    };
    let mut sets: Vec<&Value> = old.iter().filter(|it| !is_terminating(it)).collect();
    sets.sort_by_cached_key(|set| (revision(set), age_order(set)));
    let kept = usize::try_from(limit).unwrap_or_default();
    sets.truncate(sets.len().saturating_sub(kept));
    sets.retain(|set| {
        let count = |at| path::get(set, at).and_then(Value::as_i64);
        let observed = count("status.observedGeneration").unwrap_or_default();
        count("spec.replicas") == Some(0)
            && count("status.replicas").unwrap_or_default() == 0
            && accessor::integer(set, "generation").unwrap_or_default() <= observed
    });
    sets
}

fn min_ready_seconds(object: &Value) -> i64 {
    let seconds = path::get(object, "spec.minReadySeconds");
    seconds.and_then(Value::as_i64).unwrap_or_default()
}

/// Returns an annotation.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Sets an annotation.
pub(super) fn annotate(object: &mut Value, key: &str, value: &str) {
    object["metadata"]["annotations"][key] = value.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, image: &str, annotations: Value) -> Value {
        json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
            "spec": {"replicas": 0, "template": {"metadata": {"labels": {"a": "b", HASH_LABEL: name}}, "spec": {"image": image}}},
        })
    }

    fn deployment(image: &str) -> Value {
        json!({
            "metadata": {"name": "d", "namespace": "n", "annotations": {
                "own": "yes", REVISION: "7", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"replicas": 10, "revisionHistoryLimit": 1, "minReadySeconds": 5,
                "selector": {"matchLabels": {"a": "b"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"image": image}}},
        })
    }

    #[test]
    fn the_new_set_is_the_oldest_with_the_template() {
        let deployment = deployment("new");
        let sets = vec![
            set("c", "new", json!({})),
            set("b", "new", json!({})),
            set("a", "old", json!({})),
        ];
        let (new, old) = split(&deployment, sets.clone());
        let names: Vec<_> = old.iter().map(|it| accessor::text(it, "name")).collect();
        assert_eq!(
            (accessor::text(&new.expect("one"), "name"), names),
            ("b", vec!["a", "c"])
        );
        let none = split(&deployment, sets[2..].to_vec());
        assert_eq!((none.0.is_none(), none.1.len()), (true, 1));
    }

    #[test]
    fn a_new_set_has_the_hash_everywhere_and_the_next_revision() {
        let others = [
            set("a", "1", json!({REVISION: "3"})),
            set("b", "2", json!({REVISION: "x"})),
        ];
        let new = new_set(&deployment("i"), "hash", json!({"uid": "u"}), 4, &others);
        assert_eq!(
            new["metadata"],
            json!({"name": "d-hash", "namespace": "n", "labels": {"a": "b", HASH_LABEL: "hash"},
                "ownerReferences": [{"uid": "u"}],
                "annotations": {"own": "yes", REVISION: "4", DESIRED: "10", MAX: "13"}})
        );
        assert_eq!(
            new["spec"],
            json!({"replicas": 4, "minReadySeconds": 5,
                "selector": {"matchLabels": {"a": "b", HASH_LABEL: "hash"}},
                "template": {"metadata": {"labels": {"a": "b", HASH_LABEL: "hash"}}, "spec": {"image": "i"}}})
        );
        assert_eq!(
            (
                noted(&new, DESIRED),
                noted(&new, MAX),
                noted(&new, REVISION)
            ),
            (Some(10), Some(13), Some(4))
        );
    }

    #[test]
    fn a_set_that_is_the_new_one_again_has_its_former_revisions() {
        let others = [set("a", "1", json!({REVISION: "4"}))];
        let mut again = set("b", "2", json!({REVISION: "2", HISTORY: "1", "own": "old"}));
        follow(&deployment("2"), &mut again, &others);
        let expected = json!({REVISION: "5", HISTORY: "1,2", "own": "yes"});
        assert_eq!(again["metadata"]["annotations"], expected);
        assert_eq!(again["spec"]["minReadySeconds"], 5);
        let before = again.clone();
        follow(&deployment("2"), &mut again, &others);
        assert_eq!(again, before);
        let mut strange = set("c", "2", json!({REVISION: "x", "own": "yes"}));
        follow(&deployment("2"), &mut strange, &others);
        assert_eq!(annotation(&strange, REVISION), Some("x"));
    }

    #[test]
    fn the_oldest_of_too_many_former_revisions_are_forgotten() {
        assert_eq!(history("", "1"), "1");
        assert_eq!(history("1,2", "3"), "1,2,3");
        let long = vec!["1234"; 400].join(",");
        let longer = history(&long, "5678");
        assert_eq!(longer, format!("{},5678", &long[5..]));
        assert!(longer.len() <= HISTORY_MAX);
    }

    #[test]
    fn the_oldest_revisions_without_pods_are_superfluous() {
        let mut old = vec![
            set("a", "1", json!({REVISION: "10"})),
            set("b", "2", json!({REVISION: "9"})),
            set("c", "3", json!({REVISION: "8"})),
            set("d", "4", json!({REVISION: "7"})),
            set("e", "5", json!({REVISION: "6"})),
        ];
        old[2]["status"]["replicas"] = 1.into();
        old[3]["metadata"]["generation"] = 2.into();
        let names = |deployment: &Value, old: &[Value]| {
            let sets = superfluous(deployment, old).into_iter();
            let names = sets.map(|it| accessor::text(it, "name").to_owned());
            names.collect::<Vec<_>>()
        };
        let mut deployment = deployment("new");
        assert_eq!(names(&deployment, &old), ["e", "b"]);
        old[4]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(names(&deployment, &old), ["b"]);
        deployment["spec"]["revisionHistoryLimit"] = NO_LIMIT.into();
        assert!(names(&deployment, &old).is_empty());
    }
}

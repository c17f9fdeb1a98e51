//! The status of a ReplicaSet or ReplicationController: how many pods it has, and why it has not got more.

use jiff::Timestamp;
use ringwatch_apimachinery::{Error, accessor};
use serde_json::{Value, json};

use super::{min_ready_seconds, wanted};
use crate::pods;
use crate::workloads::{conditions, set_count, status_of};

const FAILURE: &str = "ReplicaFailure";

/// The pods of a set, of which its status tells.
#[derive(Debug)]
pub(super) struct PodCounts<'a> {
    /// The pods that run or will.
    pub(super) active: &'a [Value],
    /// Number of the pods that are ending; `None` if the status does not tell.
    pub(super) ending: Option<usize>,
}

/// Returns the next status of a set after its pods were managed with this outcome.
pub(super) fn next(
    set: &Value,
    counts: &PodCounts<'_>,
    managed: &Result<(), Error>,
    now: Timestamp,
) -> Value {
    let mut status = status_of(set);
    let seconds = min_ready_seconds(set);
    let count =
        |is: &dyn Fn(&Value) -> bool| length(counts.active.iter().filter(|it| is(it)).count());
    let has_labels = |pod: &Value| {
        let labels = &pod["metadata"]["labels"];
        let wanted = &set["spec"]["template"]["metadata"]["labels"];
        let mut wanted = wanted.as_object().into_iter().flatten();
        wanted.all(|(key, value)| labels[key] == *value)
    };
    let is_available =
        |pod: &Value| pods::available_from(pod, seconds).is_some_and(|from| from <= now);
    status.insert("replicas".to_owned(), counts.active.len().into());
    set_count(&mut status, "fullyLabeledReplicas", count(&has_labels));
    set_count(&mut status, "readyReplicas", count(&pods::is_ready));
    set_count(&mut status, "availableReplicas", count(&is_available));
    match counts.ending {
        Some(ending) => drop(status.insert("terminatingReplicas".to_owned(), ending.into())),
        None => drop(status.remove("terminatingReplicas")),
    }
    let generation = accessor::integer(set, "generation").unwrap_or_default();
    set_count(&mut status, "observedGeneration", generation);
    match managed {
        Ok(()) => conditions::remove(&mut status, FAILURE),
        // One that is there tells of the first failure.
        Err(_) if conditions::get(&status, FAILURE).is_some() => {}
        Err(error) => {
            let is_short = counts.active.len() < wanted(set);
            let condition = json!({
                "type": FAILURE,
                "status": "True",
                "reason": if is_short { "FailedCreate" } else { "FailedDelete" },
                "message": error.to_string(),
                "lastTransitionTime": accessor::format_time(now),
            });
            conditions::set(&mut status, condition);
        }
    }
    status.into()
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: u32, status: Value) -> Value {
        json!({
            "metadata": {"generation": 3},
            "spec": {"replicas": replicas, "minReadySeconds": 10,
                "template": {"metadata": {"labels": {"a": "b", "c": "d"}}}},
            "status": status,
        })
    }

    fn pod(labels: Value, ready_since: Option<&str>) -> Value {
        let ready = ready_since.map_or_else(
            || json!({"type": "Ready", "status": "False"}),
            |since| json!({"type": "Ready", "status": "True", "lastTransitionTime": since}),
        );
        json!({"metadata": {"labels": labels}, "status": {"conditions": [ready]}})
    }

    fn forbidden() -> Error {
        Error::Forbidden {
            resource: "pods".to_owned(),
            name: "p".to_owned(),
            message: "exceeded quota: q".to_owned(),
            cause: None,
        }
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:10Z".parse().expect("a time")
    }

    #[test]
    fn pods_are_counted_by_labels_readiness_and_its_age() {
        let active = [
            pod(json!({"a": "b"}), None),
            pod(
                json!({"a": "b", "c": "d", "e": "f"}),
                Some("2026-01-02T03:04:00Z"),
            ),
            pod(json!({"a": "b", "c": "d"}), Some("2026-01-02T03:04:01Z")),
        ];
        let counts = PodCounts {
            active: &active,
            ending: Some(0),
        };
        assert_eq!(
            next(&set(3, json!({"replicas": 0})), &counts, &Ok(()), now()),
            json!({"replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 1,
                "terminatingReplicas": 0, "observedGeneration": 3})
        );
        let none = PodCounts {
            active: &[],
            ending: None,
        };
        let before = json!({"replicas": 3, "readyReplicas": 2, "terminatingReplicas": 1});
        assert_eq!(
            next(&set(0, before), &none, &Ok(()), now()),
            json!({"replicas": 0, "observedGeneration": 3})
        );
    }

    #[test]
    fn the_first_failure_is_told_until_there_is_none() {
        let none = PodCounts {
            active: &[],
            ending: None,
        };
        let first = next(&set(1, json!({})), &none, &Err(forbidden()), now());
        let condition = json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "pods \"p\" is forbidden: exceeded quota: q", "lastTransitionTime": "2026-01-02T03:04:10Z"});
        assert_eq!(first["conditions"], json!([condition]));
        let later = accessor::later(now(), 60);
        let second = next(&set(1, first.clone()), &none, &Err(forbidden()), later);
        assert_eq!(second, first);
        let third = next(&set(1, second), &none, &Ok(()), later);
        assert_eq!(third, json!({"replicas": 0, "observedGeneration": 3}));
        let active = [pod(json!({}), None)];
        let many = PodCounts {
            active: &active,
            ending: None,
        };
        let surplus = next(&set(0, json!({})), &many, &Err(forbidden()), now());
        assert_eq!(surplus["conditions"][0]["reason"], "FailedDelete");
    }
}

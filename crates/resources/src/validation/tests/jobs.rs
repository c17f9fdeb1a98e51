//! Refusals by the checks of Jobs and CronJobs.

use ringwatch_apimachinery::path::{remove, set};
use serde_json::{Value, json};

use super::*;

fn good_job() -> Value {
    let labels = json!({"controller-uid": "u", "job-name": "j",
        "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j"});
    let mut pod = good_pod();
    pod["metadata"] = json!({"labels": labels});
    set(&mut pod, "spec.restartPolicy", json!("Never"));
    json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"completions": 1, "parallelism": 1,
        "completionMode": "NonIndexed", "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "template": pod}})
}

#[test]
fn jobs_that_are_wrong() {
    let good = good_job();
    refused(
        crate::batch::validation::job,
        &good,
        &[
            (
                "spec.template.spec.restartPolicy",
                json!("Always"),
                &[
                    "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
                ],
            ),
            (
                "spec.backoffLimit",
                json!(-1),
                &["spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"],
            ),
            (
                "spec.completionMode",
                json!("Odd"),
                &[
                    "spec.completionMode: Unsupported value: \"Odd\": supported values: \"NonIndexed\", \"Indexed\"",
                ],
            ),
            (
                "spec.selector",
                json!({"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
                &[
                    "spec.selector.matchExpressions[0].operator: Invalid value: \"Odd\": not a valid selector operator",
                ],
            ),
            (
                "spec.backoffLimitPerIndex",
                json!(1),
                &["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            ),
            (
                "spec.podFailurePolicy",
                json!({"rules": [{"action": "Ignore"}]}),
                &[
                    "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
                    "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \"Failed\"",
                ],
            ),
        ],
    );
}

#[test]
fn jobs_change_little() {
    let good = good_job();
    let fields = |path: &str, value: Value| -> Vec<String> {
        let new = with(&good, path, value);
        let errors = found_in_change(crate::batch::validation::job_update, &new, &good);
        errors.into_iter().map(|error| error.field).collect()
    };
    assert_eq!(fields("spec.parallelism", json!(3)), [""; 0]);
    assert_eq!(fields("spec.completions", json!(3)), ["spec.completions"]);
    assert_eq!(
        fields("spec.template.spec.nodeName", json!("n")),
        ["spec.template"]
    );
    assert_eq!(
        fields("spec.selector", Value::Null),
        [
            "spec.selector",
            "spec.template.metadata.labels",
            "spec.selector"
        ]
    );
    let suspended = with(&good, "spec.suspend", json!(true));
    let moved = with(
        &suspended,
        "spec.template.spec.nodeSelector",
        json!({"a": "b"}),
    );
    assert_eq!(
        found_in_change(crate::batch::validation::job_update, &moved, &suspended),
        []
    );
}

#[test]
fn a_suspended_job_may_gain_and_lose_an_affinity_that_says_nothing() {
    const AFFINITY: &str = "spec.template.spec.affinity";
    let none = with(&good_job(), "spec.suspend", json!(true));
    let of = |affinity: Value| with(&none, AFFINITY, affinity);
    let is_allowed = |old: &Value, new: &Value| {
        found_in_change(crate::batch::validation::job_update, new, old).is_empty()
    };
    let node = of(json!({"nodeAffinity": {}}));
    let pod = of(json!({"podAffinity": {}}));
    for (old, new, allowed) in [
        (&none, &of(json!({})), true),
        (&of(json!({})), &none, true),
        (&node, &none, true),
        (&none, &node, true),
        (&node, &of(json!({})), true),
        (&node, &pod, false),
        (&none, &pod, false),
        (&pod, &none, false),
    ] {
        assert_eq!(is_allowed(old, new), allowed, "{old} {new}");
    }
}

#[test]
fn resources_of_a_suspended_job_change_while_none_of_its_pods_runs() {
    let old = with(&good_job(), "spec.suspend", json!(true));
    let more = json!({"limits": {"cpu": "2"}});
    let mut containers = old["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["resources"] = more;
    let changed = |old: &Value| -> Vec<String> {
        let new = with(old, "spec.template.spec.containers", containers.clone());
        let errors = found_in_change(crate::batch::validation::job_update, &new, old);
        errors.into_iter().map(|error| error.field).collect()
    };
    let started = with(&old, "status.startTime", json!("2026-01-01T00:00:00Z"));
    let condition = json!([{"type": "Suspended", "status": "True"}]);
    let stopped = with(&started, "status.conditions", condition);
    let none = [""; 0];
    assert_eq!(changed(&old), none);
    assert_eq!(changed(&started), ["spec.template"]);
    assert_eq!(changed(&stopped), none);
    assert_eq!(
        changed(&with(&stopped, "status.active", json!(1))),
        ["spec.template"]
    );
    assert_eq!(
        changed(&with(&old, "spec.suspend", json!(false))),
        ["spec.template"]
    );
    // Nothing else of the containers does.
    let mut other = old["spec"]["template"]["spec"]["containers"].clone();
    other[0]["image"] = json!("other");
    let new = with(&old, "spec.template.spec.containers", other);
    let errors = found_in_change(crate::batch::validation::job_update, &new, &old);
    assert_eq!(errors[0].field, "spec.template.spec");
}

#[test]
fn a_job_keeps_what_it_was_allowed_earlier() {
    use crate::batch::validation::{job, job_update};
    let labels = json!({"controller-uid": "u", "job-name": "j", "a": "b"});
    let selector = json!({"matchLabels": {"controller-uid": "u"},
        "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["c d"]}]});
    let old = with(&good_job(), "spec.template.metadata.labels", labels);
    let old = with(&old, "spec.selector", selector);
    let fields = |errors: Vec<FieldError>| -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    };
    let at = "spec.template.metadata.labels";
    assert_eq!(
        fields(found(job, &old)),
        [
            format!("{at}[batch.kubernetes.io/controller-uid]"),
            format!("{at}[batch.kubernetes.io/job-name]"),
            "spec.selector.matchExpressions[0].values[0]".to_owned(),
        ]
    );
    assert_eq!(fields(found_in_change(job_update, &old, &old)), [""; 0]);
}

#[test]
fn failures_of_a_job_are_looked_at_before_its_success_is() {
    let job = with(&good_job(), "spec.successPolicy", json!({"rules": []}));
    let job = with(&job, "spec.podFailurePolicy", json!({"rules": [{}]}));
    let fields: Vec<_> = found(crate::batch::validation::job, &job)
        .into_iter()
        .map(|error| error.field)
        .collect();
    let rule = "spec.podFailurePolicy.rules[0]";
    assert_eq!(
        fields,
        [
            &format!("{rule}.action"),
            rule,
            "spec.successPolicy",
            "spec.podReplacementPolicy"
        ]
    );
}

fn good_cron_job() -> Value {
    let mut job = good_job();
    drop(remove(&mut job, "spec.selector"));
    json!({"metadata": {"name": "c"}, "spec": {"schedule": "*/5 * * * *",
        "concurrencyPolicy": "Allow", "jobTemplate": {"spec": job["spec"]}}})
}

#[test]
fn a_cron_job_keeps_a_time_zone_that_it_was_allowed_earlier() {
    let with_zones = |schedule: &str, zone: Value| {
        let job = with(&good_cron_job(), "spec.schedule", json!(schedule));
        with(&job, "spec.timeZone", zone)
    };
    let changed = |new: &Value, old: &Value| -> Vec<String> {
        let check = crate::batch::validation::cron_job_update;
        messages(&found_in_change(check, new, old))
    };
    let zoned = with_zones("TZ=UTC 0 0 * * *", Value::Null);
    let later = with_zones("TZ=UTC 0 1 * * *", Value::Null);
    assert_eq!(changed(&later, &zoned), [""; 0]);
    let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
    let value = "spec.schedule: Invalid value: \"TZ=UTC 0 0 * * *\"";
    assert_eq!(
        changed(&zoned, &good_cron_job()),
        [format!("{value}: {why}")]
    );
    let twice = with_zones("TZ=UTC 0 0 * * *", json!("Etc/UTC"));
    let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
    assert_eq!(changed(&twice, &zoned), [format!("{value}: {why}")]);
    let unknown = with_zones("0 0 * * *", json!("Nowhere"));
    assert_eq!(changed(&unknown, &unknown), [""; 0]);
    assert_eq!(changed(&unknown, &good_cron_job()).len(), 1);
}

#[test]
fn cron_jobs_that_are_wrong() {
    refused(
        crate::batch::validation::cron_job,
        &good_cron_job(),
        &[
            (
                "spec.schedule",
                json!(""),
                &["spec.schedule: Required value"],
            ),
            (
                "spec.schedule",
                json!("TZ=UTC 0 0 * * *"),
                &[
                    "spec.schedule: Invalid value: \"TZ=UTC 0 0 * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                ],
            ),
            (
                "spec.timeZone",
                json!("Nowhere"),
                &["spec.timeZone: Invalid value: \"Nowhere\": unknown time zone Nowhere"],
            ),
            (
                "spec.concurrencyPolicy",
                json!("Odd"),
                &[
                    "spec.concurrencyPolicy: Unsupported value: \"Odd\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
                ],
            ),
        ],
    );
}

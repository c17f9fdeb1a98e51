//! Defaults of the group `batch`.
//!
//! Follows pkg/apis/batch/v1/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, set};
use serde_json::{Value, json};

use crate::core::pod::defaults::TEMPLATE;
use crate::defaults::DefaultRule::{self, Fill, In, Run, Set, With, Zero};
use crate::defaults::Literal::{Empty, False, Int, Text};
use crate::defaults::is_absent;

pub(crate) const JOB: &[DefaultRule] = &[
    Run(&["spec.completions", "spec.parallelism"], count_pods),
    Fill("spec.backoffLimit", limit_failures),
    Set("spec.completionMode", Text("NonIndexed")),
    Set("spec.suspend", False),
    With(
        "spec.podFailurePolicy",
        &[Set("spec.podReplacementPolicy", Text("Failed"))],
    ),
    Set("spec.podReplacementPolicy", Text("TerminatingOrFailed")),
    Set("spec.manualSelector", False),
    In("spec", FAILURES),
    Run(&["metadata.labels"], label_like_the_template),
    Set("spec.template", Empty),
    In("spec.template", TEMPLATE),
];

pub(crate) const CRON_JOB: &[DefaultRule] = &[
    Set("spec.concurrencyPolicy", Text("Allow")),
    Set("spec.suspend", False),
    Set("spec.successfulJobsHistoryLimit", Int(3)),
    Set("spec.failedJobsHistoryLimit", Int(1)),
    Zero("spec.jobTemplate.metadata", Empty),
    In("spec.jobTemplate.spec", FAILURES),
    Set("spec.jobTemplate.spec.template", Empty),
    In("spec.jobTemplate.spec.template", TEMPLATE),
];

/// Defaults of the pod failure policy: a condition matches if its status is `True`.
const FAILURES: &[DefaultRule] = &[In(
    "podFailurePolicy.rules[].onPodConditions[]",
    &[Set("status", Text("True"))],
)];

/// Sets parallelism to 1, and completions to 1 if neither is given.
fn count_pods(job: &mut Value) {
    if is_absent(job, "spec.parallelism") {
        if is_absent(job, "spec.completions") {
            set(job, "spec.completions", json!(1));
        }
        set(job, "spec.parallelism", json!(1));
    }
}

/// Sets the backoff limit to 6, or to no limit in effect if failures are counted for each index.
fn limit_failures(job: &mut Value) {
    if is_absent(job, "spec.backoffLimit") {
        let each = !is_absent(job, "spec.backoffLimitPerIndex");
        let limit = if each { i32::MAX } else { 6 };
        set(job, "spec.backoffLimit", json!(limit));
    }
}

/// Gives a job the labels of its pod template, unless it has labels of its own.
pub(crate) fn label_like_the_template(job: &mut Value) {
    if is_absent(job, "metadata.labels")
        && let Some(labels) = get(job, "spec.template.metadata.labels").cloned()
    {
        set(job, "metadata.labels", labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::apply;

    #[test]
    fn a_job_is_completed() {
        let mut job = json!({"metadata": {"name": "j"}, "spec": {"template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never"}},
            "podFailurePolicy": {"rules": [{"onPodConditions": [{"type": "DisruptionTarget"}]}]}}});
        apply(JOB, &mut job);
        assert_eq!(job["spec"]["completions"], 1);
        assert_eq!(job["spec"]["parallelism"], 1);
        assert_eq!(job["spec"]["backoffLimit"], 6);
        assert_eq!(job["spec"]["podReplacementPolicy"], "Failed");
        let conditions = "/spec/podFailurePolicy/rules/0/onPodConditions";
        assert_eq!(job.pointer(conditions).expect("kept")[0]["status"], "True");
        assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
        assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
        let mut many = json!({"spec": {"parallelism": 3, "backoffLimitPerIndex": 1}});
        apply(JOB, &mut many);
        assert_eq!(many["spec"].get("completions"), None);
        assert_eq!(many["spec"]["backoffLimit"], i32::MAX);
    }
}

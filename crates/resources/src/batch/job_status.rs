//! Checks a change of the status of a Job: finished jobs stay finished, and the fields are consistent.
//!
//! Most rules count only when what they are about changes, so that a status that was wrong before does not
//! stand in the way of what mends it.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use super::success_policy::{common_index, count_of_indexes};
use crate::validation::field::{Errors, Field};

/// Conditions that stay once they are true.
const TERMINAL: [&str; 3] = ["Failed", "Complete", "FailureTarget"];

/// Conditions of which the second excludes the first, and how kube-apiserver writes both.
const EXCLUSIVE: [(&str, &str, &str); 2] = [
    (
        "Complete",
        "Failed",
        "cannot set Complete=True and Failed=true conditions",
    ),
    (
        "Complete",
        "FailureTarget",
        "cannot set Complete=True and FailureTarget=true conditions",
    ),
];

/// Conditions that are announced by another one.
const ANNOUNCED: [(&str, &str, &str); 2] = [
    (
        "Failed",
        "FailureTarget",
        "cannot set Failed=True condition without the FailureTarget=true condition",
    ),
    (
        "Complete",
        "SuccessCriteriaMet",
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
];

/// The status of a job, and what it was.
struct StatusChange<'a, 'v, 'p> {
    spec: &'a Field<'v, 'p>,
    now: &'a Field<'v, 'p>,
    was: &'a Field<'v, 'p>,
}

/// Checks an update of the status of a Job. Follows `ValidateJobStatusUpdate`.
pub(crate) fn job_status_update(job: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (now, was, spec) = (job.at("status"), old.at("status"), job.at("spec"));
    let change = StatusChange {
        spec: &spec,
        now: &now,
        was: &was,
    };
    counts(&now, errors);
    change.exclusive_conditions(errors);
    change.times(errors);
    change.announced_conditions(errors);
    change.finish(errors);
    change.indexes(errors);
    change.pods_left(errors);
    change.success_criteria(errors);
    change.what_stays(errors);
}

fn counts(status: &Field<'_, '_>, errors: &mut Errors) {
    for count in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.at(count).must_not_be_negative(errors);
    }
    let mut seen = BTreeSet::new();
    let uncounted = status.at("uncountedTerminatedPods");
    for list in ["succeeded", "failed"] {
        for uid in uncounted.items(list) {
            if uid.text().is_empty() {
                errors.push(uid.invalid("must not be empty"));
            } else if !seen.insert(uid.text()) {
                errors.push(uid.duplicate());
            }
        }
    }
}

fn count(status: &Field<'_, '_>, name: &str) -> i64 {
    status.at(name).number().unwrap_or(0)
}

fn holds(status: &Field<'_, '_>, condition: &str) -> bool {
    has_condition(status, condition, "True")
}

fn has_condition(status: &Field<'_, '_>, condition: &str, value: &str) -> bool {
    let is_it =
        |it: Field<'_, '_>| it.at("type").text() == condition && it.at("status").text() == value;
    status.items("conditions").any(is_it)
}

fn is_finished(status: &Field<'_, '_>) -> bool {
    holds(status, "Complete") || holds(status, "Failed")
}

/// Returns the values of the lists of pods that are not counted yet.
fn uncounted<'v>(status: &Field<'v, '_>) -> [Option<&'v serde_json::Value>; 2] {
    ["succeeded", "failed"].map(|list| {
        let pods = status.at("uncountedTerminatedPods");
        let pods = pods.at(list);
        (!pods.is_empty()).then(|| pods.value())
    })
}

impl StatusChange<'_, '_, '_> {
    fn changes(&self, member: &str) -> bool {
        self.now.at(member).value() != self.was.at(member).value()
    }

    fn turns(&self, condition: &str) -> bool {
        holds(self.now, condition) != holds(self.was, condition)
    }

    fn finishes(&self) -> bool {
        is_finished(self.now) != is_finished(self.was)
    }

    /// Returns true if a suspended job is no longer suspended.
    fn resumes(&self) -> bool {
        has_condition(self.was, "Suspended", "True")
            && has_condition(self.now, "Suspended", "False")
    }

    /// Makes an error about the conditions, whose values are not shown.
    fn wrong_conditions(&self, why: &str) -> FieldError {
        let field = self.now.at("conditions").field();
        FieldError::new(FieldErrorKind::Invalid, field, why)
    }

    fn exclusive_conditions(&self, errors: &mut Errors) {
        for (one, other, why) in EXCLUSIVE {
            let both = holds(self.now, one) && holds(self.now, other);
            if both && (self.turns(one) || self.turns(other)) {
                errors.push(self.wrong_conditions(why));
            }
        }
    }

    fn announced_conditions(&self, errors: &mut Errors) {
        for (ending, sign, why) in ANNOUNCED {
            let unannounced = holds(self.now, ending) && !holds(self.now, sign);
            let also = match ending {
                "Failed" => self.changes("failedIndexes"),
                _ => self.turns(sign),
            };
            if unannounced && (self.turns(ending) || also) {
                errors.push(self.wrong_conditions(why));
            }
        }
    }

    fn times(&self, errors: &mut Errors) {
        let [began, ended] = ["startTime", "completionTime"].map(|it| self.now.at(it));
        let (begins, ends) = (self.changes("startTime"), self.changes("completionTime"));
        let is_complete = holds(self.now, "Complete");
        if ends || self.turns("Complete") {
            if ended.is_set() && !is_complete {
                let why = "cannot set completionTime when there is no Complete=True condition";
                errors.push(ended.invalid(why));
            }
            if !ended.is_set() && is_complete {
                errors.push(ended.required("completionTime is required for Complete jobs"));
            }
        }
        // Both are in whole seconds of UTC, so that their order is that of the texts.
        let both = began.is_set() && ended.is_set();
        if (begins || ends) && both && ended.text() < began.text() {
            errors.push(ended.invalid("must be equal to or after `startTime`"));
        }
    }

    /// Checks that a finished job has no pods that run.
    fn finish(&self, errors: &mut Errors) {
        let is_finished = is_finished(self.now);
        let [active, began] = ["active", "startTime"].map(|it| self.now.at(it));
        let changes = self.finishes() || self.activity_changes();
        if is_finished && count(self.now, "active") > 0 && changes {
            errors.push(active.invalid("active>0 is invalid for finished job"));
        }
        // A suspended job that nothing is wanted of has not begun.
        let never_begins =
            self.spec.at("suspend").is_true() && self.spec.at("completions").number() == Some(0);
        let changes = self.finishes() || self.changes("startTime");
        if is_finished && !began.is_set() && changes && !never_begins {
            errors.push(began.required("startTime is required for finished job"));
        }
        let [succeeded, failed] = uncounted(self.now);
        let changes = [succeeded, failed] != uncounted(self.was);
        let any = succeeded.is_some() || failed.is_some();
        if is_finished && any && (self.finishes() || changes) {
            let shown = |list: Option<&serde_json::Value>| {
                list.map_or_else(|| "null".into(), ToString::to_string)
            };
            let why = format!(
                "{{\"Succeeded\":{},\"Failed\":{}}}: must be empty for finished job",
                shown(succeeded),
                shown(failed)
            );
            let field = self.now.at("uncountedTerminatedPods").field();
            errors.push(FieldError::new(FieldErrorKind::Invalid, field, why));
        }
    }

    /// Checks the numbers of pods that terminate or are ready.
    fn pods_left(&self, errors: &mut Errors) {
        let [terminating, ready] = ["terminating", "ready"].map(|it| self.now.at(it));
        let leaving = self.finishes() || self.changes("terminating");
        if is_finished(self.now) && count(self.now, "terminating") > 0 && leaving {
            errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
        }
        let too_many = ready.number() > Some(count(self.now, "active"));
        if too_many && (self.changes("ready") || self.activity_changes()) {
            errors.push(ready.invalid("cannot set more ready pods than active"));
        }
    }

    fn activity_changes(&self) -> bool {
        count(self.now, "active") != count(self.was, "active")
    }

    fn indexes(&self, errors: &mut Errors) {
        let [completed, failed] = ["completedIndexes", "failedIndexes"].map(|it| self.now.at(it));
        let is_indexed = self.spec.at("completionMode").text() == "Indexed";
        let per_index = self.spec.at("backoffLimitPerIndex").is_set();
        let all = self.spec.at("completions").number();
        let (completes, fails) = (
            self.changes("completedIndexes"),
            self.changes("failedIndexes"),
        );
        for (changes, indexes, name) in [
            (completes, &completed, "completedIndexes"),
            (fails && per_index, &failed, "failedIndexes"),
        ] {
            let wrong = all.map(|all| count_of_indexes(indexes.text(), all));
            if let Some(Err(why)) = wrong.filter(|_| changes) {
                errors.push(indexes.invalid(format!("error parsing {name}: {why}")));
            }
        }
        if completes && !completed.is_empty() && !is_indexed {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(completed.invalid(why));
        }
        if fails && failed.is_set() && !per_index {
            let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(failed.invalid(why));
        }
        let common = all.and_then(|all| common_index(completed.text(), failed.text(), all));
        if let Some(index) = common.filter(|_| completes || fails) {
            let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(failed.invalid(why));
        }
    }

    fn success_criteria(&self, errors: &mut Errors) {
        let is_met = holds(self.now, "SuccessCriteriaMet");
        for (other, why) in [
            (
                "Failed",
                "cannot set SuccessCriteriaMet=True and Failed=true conditions",
            ),
            (
                "FailureTarget",
                "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
            ),
        ] {
            if is_met && holds(self.now, other) {
                errors.push(self.wrong_conditions(why));
            }
        }
        let has_policy = self.spec.at("successPolicy").is_set();
        if has_policy && !is_met && holds(self.now, "Complete") {
            let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            errors.push(self.wrong_conditions(why));
        }
    }

    /// Checks that fields and conditions that were set once stay.
    fn what_stays(&self, errors: &mut Errors) {
        for condition in TERMINAL {
            if holds(self.was, condition) && !holds(self.now, condition) {
                let why = format!("cannot disable the terminal {condition}=True condition");
                errors.push(self.wrong_conditions(&why));
            }
        }
        let [completions, parallelism] =
            ["completions", "parallelism"].map(|it| self.spec.at(it).number());
        let is_indexed = self.spec.at("completionMode").text() == "Indexed";
        // An indexed job whose pods all run at the same time may shrink, with what has succeeded.
        let may_shrink = is_indexed && completions == parallelism;
        for (name, may_fall) in [("failed", false), ("succeeded", may_shrink)] {
            if count(self.now, name) < count(self.was, name) && !may_fall {
                let value = count(self.now, name);
                let why = format!("cannot decrease the {name} counter");
                errors.push(self.now.at(name).invalid_value(value, why));
            }
        }
        let ended = self.now.at("completionTime");
        let both = ended.is_set() && self.was.at("completionTime").is_set();
        if both && self.changes("completionTime") {
            errors.push(ended.invalid("field is immutable"));
        }
        let began = self.now.at("startTime");
        let had_begun = self.was.at("startTime").is_set();
        let may_begin = self.spec.at("suspend").is_true() || self.resumes();
        if had_begun && self.changes("startTime") && !may_begin {
            let why = "field is immutable for unsuspended job once set";
            errors.push(began.invalid_value(began.value().clone(), why));
        }
        let [is_met, was_met] = [self.now, self.was].map(|it| holds(it, "SuccessCriteriaMet"));
        if was_met && !is_met {
            let why = "cannot disable the SuccessCriteriaMet=True condition";
            errors.push(self.wrong_conditions(why));
        }
        if holds(self.was, "Complete") && !was_met && is_met {
            let why =
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            errors.push(self.wrong_conditions(why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::messages;

    const BEGAN: &str = "2026-11-22T10:00:00Z";
    const ENDED: &str = "2026-11-22T11:00:00Z";

    fn wrong(spec: &Value, status: &Value, old: &Value) -> Vec<String> {
        let [job, old] = [status, old].map(|status| json!({"spec": spec, "status": status}));
        let mut errors = Errors::new();
        job_status_update(&Field::root(&job), &Field::root(&old), &mut errors);
        messages(&errors)
    }

    fn conditions(true_ones: &[&str]) -> Value {
        let condition = |kind: &&str| json!({"type": kind, "status": "True"});
        true_ones.iter().map(condition).collect()
    }

    /// Returns a status with these true conditions and members.
    fn status(true_ones: &[&str], members: Value) -> Value {
        let mut status = members;
        status["conditions"] = conditions(true_ones);
        status
    }

    fn complete() -> Value {
        let members = json!({"startTime": BEGAN, "completionTime": ENDED, "succeeded": 1});
        status(&["SuccessCriteriaMet", "Complete"], members)
    }

    #[test]
    fn a_job_that_runs_and_ends_is_right() {
        let spec = json!({"completions": 1, "parallelism": 1});
        let running = json!({"startTime": BEGAN, "active": 1, "ready": 1,
            "uncountedTerminatedPods": {}});
        let met = status(
            &["SuccessCriteriaMet"],
            json!({"startTime": BEGAN, "terminating": 1}),
        );
        let failing = status(&["FailureTarget"], json!({"startTime": BEGAN, "failed": 1}));
        let failed = status(
            &["FailureTarget", "Failed"],
            json!({"startTime": BEGAN, "failed": 1}),
        );
        for (now, was) in [
            (&running, &json!({})),
            (&met, &running),
            (&complete(), &met),
            (&complete(), &complete()),
            (&failing, &running),
            (&failed, &failing),
        ] {
            assert_eq!(wrong(&spec, now, was), [""; 0], "{now}");
        }
    }

    #[test]
    fn counts_and_pods_are_checked() {
        let now = json!({"active": -1, "terminating": -2, "uncountedTerminatedPods":
            {"succeeded": ["a", ""], "failed": ["b", "a"]}});
        assert_eq!(
            wrong(&json!({}), &now, &json!({"failed": 2, "succeeded": 1})),
            [
                "status.active: Invalid value: -1: must be greater than or equal to 0",
                "status.terminating: Invalid value: -2: must be greater than or equal to 0",
                "status.uncountedTerminatedPods.succeeded[1]: Invalid value: \"\": must not be empty",
                "status.uncountedTerminatedPods.failed[1]: Duplicate value: \"a\"",
                "status.failed: Invalid value: 0: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
            ]
        );
        let ready = json!({"active": 1, "ready": 2});
        assert_eq!(
            wrong(&json!({}), &ready, &json!({})),
            ["status.ready: Invalid value: 2: cannot set more ready pods than active"]
        );
        assert_eq!(
            wrong(&json!({}), &ready, &ready),
            [""; 0],
            "nothing changes"
        );
        let elastic = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2});
        assert_eq!(
            wrong(&elastic, &json!({}), &json!({"succeeded": 1})),
            [""; 0]
        );
    }

    #[test]
    fn conditions_fit_together() {
        let times = json!({"startTime": BEGAN});
        for (kinds, whys) in [
            (
                &["Failed"][..],
                &["cannot set Failed=True condition without the FailureTarget=true condition"][..],
            ),
            (
                &["SuccessCriteriaMet", "FailureTarget"],
                &["cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
            ),
            (
                &["SuccessCriteriaMet", "FailureTarget", "Failed"],
                &[
                    "cannot set SuccessCriteriaMet=True and Failed=true conditions",
                    "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
                ],
            ),
        ] {
            let whys: Vec<_> = whys
                .iter()
                .map(|why| format!("status.conditions: Invalid value: {why}"))
                .collect();
            let now = status(kinds, times.clone());
            assert_eq!(wrong(&json!({}), &now, &times), whys, "{kinds:?}");
        }
        let both = status(
            &["SuccessCriteriaMet", "Complete", "Failed", "FailureTarget"],
            json!({"startTime": BEGAN, "completionTime": ENDED}),
        );
        let found = wrong(&json!({}), &both, &times);
        for why in [
            "cannot set Complete=True and Failed=true conditions",
            "cannot set Complete=True and FailureTarget=true conditions",
        ] {
            let line = format!("status.conditions: Invalid value: {why}");
            assert!(found.contains(&line), "{found:?}");
        }
        let unmet = status(
            &["Complete"],
            json!({"startTime": BEGAN, "completionTime": ENDED}),
        );
        assert_eq!(
            wrong(&json!({"successPolicy": {}}), &unmet, &times),
            [
                "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                "status.conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            ]
        );
    }

    #[test]
    fn what_has_ended_stays_so() {
        let spec = json!({});
        let mut again = complete();
        again["conditions"] = json!([]);
        assert_eq!(
            wrong(&spec, &again, &complete()),
            [
                "status.completionTime: Invalid value: \"2026-11-22T11:00:00Z\": cannot set completionTime when there is no Complete=True condition",
                "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
                "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
            ]
        );
        let mut later = complete();
        later["completionTime"] = json!("2026-11-22T12:00:00Z");
        assert_eq!(
            wrong(&spec, &later, &complete()),
            ["status.completionTime: Invalid value: \"2026-11-22T12:00:00Z\": field is immutable"]
        );
        let mut unmet = complete();
        unmet["conditions"] = conditions(&["Complete"]);
        let found = wrong(&spec, &complete(), &unmet);
        assert_eq!(
            found,
            [
                "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
            ]
        );
    }

    #[test]
    fn what_has_ended_has_nothing_that_runs() {
        let mut ends = complete();
        for (member, value) in [
            ("active", json!(1)),
            ("terminating", json!(1)),
            ("startTime", json!(null)),
            ("uncountedTerminatedPods", json!({"failed": ["a"]})),
        ] {
            ends[member] = value;
        }
        let was = json!({"active": 1});
        assert_eq!(
            wrong(&json!({}), &ends, &was),
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.startTime: Required value: startTime is required for finished job",
                "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":[\"a\"]}: must be empty for finished job",
                "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
            ]
        );
    }

    #[test]
    fn errors_come_in_the_order_of_the_checks() {
        let members = json!({"startTime": BEGAN, "active": 1, "ready": 2, "completedIndexes": "0"});
        let now = status(&["Complete", "Failed"], members);
        let fields: Vec<_> = wrong(&json!({}), &now, &json!({"startTime": BEGAN}))
            .iter()
            .filter_map(|it| Some(it.split_once(':')?.0.to_owned()))
            .collect();
        assert_eq!(
            fields,
            [
                "status.conditions",
                "status.completionTime",
                "status.conditions",
                "status.conditions",
                "status.active",
                "status.completedIndexes",
                "status.ready",
            ]
        );
    }

    #[test]
    fn times_follow_each_other() {
        let running = json!({"startTime": BEGAN});
        let mut early = complete();
        early["completionTime"] = json!("2026-11-22T09:00:00Z");
        assert_eq!(
            wrong(&json!({}), &early, &running),
            [
                "status.completionTime: Invalid value: \"2026-11-22T09:00:00Z\": must be equal to or after `startTime`"
            ]
        );
        let mut never = complete();
        never["completionTime"] = json!(null);
        assert_eq!(
            wrong(&json!({}), &never, &running),
            ["status.completionTime: Required value: completionTime is required for Complete jobs"]
        );
        let restarted = json!({"startTime": ENDED});
        for (next, value) in [
            (restarted, format!("{ENDED:?}")),
            (json!({}), "null".into()),
        ] {
            let why = "field is immutable for unsuspended job once set";
            let why = format!("status.startTime: Invalid value: {value}: {why}");
            assert_eq!(wrong(&json!({}), &next, &running), [why]);
        }
        let suspended = json!({"suspend": true});
        assert_eq!(wrong(&suspended, &json!({}), &running), [""; 0]);
        let with = |value: &str, time: &str| json!({"startTime": time, "conditions": [{"type": "Suspended", "status": value}]});
        let resumed = wrong(&json!({}), &with("False", ENDED), &with("True", BEGAN));
        assert_eq!(resumed, [""; 0]);
        let none_wanted = json!({"suspend": true, "completions": 0});
        let mut never_begun = complete();
        never_begun["startTime"] = json!(null);
        let was = status(&["SuccessCriteriaMet"], json!({}));
        assert_eq!(wrong(&none_wanted, &never_begun, &was), [""; 0]);
        assert_eq!(wrong(&json!({}), &never_begun, &was).len(), 1);
    }

    #[test]
    fn indexes_are_those_of_the_job() {
        let plain = json!({"completions": 3});
        let indexes = json!({"completedIndexes": "0", "failedIndexes": "1"});
        assert_eq!(
            wrong(&plain, &indexes, &json!({})),
            [
                "status.completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when non-indexed completion mode",
                "status.failedIndexes: Invalid value: \"1\": cannot set non-null failedIndexes when backoffLimitPerIndex is null",
            ]
        );
        let indexed =
            json!({"completions": 5, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
        assert_eq!(wrong(&indexed, &indexes, &json!({})), [""; 0]);
        let odd = json!({"completedIndexes": "0,7", "failedIndexes": "x,0"});
        assert_eq!(
            wrong(&indexed, &odd, &json!({})),
            [
                "status.completedIndexes: Invalid value: \"0,7\": error parsing completedIndexes: too large index: \"7\"",
                "status.failedIndexes: Invalid value: \"x,0\": error parsing failedIndexes: cannot convert string to integer for index: \"x\"",
                "status.failedIndexes: Invalid value: \"x,0\": failedIndexes and completedIndexes overlap at index: 0",
            ]
        );
        assert_eq!(wrong(&indexed, &odd, &odd), [""; 0], "nothing changes");
    }
}

//! Checks of Jobs and CronJobs.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, get_mut, keep, list};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::failure_policy::failure_policy;
use super::indexes::{indexes, needs_indexes};
use super::schedule;
use super::success_policy::success_policy;
use crate::core::pod::validation::{TemplateClaims, template};
use crate::validation::check_update;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{is_unreadable, selector_by_later_rule, selects};
use crate::validation::later_rules::AFFINITY_VALUES;
use crate::validation::values::domain_prefixed_path;

/// Maximum length of the name of a CronJob, so that those of its Jobs fit, in bytes.
const CRON_JOB_NAME_BYTES_MAX: usize = 52;
const MANAGED_BY_BYTES_MAX: usize = 63;
/// Prefix of the labels of a job's pods, which they have without it as well.
const PREFIX: &str = "batch.kubernetes.io/";
/// The fields of a Job's spec that are immutable.
const IMMUTABLE: &[&str] = &[
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
];
/// The fields of the pod template's spec, but for resources, that may change while a job is suspended and none of its
/// pods runs. The template's metadata may change altogether.
const CHANGEABLE_WHILE_SUSPENDED: &[&str] = &[
    "spec.affinity.nodeAffinity",
    "spec.nodeSelector",
    "spec.schedulingGates",
    "spec.tolerations",
];

/// Checks a new Job. Follows `ValidateJob`.
pub(crate) fn job(job: &Field<'_, '_>, errors: &mut Errors) {
    job_with(job, true, errors);
}

/// Checks a Job, whose pods need the labels with Kubernetes' prefix or, in older ones, only those without it.
fn job_with(job: &Field<'_, '_>, prefixed_labels: bool, errors: &mut Errors) {
    let spec = job.at("spec");
    generated_selector(job, prefixed_labels, errors);
    job_spec(&spec, errors);
    let own = spec.at("selector");
    if own.is_set() {
        // Wrong values may stay if they are anywhere in the job, as in the affinity of its pods.
        selector_by_later_rule(&own, AFFINITY_VALUES, errors);
    } else {
        errors.push(own.required(""));
    }
    let is_readable = !is_unreadable(&own);
    let labels = spec.at("template.metadata.labels");
    // Nothing is selected without a selector, nor by one that cannot be read.
    if !own.is_set() || is_readable && !selects(own.value(), labels.value()) {
        let why = "`selector` does not match template `labels`";
        errors.push(labels.invalid_value(labels.value().clone(), why));
    }
    let completions = spec.at("completions").number().unwrap_or(0);
    if spec.at("completionMode").text() == "Indexed" && completions > 0 {
        let name = job.at("metadata.name");
        let last = format!("{}-{}", name.text(), completions - 1);
        if !formats::dns_label(&last).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {last}");
            errors.push(name.invalid(why));
        }
    }
}

/// Checks that a generated selector, and the labels of the template, name the uid and the name of the job.
fn generated_selector(job: &Field<'_, '_>, prefixed_labels: bool, errors: &mut Errors) {
    let spec = job.at("spec");
    if spec.at("manualSelector").is_true() || !spec.at("selector").is_set() {
        return;
    }
    let labels = spec.at("template.metadata.labels");
    let uid = job.at("metadata.uid").text();
    let name = job.at("metadata.name").text();
    let mut expected = serde_json::json!({});
    let prefixes = ["", PREFIX].into_iter();
    for prefix in prefixes.filter(|it| it.is_empty() || prefixed_labels) {
        for (label, value) in [("controller-uid", uid), ("job-name", name)] {
            let label = format!("{prefix}{label}");
            let found = labels.value().get(&label);
            let why = format!("must be '{value}'");
            match found {
                None => errors.push(spec.required_label(&label, &why)),
                Some(found) if found != value => {
                    let mut error = spec.required_label(&label, &why);
                    error.kind = FieldErrorKind::Invalid;
                    error.detail = format!("{}: {why}", labels.value());
                    errors.push(error);
                }
                Some(_) => {}
            }
            expected[label] = value.into();
        }
    }
    let own = spec.at("selector");
    if !is_unreadable(&own) && !selects(own.value(), &expected) {
        errors.push(own.invalid("`selector` not auto-generated"));
    }
}

impl Field<'_, '_> {
    fn required_label(&self, label: &str, why: &str) -> FieldError {
        let mut error = self.at("template.metadata.labels").required(why);
        error.field = format!("{}[{label}]", error.field);
        error
    }
}

fn job_spec(spec: &Field<'_, '_>, errors: &mut Errors) {
    for count in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.at(count).must_not_be_negative(errors);
    }
    let per_index = spec.at("backoffLimitPerIndex");
    if spec.at("maxFailedIndexes").is_set() && !per_index.is_set() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    let manager = spec.at("managedBy");
    if manager.is_set() {
        domain_prefixed_path(&manager, errors);
        manager.must_have_at_most(MANAGED_BY_BYTES_MAX, errors);
    }
    indexes(spec, errors);
    failure_policy(spec, errors);
    if spec.at("completionMode").text() == "Indexed" {
        success_policy(spec, errors);
    } else {
        needs_indexes(&spec.at("successPolicy"), errors);
    }
    let replacement = spec.at("podReplacementPolicy");
    if spec.at("podFailurePolicy").is_set() {
        replacement.may_be_one_of(&["Failed"], errors);
    } else {
        replacement.may_be_one_of(&["Failed", "TerminatingOrFailed"], errors);
    }
    template(&spec.at("template"), &TemplateClaims::new(), errors);
    ending(spec, errors);
}

/// Pods that run to their end do not begin again whatever happens.
fn ending(spec: &Field<'_, '_>, errors: &mut Errors) {
    let policy = spec.at("template.spec.restartPolicy");
    match policy.text() {
        "Always" | "" => {
            errors.push(policy.required("valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if spec.at("podFailurePolicy").is_set() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(policy.invalid(why));
        }
        _ => policy.may_be_one_of(&["OnFailure", "Never"], errors),
    }
}

/// Checks an update of a Job: parallelism may change, and while it is suspended, the scheduling and the resources of
/// its pods. It may keep what it was allowed before. Follows `ValidateJob` and `ValidateJobUpdate`.
pub(crate) fn job_update(job: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (spec, was) = (job.at("spec"), old.at("spec"));
    let labels = was.at("template.metadata.labels").value();
    let mut prefixed = ["job-name", "controller-uid"].into_iter();
    let prefixed_labels = prefixed.all(|it| labels.get(format!("{PREFIX}{it}")).is_some());
    let check = |it: &Field<'_, '_>, errors: &mut Errors| job_with(it, prefixed_labels, errors);
    check_update(check, job, old, errors);
    let completions = spec.at("completions");
    if spec.at("completionMode").text() == "Indexed" {
        let changes = completions.value() != was.at("completions").value();
        if changes
            && completions.is_set()
            && completions.number() != spec.at("parallelism").number()
        {
            let why = "can only be modified in tandem with spec.parallelism";
            errors.push(completions.invalid(why));
        }
    } else {
        completions.must_stay(&was.at("completions"), errors);
    }
    spec.at("selector").must_stay(&was.at("selector"), errors);
    template_stays(old, &spec, &was, errors);
    for member in IMMUTABLE {
        spec.at(member).must_stay(&was.at(member), errors);
    }
}

/// Checks that the template stays, but for the scheduling and the resources of pods while the job is suspended and none
/// of them runs. Follows `validatePodTemplateUpdate` and `shouldAllowMutablePodTemplate`.
fn template_stays(
    old: &Field<'_, '_>,
    spec: &Field<'_, '_>,
    was: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let now = spec.at("template");
    if !was.at("suspend").is_true() || may_run(old) {
        if now.value() != was.at("template").value() {
            errors.push(now.invalid("field is immutable"));
        }
        return;
    }
    let mut before = was.at("template").value().clone();
    for path in CHANGEABLE_WHILE_SUSPENDED {
        keep(&mut before, now.value(), path);
    }
    // An affinity that nothing is left of is none.
    let has_none = |template: &Value| {
        get(template, "spec.affinity").is_none_or(|it| *it == serde_json::json!({}))
    };
    if has_none(&before) && has_none(now.value()) {
        keep(&mut before, now.value(), "spec.affinity");
    }
    for containers in ["spec.containers", "spec.initContainers"] {
        keep_resources(&mut before, now.value(), containers);
    }
    if now.at("spec").value() != get(&before, "spec").unwrap_or(&Value::Null) {
        errors.push(now.at("spec").invalid("field is immutable"));
    }
}

/// Returns true if pods of a suspended job may still run.
fn may_run(job: &Field<'_, '_>) -> bool {
    let mut conditions = job.items("status.conditions");
    let is_suspended = conditions
        .any(|it| it.at("type").text() == "Suspended" && it.at("status").text() == "True");
    let started = job.at("status.startTime").is_set();
    started && !is_suspended || job.at("status.active").number().unwrap_or(0) != 0
}

/// Copies the resources of the containers that have the same names in the same places.
fn keep_resources(template: &mut Value, from: &Value, containers: &str) {
    let others = list(from, containers);
    let all = get_mut(template, containers).and_then(Value::as_array_mut);
    let all = all.filter(|all| all.len() == others.len());
    for (container, other) in all.into_iter().flatten().zip(others) {
        if get(container, "name") == get(other, "name") {
            keep(container, other, "resources");
        }
    }
}

/// Checks a new CronJob, whose name leaves room for the suffix of its jobs. Follows `ValidateCronJobCreate`.
pub(crate) fn cron_job(object: &Field<'_, '_>, errors: &mut Errors) {
    cron_job_spec(&object.at("spec"), None, errors);
    let name = object.at("metadata.name");
    if name.text().len() > CRON_JOB_NAME_BYTES_MAX {
        let why = format!("must be no more than {CRON_JOB_NAME_BYTES_MAX} characters");
        errors.push(name.invalid(why));
    }
}

/// Checks an update of a CronJob: it may keep its time zone, and one in its schedule. Follows `ValidateCronJobUpdate`.
pub(crate) fn cron_job_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let was = old.at("spec");
    let check = |it: &Field<'_, '_>, errors: &mut Errors| {
        cron_job_spec(&it.at("spec"), Some(&was), errors);
    };
    check_update(check, object, old, errors);
}

/// Checks the spec of a CronJob. Follows `validateCronJobSpec`.
fn cron_job_spec(spec: &Field<'_, '_>, was: Option<&Field<'_, '_>>, errors: &mut Errors) {
    let (when, zone) = (spec.at("schedule"), spec.at("timeZone"));
    if when.is_empty() {
        errors.push(when.required(""));
    } else {
        when.must_conform(schedule::schedule, errors);
        let had_zone = was.is_some_and(|was| was.at("schedule").text().contains("TZ"));
        let why = match (when.text().contains("TZ"), had_zone) {
            (true, false) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            (true, true) if zone.is_set() => {
                "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            }
            _ => "",
        };
        errors.extend((!why.is_empty()).then(|| when.invalid(why)));
    }
    spec.at("startingDeadlineSeconds")
        .must_not_be_negative(errors);
    let is_kept = was.is_some_and(|was| was.at("timeZone").value() == zone.value());
    if zone.is_set() && !is_kept {
        zone.must_conform(schedule::time_zone, errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    spec.at("concurrencyPolicy")
        .must_be_one_of(&policies, errors);
    let job = spec.at("jobTemplate.spec");
    job_spec(&job, errors);
    if job.at("selector").is_set() {
        errors.push(
            job.at("selector")
                .invalid("`selector` will be auto-generated"),
        );
    }
    if job.at("manualSelector").is_true() {
        errors.push(job.at("manualSelector").unsupported(&["nil", "false"]));
    }
    spec.at("successfulJobsHistoryLimit")
        .must_not_be_negative(errors);
    spec.at("failedJobsHistoryLimit")
        .must_not_be_negative(errors);
}

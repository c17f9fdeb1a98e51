//! Checks of Jobs and CronJobs.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, get_mut, keep, list};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::failure_policy::failure_policy;
use super::schedule;
use super::success_policy::success_policy;
use crate::core::pod::validation::{TemplateClaims, template};
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{selector, selects};

/// Maximum parallelism of an indexed job.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;
/// Maximum length of the name of a CronJob, so that those of its Jobs fit, in bytes.
const CRON_JOB_NAME_BYTES_MAX: usize = 52;
const MANAGED_BY_BYTES_MAX: usize = 63;
/// The form of the path in the name of a job's controller, as errors show it.
const PATH_FORM: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
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

/// Checks a Job. Follows `ValidateJob`.
pub(crate) fn job(job: &Field<'_, '_>, errors: &mut Errors) {
    let spec = job.at("spec");
    generated_selector(job, errors);
    job_spec(&spec, errors);
    let own = spec.at("selector");
    let before = errors.len();
    if own.is_set() {
        selector(&own, errors);
    } else {
        errors.push(own.required(""));
    }
    let is_readable = errors.len() == before;
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
fn generated_selector(job: &Field<'_, '_>, errors: &mut Errors) {
    let spec = job.at("spec");
    if spec.at("manualSelector").is_true() || !spec.at("selector").is_set() {
        return;
    }
    let labels = spec.at("template.metadata.labels");
    let uid = job.at("metadata.uid").text();
    let name = job.at("metadata.name").text();
    let mut expected = Value::Null;
    for prefix in ["", "batch.kubernetes.io/"] {
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
            if expected.is_null() {
                expected = serde_json::json!({});
            }
            expected[label] = value.into();
        }
    }
    let own = spec.at("selector");
    let mut unreadable = Errors::new();
    selector(&own, &mut unreadable);
    if unreadable.is_empty() && !selects(own.value(), &expected) {
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
    managed_by(&spec.at("managedBy"), errors);
    indexes(spec, errors);
    failure_policy(spec, errors);
    let replacement = spec.at("podReplacementPolicy");
    if spec.at("podFailurePolicy").is_set() {
        replacement.may_be_one_of(&["Failed"], errors);
    } else {
        replacement.may_be_one_of(&["Failed", "TerminatingOrFailed"], errors);
    }
    template(&spec.at("template"), &TemplateClaims::new(), errors);
    ending(spec, errors);
}

/// Checks the name of the controller of a job: a domain and a path. Follows `IsDomainPrefixedPath`.
fn managed_by(at: &Field<'_, '_>, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    match at.text().split_once('/') {
        _ if at.is_empty() => errors.push(at.required("")),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let wrong = formats::dns_subdomain(domain).into_iter();
            errors.extend(wrong.map(|why| at.invalid_value(domain, why)));
            if !path.bytes().all(is_path_byte) {
                let why = format!("Invalid path (regex used for validation is '{PATH_FORM}')");
                errors.push(at.invalid_value(path, why));
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(at.invalid(why));
        }
    }
    at.must_have_at_most(MANAGED_BY_BYTES_MAX, errors);
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || br"/\-._~%!$&'()*+,;=:".contains(&byte)
}

fn indexes(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mode = spec.at("completionMode");
    mode.may_be_one_of(&["NonIndexed", "Indexed"], errors);
    if mode.text() != "Indexed" {
        // To Kubernetes a mode that is not known may have limits, but no success policy.
        let is_known = matches!(mode.text(), "" | "NonIndexed");
        let limits: &[&str] = &["backoffLimitPerIndex", "maxFailedIndexes"];
        let limits = if is_known { limits } else { &[] };
        for member in limits.iter().chain(&["successPolicy"]) {
            if spec.at(member).is_set() {
                errors.push(spec.at(member).invalid("requires indexed completion mode"));
            }
        }
        return;
    }
    let completions = spec.at("completions");
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    let parallelism = spec.at("parallelism");
    if parallelism.number() > Some(INDEXED_PARALLELISM_MAX) {
        let why = format!(
            "must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
        );
        errors.push(parallelism.invalid(why));
    }
    let failed = spec.at("maxFailedIndexes");
    if completions.is_set() && failed.number() > completions.number() {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    success_policy(spec, errors);
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
/// its pods. Follows `ValidateJobUpdate`.
pub(crate) fn job_update(job: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (spec, was) = (job.at("spec"), old.at("spec"));
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

/// Checks a CronJob. Follows `validateCronJobSpec`.
pub(crate) fn cron_job(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let when = spec.at("schedule");
    if when.is_empty() {
        errors.push(when.required(""));
    } else {
        when.must_conform(schedule::schedule, errors);
        if when.text().contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(when.invalid(why));
        }
    }
    spec.at("startingDeadlineSeconds")
        .must_not_be_negative(errors);
    let zone = spec.at("timeZone");
    if zone.is_set() {
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

/// Checks the name of a new CronJob, which leaves room for the suffix of its jobs. Follows `ValidateCronJobCreate`.
pub(crate) fn new_cron_job(object: &Field<'_, '_>, errors: &mut Errors) {
    let name = object.at("metadata.name");
    if name.text().len() > CRON_JOB_NAME_BYTES_MAX {
        let why = format!("must be no more than {CRON_JOB_NAME_BYTES_MAX} characters");
        errors.push(name.invalid(why));
    }
}

//! Deployments, ReplicaSets, DaemonSets, StatefulSets and ReplicationControllers. Their selectors always select the
//! pods of their templates.
//!
//! Follows pkg/apis/apps/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::path::{get, text};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use crate::core::pod::validation::scheduling::at_most_all;
use crate::core::pod::validation::{TemplateClaims, template};
use crate::core::volume::claim_validation;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{selector, selects, selects_all, shown_selector};

/// The fields of a StatefulSet's spec that may change.
const STATEFUL_SET_CHANGEABLE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const BAD_SELECTOR: &str = "invalid label selector";
const MISMATCH: &str = "`selector` does not match template `labels`";

/// Checks a Deployment. Follows `ValidateDeploymentSpec`.
pub(crate) fn deployment(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("replicas").must_not_be_negative(errors);
    if own_selector(
        &spec,
        "empty selector is invalid for deployment",
        BAD_SELECTOR,
        errors,
    ) {
        running_template(&spec, "ReplicaSet", errors);
    }
    let strategy = spec.at("strategy");
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            rolling.must_be_unset(why, errors);
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            unavailable.must_be_a_count_or_percentage(errors);
            surge.must_be_a_count_or_percentage(errors);
            if !is_some(&unavailable) && !is_some(&surge) {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_all(&unavailable, errors);
        }
        _ => errors.push(unsupported_strategy(
            &strategy,
            &["maxUnavailable", "maxSurge"],
            &["Recreate", "RollingUpdate"],
        )),
    }
    spec.at("minReadySeconds").must_not_be_negative(errors);
    spec.at("revisionHistoryLimit").must_not_be_negative(errors);
    let deadline = spec.at("progressDeadlineSeconds");
    deadline.must_not_be_negative(errors);
    let ready = spec.at("minReadySeconds").number().unwrap_or(0);
    if deadline.number().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

/// Checks a ReplicaSet. Follows `ValidateReplicaSetSpec`.
pub(crate) fn replica_set(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("replicas").must_not_be_negative(errors);
    spec.at("minReadySeconds").must_not_be_negative(errors);
    if own_selector(
        &spec,
        "empty selector is invalid for deployment",
        BAD_SELECTOR,
        errors,
    ) {
        running_template(&spec, "ReplicaSet", errors);
    }
}

/// Checks a DaemonSet. Follows `ValidateDaemonSetSpec`.
pub(crate) fn daemon_set(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let own = spec.at("selector");
    let before = errors.len();
    selector(&own, errors);
    let is_readable = errors.len() == before;
    if own.is_set() && selects_all(own.value()) {
        errors.push(own.invalid("empty selector is invalid for daemonset"));
    }
    if is_readable {
        running_template(&spec, "DaemonSet", errors);
    } else {
        template_that_runs(&spec, "DaemonSet", errors);
    }
    spec.at("minReadySeconds").must_not_be_negative(errors);
    let strategy = spec.at("updateStrategy");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => one_of_both(&strategy.at("rollingUpdate"), errors),
        _ => errors.push(unsupported_strategy(
            &strategy,
            &["maxUnavailable", "maxSurge"],
            &["RollingUpdate", "OnDelete"],
        )),
    }
    spec.at("revisionHistoryLimit").must_not_be_negative(errors);
}

/// Checks that exactly one of `maxUnavailable` and `maxSurge` is greater than zero.
fn one_of_both(rolling: &Field<'_, '_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
    for count in [unavailable, surge] {
        count.must_be_a_count_or_percentage(errors);
    }
    for count in [unavailable, surge] {
        at_most_all(&count, errors);
    }
    match (is_some(&unavailable), is_some(&surge)) {
        (true, true) => {
            errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
        }
        (false, false) => {
            errors.push(unavailable.required("cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

/// Checks a StatefulSet. Follows `ValidateStatefulSetSpec`.
pub(crate) fn stateful_set(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let management = spec.at("podManagementPolicy");
    if !matches!(management.text(), "OrderedReady" | "Parallel") {
        errors.push(management.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let strategy = spec.at("updateStrategy");
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" if rolling.is_set() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => rolling.at("partition").must_not_be_negative(errors),
        _ => {
            let shown = shown_strategy(&strategy, &["partition", "maxUnavailable"]);
            let why = format!("{shown}: must be 'RollingUpdate' or 'OnDelete'");
            errors.push(FieldError::new(
                FieldErrorKind::Invalid,
                strategy.field(),
                why,
            ));
        }
    }
    for when in ["whenDeleted", "whenScaled"] {
        let policy = spec.at("persistentVolumeClaimRetentionPolicy");
        policy.at(when).may_be_one_of(&["Retain", "Delete"], errors);
    }
    spec.at("replicas").must_not_be_negative(errors);
    spec.at("minReadySeconds").must_not_be_negative(errors);
    spec.at("ordinals.start").must_not_be_negative(errors);
    if own_selector(
        &spec,
        "empty selector is invalid for statefulset",
        "",
        errors,
    ) {
        claims_as_volumes(&spec, errors);
        running_template(&spec, "StatefulSet", errors);
    } else {
        keeps_running(&spec, "StatefulSet", errors);
    }
}

/// Checks what only a new StatefulSet says: its claims and the name of its service. Follows `ValidateStatefulSet`.
pub(crate) fn new_stateful_set(object: &Field<'_, '_>, errors: &mut Errors) {
    for claim in object.items("spec.volumeClaimTemplates") {
        claim_validation::claim(&claim, errors);
    }
    object
        .at("spec.serviceName")
        .may_conform(formats::dns_label, errors);
}

/// Checks that each claim of a StatefulSet can be a volume of its pods, for which errors take it.
fn claims_as_volumes(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for claim in spec.items("volumeClaimTemplates") {
        let name = claim.at("metadata.name");
        let at = seen.len();
        if !seen.insert(name.text()) {
            continue;
        }
        let volume = spec.at("template.spec.volumes").field();
        let mut wrong = Errors::new();
        if name.is_empty() {
            let mut error = name.required("");
            error.field = format!("{volume}[{at}].persistentVolumeClaim.claimName");
            errors.push(error);
        }
        name.must_be_set_and_conform(formats::dns_label, &mut wrong);
        errors.extend(wrong.into_iter().map(|mut error| {
            error.field = format!("{volume}[{at}].name");
            error
        }));
    }
}

/// Checks an update of a StatefulSet: most of its spec is immutable. Follows `ValidateStatefulSetUpdate`.
pub(crate) fn stateful_set_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let rest = |it: &Field<'_, '_>| {
        let mut spec = it.at("spec").value().clone();
        if let Some(members) = spec.as_object_mut() {
            members.retain(|name, _| !STATEFUL_SET_CHANGEABLE.contains(&name.as_str()));
        }
        spec
    };
    if rest(object) != rest(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(object.at("spec").forbidden(why));
    }
}

/// Checks a ReplicationController, whose selector is a map. Follows `ValidateReplicationControllerSpec` in
/// pkg/apis/core/validation.
pub(crate) fn replication_controller(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("minReadySeconds").must_not_be_negative(errors);
    let own = spec.at("selector");
    own.must_be_set(errors);
    spec.at("replicas").must_not_be_negative(errors);
    if !spec.at("template").is_set() {
        errors.push(spec.at("template").required(""));
        return;
    }
    if !own.is_empty() && !selects(&json!({"matchLabels": own.value()}), labels_of(&spec)) {
        errors.push(mismatch(&spec));
    }
    template_that_runs(&spec, "ReplicationController", errors);
}

/// Checks that a selector is unchanged.
pub(crate) fn selector_stays(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let own = object.at("spec.selector");
    own.must_stay(&old.at("spec.selector"), errors);
}

/// Checks that there is a selector, and that it is not empty. Returns false if it cannot be read, in which case the
/// template is not looked at.
fn own_selector(spec: &Field<'_, '_>, empty: &str, unreadable: &str, errors: &mut Errors) -> bool {
    let own = spec.at("selector");
    if !own.is_set() {
        errors.push(own.required(""));
        return true;
    }
    let before = errors.len();
    selector(&own, errors);
    let is_readable = errors.len() == before;
    if selects_all(own.value()) {
        errors.push(own.invalid(empty));
    }
    if !is_readable {
        let shown = shown_selector(own.value());
        let why = match unreadable {
            "" => shown,
            _ => format!("{shown}: {unreadable}"),
        };
        errors.push(FieldError::new(FieldErrorKind::Invalid, own.field(), why));
    }
    is_readable
}

/// Checks that the labels of the template match the selector, and that its pods keep running.
fn running_template(spec: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    let own = spec.at("selector").value();
    // Nothing is selected without a selector.
    if own.is_null() || !selects_all(own) && !selects(own, labels_of(spec)) {
        errors.push(mismatch(spec));
    }
    template_that_runs(spec, kind, errors);
}

fn template_that_runs(spec: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    let pods = spec.at("template");
    let claims: TemplateClaims<'_> = spec
        .items("volumeClaimTemplates")
        .map(|claim| claim.at("metadata.name").text())
        .collect();
    let mut wrong = Errors::new();
    template(&pods, &claims, &mut wrong);
    let volumes = pods.at("spec.volumes");
    errors.extend(
        wrong
            .into_iter()
            .filter_map(|error| after_claims(error, &volumes, &claims)),
    );
    keeps_running(spec, kind, errors);
}

/// Returns an error of the pods that claims are for, where kube-apiserver has it: it puts the claims before the volumes
/// of the template, and leaves out volumes with their names.
fn after_claims(
    mut error: FieldError,
    volumes: &Field<'_, '_>,
    claims: &TemplateClaims<'_>,
) -> Option<FieldError> {
    let list = format!("{}[", volumes.field());
    let found = error.field.strip_prefix(&list);
    let found = found.and_then(|rest| rest.split_once(']'));
    let Some((Ok(at), member)) = found.map(|(at, member)| (at.parse::<usize>(), member)) else {
        return Some(error);
    };
    let names = volumes.value().as_array().into_iter().flatten();
    let names = names.map(|volume| text(volume, "name"));
    let replaced: Vec<bool> = names.map(|name| claims.contains(name)).collect();
    if replaced.get(at) == Some(&true) {
        return None;
    }
    let before = replaced.iter().take(at).filter(|it| **it).count();
    error.field = format!("{list}{}]{member}", claims.len() + at - before);
    Some(error)
}

/// Checks that the pods of the template run until they are deleted.
fn keeps_running(spec: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    let pods = spec.at("template");
    let policy = pods.at("spec.restartPolicy");
    if policy.is_set() {
        policy.must_be_one_of(&["Always"], errors);
    }
    let why = format!("activeDeadlineSeconds in {kind} is not Supported");
    pods.at("spec.activeDeadlineSeconds")
        .must_be_unset(&why, errors);
}

fn labels_of<'v>(spec: &Field<'v, '_>) -> &'v Value {
    get(spec.value(), "template.metadata.labels").unwrap_or(&Value::Null)
}

fn mismatch(spec: &Field<'_, '_>) -> FieldError {
    let blamed = spec.at("template.metadata.labels");
    blamed.invalid_value(labels_of(spec).clone(), MISMATCH)
}

/// Returns the error about a strategy of an unknown type, which these members describe further.
fn unsupported_strategy(
    strategy: &Field<'_, '_>,
    members: &[&str],
    supported: &[&str],
) -> FieldError {
    let mut error = strategy.unsupported(supported);
    let quoted: Vec<String> = supported.iter().map(|it| json!(it).to_string()).collect();
    error.detail = format!(
        "{}: supported values: {}",
        shown_strategy(strategy, members),
        quoted.join(", ")
    );
    error
}

/// Returns a strategy as Go writes Kubernetes' internal type, which errors show.
fn shown_strategy(strategy: &Field<'_, '_>, members: &[&str]) -> String {
    let rolling = strategy.at("rollingUpdate");
    let member = |name: &&str| {
        let (first, rest) = name.split_at(1);
        let value = rolling.at(name).value();
        let shown = match (*name, value) {
            ("partition", Value::Null) => &json!(0),
            (_, value) => value,
        };
        format!("\"{}{rest}\":{shown}", first.to_uppercase())
    };
    let shown = if rolling.is_set() {
        let members: Vec<String> = members.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    } else {
        "null".to_owned()
    };
    let kind = json!(strategy.at("type").text());
    format!("{{\"Type\":{kind},\"RollingUpdate\":{shown}}}")
}

/// Returns true if a number or percentage is greater than zero.
fn is_some(count: &Field<'_, '_>) -> bool {
    let text = count.text().trim_end_matches('%');
    count.number().or_else(|| text.parse().ok()).unwrap_or(0) != 0
}

/// Checks a ControllerRevision. Follows `validateControllerRevision`.
pub(crate) fn revision(object: &Field<'_, '_>, errors: &mut Errors) {
    object.at("revision").must_not_be_negative(errors);
}

/// Checks the data of a new ControllerRevision, an object of any form. Follows `ValidateControllerRevisionCreate`.
pub(crate) fn revision_data(object: &Field<'_, '_>, errors: &mut Errors) {
    let data = object.at("data");
    if !data.is_set() {
        errors.push(data.required("data is mandatory"));
    } else if !data.value().is_object() {
        errors.push(data.required("data must be a valid JSON object"));
    }
}

/// Checks an update of a ControllerRevision: its data is immutable. Follows `ValidateControllerRevisionUpdate`.
pub(crate) fn revision_stays(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    object.at("data").must_stay(&old.at("data"), errors);
}

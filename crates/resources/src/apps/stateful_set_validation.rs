//! StatefulSets, whose claims are volumes of their pods, and of which little may change.
//!
//! Follows pkg/apis/apps/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use super::validation::{is_some, keeps_running, matches_own_labels, own_selector, shown_strategy};
use crate::core::pod::validation::scheduling::at_most_all;
use crate::core::pod::validation::{TemplateClaims, template, template_metadata};
use crate::core::volume::claim_validation;
use crate::validation::check_update;
use crate::validation::field::{Errors, Field};

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

/// The parts of a StatefulSet that are checked.
#[derive(Clone, Copy, Debug)]
struct CheckedParts {
    /// True for the claims and the name of the service, which are immutable.
    immutable: bool,
    /// True for the template of the pods.
    template: bool,
}

/// Checks a new StatefulSet. Follows `ValidateStatefulSet`.
pub(crate) fn stateful_set(object: &Field<'_, '_>, errors: &mut Errors) {
    let all = CheckedParts {
        immutable: true,
        template: true,
    };
    stateful_set_spec(&object.at("spec"), all, errors);
}

/// Checks an update of a StatefulSet: most of its spec is immutable, and its template is not checked if something was
/// wrong with it before. Follows `ValidateStatefulSetUpdate`.
pub(crate) fn stateful_set_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let mut parts = CheckedParts {
        immutable: false,
        template: true,
    };
    let mut wrong = Errors::new();
    stateful_set_spec(&old.at("spec"), parts, &mut wrong);
    // What broke rules that came later was right to begin with.
    parts.template = wrong.iter().all(|error| error.later_rule.is_some());
    let check = |it: &Field<'_, '_>, errors: &mut Errors| {
        stateful_set_spec(&it.at("spec"), parts, errors);
    };
    check_update(check, object, old, errors);
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

/// Checks the spec of a StatefulSet. Follows `ValidateStatefulSetSpec`.
fn stateful_set_spec(spec: &Field<'_, '_>, parts: CheckedParts, errors: &mut Errors) {
    let management = spec.at("podManagementPolicy");
    if !matches!(management.text(), "OrderedReady" | "Parallel") {
        errors.push(management.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    update_strategy(&spec.at("updateStrategy"), errors);
    for when in ["whenDeleted", "whenScaled"] {
        let policy = spec.at("persistentVolumeClaimRetentionPolicy");
        policy.at(when).may_be_one_of(&["Retain", "Delete"], errors);
    }
    if parts.immutable {
        for claim in spec.items("volumeClaimTemplates") {
            claim_validation::claim(&claim, errors);
        }
    }
    spec.at("replicas").must_not_be_negative(errors);
    spec.at("minReadySeconds").must_not_be_negative(errors);
    spec.at("ordinals.start").must_not_be_negative(errors);
    if parts.immutable {
        let service = spec.at("serviceName");
        service.may_conform(formats::dns_label, errors);
    }
    if own_selector(
        spec,
        "empty selector is invalid for statefulset",
        "",
        errors,
    ) {
        matches_own_labels(spec, errors);
        if parts.template {
            template_with_claims(spec, errors);
        } else {
            template_metadata(&spec.at("template"), errors);
        }
    }
    keeps_running(spec, "StatefulSet", errors);
}

/// Checks how the pods of a StatefulSet are updated. Follows `validateRollingUpdateStatefulSet`.
fn update_strategy(strategy: &Field<'_, '_>, errors: &mut Errors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" if rolling.is_set() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.at("partition").must_not_be_negative(errors);
            let unavailable = rolling.at("maxUnavailable");
            if unavailable.is_set() {
                unavailable.must_be_a_count_or_percentage(errors);
                if !is_some(&unavailable) {
                    errors.push(unavailable.invalid("cannot be 0"));
                }
                at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let shown = shown_strategy(strategy, &["partition", "maxUnavailable"]);
            let why = format!("{shown}: must be 'RollingUpdate' or 'OnDelete'");
            errors.push(FieldError::new(
                FieldErrorKind::Invalid,
                strategy.field(),
                why,
            ));
        }
    }
}

/// Checks the template of a StatefulSet as kube-apiserver does: the claims are among its volumes, and the host and the
/// subdomain that it names do not count, since each pod gets its own.
fn template_with_claims(spec: &Field<'_, '_>, errors: &mut Errors) {
    let pods = spec.at("template");
    let claims: TemplateClaims<'_> = spec
        .items("volumeClaimTemplates")
        .map(|claim| claim.at("metadata.name").text())
        .collect();
    let mut wrong = Errors::new();
    template(&pods, &claims, &mut wrong);
    let names = ["spec.hostname", "spec.subdomain"].map(|name| pods.at(name).field());
    wrong.retain(|error| !names.contains(&error.field));
    let volumes = pods.at("spec.volumes");
    let (list, places) = (volumes.field(), places_after_claims(&volumes, &claims));
    let of_spec = pods.at("spec").field();
    let is_of_spec = |error: &FieldError| error.field.starts_with(&of_spec);
    let metadata = wrong.iter().position(is_of_spec).unwrap_or(wrong.len());
    let rest = wrong.split_off(metadata);
    errors.extend(wrong);
    claims_as_volumes(spec, errors);
    let rest = rest.into_iter();
    errors.extend(rest.filter_map(|error| moved(error, &list, &places)));
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

/// Returns the place among the volumes of the pods of each volume of the template: kube-apiserver puts the claims
/// before them, and leaves out volumes with the names of claims.
fn places_after_claims(volumes: &Field<'_, '_>, claims: &TemplateClaims<'_>) -> Vec<Option<usize>> {
    let mut next = claims.len();
    let names = volumes.items("").map(|volume| volume.at("name").text());
    let place = |name: &str| {
        let is_kept = !claims.contains(name);
        next += usize::from(is_kept);
        is_kept.then(|| next - 1)
    };
    names.map(place).collect()
}

/// Returns an error with the place that a volume has in `places`, if it is about one; `None` if the volume is left out.
fn moved(mut error: FieldError, list: &str, places: &[Option<usize>]) -> Option<FieldError> {
    let found = error.field.strip_prefix(list);
    let found = found.and_then(|rest| rest.strip_prefix('[')?.split_once(']'));
    let Some((Ok(at), member)) = found.map(|(at, member)| (at.parse::<usize>(), member)) else {
        return Some(error);
    };
    let place = places.get(at).copied().flatten()?;
    error.field = format!("{list}[{place}]{member}");
    Some(error)
}

//! The scheduling of pods: affinity, tolerations and topology spread constraints.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::{BTreeSet, HashMap, HashSet};

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::validation::annotation_json::{Member, structs};
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{
    node_selector, node_selector_term, selector, selector_by_later_rule,
};
use crate::validation::later_rules::{AFFINITY_VALUES, NO_COMPARISON, SPREAD_SELECTORS};
use crate::validation::values::percentage;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// The effects that taints and tolerations may have.
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Annotation of pods with their tolerations, where they were before there was a field.
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

/// The members of a toleration, with their types in Go.
const OF_TOLERATIONS: &[Member] = &[
    ("key", "string"),
    ("operator", "core.TolerationOperator"),
    ("value", "string"),
    ("effect", "core.TaintEffect"),
    ("tolerationSeconds", "int64"),
];

/// Checks the affinity of a pod. Follows `validateAffinity`.
pub(super) fn affinity(at: &Field<'_, '_>, errors: &mut Errors) {
    let nodes = at.at("nodeAffinity");
    if nodes.at(REQUIRED).is_set() {
        node_selector(&nodes.at(REQUIRED), errors);
    }
    for wish in nodes.items(PREFERRED) {
        weight(&wish, errors);
        node_selector_term(&wish.at("preference"), false, errors);
    }
    for pods in ["podAffinity", "podAntiAffinity"].map(|pods| at.at(pods)) {
        for term in pods.items(REQUIRED) {
            pod_term(&term, errors);
        }
        for wish in pods.items(PREFERRED) {
            weight(&wish, errors);
            pod_term(&wish.at("podAffinityTerm"), errors);
        }
    }
}

fn weight(wish: &Field<'_, '_>, errors: &mut Errors) {
    let weight = wish.at("weight").number().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(
            wish.at("weight")
                .invalid_value(weight, "must be in the range 1-100"),
        );
    }
}

fn pod_term(at: &Field<'_, '_>, errors: &mut Errors) {
    for pods in ["labelSelector", "namespaceSelector"] {
        selector_by_later_rule(&at.at(pods), AFFINITY_VALUES, errors);
    }
    for namespace in at.items("namespaces") {
        let wrong = formats::dns_label(namespace.text()).into_iter();
        let blamed = at.at("namespace");
        errors.extend(wrong.map(|why| blamed.invalid_value(namespace.text(), why)));
    }
    label_keys(at, errors);
    let key = at.at("topologyKey");
    if key.is_empty() {
        errors.push(key.required("can not be empty"));
    }
    key.must_conform(formats::label_key, errors);
}

/// Labels whose values the selector beside them is to have, or not to have.
fn label_keys(at: &Field<'_, '_>, errors: &mut Errors) {
    let own = at.at("labelSelector");
    let [matching, others] = ["matchLabelKeys", "mismatchLabelKeys"].map(|keys| at.at(keys));
    for keys in [matching, others] {
        if !keys.is_empty() && !own.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items("") {
            key.must_conform(formats::label_key, errors);
        }
    }
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    for (index, key) in matching.items("").enumerate() {
        indexes.insert(key.text(), index);
    }
    let labels = own.at("matchLabels").value();
    let mut selected: BTreeSet<&str> = BTreeSet::new();
    for expression in own.items("matchExpressions") {
        let key = expression.at("key").text();
        // Of a pod the server has put the keys into the selector already: once is once too few.
        if let Some(index) = indexes.get(key)
            && (labels.get(key).is_some() || selected.contains(key))
        {
            let mut error =
                at.invalid_value(key, "exists in both matchLabelKeys and labelSelector");
            // Kubernetes counts the keys here as if they were those of the term.
            error.field = format!("{}[{index}]", error.field);
            errors.push(error);
        }
        selected.insert(key);
    }
    let mismatched: HashSet<&str> = others.items("").map(|it| it.text()).collect();
    for key in matching.items("") {
        if mismatched.contains(key.text()) {
            errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
}

/// Checks the tolerations of a pod. Follows `ValidateTolerations`.
pub(crate) fn tolerations(at: &Field<'_, '_>, errors: &mut Errors) {
    for toleration in at.items("") {
        let [key, operator, effect, value] =
            ["key", "operator", "effect", "value"].map(|member| toleration.at(member));
        key.may_conform(formats::label_key, errors);
        if key.is_empty() && operator.text() != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(operator.invalid(why));
        }
        if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(effect.invalid(why));
        }
        match operator.text() {
            "Equal" | "" => {
                let wrong = formats::label_value(value.text());
                if !wrong.is_empty() {
                    errors.push(operator.invalid_value(value.text(), wrong.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(operator.invalid_value(value.text(), why));
            }
            "Exists" => {}
            // The feature gate of these is off in Kubernetes 1.36.
            "Lt" | "Gt" => {
                let error = operator.unsupported(&["Equal", "Exists", "Lt", "Gt"]);
                errors.push(error.by_later_rule(NO_COMPARISON));
            }
            _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            effect.may_be_one_of(EFFECTS, errors);
        }
    }
}

/// Checks the tolerations in the annotations of a pod or template, which errors name by `path`. Follows
/// `ValidateTolerationsInPodAnnotations`.
pub(super) fn annotated_tolerations(pod: &Field<'_, '_>, path: &str, errors: &mut Errors) {
    let annotations = pod.at("metadata.annotations").value();
    let text = annotations.get(TOLERATIONS).and_then(Value::as_str);
    let Some(text) = text.filter(|it| !it.is_empty()) else {
        return;
    };
    match structs(text, "core.Toleration", OF_TOLERATIONS) {
        Ok(list) => {
            let path = format!("{path}.{TOLERATIONS}");
            tolerations(&Field::named(&list, &path), errors);
        }
        Err(why) => errors.push(FieldError::invalid(path, &TOLERATIONS.into(), why)),
    }
}

/// Checks the taints of a node. Follows `validateNodeTaints`.
pub(crate) fn taints(at: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for taint in at.items("") {
        let [key, value, effect] = ["key", "value", "effect"].map(|member| taint.at(member));
        key.must_conform(formats::label_key, errors);
        let wrong = formats::label_value(value.text());
        if !wrong.is_empty() {
            errors.push(value.invalid(wrong.join(";")));
        }
        effect.must_be_one_of(EFFECTS, errors);
        if !seen.insert((key.text(), effect.text())) {
            let mut error = taint.duplicate();
            error.detail += ": taints must be unique by key and effect pair";
            errors.push(error);
        }
    }
}

/// Checks the topology spread constraints of a pod. Follows `validateTopologySpreadConstraints`.
pub(super) fn spread(spec: &Field<'_, '_>, errors: &mut Errors) {
    const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
    const POLICIES: &[&str] = &["Honor", "Ignore"];
    let mut last_of = HashMap::new();
    for (index, one) in spec.items("topologySpreadConstraints").enumerate() {
        let pair = (
            one.at("topologyKey").text(),
            one.at("whenUnsatisfiable").text(),
        );
        last_of.insert(pair, index);
    }
    for (index, one) in spec.items("topologySpreadConstraints").enumerate() {
        let [skew, key, action, least] =
            ["maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains"].map(|it| one.at(it));
        let number = skew.number().unwrap_or(0);
        if number <= 0 {
            errors.push(skew.invalid_value(number, "must be greater than zero"));
        }
        if key.is_empty() {
            errors.push(key.required("can not be empty"));
        }
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.unsupported(ACTIONS));
        }
        let pair = (key.text(), action.text());
        if last_of.get(&pair) != Some(&index) {
            let blamed = one.at("{topologyKey, whenUnsatisfiable}");
            errors.push(blamed.duplicate_of(&format!("{{{}, {}}}", pair.0, pair.1)));
        }
        if least.number().is_some_and(|least| least <= 0) {
            errors.push(least.invalid("must be greater than zero"));
        }
        if least.is_set() && action.text() != "DoNotSchedule" {
            let why = format!(
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                action.text()
            );
            errors.push(least.invalid(why));
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one.at(policy).may_be_one_of(POLICIES, errors);
        }
        label_keys(&one, errors);
        let mut wrong = Errors::new();
        selector(&one.at("labelSelector"), &mut wrong);
        let wrong = wrong.into_iter();
        errors.extend(wrong.map(|it| it.by_later_rule(SPREAD_SELECTORS)));
    }
}

/// Checks that a percentage of pods is at most 100. Follows `IsNotMoreThan100Percent` in pkg/apis/apps/validation.
pub(crate) fn at_most_all(at: &Field<'_, '_>, errors: &mut Errors) {
    let text = at.text();
    let number = text.strip_suffix('%').and_then(|it| it.parse::<u64>().ok());
    if percentage(text).is_empty() && number.is_none_or(|number| number > 100) {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

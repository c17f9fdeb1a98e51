//! Admission webhooks, policies and their bindings.
//!
//! Follows pkg/apis/admissionregistration/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_admission::{ExpressionChecks, param_kind_errors};
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::client_config::{self, REVIEW_VERSIONS};
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{selector, selector_with};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// The operations whose objects policies can change.
const MUTATED_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS: [&str; 2] = ["Deny", "Allow"];

/// The values of `sideEffects`. The last two are of v1beta1.
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const NO_SIDE_EFFECTS: usize = 2;

const TIMEOUT_SECONDS_MAX: i64 = 30;
const AUDIT_ANNOTATIONS_MAX: usize = 20;

/// The rules that webhooks must follow. A rule that all older webhooks break is not enforced.
#[derive(Clone, Copy)]
struct EnforcedRules {
    no_side_effects: bool,
    known_version: bool,
    unique_names: bool,
    label_values: bool,
    /// False if all match conditions are as they were.
    conditions: bool,
}

const EVERYTHING: EnforcedRules = EnforcedRules {
    no_side_effects: true,
    known_version: true,
    unique_names: true,
    label_values: true,
    conditions: true,
};

/// Checks a new MutatingWebhookConfiguration or ValidatingWebhookConfiguration. Follows
/// `ValidateMutatingWebhookConfiguration` and `ValidateValidatingWebhookConfiguration`.
pub(crate) fn webhooks(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut checks = ExpressionChecks::of_webhooks(None);
    all_webhooks(object, EVERYTHING, &mut checks, errors);
}

/// Checks an update of one: a rule that all old webhooks break is not enforced. Follows
/// `ValidateMutatingWebhookConfigurationUpdate` and `ValidateValidatingWebhookConfigurationUpdate`.
pub(crate) fn changed_webhooks(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    const HOOKS: &str = "webhooks";
    let mut names = BTreeSet::new();
    let is_known = |version: Field<'_, '_>| REVIEW_VERSIONS.contains(&version.text());
    let conditions = |of: &Field<'_, '_>| -> Vec<Value> {
        let hooks = of.items(HOOKS);
        hooks
            .map(|it| it.at("matchConditions").value().clone())
            .collect()
    };
    let selects_well = |hook: Field<'_, '_>| {
        let mut wrong = Errors::new();
        selector(&hook.at("namespaceSelector"), &mut wrong);
        selector(&hook.at("objectSelector"), &mut wrong);
        wrong.is_empty()
    };
    let enforced = EnforcedRules {
        no_side_effects: old
            .items(HOOKS)
            .all(|it| SIDE_EFFECTS[..NO_SIDE_EFFECTS].contains(&it.at("sideEffects").text())),
        known_version: old.items(HOOKS).all(|it| {
            let versions = "admissionReviewVersions";
            it.at(versions).is_empty() || it.items(versions).any(is_known)
        }),
        unique_names: old
            .items(HOOKS)
            .all(|it| names.insert(it.at("name").text().to_owned())),
        label_values: old.items(HOOKS).all(selects_well),
        conditions: conditions(object) != conditions(old),
    };
    let mut checks = ExpressionChecks::of_webhooks(Some(old.value()));
    all_webhooks(object, enforced, &mut checks, errors);
}

fn all_webhooks(
    object: &Field<'_, '_>,
    enforced: EnforcedRules,
    checks: &mut ExpressionChecks<'_>,
    errors: &mut Errors,
) {
    let mut names = BTreeSet::new();
    for hook in object.items("webhooks") {
        webhook(&hook, enforced, errors);
        if enforced.conditions {
            errors.extend(checks.match_conditions(hook.value(), &hook.field()));
        }
        review_versions(&hook.at("admissionReviewVersions"), enforced, errors);
        let name = hook.at("name");
        if enforced.unique_names && !name.is_empty() && !names.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

fn webhook(hook: &Field<'_, '_>, enforced: EnforcedRules, errors: &mut Errors) {
    qualified_domain(&hook.at("name"), errors);
    for rule in hook.items("rules") {
        rule_with_operations(&rule, errors);
    }
    hook.at("failurePolicy")
        .may_be_one_of(&FAILURE_POLICIES, errors);
    hook.at("matchPolicy")
        .may_be_one_of(&MATCH_POLICIES, errors);
    let classes = if enforced.no_side_effects {
        &SIDE_EFFECTS[..NO_SIDE_EFFECTS]
    } else {
        &SIDE_EFFECTS[..]
    };
    let side_effects = hook.at("sideEffects");
    if side_effects.is_set() {
        side_effects.may_be_one_of(classes, errors);
    } else {
        let why = format!("must specify one of {}", classes.join(", "));
        errors.push(side_effects.required(&why));
    }
    let timeout = hook.at("timeoutSeconds");
    let fits = |seconds| (1..=TIMEOUT_SECONDS_MAX).contains(&seconds);
    if !timeout.number().is_none_or(fits) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        selector_with(&hook.at(selector), !enforced.label_values, errors);
    }
    hook.at("reinvocationPolicy")
        .may_be_one_of(&REINVOCATION_POLICIES, errors);
    client_config::client(&hook.at("clientConfig"), errors);
}

/// Checks that a name is a domain of at least three labels.
fn qualified_domain(name: &Field<'_, '_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
        return;
    }
    let wrong = formats::dns_subdomain(name.text());
    if !wrong.is_empty() {
        errors.push(name.invalid(wrong.join(",")));
    } else if name.text().split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.push(name.invalid(why));
    }
}

fn review_versions(versions: &Field<'_, '_>, enforced: EnforcedRules, errors: &mut Errors) {
    if versions.is_empty() {
        let known = REVIEW_VERSIONS.join(", ");
        errors.push(versions.required(&format!("must specify one of {known}")));
    } else {
        client_config::review_versions(versions, enforced.known_version, errors);
    }
}

/// Checks a new ValidatingAdmissionPolicy. Follows `ValidateValidatingAdmissionPolicy`.
pub(crate) fn validating_policy(object: &Field<'_, '_>, errors: &mut Errors) {
    validations(object, None, errors);
}

/// Checks an update of a ValidatingAdmissionPolicy. Follows `ValidateValidatingAdmissionPolicyUpdate`.
pub(crate) fn changed_validating_policy(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    validations(object, Some(old.value()), errors);
}

/// Checks a new MutatingAdmissionPolicy. Follows `ValidateMutatingAdmissionPolicy`.
pub(crate) fn mutating_policy(object: &Field<'_, '_>, errors: &mut Errors) {
    mutations(object, None, errors);
}

/// Checks an update of a MutatingAdmissionPolicy. Follows `ValidateMutatingAdmissionPolicyUpdate`.
pub(crate) fn changed_mutating_policy(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    mutations(object, Some(old.value()), errors);
}

/// Follows `validateValidatingAdmissionPolicySpec`.
fn validations(object: &Field<'_, '_>, old: Option<&Value>, errors: &mut Errors) {
    let mut checks = ExpressionChecks::of_policy(object.value(), old);
    policy(object, old, false, &mut checks, errors);
    let spec = object.at("spec");
    let (rules, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
    if rules.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.extend([rules.required(why), annotations.required(why)]);
    }
    for rule in rules.items("") {
        errors.extend(checks.validation(rule.value(), &rule.field()));
    }
    if annotations.len() > AUDIT_ANNOTATIONS_MAX {
        let why = format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations");
        errors.push(annotations.invalid(why));
    }
    let mut keys = BTreeSet::new();
    let policy = object.at("metadata.name");
    for annotation in annotations.items("") {
        let key = annotation.at("key");
        if policy.is_empty() {
            errors.push(key.invalid("requires metadata.name be non-empty"));
        } else {
            let whole = format!("{}/{}", policy.text(), key.text());
            let wrong = formats::label_key(&whole).into_iter();
            errors.extend(wrong.map(|why| key.invalid_value(whole.as_str(), why)));
        }
        errors.extend(checks.audit_value(annotation.value(), &annotation.field()));
        if !keys.insert(key.text()) {
            errors.push(key.duplicate_of(key.text()));
        }
    }
}

/// Follows `validateMutatingAdmissionPolicySpec`.
fn mutations(object: &Field<'_, '_>, old: Option<&Value>, errors: &mut Errors) {
    let mut checks = ExpressionChecks::of_policy(object.value(), old);
    policy(object, old, true, &mut checks, errors);
    let spec = object.at("spec");
    let mutations = spec.at("mutations");
    if mutations.is_empty() {
        errors.push(mutations.required("mutations must contain at least one item"));
    }
    for mutation in mutations.items("") {
        errors.extend(checks.mutation(mutation.value(), &mutation.field()));
    }
    spec.at("reinvocationPolicy")
        .must_be_one_of(&REINVOCATION_POLICIES, errors);
}

/// Checks the parts that policies of both kinds have, up to the variables.
fn policy(
    object: &Field<'_, '_>,
    old: Option<&Value>,
    mutates: bool,
    checks: &mut ExpressionChecks<'_>,
    errors: &mut Errors,
) {
    let spec = object.at("spec");
    spec.at("failurePolicy")
        .must_point_to_one_of(&FAILURE_POLICIES, errors);
    errors.extend(param_kind_errors(object.value()));
    let what = spec.at("matchConstraints");
    if what.is_set() {
        matched(&what, errors);
        let rules = what.at("resourceRules");
        rules.must_be_set(errors);
        if mutates {
            mutated_operations(&what, errors);
        }
    } else {
        errors.push(what.required(""));
    }
    let is_same = |old: &Value| {
        let old = Field::root(old);
        let parts = ["spec.paramKind", "spec.matchConditions"];
        parts
            .iter()
            .all(|it| old.at(it).value() == object.at(it).value())
    };
    if !old.is_some_and(is_same) {
        errors.extend(checks.match_conditions(spec.value(), &spec.field()));
    }
    errors.extend(checks.variables(object.value(), mutates));
}

/// Checks a ValidatingAdmissionPolicyBinding. Follows `validateValidatingAdmissionPolicyBindingSpec`.
pub(crate) fn validating_binding(object: &Field<'_, '_>, errors: &mut Errors) {
    binding(object, errors);
    let actions = object.at("spec.validationActions");
    let mut seen = BTreeSet::new();
    for action in actions.items("") {
        action.may_be_one_of(&ACTIONS, errors);
        if !seen.insert(action.text()) {
            errors.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(actions.invalid(why));
    }
    if seen.is_empty() {
        errors.push(actions.required("at least one validation action is required"));
    }
}

/// Checks a MutatingAdmissionPolicyBinding. Follows `validateMutatingAdmissionPolicyBindingSpec`.
pub(crate) fn mutating_binding(object: &Field<'_, '_>, errors: &mut Errors) {
    binding(object, errors);
    mutated_operations(&object.at("spec.matchResources"), errors);
}

/// Checks that what is mutated is not a deletion. The errors are about all rules.
fn mutated_operations(what: &Field<'_, '_>, errors: &mut Errors) {
    let rules = what.at("resourceRules");
    for rule in rules.items("") {
        for operation in rule.items("operations") {
            if !MUTATED_OPERATIONS.contains(&operation.text()) {
                let blamed = rules.at("operations");
                errors.push(blamed.unsupported_value(operation.text(), &MUTATED_OPERATIONS));
            }
        }
    }
}

/// Checks the parts that bindings of both kinds have. Follows `validateMutatingAdmissionPolicyBindingSpec`.
pub(crate) fn binding(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("policyName")
        .must_be_set_and_conform(formats::dns_subdomain, errors);
    params(&spec.at("paramRef"), errors);
    matched(&spec.at("matchResources"), errors);
}

fn params(reference: &Field<'_, '_>, errors: &mut Errors) {
    if !reference.is_set() {
        return;
    }
    let (name, by_labels) = (reference.at("name"), reference.at("selector"));
    let has_both = !name.is_empty() && by_labels.is_set();
    name.may_conform(|text| formats::path_segment(text, false), errors);
    let why = "name and selector are mutually exclusive";
    errors.extend(has_both.then(|| name.forbidden(why)));
    selector(&by_labels, errors);
    errors.extend(has_both.then(|| by_labels.forbidden(why)));
    if name.is_empty() && !by_labels.is_set() {
        errors.push(reference.required("one of name or selector must be specified"));
    }
    reference
        .at("parameterNotFoundAction")
        .must_be_one_of(&NOT_FOUND_ACTIONS, errors);
}

/// Checks the match conditions and selectors of a policy or its binding.
fn matched(what: &Field<'_, '_>, errors: &mut Errors) {
    what.at("matchPolicy")
        .may_be_one_of(&MATCH_POLICIES, errors);
    selector(&what.at("namespaceSelector"), errors);
    selector(&what.at("objectSelector"), errors);
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in what.items(rules) {
            let mut names = BTreeSet::new();
            for name in rule.items("resourceNames") {
                name.must_conform(|text| formats::path_segment(text, false), errors);
                if !names.insert(name.text().to_owned()) {
                    errors.push(name.duplicate());
                }
            }
            rule_with_operations(&rule, errors);
        }
    }
}

fn rule_with_operations(rule: &Field<'_, '_>, errors: &mut Errors) {
    let operations = rule.at("operations");
    star_alone(&operations, "operations", errors);
    for operation in operations.items("") {
        if !OPERATIONS.contains(&operation.text()) {
            errors.push(operation.unsupported(&OPERATIONS));
        }
    }
    star_alone(&rule.at("apiGroups"), "API groups", errors);
    let versions = rule.at("apiVersions");
    star_alone(&versions, "API versions", errors);
    for version in versions.items("") {
        version.must_be_set(errors);
    }
    resources(&rule.at("resources"), errors);
    rule.at("scope").may_be_one_of(&SCOPES, errors);
}

/// Checks that a list is not empty, and that a star in it stands alone.
fn star_alone(list: &Field<'_, '_>, what: &str, errors: &mut Errors) {
    list.must_be_set(errors);
    if list.len() > 1 && list.items("").any(|it| it.text() == "*") {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {what}")));
    }
}

/// Resources and subresources, none of which another one already means.
fn resources(list: &Field<'_, '_>, errors: &mut Errors) {
    list.must_be_set(errors);
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for one in list.items("") {
        let text = one.text();
        if text.is_empty() {
            errors.push(one.required(""));
            continue;
        }
        let Some((resource, part)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if whole.contains(resource) {
            let why = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(one.invalid(why));
        }
        if everywhere.contains(part) {
            let why = format!("if '*/{part}' is present, must not specify {text}");
            errors.push(one.invalid(why));
        }
        if part == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(part);
        }
    }
    let has = |wanted: &str| list.items("").any(|it| it.text() == wanted);
    if list.len() > 1 && has("*/*") {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if plain && has("*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(list.invalid(why));
    }
}

//! Checks of LimitRanges and ResourceQuotas.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::path::{set, text};
use ringwatch_apimachinery::quantity::Quantity;
use ringwatch_apimachinery::validation::formats;
use ringwatch_registry::RequestContext;
use serde_json::Value;

use crate::strategy::kind_hooks::KindHooks;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities::{amount, container_name, name, quota_name};
use crate::validation::quantities::{is_overcommitted, is_quota};

/// The types of a LimitRange's items.
const LIMIT_TYPES: &[&str] = &["Container", "PersistentVolumeClaim", "Pod"];
/// The scopes of quotas.
const SCOPES: &[&str] = &[
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
/// The scopes that no object can have both of.
const CONTRARY: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

/// The behaviour of LimitRanges: one without a name gets a random one.
#[derive(Debug)]
pub(super) struct LimitRanges;

impl KindHooks for LimitRanges {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        if text(object, "metadata.name").is_empty() {
            let name = uuid::Uuid::new_v4().to_string();
            set(object, "metadata.name", name.into());
        }
    }
}

/// Checks a LimitRange. Follows `ValidateLimitRange`.
pub(crate) fn limit_range(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for limit in object.items("spec.limits") {
        let kind = limit.at("type");
        kind.must_conform(formats::label_key, errors);
        let is_name = formats::label_key(kind.text()).is_empty();
        if is_name && !kind.text().contains('/') && !LIMIT_TYPES.contains(&kind.text()) {
            errors.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate());
        }
        names(&limit, errors);
        if kind.text() == "PersistentVolumeClaim"
            && !limit.at("min.storage").is_set()
            && !limit.at("max.storage").is_set()
        {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.push(limit.at("limits").required(why));
        }
        order(&limit, errors);
    }
}

fn names(limit: &Field<'_, '_>, errors: &mut Errors) {
    let kind = limit.at("type").text();
    for list in [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ] {
        if kind == "Pod" && list.starts_with("default") {
            let set = limit.at(list);
            if !set.is_empty() {
                errors.push(set.forbidden("may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        for (resource, quantity) in limit.members(list) {
            if matches!(kind, "Pod" | "Container") {
                container_name(resource, &quantity, errors);
            } else {
                name(resource, &quantity, errors);
            }
        }
    }
}

/// Checks that minimum, default request, default limit and maximum of a limit are in ascending order.
fn order(limit: &Field<'_, '_>, errors: &mut Errors) {
    const ORDER: &[(&str, &str, &str, &str)] = &[
        (
            "min",
            "max",
            "min",
            "min value LESS is greater than max value MORE",
        ),
        (
            "min",
            "defaultRequest",
            "defaultRequest",
            "min value LESS is greater than default request value MORE",
        ),
        (
            "defaultRequest",
            "max",
            "defaultRequest",
            "default request value LESS is greater than max value MORE",
        ),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "default request value LESS is greater than default limit value MORE",
        ),
        (
            "min",
            "default",
            "default",
            "min value LESS is greater than default value MORE",
        ),
        (
            "default",
            "max",
            "default",
            "default value LESS is greater than max value MORE",
        ),
    ];
    let of_pods = limit.at("type").text() == "Pod";
    for (less, more, blamed, words) in ORDER {
        if of_pods && (less.starts_with("default") || more.starts_with("default")) {
            continue;
        }
        for (resource, low) in limit.members(less) {
            let Some(high) = limit.at(more).value().get(resource).map(Field::root) else {
                continue;
            };
            if low.quantity() > high.quantity() {
                let (low, high) = (low.quantity_text(), high.quantity_text());
                let why = words.replace("LESS", &low).replace("MORE", &high);
                let shown = match *blamed {
                    "default" if *less == "default" => &high,
                    "defaultRequest" if *more == "defaultRequest" => &high,
                    _ => &low,
                };
                let mut error = limit.at(blamed).invalid_value(shown.as_str(), why);
                error.field = format!("{}[{resource}]", error.field);
                errors.push(error);
            }
        }
    }
    ratios(limit, errors);
    if !of_pods {
        equal_defaults(limit, errors);
    }
}

/// Checks that the ratios of a limit are possible: at least 1, and at most the maximum over the minimum.
fn ratios(limit: &Field<'_, '_>, errors: &mut Errors) {
    let one: Option<Quantity> = "1".parse().ok();
    for (resource, ratio) in limit.members("maxLimitRequestRatio") {
        let text = ratio.quantity_text();
        if ratio.quantity() < one {
            let why = format!("ratio {text} is less than 1");
            errors.push(ratio.invalid_value(text.as_str(), why));
        }
        let bound = |list: &str| {
            limit
                .at(list)
                .value()
                .get(resource)
                .map(Field::root)?
                .quantity()
        };
        let (Some(least), Some(most)) = (bound("min"), bound("max")) else {
            continue;
        };
        let largest = most.ratio(least);
        if ratio
            .quantity()
            .zip(one)
            .is_some_and(|(ratio, one)| ratio.ratio(one) > largest)
        {
            let why = format!("ratio {text} is greater than max/min = {largest:.6}");
            errors.push(ratio.invalid_value(text, why));
        }
    }
}

/// Checks that the default request of what cannot be overcommitted, such as huge pages, is its default limit.
fn equal_defaults(limit: &Field<'_, '_>, errors: &mut Errors) {
    let limits = limit.at("default");
    for (resource, request) in limit.members("defaultRequest") {
        let Some(most) = limits.value().get(resource).map(Field::root) else {
            continue;
        };
        if !is_overcommitted(resource) && most.quantity() != request.quantity() {
            let (most, request_text) = (most.quantity_text(), request.quantity_text());
            let why = format!(
                "default value {most} must equal to defaultRequest value {request_text} in {resource}"
            );
            errors.push(request.invalid_value(request_text, why));
        }
    }
}

/// Checks an update of the status of a ResourceQuota. Follows `ValidateResourceQuotaStatusUpdate`.
pub(crate) fn quota_status(object: &Value, _old: &Value) -> Errors {
    let mut errors = Errors::new();
    quantities(
        &Field::root(object),
        &["status.hard", "status.used"],
        &mut errors,
    );
    errors
}

/// Checks the names and quantities of resources in these lists.
fn quantities(object: &Field<'_, '_>, lists: &[&str], errors: &mut Errors) {
    for list in lists {
        for (resource, quantity) in object.members(list) {
            quota_name(resource, &quantity, errors);
            amount(resource, &quantity, errors);
        }
    }
}

/// Checks a ResourceQuota. Follows `ValidateResourceQuota`.
pub(crate) fn quota(object: &Field<'_, '_>, errors: &mut Errors) {
    quantities(object, &["spec.hard", "status.hard", "status.used"], errors);
    let spec = object.at("spec");
    let scopes = spec.at("scopes");
    let unfit: Vec<&str> = SCOPES
        .iter()
        .copied()
        .filter(|scope| has_unfit_resource(&spec, scope))
        .collect();
    // Every error shows all scopes.
    let errors_max = 1 + ERROR_BYTES_MAX / scopes.value().to_string().len();
    let errors_max = errors.len() + errors_max;
    for scope in spec.items("scopes") {
        if errors.len() >= errors_max {
            break;
        }
        if !SCOPES.contains(&scope.text()) {
            errors.push(scopes.invalid("unsupported scope"));
        }
        if unfit.contains(&scope.text()) {
            errors.push(scopes.invalid("unsupported scope applied to resource"));
        }
    }
    contrary(
        &scopes,
        |scope| scopes.items("").any(|it| it.text() == scope),
        errors,
    );
    selectors(&spec, errors);
}

fn contrary(blamed: &Field<'_, '_>, has: impl Fn(&str) -> bool, errors: &mut Errors) {
    for pair in CONTRARY {
        if pair.iter().all(|scope| has(scope)) {
            errors.push(blamed.invalid_value(blamed.value().clone(), "conflicting scopes"));
        }
    }
}

fn selectors(spec: &Field<'_, '_>, errors: &mut Errors) {
    let list = spec.at("scopeSelector.matchExpressions");
    // Kubernetes leaves a part out of the path.
    let blamed = spec.at("scopeSelector");
    let blamed = |member: &'static str| format!("{}.matchExpressions{member}", blamed.field());
    for expression in list.items("") {
        let [scope, operator, values] =
            ["scopeName", "operator", "values"].map(|member| expression.at(member));
        let mut blame = |it: &Field<'_, '_>, member, why: &str| {
            let mut error = it.invalid_value(it.value().clone(), why);
            error.field = blamed(member);
            errors.push(error);
        };
        if !SCOPES.contains(&scope.text()) {
            blame(&scope, ".scopeName", "unsupported scope");
        }
        let any_value = matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass");
        if SCOPES.contains(&scope.text()) && !any_value && operator.text() != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            blame(&operator, ".operator", why);
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                let mut error = values.required(why);
                error.field = blamed(".values");
                errors.push(error);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                blame(&values, ".values", why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => blame(&operator, ".operator", "not a valid selector operator"),
        }
    }
    let has = |scope: &str| list.items("").any(|it| it.at("scopeName").text() == scope);
    let mut wrong = Errors::new();
    contrary(&spec.at("scopes"), has, &mut wrong);
    errors.extend(wrong.into_iter().map(|mut error| {
        error.field = blamed("");
        error
    }));
}

/// Returns true if the quota limits a resource that objects of a scope do not have.
fn has_unfit_resource(spec: &Field<'_, '_>, scope: &str) -> bool {
    let of_pods = |resource: &str| {
        resource == "pods"
            || ["cpu", "memory", "ephemeral-storage"].iter().any(|it| {
                resource
                    .trim_start_matches("requests.")
                    .trim_start_matches("limits.")
                    == *it
            })
            || resource.contains("hugepages-")
    };
    let fits = |resource: &str| match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => of_pods(resource),
    };
    SCOPES.contains(&scope)
        && spec
            .members("hard")
            .any(|(resource, _)| is_quota(resource) && !fits(resource))
}

/// Checks an update of a ResourceQuota: its scopes are immutable. Follows `ValidateResourceQuotaUpdate`.
pub(crate) fn quota_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let scopes = |at: &Field<'_, '_>| -> BTreeSet<String> {
        at.items("spec.scopes")
            .map(|it| it.text().to_owned())
            .collect()
    };
    if scopes(object) != scopes(old) {
        let now = object.at("spec.scopes");
        errors.push(now.invalid_value(now.value().clone(), "field is immutable"));
    }
}

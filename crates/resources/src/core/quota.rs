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

const UNFIT: &str = "unsupported scope applied to resource";

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
        for list in ["max", "min", "default", "defaultRequest"] {
            names(&limit, list, errors);
        }
        if kind.text() == "PersistentVolumeClaim"
            && !limit.at("min.storage").is_set()
            && !limit.at("max.storage").is_set()
        {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.push(limit.at("limits").required(why));
        }
        names(&limit, "maxLimitRequestRatio", errors);
        let lists: &[&str] = match kind.text() {
            "Pod" => &["max", "min", "maxLimitRequestRatio"],
            _ => &[
                "max",
                "min",
                "default",
                "defaultRequest",
                "maxLimitRequestRatio",
            ],
        };
        let resources = lists.iter().flat_map(|list| limit.members(list));
        let resources: BTreeSet<&str> = resources.map(|(resource, _)| resource).collect();
        for resource in resources {
            order(&limit, resource, errors);
            ratio(&limit, resource, errors);
            equal_defaults(&limit, resource, errors);
        }
    }
}

/// Checks the names of the resources in a list of a limit. Follows `validateLimitRangeResourceName`.
fn names(limit: &Field<'_, '_>, list: &str, errors: &mut Errors) {
    let kind = limit.at("type").text();
    if kind == "Pod" && list.starts_with("default") {
        let set = limit.at(list);
        if !set.is_empty() {
            errors.push(set.forbidden("may not be specified when `type` is 'Pod'"));
        }
        return;
    }
    for (resource, quantity) in limit.members(list) {
        if matches!(kind, "Pod" | "Container") {
            container_name(resource, &quantity, errors);
        } else {
            name(resource, &quantity, errors);
        }
    }
}

/// Returns the quantity of a resource in a list of a limit. The limits of pods have no defaults.
fn quantity_in<'v, 's>(limit: &Field<'v, '_>, list: &str, resource: &str) -> Option<Field<'v, 's>> {
    if limit.at("type").text() == "Pod" && list.starts_with("default") {
        return None;
    }
    let list = limit.value().get(list)?;
    list.get(resource).map(Field::root)
}

/// Checks that minimum, default request, default limit and maximum of a resource are in ascending order.
fn order(limit: &Field<'_, '_>, resource: &str, errors: &mut Errors) {
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
    for (less, more, blamed, words) in ORDER {
        let both = [less, more].map(|list| quantity_in(limit, list, resource));
        let [Some(low), Some(high)] = both else {
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

/// Checks that the ratio of a resource is possible: at least 1, and at most the maximum over the minimum.
fn ratio(limit: &Field<'_, '_>, resource: &str, errors: &mut Errors) {
    const RATIOS: &str = "maxLimitRequestRatio";
    let Some(ratio) = quantity_in(limit, RATIOS, resource) else {
        return;
    };
    let one: Option<Quantity> = "1".parse().ok();
    let text = ratio.quantity_text();
    let mut blame = |why: String| {
        let mut error = limit.at(RATIOS).invalid_value(text.as_str(), why);
        error.field = format!("{}[{resource}]", error.field);
        errors.push(error);
    };
    if ratio.quantity() < one {
        blame(format!("ratio {text} is less than 1"));
    }
    let bound = |list| quantity_in(limit, list, resource)?.quantity();
    let (Some(least), Some(most)) = (bound("min"), bound("max")) else {
        return;
    };
    let largest = most.ratio(least);
    let both = ratio.quantity().zip(one);
    if both.is_some_and(|(ratio, one)| ratio.ratio(one) > largest) {
        blame(format!(
            "ratio {text} is greater than max/min = {largest:.6}"
        ));
    }
}

/// Checks that the default request of what cannot be overcommitted, such as huge pages, is its default limit.
fn equal_defaults(limit: &Field<'_, '_>, resource: &str, errors: &mut Errors) {
    let both = ["default", "defaultRequest"].map(|list| quantity_in(limit, list, resource));
    let [Some(most), Some(request)] = both else {
        return;
    };
    if !is_overcommitted(resource) && most.quantity() != request.quantity() {
        let (most, request) = (most.quantity_text(), request.quantity_text());
        let why = format!(
            "default value {most} must equal to defaultRequest value {request} in {resource}"
        );
        let requests = limit.at("defaultRequest");
        let mut error = requests.invalid_value(request, why);
        error.field = format!("{}[{resource}]", error.field);
        errors.push(error);
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

/// Checks a ResourceQuota, whose status the server writes. Follows `ValidateResourceQuotaSpec`.
pub(crate) fn quota(object: &Field<'_, '_>, errors: &mut Errors) {
    quantities(object, &["spec.hard"], errors);
    let spec = object.at("spec");
    let unfit = UnfitResources::of(&spec);
    let scopes = spec.at("scopes");
    // Every error shows all scopes.
    let errors_max = errors.len() + errors_max(scopes.value());
    for scope in spec.items("scopes") {
        if !SCOPES.contains(&scope.text()) && errors.len() < errors_max {
            errors.push(scopes.invalid("unsupported scope"));
        }
        let room = errors_max.saturating_sub(errors.len());
        for _ in 0..unfit.count(scope.text()).min(room) {
            errors.push(scopes.invalid(UNFIT));
        }
    }
    contrary(
        &scopes,
        |scope| scopes.items("").any(|it| it.text() == scope),
        errors,
    );
    selectors(&spec, &unfit, errors);
}

/// Returns how many errors may show a value.
fn errors_max(shown: &Value) -> usize {
    1 + ERROR_BYTES_MAX / shown.to_string().len()
}

/// The numbers of a quota's resources that objects of each scope do not have.
struct UnfitResources(Vec<(&'static str, usize)>);

impl UnfitResources {
    fn of(spec: &Field<'_, '_>) -> Self {
        let limited = || {
            spec.members("hard")
                .filter(|(resource, _)| is_quota(resource))
        };
        let count = |scope: &str| limited().filter(|(it, _)| !fits(scope, it)).count();
        Self(SCOPES.iter().map(|it| (*it, count(it))).collect())
    }

    fn count(&self, scope: &str) -> usize {
        let found = self.0.iter().find(|(it, _)| *it == scope);
        found.map_or(0, |(_, count)| *count)
    }
}

/// Returns true if objects of a scope have a resource. Follows `IsResourceQuotaScopeValidForResource` in
/// pkg/apis/core/helper.
fn fits(scope: &str, resource: &str) -> bool {
    const OF_PODS: &[&str] = &[
        "cpu",
        "limits.cpu",
        "limits.memory",
        "memory",
        "pods",
        "requests.cpu",
        "requests.memory",
    ];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => OF_PODS.contains(&resource),
    }
}

/// Adds the warnings about a new ResourceQuota: requests may not be as much as limits. Follows `WarningsOnCreate` in
/// pkg/registry/core/resourcequota/strategy.go.
pub(crate) fn quota_warnings(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let hard = object.at("spec.hard").value();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (of_requests, of_limits) =
            (format!("requests.{resource}"), format!("limits.{resource}"));
        let plain = matches!(resource, "cpu" | "memory") && hard.get(&of_requests).is_none();
        let of_requests = if plain { resource } else { &of_requests };
        let both = [of_requests, &of_limits].map(|it| hard.get(it).map(Field::root));
        if let [Some(requests), Some(limits)] = both
            && requests.quantity() > limits.quantity()
        {
            let (requests, limits) = (requests.canonical_quantity(), limits.canonical_quantity());
            warnings.push(format!(
                "ResourceQuota {of_requests} ({requests}) should be less than {of_limits} ({limits})"
            ));
        }
    }
}

fn contrary(blamed: &Field<'_, '_>, has: impl Fn(&str) -> bool, errors: &mut Errors) {
    for pair in CONTRARY {
        if pair.iter().all(|scope| has(scope)) {
            errors.push(blamed.invalid_value(blamed.value().clone(), "conflicting scopes"));
        }
    }
}

fn selectors(spec: &Field<'_, '_>, unfit: &UnfitResources, errors: &mut Errors) {
    let list = spec.at("scopeSelector.matchExpressions");
    // Kubernetes leaves a part out of the path.
    let selector = spec.at("scopeSelector");
    let blamed = |member: &'static str| format!("{}.matchExpressions{member}", selector.field());
    // Each error about resources shows the whole selector.
    let mut room = errors_max(selector.value());
    for expression in list.items("") {
        let [scope, operator, values] =
            ["scopeName", "operator", "values"].map(|member| expression.at(member));
        let mut blame = |it: &Field<'_, '_>, member, why: &str| {
            let mut error = it.invalid(why);
            error.field = blamed(member);
            errors.push(error);
        };
        if !SCOPES.contains(&scope.text()) {
            blame(&scope, ".scopeName", "unsupported scope");
        }
        let shown = unfit.count(scope.text()).min(room);
        room -= shown;
        for _ in 0..shown {
            blame(&selector, "", UNFIT);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_of_pods_have_no_local_storage() {
        let refused = |resource: &str| {
            let quota = json!({"spec": {"hard": {resource: "1"}, "scopes": ["NotTerminating"]}});
            let mut errors = Errors::new();
            super::quota(&Field::root(&quota), &mut errors);
            !errors.is_empty()
        };
        for resource in ["pods", "cpu", "requests.cpu", "limits.memory", "count/pods"] {
            assert!(!refused(resource), "{resource}");
        }
        for resource in [
            "requests.ephemeral-storage",
            "limits.ephemeral-storage",
            "hugepages-2Mi",
            "secrets",
        ] {
            assert!(refused(resource), "{resource}");
        }
    }
}

//! Names and quantities of resources: of containers, claims, quotas and limits.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::quantity::Quantity;
use ringwatch_apimachinery::validation::formats;

use super::field::{Errors, Field};
use super::later_rules::WHOLE_PAGES;

/// Prefix of the names of huge pages, before their size.
pub(crate) const PAGES: &str = "hugepages-";
const NEGATIVE: &str = "must be greater than or equal to 0";

/// The resources that a container may ask for.
const OF_CONTAINERS: &[&str] = &["cpu", "memory", "ephemeral-storage"];
/// Further resources that a quota may limit; all of these but requests and limits of CPU and memory are whole numbers.
const COUNTED: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
const ASKED_FOR: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

/// Checks the name of a resource. Follows `validateResourceName`.
pub(crate) fn name(name: &str, at: &Field<'_, '_>, errors: &mut Errors) -> bool {
    let wrong = formats::label_key(name);
    let qualified = wrong.is_empty();
    errors.extend(wrong.into_iter().map(|why| at.invalid_value(name, why)));
    if qualified && !name.contains('/') && !is_standard(name) {
        let why = "must be a standard resource type or fully qualified";
        errors.push(at.invalid_value(name, why));
        return false;
    }
    qualified
}

/// Checks the name of a resource of containers. Follows `validateContainerResourceName`.
pub(crate) fn container_name(resource: &str, at: &Field<'_, '_>, errors: &mut Errors) {
    name(resource, at, errors);
    if !resource.contains('/') {
        if !OF_CONTAINERS.contains(&resource) && !is_pages(resource) {
            errors.push(at.invalid_value(resource, "must be a standard resource for containers"));
        }
    } else if !is_native(resource) && !is_extended(resource) {
        errors.push(at.invalid_value(resource, "doesn't follow extended resource name standard"));
    }
}

/// Checks the name of a resource of quotas. Follows `ValidateResourceQuotaResourceName`.
pub(crate) fn quota_name(resource: &str, at: &Field<'_, '_>, errors: &mut Errors) {
    name(resource, at, errors);
    if !resource.contains('/') && !is_quota(resource) {
        errors.push(at.invalid_value(resource, "must be a standard resource for quota"));
    }
}

/// Checks the quantity of a resource. Follows `ValidateResourceQuantityValue`.
pub(crate) fn amount(resource: &str, at: &Field<'_, '_>, errors: &mut Errors) {
    let Some(quantity) = at.quantity() else {
        return;
    };
    if quantity.is_negative() {
        errors.push(at.invalid_value(at.quantity_text(), NEGATIVE));
    }
    if (COUNTED.contains(&resource) || is_extended(resource)) && !quantity.is_whole() {
        errors.push(at.invalid_value(at.quantity_text(), "must be an integer"));
    }
}

/// A check of a resource's name at a place named by it.
pub(super) type NameCheck = fn(&str, &Field<'_, '_>, &mut Errors);

/// Checks the requests and limits of a container or a pod: no request exceeds its limit. Follows
/// `validateResourceRequirements`.
pub(crate) fn requirements(at: &Field<'_, '_>, name: NameCheck, errors: &mut Errors) {
    for (resource, quantity) in at.members("limits") {
        name(resource, &quantity, errors);
        amount(resource, &quantity, errors);
        whole_pages(resource, &quantity, errors);
    }
    let limits = at.at("limits");
    for (resource, wanted) in at.members("requests") {
        name(resource, &wanted, errors);
        amount(resource, &wanted, errors);
        match limits.value().get(resource).map(Field::root) {
            Some(limit) => errors.extend(beyond_limit(at, resource, &wanted, &limit)),
            None if is_overcommitted(resource) => {}
            None => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(limits.required(why));
            }
        }
        whole_pages(resource, &wanted, errors);
    }
    pages_have_company(at, errors);
}

/// Returns the error of a request that is not as its limit allows.
fn beyond_limit(
    at: &Field<'_, '_>,
    resource: &str,
    wanted: &Field<'_, '_>,
    limit: &Field<'_, '_>,
) -> Option<FieldError> {
    let fixed = !is_overcommitted(resource);
    let relation = match (wanted.quantity(), limit.quantity()) {
        (Some(wanted), Some(limit)) if fixed && wanted != limit => "equal to",
        (Some(wanted), Some(limit)) if wanted > limit => "less than or equal to",
        _ => return None,
    };
    let limit = limit.quantity_text();
    let why = format!("must be {relation} {resource} limit of {limit}");
    Some(at.at("requests").invalid_value(wanted.quantity_text(), why))
}

/// Checks that an amount of huge pages is whole pages. Follows `validateResourceQuantityHugePageValue`.
fn whole_pages(resource: &str, amount: &Field<'_, '_>, errors: &mut Errors) {
    let Some(page) = resource.strip_prefix(PAGES) else {
        return;
    };
    let page = page.parse::<Quantity>().ok();
    let fits = amount.quantity().zip(page);
    if !fits.is_some_and(|(amount, page)| amount.is_multiple_of(page)) {
        let text = amount.quantity_text();
        let why = format!("{text} is not positive integer multiple of {resource}");
        let error = amount.invalid_value(text, why);
        errors.push(error.by_later_rule(WHOLE_PAGES));
    }
}

/// Checks that huge pages are only requested together with CPU or memory.
fn pages_have_company(at: &Field<'_, '_>, errors: &mut Errors) {
    let has = |resource: fn(&str) -> bool| {
        let mut all = at.members("limits").chain(at.members("requests"));
        all.any(|(name, _)| resource(name))
    };
    if has(is_pages) && !has(|name| matches!(name, "cpu" | "memory")) {
        errors.push(at.forbidden("HugePages require cpu or memory"));
    }
}

/// Checks that a quantity is not negative, and shows it as an integer if it is. Follows `validateBasicResource`.
pub(crate) fn basic(at: &Field<'_, '_>, errors: &mut Errors) {
    let integer = at.quantity().map_or(0, Quantity::rounded_up);
    if integer < 0 {
        errors.push(at.invalid_value(integer, "must be a valid resource quantity"));
    }
}

/// Checks that a quantity is positive. Follows `ValidatePositiveQuantityValue`.
pub(crate) fn positive(at: &Field<'_, '_>, errors: &mut Errors) {
    if !at.quantity().is_some_and(Quantity::is_positive) {
        errors.push(at.invalid_value(at.quantity_text(), "must be greater than zero"));
    }
}

pub(crate) fn is_pages(resource: &str) -> bool {
    resource.starts_with(PAGES)
}

/// Returns true if more of a resource may be promised than there is. Follows `IsOvercommitAllowed`.
pub(crate) fn is_overcommitted(resource: &str) -> bool {
    is_native(resource) && !is_pages(resource)
}

/// Returns true if the name of a resource has no domain or one of Kubernetes.
pub(crate) fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Returns true if the name of a resource has a domain that is not of Kubernetes.
pub(crate) fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with("requests.")
        && formats::label_key(&format!("requests.{resource}")).is_empty()
}

/// Returns true if quotas may limit a resource of this unqualified name.
pub(crate) fn is_quota(resource: &str) -> bool {
    OF_CONTAINERS.contains(&resource)
        || COUNTED.contains(&resource)
        || ASKED_FOR.contains(&resource)
        || is_pages(resource.strip_prefix("requests.").unwrap_or(resource))
}

fn is_standard(resource: &str) -> bool {
    resource == "storage" || is_quota(resource)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn messages(resources: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        requirements(
            &Field::root(&json!({"resources": resources})).at("resources"),
            container_name,
            &mut errors,
        );
        errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect()
    }

    #[test]
    fn no_more_is_wanted_than_may_be_used() {
        for (resources, wrong) in [
            (
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m", "memory": "1Gi"}}),
                &[][..],
            ),
            (
                json!({"limits": {"cpu": 1}, "requests": {"cpu": "2", "memory": "-1"}}),
                &[
                    "resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
                    "resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
                ],
            ),
            (
                json!({"limits": {"example.com/gpu": "1500m", "disk": "1", "pods": "1"}}),
                &[
                    "resources.limits[disk]: Invalid value: \"disk\": must be a standard resource type or fully qualified",
                    "resources.limits[disk]: Invalid value: \"disk\": must be a standard resource for containers",
                    "resources.limits[example.com/gpu]: Invalid value: \"1500m\": must be an integer",
                    "resources.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers",
                ],
            ),
            (
                json!({"limits": {"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Mi", "memory": "1"},
                    "requests": {"hugepages-2Mi": "4Mi", "hugepages-x": "1"}}),
                &[
                    "resources.limits[hugepages-1Gi]: Invalid value: \"1Mi\": 1Mi is not positive integer multiple of hugepages-1Gi",
                    "resources.limits: Required value: Limit must be set for non overcommitable resources",
                    "resources.requests[hugepages-x]: Invalid value: \"1\": 1 is not positive integer multiple of hugepages-x",
                ],
            ),
            (
                json!({"requests": {"example.com/gpu": "1", "hugepages-2Mi": "2Mi"}}),
                &[
                    "resources.limits: Required value: Limit must be set for non overcommitable resources",
                    "resources.limits: Required value: Limit must be set for non overcommitable resources",
                    "resources: Forbidden: HugePages require cpu or memory",
                ],
            ),
        ] {
            assert_eq!(messages(&resources), wrong, "{resources}");
        }
    }
}

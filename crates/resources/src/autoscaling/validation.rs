//! HorizontalPodAutoscalers, in their storage version.
//!
//! Follows pkg/apis/autoscaling/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::GroupVersion;
use ringwatch_apimachinery::quantity::Quantity;
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::networking::validation::path_segment;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities::container_name;

/// The sources of metrics, and the members of a metric that hold them, in the order in which they are checked.
const SOURCES: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
/// The types of metrics.
const TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
/// Maximum length of a stabilization window and of a policy's period, in seconds.
const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;
/// Minimum of the least number of replicas. With 0, which a feature that is off allows, nothing would run.
const REPLICAS_MIN: i64 = 1;

/// The API versions that a reference may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersions {
    /// Any text.
    Any,
    /// A version with or without a group.
    WellFormed,
    /// A version with a group.
    OfGroups,
}

/// The rules that differ between new autoscalers and updates, which may keep what was allowed before.
#[derive(Clone, Copy)]
struct SpecRules {
    replicas_min: i64,
    /// The API versions of what is scaled.
    target: ApiVersions,
    /// The API versions of objects that metrics are about.
    described: ApiVersions,
}

/// Checks a new HorizontalPodAutoscaler. Follows `ValidateHorizontalPodAutoscaler`.
pub(crate) fn autoscaler(object: &Field<'_, '_>, errors: &mut Errors) {
    let rules = SpecRules {
        replicas_min: REPLICAS_MIN,
        target: target_versions(object),
        described: ApiVersions::WellFormed,
    };
    spec(&object.at("spec"), rules, errors);
}

/// Checks an update of a HorizontalPodAutoscaler, which may keep references that were invalid before. Follows
/// `ValidateHorizontalPodAutoscalerUpdate`.
pub(crate) fn changed_autoscaler(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let stays = ["apiVersion", "kind"].into_iter().all(|member| {
        let path = format!("spec.scaleTargetRef.{member}");
        object.at(&path).text() == old.at(&path).text()
    });
    let target = if stays {
        ApiVersions::Any
    } else {
        target_versions(object)
    };
    let was_wrong = old.items("spec.metrics").any(|metric| {
        let described = metric.at("object.describedObject.apiVersion");
        metric.at("type").text() == "Object"
            && wrong_version(described.text(), ApiVersions::WellFormed).is_some()
    });
    let described = if was_wrong {
        ApiVersions::Any
    } else {
        ApiVersions::WellFormed
    };
    let rules = SpecRules {
        replicas_min: match old.at("spec.minReplicas").number() {
            Some(0) => 0,
            _ => REPLICAS_MIN,
        },
        target,
        described,
    };
    spec(&object.at("spec"), rules, errors);
}

/// Checks an update of the status of a HorizontalPodAutoscaler. Follows
/// `ValidateHorizontalPodAutoscalerStatusUpdate`.
pub(crate) fn autoscaler_status(object: &Value, _old: &Value) -> Errors {
    let mut errors = Errors::new();
    let object = Field::root(object);
    for count in ["status.currentReplicas", "status.desiredReplicas"] {
        object.at(count).must_not_be_negative(&mut errors);
    }
    errors
}

/// Returns the API versions that a reference may name. Of the core group, ReplicationControllers alone scale.
fn target_versions(object: &Field<'_, '_>) -> ApiVersions {
    match object.at("spec.scaleTargetRef.kind").text() {
        "ReplicationController" => ApiVersions::WellFormed,
        _ => ApiVersions::OfGroups,
    }
}

fn spec(spec: &Field<'_, '_>, rules: SpecRules, errors: &mut Errors) {
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    let replicas_min = rules.replicas_min;
    if least.number().is_some_and(|least| least < replicas_min) {
        let why = format!("must be greater than or equal to {replicas_min}");
        errors.push(least.invalid(why));
    }
    let number = most.number().unwrap_or(0);
    if number == 0 {
        errors.push(most.required("must be set and greater than 0"));
    } else if number < 0 {
        errors.push(most.invalid("must be greater than or equal to 1"));
    }
    if least.number().is_some_and(|least| number < least) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(most.invalid_value(number, why));
    }
    object_reference(&spec.at("scaleTargetRef"), rules.target, errors);
    for metric in spec.items("metrics") {
        self::metric(&metric, rules.described, errors);
    }
    let wakes = |metric: &Field<'_, '_>| matches!(metric.at("type").text(), "Object" | "External");
    if least.number() == Some(0) && !spec.items("metrics").any(|it| wakes(&it)) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(spec.at("metrics").forbidden(why));
    }
    for rules in ["behavior.scaleUp", "behavior.scaleDown"] {
        if spec.at(rules).is_set() {
            behaviour(&spec.at(rules), errors);
        }
    }
}

fn object_reference(at: &Field<'_, '_>, versions: ApiVersions, errors: &mut Errors) {
    for member in ["kind", "name"] {
        at.at(member).must_be_set_and_conform(path_segment, errors);
    }
    let version = at.at("apiVersion");
    errors.extend(wrong_version(version.text(), versions).map(|why| version.invalid(why)));
}

/// Returns the error of a reference's API version, if there is one.
fn wrong_version(version: &str, versions: ApiVersions) -> Option<String> {
    if versions == ApiVersions::Any {
        return None;
    }
    match GroupVersion::parse(version) {
        None => Some(format!("unexpected GroupVersion string: {version}")),
        Some(parsed) if versions == ApiVersions::OfGroups && parsed.group.is_empty() => {
            Some("apiVersion must specify API group".to_owned())
        }
        Some(_) => None,
    }
}

fn metric(at: &Field<'_, '_>, described: ApiVersions, errors: &mut Errors) {
    let kind = at.at("type");
    if kind.is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    if !TYPES.contains(&kind.text()) {
        errors.push(kind.unsupported(TYPES));
    }
    let present = SOURCES.iter().map(|(name, member)| (*name, at.at(member)));
    let present: Vec<_> = present.filter(|it| it.1.is_set()).collect();
    let expected = SOURCES.iter().find(|(name, _)| *name == kind.text());
    if let Some((name, first)) = present.first() {
        source(first, name, described, errors);
    }
    let missing = expected.map(|(_, member)| at.at(member));
    if let Some(missing) = missing.filter(|it| !it.is_set()) {
        let why = "must populate information for the given metric source";
        errors.push(missing.required(why));
    }
    // One alone is not told to be the wrong one.
    let others = present.iter().filter(|it| it.0 != kind.text());
    if present.len() > 1 {
        let why = "must populate the given metric source only";
        errors.extend(others.map(|(_, other)| other.forbidden(why)));
    }
}

fn source(at: &Field<'_, '_>, kind: &str, described: ApiVersions, errors: &mut Errors) {
    match kind {
        "Object" => object_reference(&at.at("describedObject"), described, errors),
        "ContainerResource" => {
            resource_name(at, errors);
            let name = at.at("name");
            if !name.is_empty() {
                container_name(name.text(), &name, errors);
            }
            let container = at.at("container");
            if container.is_empty() {
                errors.push(container.required("must specify a container"));
            } else {
                container.must_conform(formats::dns_label, errors);
            }
        }
        "Resource" => resource_name(at, errors),
        _ => {}
    }
    if matches!(kind, "Object" | "External" | "Pods") {
        let name = at.at("metric.name");
        if name.is_empty() {
            errors.push(name.required("must specify a metric name"));
        } else {
            name.must_conform(path_segment, errors);
        }
    }
    let target = at.at("target");
    self::target(&target, errors);
    let [value, average, utilization] =
        ["value", "averageValue", "averageUtilization"].map(|member| target.at(member));
    match kind {
        "Object" if !value.is_set() && !average.is_set() => {
            errors.push(average.required("must set either a target value or averageValue"));
        }
        "External" if !value.is_set() && !average.is_set() => {
            let why = "must set either a target value for metric or a per-pod target";
            errors.push(average.required(why));
        }
        "External" if value.is_set() && average.is_set() => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.push(value.forbidden(why));
        }
        "Pods" if !average.is_set() => {
            errors.push(average.required("must specify a positive target averageValue"));
        }
        "Resource" | "ContainerResource" if !utilization.is_set() && !average.is_set() => {
            let why = "must set either a target raw value or a target utilization";
            errors.push(utilization.required(why));
        }
        "Resource" | "ContainerResource" if utilization.is_set() && average.is_set() => {
            let why = "may not set both a target raw value and a target utilization";
            errors.push(average.forbidden(why));
        }
        _ => {}
    }
}

fn resource_name(at: &Field<'_, '_>, errors: &mut Errors) {
    if at.at("name").is_empty() {
        errors.push(at.at("name").required("must specify a resource name"));
    }
}

fn target(at: &Field<'_, '_>, errors: &mut Errors) {
    let kind = at.at("type");
    if kind.is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        errors.push(kind.invalid("must be either Utilization, Value, or AverageValue"));
    }
    for quantity in ["value", "averageValue"].map(|member| at.at(member)) {
        if quantity.is_set() && !quantity.quantity().is_some_and(Quantity::is_positive) {
            errors.push(quantity.invalid_value(quantity.quantity_text(), "must be positive"));
        }
    }
    let utilization = at.at("averageUtilization");
    if utilization.number().is_some_and(|number| number < 1) {
        errors.push(utilization.invalid("must be greater than 0"));
    }
}

fn behaviour(at: &Field<'_, '_>, errors: &mut Errors) {
    let window = at.at("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) if seconds > WINDOW_SECONDS_MAX => {
            let why = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            errors.push(window.invalid(why));
        }
        _ => {}
    }
    at.at("selectPolicy")
        .may_be_one_of(&["Disabled", "Max", "Min"], errors);
    if at.at("policies").is_empty() {
        errors.push(
            at.at("policies")
                .required("must specify at least one Policy"),
        );
    }
    for policy in at.items("policies") {
        let kind = policy.at("type");
        if !matches!(kind.text(), "Pods" | "Percent") {
            errors.push(kind.unsupported(&["Percent", "Pods"]));
        }
        for member in ["value", "periodSeconds"].map(|member| policy.at(member)) {
            let number = member.number().unwrap_or(0);
            if number <= 0 {
                errors.push(member.invalid_value(number, "must be greater than zero"));
            }
        }
        let period = policy.at("periodSeconds");
        if period.number() > Some(PERIOD_SECONDS_MAX) {
            let why = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            errors.push(period.invalid(why));
        }
    }
    at.at("tolerance").must_not_be_a_negative_quantity(errors);
}

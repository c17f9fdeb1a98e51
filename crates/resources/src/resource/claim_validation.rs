//! ResourceClaims: what devices they ask for, which is immutable.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::class_validation::{configuration, selectors};
use super::device_validation::{EFFECTS, qualified_name};
use super::limits::{has_too_many, set};
use crate::core::volume::claim_metadata::template_metadata;
use crate::validation::field::{Errors, Field};

const ONE_FORM: &str = "exactly one of `exactly` or `firstAvailable` is required";
const REQUESTS_MAX: usize = 32;
const CONSTRAINTS_MAX: usize = 32;
const CONFIGS_MAX: usize = 32;
const ONE_ATTRIBUTE: &str = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
/// Maximum number of alternatives of a device request.
const ALTERNATIVES_MAX: usize = 8;

/// Checks a ResourceClaim. Follows `ValidateResourceClaim`.
pub(crate) fn claim(claim: &Field<'_, '_>, errors: &mut Errors) {
    devices(&claim.at("spec.devices"), errors);
}

/// Checks a ResourceClaimTemplate, be it new or updated. Follows `ValidateResourceClaimTemplate`.
pub(crate) fn template(template: &Field<'_, '_>, errors: &mut Errors) {
    template_metadata(&template.at("spec.metadata"), errors);
    devices(&template.at("spec.spec.devices"), errors);
}

/// Checks what devices a claim asks for. Follows `validateDeviceClaim`.
fn devices(devices: &Field<'_, '_>, errors: &mut Errors) {
    let names = request_names(devices);
    let requests = devices.at("requests");
    set(&requests, REQUESTS_MAX, "name", errors, request);
    let constraints = devices.at("constraints");
    if !has_too_many(&constraints, CONSTRAINTS_MAX, errors) {
        for constraint in constraints.items("") {
            named_requests(&constraint, &names, errors);
            let [same, distinct] =
                ["matchAttribute", "distinctAttribute"].map(|it| constraint.at(it));
            if same.is_set() {
                attribute_name(&same, errors);
            } else if distinct.is_set() {
                attribute_name(&distinct, errors);
            } else {
                errors.push(constraint.required(ONE_ATTRIBUTE));
            }
        }
    }
    let configs = devices.at("config");
    if !has_too_many(&configs, CONFIGS_MAX, errors) {
        for config in configs.items("") {
            named_requests(&config, &names, errors);
            configuration(&config, errors);
        }
    }
}

/// Returns the names by which constraints and configurations refer to requests and to their alternatives.
pub(super) fn request_names(devices: &Field<'_, '_>) -> HashSet<String> {
    let mut names = HashSet::new();
    for request in devices.items("requests") {
        let name = request.at("name").text();
        names.insert(name.to_owned());
        let alternatives = request.items("firstAvailable");
        names.extend(alternatives.map(|it| format!("{name}/{}", it.at("name").text())));
    }
    names
}

fn request(request: &Field<'_, '_>, errors: &mut Errors) {
    request.at("name").must_conform(formats::dns_label, errors);
    let (exactly, first) = (request.at("exactly"), request.at("firstAvailable"));
    match (exactly.is_set(), !first.is_empty()) {
        (false, false) => errors.push(request.required(ONE_FORM)),
        (true, true) => {
            let why = format!("{ONE_FORM}, but multiple fields are set");
            errors.push(FieldError::invalid(request.field(), &Value::Null, why));
        }
        (true, false) => wanted(&exactly, errors),
        (false, true) => set(&first, ALTERNATIVES_MAX, "name", errors, |sub, errors| {
            sub.at("name").must_conform(formats::dns_label, errors);
            wanted(sub, errors);
        }),
    }
}

/// Checks the name of a request, or of an alternative of one. Follows `validateRequestNameRef`.
pub(super) fn named_request(name: &Field<'_, '_>, names: &HashSet<String>, errors: &mut Errors) {
    const WHAT: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    if name.text().split('/').count() > 2 {
        errors.push(name.invalid(WHAT));
        return;
    }
    for part in name.text().split('/') {
        let wrong = formats::dns_label(part).into_iter();
        errors.extend(wrong.map(|why| name.invalid_value(part, why)));
    }
    if !names.contains(name.text()) {
        errors.push(name.invalid(WHAT));
    }
}

/// Checks the names of requests to which a constraint or configuration applies.
pub(super) fn named_requests(of: &Field<'_, '_>, names: &HashSet<String>, errors: &mut Errors) {
    set(
        &of.at("requests"),
        REQUESTS_MAX,
        "",
        errors,
        |name, errors| {
            named_request(name, names, errors);
        },
    );
}

/// Checks the name of an attribute with its domain. Follows `validateFullyQualifiedName`.
fn attribute_name(at: &Field<'_, '_>, errors: &mut Errors) {
    qualified_name(at, at.text(), errors);
    if !at.text().contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(at.invalid(why));
    }
}

/// Checks the class of a request's devices, its selectors, and its allocation mode with the number that goes with it.
fn wanted(request: &Field<'_, '_>, errors: &mut Errors) {
    let class = request.at("deviceClassName");
    class.must_be_set_and_conform(formats::dns_subdomain, errors);
    selectors(&request.at("selectors"), errors);
    let (mode, count) = (request.at("allocationMode"), request.at("count"));
    let number = count.number().unwrap_or(0);
    match mode.text() {
        "ExactCount" if number <= 0 => {
            errors.push(count.invalid_value(number, "must be greater than zero"));
        }
        "ExactCount" => {}
        "All" if number != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "All" => {}
        _ => errors.push(mode.unsupported(&["All", "ExactCount"])),
    }
    for toleration in request.items("tolerations") {
        self::toleration(&toleration, errors);
    }
}

/// Checks a toleration of taints of devices. Follows `validateDeviceToleration`.
fn toleration(at: &Field<'_, '_>, errors: &mut Errors) {
    at.at("key").may_conform(formats::label_key, errors);
    let value = at.at("value");
    match at.at("operator").text() {
        "Exists" if !value.is_empty() => {
            errors.push(value.invalid("must be empty for operator `Exists`"));
        }
        "Equal" => value.must_conform(formats::label_value, errors),
        _ => at
            .at("operator")
            .must_be_one_of(&["Equal", "Exists"], errors),
    }
    let effect = at.at("effect");
    if !effect.is_empty() {
        effect.may_be_one_of(EFFECTS, errors);
    }
}

/// Checks an update of a ResourceClaim or ResourceClaimTemplate: its spec is immutable. Follows
/// `ValidateResourceClaimUpdate` and `ValidateResourceClaimTemplateUpdate`.
pub(crate) fn update(claim: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    claim.at("spec").must_stay(&old.at("spec"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found, messages};

    #[test]
    fn claims_of_templates_have_labels_alone() {
        let with = |metadata: Value| json!({"spec": {"metadata": metadata, "spec": {}}});
        let good =
            json!({"labels": {"l": "m"}, "annotations": {"a": "b"}, "creationTimestamp": null});
        assert_eq!(found(template, &with(good)), []);
        let bad =
            json!({"name": "n", "uid": "u", "generation": 0, "deletionGracePeriodSeconds": 0});
        assert_eq!(
            messages(&found(template, &with(bad))),
            [
                "spec.metadata.name: Forbidden: cannot be set",
                "spec.metadata.uID: Forbidden: cannot be set",
                "spec.metadata.deletionGracePeriodSeconds: Forbidden: cannot be set",
            ]
        );
    }

    #[test]
    fn claims_that_are_wrong() {
        const NO_REQUEST: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        let exactly =
            json!({"deviceClassName": "c.example.com", "allocationMode": "ExactCount", "count": 1});
        let good = json!({"spec": {"devices": {
            "requests": [{"name": "r", "exactly": exactly},
                {"name": "s", "firstAvailable": [{"name": "t", "deviceClassName": "c", "allocationMode": "All"}]}],
            "constraints": [{"requests": ["r", "s/t"], "matchAttribute": "d.example.com/a"}],
            "config": [{"requests": ["s"], "opaque": {"driver": "d", "parameters": {}}}]}}});
        assert_eq!(found(claim, &good), []);
        for (at, value, wrong) in [
            (
                "requests/1/name",
                json!("r"),
                vec![
                    "spec.devices.requests[1]: Duplicate value: \"r\"".to_owned(),
                    format!("spec.devices.constraints[0].requests[1]: Invalid value: \"s/t\": {NO_REQUEST}"),
                    format!("spec.devices.config[0].requests[0]: Invalid value: \"s\": {NO_REQUEST}"),
                ],
            ),
            (
                "constraints/0/requests/1",
                json!("r/t"),
                vec![format!("spec.devices.constraints[0].requests[1]: Invalid value: \"r/t\": {NO_REQUEST}")],
            ),
            (
                "constraints/0/matchAttribute",
                json!("a"),
                vec!["spec.devices.constraints[0].matchAttribute: Invalid value: \"a\": a fully qualified name must be a domain and a name separated by a slash".to_owned()],
            ),
            (
                "constraints/0/matchAttribute",
                Value::Null,
                vec![format!("spec.devices.constraints[0]: Required value: {ONE_ATTRIBUTE}")],
            ),
            (
                "requests/0/exactly/allocationMode",
                json!("x"),
                vec!["spec.devices.requests[0].exactly.allocationMode: Unsupported value: \"x\": supported values: \"All\", \"ExactCount\"".to_owned()],
            ),
            (
                "requests/0/exactly/count",
                json!(0),
                vec!["spec.devices.requests[0].exactly.count: Invalid value: 0: must be greater than zero".to_owned()],
            ),
            (
                "requests/0/exactly",
                json!({"deviceClassName": "c", "allocationMode": "All", "selectors": [{}],
                    "tolerations": [{"operator": "Exists", "value": "v"}, {"effect": "x", "operator": "Equal"}]}),
                vec![
                    "spec.devices.requests[0].exactly.selectors[0].cel: Required value".to_owned(),
                    "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"v\": must be empty for operator `Exists`".to_owned(),
                    "spec.devices.requests[0].exactly.tolerations[1].effect: Unsupported value: \"x\": supported values: \"NoExecute\", \"NoSchedule\", \"None\"".to_owned(),
                ],
            ),
            (
                "config/0/opaque",
                Value::Null,
                vec!["spec.devices.config[0].opaque: Required value".to_owned()],
            ),
        ] {
            let mut object = good.clone();
            *object.pointer_mut(&format!("/spec/devices/{at}")).expect("a field") = value;
            assert_eq!(messages(&found(claim, &object)), wrong, "{at}");
        }
    }
}

//! DeviceClasses, and what claims of devices have in common with them: selectors and configurations.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use serde_json::Value;

use super::limits::has_too_many;
use super::selector_expressions;
use crate::core::volume::drivers::driver_name;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities::is_extended;

const SELECTORS_MAX: usize = 32;
const CONFIGS_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// Maximum length of the parameters and of the status of a device that its driver alone understands.
const OPAQUE_BYTES_MAX: usize = 10 * 1024;

/// Checks a new DeviceClass. Follows `ValidateDeviceClass`.
pub(crate) fn class(object: &Field<'_, '_>, errors: &mut Errors) {
    selectors(&object.at("spec.selectors"), errors);
    beside_selectors(object, false, errors);
}

/// Checks an update of a DeviceClass. Selectors that stay are not compiled again, so that they cannot stand in the way
/// of other changes, and the parameters of configurations that stay may be long. Follows `ValidateDeviceClassUpdate`.
pub(crate) fn changed_class(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let stays = |path: &str| object.at(path).value() == old.at(path).value();
    if !stays("spec.selectors") {
        selectors(&object.at("spec.selectors"), errors);
    }
    beside_selectors(object, stays("spec.config"), errors);
}

fn beside_selectors(object: &Field<'_, '_>, may_be_long: bool, errors: &mut Errors) {
    let spec = object.at("spec");
    let configs = spec.at("config");
    if !has_too_many(&configs, CONFIGS_MAX, errors) {
        for config in configs.items("") {
            sized_configuration(&config, may_be_long, errors);
        }
    }
    let extended = spec.at("extendedResourceName");
    if extended.is_set() && !is_extended(extended.text()) {
        errors.push(extended.invalid("must be a valid extended resource name"));
    }
}

/// Checks the selectors of devices. Follows `validateSelectorSlice`.
pub(super) fn selectors(list: &Field<'_, '_>, errors: &mut Errors) {
    if has_too_many(list, SELECTORS_MAX, errors) {
        return;
    }
    for selector in list.items("") {
        let cel = selector.at("cel");
        let expression = cel.at("expression");
        if !cel.is_set() {
            errors.push(cel.required(""));
        } else if expression.text().len() > EXPRESSION_BYTES_MAX {
            errors.push(expression.too_long(EXPRESSION_BYTES_MAX));
        } else {
            selector_expressions::check(&expression, errors);
        }
    }
}

/// Checks the configuration of devices for a driver. Follows `validateDeviceConfiguration`.
pub(super) fn configuration(config: &Field<'_, '_>, errors: &mut Errors) {
    sized_configuration(config, false, errors);
}

fn sized_configuration(config: &Field<'_, '_>, may_be_long: bool, errors: &mut Errors) {
    let opaque = config.at("opaque");
    if !opaque.is_set() {
        errors.push(opaque.required(""));
        return;
    }
    let driver = opaque.at("driver");
    driver_name(&driver, errors);
    sized_object(&opaque.at("parameters"), may_be_long, errors);
}

/// Checks an object that a driver alone understands. Follows `validateRawExtension`; the length is that of compact
/// JSON.
pub(super) fn opaque_object(field: &Field<'_, '_>, errors: &mut Errors) {
    sized_object(field, false, errors);
}

fn sized_object(field: &Field<'_, '_>, may_be_long: bool, errors: &mut Errors) {
    match field.value() {
        Value::Null => errors.push(field.required("")),
        value if !may_be_long && value.to_string().len() > OPAQUE_BYTES_MAX => {
            errors.push(field.too_long(OPAQUE_BYTES_MAX));
        }
        Value::Object(_) => {}
        _ => {
            let why = "must be a valid JSON object";
            errors.push(field.invalid_value("<value omitted>", why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found, found_in_change, messages};

    #[test]
    fn classes_that_are_wrong() {
        let good = json!({"spec": {"selectors": [{"cel": {"expression": "true"}}],
            "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
            "extendedResourceName": "example.com/gpu"}});
        assert_eq!(found(class, &good), []);
        for (at, value, wrong) in [
            (
                "selectors/0",
                json!({}),
                "spec.selectors[0].cel: Required value",
            ),
            (
                "selectors/0/cel/expression",
                json!("x".repeat(EXPRESSION_BYTES_MAX + 1)),
                "spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes",
            ),
            (
                "config/0",
                json!({}),
                "spec.config[0].opaque: Required value",
            ),
            (
                "config/0/opaque/driver",
                json!(""),
                "spec.config[0].opaque.driver: Required value",
            ),
            (
                "config/0/opaque/parameters",
                json!(null),
                "spec.config[0].opaque.parameters: Required value",
            ),
            (
                "config/0/opaque/parameters",
                json!([1]),
                "spec.config[0].opaque.parameters: Invalid value: \"<value omitted>\": must be a valid JSON object",
            ),
            (
                "config/0/opaque/parameters",
                json!({"a": "x".repeat(OPAQUE_BYTES_MAX)}),
                "spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes",
            ),
            (
                "extendedResourceName",
                json!("gpu"),
                "spec.extendedResourceName: Invalid value: \"gpu\": must be a valid extended resource name",
            ),
        ] {
            let mut object = good.clone();
            *object.pointer_mut(&format!("/spec/{at}")).expect("a field") = value;
            assert_eq!(messages(&found(class, &object)), [wrong], "{at}");
        }
    }

    #[test]
    fn what_was_long_may_stay() {
        let with = |extended: &str| {
            json!({"spec": {"extendedResourceName": extended,
                "selectors": [{"cel": {"expression": "no such language"}}],
                "config": [{"opaque": {"driver": "d", "parameters": {"a": "x".repeat(OPAQUE_BYTES_MAX)}}}]}})
        };
        let old = with("example.com/gpu");
        assert_eq!(
            found_in_change(changed_class, &with("example.com/cpu"), &old),
            []
        );
        let mut changed = old.clone();
        changed["spec"]["config"][0]["opaque"]["driver"] = json!("e");
        assert_eq!(
            messages(&found_in_change(changed_class, &changed, &old)),
            ["spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"]
        );
    }
}

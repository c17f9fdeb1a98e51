//! The networks from which a load balancer takes traffic.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::FieldError;
use serde_json::json;

use crate::validation::field::{Errors, Field};
use crate::validation::values::cidr;

/// The error of a field that only load balancers have.
pub(super) const LOAD_BALANCERS_ALONE: &str = "may only be used when `type` is 'LoadBalancer'";

/// The annotation with the addresses from which a load balancer takes traffic, which was there before the field.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Checks the networks from which a load balancer takes traffic, in the field or else in the annotation.
pub(super) fn source_ranges(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let balanced = object.at("spec.type").text() == "LoadBalancer";
    let (spec, was) = (object.at("spec"), old.at("spec"));
    let ranges = spec.at("loadBalancerSourceRanges");
    if ranges.is_empty() {
        source_ranges_in_annotation(object, old, balanced, errors);
        return;
    }
    // Kubernetes begins this field's name with a capital letter.
    let blamed = spec.at("LoadBalancerSourceRanges");
    if !balanced {
        errors.push(blamed.forbidden(LOAD_BALANCERS_ALONE));
    }
    let known = was.items("loadBalancerSourceRanges");
    let known: HashSet<&str> = known.map(|one| one.text().trim()).collect();
    for (index, range) in ranges.items("").enumerate() {
        let text = range.text().trim();
        for why in cidr(text).into_iter().filter(|_| !known.contains(text)) {
            let mut error = range.invalid_value(text, why);
            error.field = format!("{}[{index}]", blamed.field());
            errors.push(error);
        }
    }
}

fn source_ranges_in_annotation(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    balanced: bool,
    errors: &mut Errors,
) {
    let in_annotation = |object: &Field<'_, '_>| {
        let annotations = object.at("metadata.annotations");
        annotations.value().get(SOURCE_RANGES).cloned()
    };
    let Some(ranges) = in_annotation(object) else {
        return;
    };
    let annotations = object.at("metadata.annotations");
    let field = format!("{}[{SOURCE_RANGES}]", annotations.field());
    if !balanced {
        errors.push(FieldError::forbidden(field.clone(), LOAD_BALANCERS_ALONE));
    }
    let text = ranges.as_str().unwrap_or_default().trim();
    if text.is_empty() || in_annotation(old).as_ref() == Some(&ranges) {
        return;
    }
    for range in text.split(',').map(str::trim) {
        let wrong = cidr(range).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(&field, &json!(range), why)));
    }
}

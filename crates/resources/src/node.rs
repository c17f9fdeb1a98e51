//! The group `node.k8s.io`: RuntimeClasses.
//!
//! Follows pkg/apis/node/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;

use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};
use crate::defaults::Rule::{self, Quantities};
use crate::validation::field::{Errors, Field};

/// Defaults of RuntimeClasses: the overhead is rounded to thousandths.
const RUNTIME_CLASS: &[Rule] = &[Quantities("overhead.podFixed")];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("node.k8s.io", "v1")
            .cluster("runtimeclasses", "RuntimeClass")
            .strategy(
                Generic::new()
                    .defaults(RUNTIME_CLASS)
                    .check(runtime_class)
                    .check_on_update(runtime_class_update)
                    .create_on_update()
                    .conditional_update(),
            ),
    ]
}

/// Checks a RuntimeClass. Follows `ValidateRuntimeClass`.
pub(crate) fn runtime_class(object: &Field<'_, '_>, errors: &mut Errors) {
    object
        .at("handler")
        .must_conform(formats::dns_label, errors);
}

/// Checks an update of a RuntimeClass: its handler is immutable. Follows `ValidateRuntimeClassUpdate`.
pub(crate) fn runtime_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    object.at("handler").must_stay(&old.at("handler"), errors);
}

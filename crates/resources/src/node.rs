//! The group `node.k8s.io`: RuntimeClasses.
//!
//! Follows pkg/apis/node/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::core::pod::validation::scheduling::tolerations;
use crate::core::pod::warnings::node_labels;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::labels;
use crate::validation::quantities::{amount, container_name};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("node.k8s.io", "v1")
            .cluster("runtimeclasses", "RuntimeClass")
            .strategy(
                Generic::new()
                    .check(runtime_class)
                    .warn_always(node_labels::runtime_class)
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
        .must_be_set_and_conform(formats::dns_label, errors);
    let overhead = object.at("overhead");
    for (resource, quantity) in object.members("overhead.podFixed") {
        let mut wrong = Errors::new();
        container_name(resource, &quantity, &mut wrong);
        amount(resource, &quantity, &mut wrong);
        // Kubernetes takes it for limits.
        errors.extend(wrong.into_iter().map(|mut error| {
            error.field = format!("{}.limits[{resource}]", overhead.field());
            error
        }));
    }
    labels(&object.at("scheduling.nodeSelector"), errors);
    tolerations(&object.at("scheduling.tolerations"), errors);
}

/// Checks an update of a RuntimeClass: its handler is immutable. Follows `ValidateRuntimeClassUpdate`.
pub(crate) fn runtime_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    object
        .at("handler")
        .must_stay_text(&old.at("handler"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found, messages};

    #[test]
    fn the_overhead_of_a_class_is_not_rounded() {
        let row = rows().remove(0).done();
        let class = json!({"handler": "h", "overhead": {"podFixed": {"memory": "1n"}}});
        let mut written = class.clone();
        row.strategy.default(&mut written);
        assert_eq!(written, class);
    }

    #[test]
    fn a_class_has_a_handler_and_an_overhead_of_containers() {
        let good = json!({"handler": "h", "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}});
        assert_eq!(found(runtime_class, &good), []);
        let bad = json!({"overhead": {"podFixed": {"x": "1"}},
            "scheduling": {"tolerations": [{"key": "k", "operator": "Odd"}]}});
        let fields: Vec<_> = messages(&found(runtime_class, &bad))
            .iter()
            .filter_map(|it| Some(it.split_once(": ")?.0.to_owned()))
            .collect();
        assert_eq!(
            fields,
            [
                "handler",
                "overhead.limits[x]",
                "overhead.limits[x]",
                "scheduling.tolerations[0].operator"
            ]
        );
    }
}

//! The group `node.k8s.io`: RuntimeClasses.
//!
//! Follows pkg/apis/node/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::validation::formats;
use serde_json::json;

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::core::pod::validation::scheduling::tolerations;
use crate::core::pod::warnings::node_labels;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::labels;
use crate::validation::quantities::{container_name, requirements};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("node.k8s.io", "v1")
            .cluster("runtimeclasses", "RuntimeClass")
            .strategy(
                Generic::new()
                    .names_on_update()
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
    let first = errors.len();
    object
        .at("handler")
        .must_be_set_and_conform(formats::dns_label, errors);
    let overhead = object.at("overhead");
    if overhead.is_set() {
        // Kubernetes takes it for limits.
        let fixed = object.at("overhead.podFixed");
        let (limits, path) = (json!({"limits": fixed.value()}), overhead.field());
        let mut wrong = Errors::new();
        requirements(&Field::named(&limits, &path), container_name, &mut wrong);
        errors.extend(wrong);
    }
    labels(&object.at("scheduling.nodeSelector"), errors);
    own_tolerations(&object.at("scheduling.tolerations"), errors);
    // An update may not keep what is wrong, as pods may.
    for error in &mut errors[first..] {
        error.later_rule = None;
    }
}

/// Checks tolerations, of which no two are the same but for the time. Follows `validateTolerations`.
fn own_tolerations(all: &Field<'_, '_>, errors: &mut Errors) {
    tolerations(all, errors);
    let mut seen = HashSet::new();
    for toleration in all.items("") {
        let parts = ["key", "operator", "value", "effect"];
        if !seen.insert(parts.map(|part| toleration.at(part).text())) {
            errors.push(toleration.duplicate());
        }
    }
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
    use serde_json::Value;

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
    fn huge_pages_of_a_class_are_whole_and_have_company() {
        let wrong = |fixed: Value| {
            messages(&found(
                runtime_class,
                &json!({"handler": "h", "overhead": {"podFixed": fixed}}),
            ))
        };
        assert_eq!(wrong(json!({"hugepages-2Mi": "4Mi", "cpu": "1"})), [""; 0]);
        assert_eq!(
            wrong(json!({"hugepages-2Mi": "3Mi"})),
            [
                "overhead.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "overhead: Forbidden: HugePages require cpu or memory",
            ]
        );
    }

    #[test]
    fn tolerations_of_a_class_are_told_apart() {
        let toleration = |seconds: u32| json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        let class =
            json!({"handler": "h", "scheduling": {"tolerations": [toleration(1), toleration(2)]}});
        assert_eq!(
            messages(&found(runtime_class, &class)),
            [
                "scheduling.tolerations[1]: Duplicate value: {\"effect\":\"NoExecute\",\"key\":\"k\",\"operator\":\"Exists\",\"tolerationSeconds\":2}"
            ]
        );
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

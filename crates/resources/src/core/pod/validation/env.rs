//! The environment variables of containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::HashMap;

use ringwatch_apimachinery::NameRule;
use ringwatch_apimachinery::validation::formats;

use crate::core::field_reference::{POD_FIELDS, pod_field, resource_field};
use crate::validation::field::{Errors, Field};
use crate::validation::values::{config_key, no_backsteps, variable_name};

const SEVERAL: &str = "may not have more than one field specified at a time";

/// Checks the environment variables of a container. Follows `ValidateEnv` and `ValidateEnvFrom`.
pub(super) fn variables(container: &Field<'_, '_>, errors: &mut Errors) {
    for variable in container.items("env") {
        variable
            .at("name")
            .must_be_set_and_conform(variable_name, errors);
        if variable.at("valueFrom").is_set() {
            value_from(&variable, errors);
        }
    }
    for source in container.items("envFrom") {
        source.at("prefix").may_conform(variable_name, errors);
        let kinds = ["configMapRef", "secretRef"];
        for kind in kinds.map(|kind| source.at(kind)) {
            if kind.is_set() {
                kind.at("name")
                    .must_be_set_and_conform(prefix_of_name, errors);
            }
        }
        // The list is blamed, not its element.
        let list = container.at("envFrom");
        match kinds.iter().filter(|kind| source.at(kind).is_set()).count() {
            0 => errors
                .push(list.invalid_value("", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(list.invalid_value("", SEVERAL)),
        }
    }
}

fn prefix_of_name(name: &str) -> Vec<String> {
    formats::name(name, NameRule::DnsSubdomain, true)
}

fn value_from(variable: &Field<'_, '_>, errors: &mut Errors) {
    let from = variable.at("valueFrom");
    let field = from.at("fieldRef");
    if field.is_set() {
        pod_field(&field, POD_FIELDS, errors);
    }
    let resource = from.at("resourceFieldRef");
    if resource.is_set() {
        resource_field(&resource, false, errors);
    }
    let [config, secret] = ["configMapKeyRef", "secretKeyRef"].map(|kind| from.at(kind));
    for kind in [config, secret] {
        if kind.is_set() {
            kind.at("name").must_conform(formats::dns_subdomain, errors);
            kind.at("key").must_be_set_and_conform(config_key, errors);
        }
    }
    let file = from.at("fileKeyRef");
    if file.is_set() {
        file.at("key")
            .must_be_set_and_conform(variable_name, errors);
        file.at("volumeName")
            .must_be_set_and_conform(formats::dns_label, errors);
        file.at("path")
            .must_be_set_and_conform(no_backsteps, errors);
    }
    let sources = [field, resource, config, secret, file];
    let why = match sources.iter().filter(|source| source.is_set()).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.at("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => SEVERAL,
    };
    errors.push(from.invalid_value("", why));
}

/// Checks that the files with the values of variables are in volumes of the pod of the type `emptyDir`. Follows
/// `validateFileKeyRefVolumes`.
pub(super) fn files(spec: &Field<'_, '_>, errors: &mut Errors) {
    // The last of a name counts.
    let mut volumes = HashMap::new();
    for volume in spec.items("volumes") {
        let is_empty_dir = volume.at("emptyDir").is_set();
        volumes.insert(volume.at("name").text(), is_empty_dir);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            for variable in container.items("env") {
                let file = variable.at("valueFrom.fileKeyRef");
                if !file.is_set() {
                    continue;
                }
                let name = file.at("volumeName");
                match volumes.get(name.text()) {
                    None => errors.push(name.not_found()),
                    Some(false) => {
                        errors.push(name.invalid("referenced volume must be of type emptyDir"));
                    }
                    Some(true) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    #[test]
    fn of_volumes_of_one_name_the_last_counts() {
        let variable = |volume: &str| json!({"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume}}});
        let pod = json!({"spec": {"volumes": [{"name": "a"}, {"name": "a", "emptyDir": {}},
            {"name": "b", "emptyDir": {}}, {"name": "b"}],
            "containers": [{"env": [variable("a"), variable("b"), variable("c")]}]}});
        let mut errors = Errors::new();
        files(&Field::root(&pod).at("spec"), &mut errors);
        let at =
            |index: u32| format!("spec.containers[0].env[{index}].valueFrom.fileKeyRef.volumeName");
        assert_eq!(
            messages(&errors),
            [
                format!(
                    "{}: Invalid value: \"b\": referenced volume must be of type emptyDir",
                    at(1)
                ),
                format!("{}: Not found: \"c\"", at(2)),
            ]
        );
    }
}

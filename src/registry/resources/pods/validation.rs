//! What is wrong with the spec of a pod, on its own or in a template.
//!
//! The checks that people run into: names, images, enumerations, numbers of ports, and volumes
//! that are mounted but not there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::registry::resources::path::{get, list, text};
use crate::registry::resources::quantity::Quantity;
use crate::registry::validation::formats;
use crate::registry::{FieldError, FieldErrorKind};

/// What is wrong with a pod's spec that stands at `path`.
pub(in crate::registry::resources) fn pod_spec(
    spec: Option<&Value>,
    path: &str,
) -> Vec<FieldError> {
    let spec = spec.unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let volumes = volumes(spec, path, &mut errors);
    if list(spec, "containers").is_empty() {
        errors.push(FieldError::required(format!("{path}.containers")));
    }
    let mut names = BTreeSet::new();
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(spec, kind).iter().enumerate() {
            let path = format!("{path}.{kind}[{index}]");
            check_container(container, &path, &volumes, &mut errors);
            let name = text(container, "name");
            if !name.is_empty() && !names.insert(name) {
                errors.push(duplicate(format!("{path}.name"), name));
            }
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    check_one_of(spec, "restartPolicy", path, &policies, &mut errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check_one_of(spec, "dnsPolicy", path, &policies, &mut errors);
    for name in ["nodeName", "serviceAccountName"] {
        check_name(spec, name, path, formats::dns_subdomain, &mut errors);
    }
    for name in ["hostname", "subdomain"] {
        check_name(spec, name, path, formats::dns_label, &mut errors);
    }
    errors
}

/// What is wrong with the containers that look into a pod.
pub(super) fn ephemeral_containers(pod: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut ignored = Vec::new();
    let volumes = volumes(
        get(pod, "spec").unwrap_or(&Value::Null),
        "spec",
        &mut ignored,
    );
    for (index, container) in list(pod, "spec.ephemeralContainers").iter().enumerate() {
        let path = format!("spec.ephemeralContainers[{index}]");
        check_container(container, &path, &volumes, &mut errors);
    }
    errors
}

/// The names of the volumes.
fn volumes<'a>(spec: &'a Value, path: &str, errors: &mut Vec<FieldError>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}].name");
        let name = text(volume, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path));
        } else if !names.insert(name) {
            errors.push(duplicate(path, name));
        } else {
            let wrong = formats::dns_label(name);
            errors.extend(
                wrong
                    .iter()
                    .map(|why| FieldError::invalid(&path, &json!(name), why)),
            );
        }
    }
    names
}

fn check_container(
    container: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    if text(container, "name").is_empty() {
        errors.push(FieldError::required(format!("{path}.name")));
    } else {
        check_name(container, "name", path, formats::dns_label, errors);
    }
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(format!("{path}.image")));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(
            format!("{path}.image"),
            &json!(image),
            why,
        ));
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    check_one_of(container, "imagePullPolicy", path, &policies, errors);
    let policies = ["File", "FallbackToLogsOnError"];
    check_one_of(
        container,
        "terminationMessagePolicy",
        path,
        &policies,
        errors,
    );
    check_ports(container, path, errors);
    for (index, variable) in list(container, "env").iter().enumerate() {
        if text(variable, "name").is_empty() {
            errors.push(FieldError::required(format!("{path}.env[{index}].name")));
        }
    }
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        check_mount(
            mount,
            &format!("{path}.volumeMounts[{index}]"),
            volumes,
            errors,
        );
    }
    check_resources(container, path, errors);
}

fn check_ports(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const NUMBERS: &str = "must be between 1 and 65535, inclusive";
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let field = format!("{path}.containerPort");
        match get(port, "containerPort").and_then(Value::as_i64) {
            None | Some(0) => errors.push(FieldError::required(field)),
            Some(1..=0xffff) => {}
            Some(number) => errors.push(FieldError::invalid(field, &json!(number), NUMBERS)),
        }
        match get(port, "hostPort").and_then(Value::as_i64) {
            None | Some(0..=0xffff) => {}
            Some(number) => {
                let field = format!("{path}.hostPort");
                errors.push(FieldError::invalid(field, &json!(number), NUMBERS));
            }
        }
        check_one_of(port, "protocol", &path, &["SCTP", "TCP", "UDP"], errors);
    }
}

fn check_mount(mount: &Value, path: &str, volumes: &BTreeSet<&str>, errors: &mut Vec<FieldError>) {
    let name = text(mount, "name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name")));
    } else if !volumes.contains(name) {
        let value = json!(name).to_string();
        errors.push(FieldError::new(
            FieldErrorKind::NotFound,
            format!("{path}.name"),
            value,
        ));
    }
    if text(mount, "mountPath").is_empty() {
        errors.push(FieldError::required(format!("{path}.mountPath")));
    }
}

/// Quantities are not negative, and no more is requested than allowed.
fn check_resources(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let quantity = |value: &Value| -> Option<Quantity> {
        let number = value.as_number().map(ToString::to_string);
        number.as_deref().or_else(|| value.as_str())?.parse().ok()
    };
    for which in ["limits", "requests"] {
        let members = get(container, &format!("resources.{which}")).and_then(Value::as_object);
        for (name, value) in members.into_iter().flatten() {
            let field = format!("{path}.resources.{which}[{name}]");
            let found = quantity(value);
            if found.is_none_or(Quantity::is_negative) {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(field, value, why));
                continue;
            }
            let limits = get(container, "resources.limits");
            let limit = limits.and_then(|limits| limits.get(name));
            if let ("requests", Some(limit)) = (which, limit)
                && found > quantity(limit)
            {
                let limit = limit
                    .as_str()
                    .map_or_else(|| limit.to_string(), str::to_owned);
                let why = format!("must be less than or equal to {name} limit of {limit}");
                let field = format!("{path}.resources.requests");
                errors.push(FieldError::invalid(field, value, why));
            }
        }
    }
}

fn check_name(
    object: &Value,
    member: &str,
    path: &str,
    rule: fn(&str) -> Vec<String>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(object, member);
    if !name.is_empty() {
        let field = format!("{path}.{member}");
        let wrong = rule(name);
        errors.extend(
            wrong
                .iter()
                .map(|why| FieldError::invalid(&field, &json!(name), why)),
        );
    }
}

/// A member that defaults fill in is one of a few words.
fn check_one_of(
    object: &Value,
    member: &str,
    path: &str,
    supported: &[&str],
    errors: &mut Vec<FieldError>,
) {
    let field = format!("{path}.{member}");
    errors.extend(one_of(object, member, field, supported));
}

/// The error that what is at a path is none of the supported words; absence is not wrong here.
pub(in crate::registry::resources) fn one_of(
    object: &Value,
    path: &str,
    field: String,
    supported: &[&str],
) -> Option<FieldError> {
    let value = get(object, path)?;
    if supported.iter().any(|word| value == word) {
        return None;
    }
    let mut words: Vec<String> = supported
        .iter()
        .map(|word| json!(word).to_string())
        .collect();
    words.sort();
    let detail = format!("{value}: supported values: {}", words.join(", "));
    Some(FieldError::new(FieldErrorKind::NotSupported, field, detail))
}

fn duplicate(field: String, value: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Duplicate, field, json!(value).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(spec: &Value) -> Vec<String> {
        pod_spec(Some(spec), "spec")
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect()
    }

    #[test]
    fn a_pod_needs_containers() {
        assert_eq!(messages(&json!({})), ["spec.containers: Required value"]);
        assert_eq!(
            messages(&json!({"containers": [{"name": "c", "image": "i"}]})),
            [""; 0]
        );
    }

    #[test]
    fn containers_are_checked() {
        let spec = json!({
            "restartPolicy": "Sometimes",
            "volumes": [{"name": "v"}, {"name": "v"}],
            "containers": [
                {"name": "a", "ports": [{"containerPort": 70000, "protocol": "TCP"}]},
                {"name": "a", "image": "i", "volumeMounts": [{"name": "w", "mountPath": "/w"}],
                 "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2", "memory": "-1"}}},
            ],
        });
        assert_eq!(
            messages(&spec),
            [
                "spec.volumes[1].name: Duplicate value: \"v\"",
                "spec.containers[0].image: Required value",
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "spec.containers[1].volumeMounts[0].name: Not found: \"w\"",
                "spec.containers[1].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
                "spec.containers[1].resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
                "spec.containers[1].name: Duplicate value: \"a\"",
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\", \"OnFailure\"",
            ]
        );
    }
}

//! What is wrong with a service, addresses aside.

use serde_json::{Value, json};

use super::HEADLESS;
use crate::registry::resources::path::{get, list, text};
use crate::registry::resources::pods::validation::one_of;
use crate::registry::validation::formats;
use crate::registry::{FieldError, FieldErrorKind};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with a service.
pub(super) fn service(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(object, "spec.type");
    let headless = text(object, "spec.clusterIP") == HEADLESS;
    if list(object, "spec.ports").is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports"));
    }
    if kind == "ExternalName" {
        if text(object, "spec.externalName").is_empty() {
            errors.push(FieldError::required("spec.externalName"));
        }
    } else if headless && kind != "ClusterIP" {
        let why = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            &json!(HEADLESS),
            why,
        ));
    }
    let field = |path: &str| format!("spec.{path}");
    errors.extend(one_of(object, "spec.type", field("type"), TYPES));
    let affinities = ["ClientIP", "None"];
    let path = "spec.sessionAffinity";
    errors.extend(one_of(object, path, path.to_owned(), &affinities));
    let many = list(object, "spec.ports").len() > 1;
    let mut names = Vec::new();
    for (index, port) in list(object, "spec.ports").iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        check_port(port, &path, many, &mut errors);
        let name = text(port, "name");
        if !name.is_empty() && names.contains(&name) {
            let value = json!(name).to_string();
            let field = format!("{path}.name");
            errors.push(FieldError::new(FieldErrorKind::Duplicate, field, value));
        }
        names.push(name);
    }
    errors
}

fn check_port(port: &Value, path: &str, named: bool, errors: &mut Vec<FieldError>) {
    let name = text(port, "name");
    if name.is_empty() {
        if named {
            errors.push(FieldError::required(format!("{path}.name")));
        }
    } else {
        let field = format!("{path}.name");
        let wrong = formats::dns_label(name);
        errors.extend(
            wrong
                .iter()
                .map(|why| FieldError::invalid(&field, &json!(name), why)),
        );
    }
    let in_range = |value: &Value| {
        value
            .as_i64()
            .is_some_and(|number| (1..=0xffff).contains(&number))
    };
    let number = get(port, "port").cloned().unwrap_or_else(|| json!(0));
    if !in_range(&number) {
        errors.push(FieldError::invalid(
            format!("{path}.port"),
            &number,
            PORT_RANGE,
        ));
    }
    if let Some(target) = get(port, "targetPort").filter(|target| target.is_number())
        && !in_range(target)
    {
        errors.push(FieldError::invalid(
            format!("{path}.targetPort"),
            target,
            PORT_RANGE,
        ));
    }
    let protocols = ["SCTP", "TCP", "UDP"];
    errors.extend(one_of(
        port,
        "protocol",
        format!("{path}.protocol"),
        &protocols,
    ));
}

/// What an update may not change: the address, as long as there is one.
pub(super) fn change(object: &Value, old: &Value) -> Vec<FieldError> {
    let external = |service: &Value| text(service, "spec.type") == "ExternalName";
    if external(object) || external(old) {
        return Vec::new();
    }
    let (now, before) = (text(object, "spec.clusterIP"), text(old, "spec.clusterIP"));
    if before.is_empty() || now == before {
        return Vec::new();
    }
    let value = json!([now]);
    let why = "may not change once set";
    vec![FieldError::invalid("spec.clusterIPs[0]", &value, why)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_types_are_checked() {
        let messages = |spec: Value| -> Vec<String> {
            service(&json!({"spec": spec}))
                .iter()
                .map(|error| format!("{}: {}", error.field, error.message()))
                .collect()
        };
        assert_eq!(
            messages(json!({"type": "ClusterIP"})),
            ["spec.ports: Required value"]
        );
        assert_eq!(
            messages(
                json!({"type": "Odd", "clusterIP": "10.0.0.1", "ports": [{"port": 0}, {"port": 1, "name": "a"}]})
            ),
            [
                "spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
                "spec.ports[0].name: Required value",
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ]
        );
        assert_eq!(
            messages(json!({"type": "ExternalName"})),
            ["spec.externalName: Required value"]
        );
    }
}

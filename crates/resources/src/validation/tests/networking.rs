//! Refusals by the checks in `networking.rs`.

use serde_json::{Value, json};

use super::refused;

#[test]
fn ingresses_that_are_wrong() {
    let good = json!({"metadata": {"name": "i"}, "spec": {"rules": [{"host": "*.example.com",
        "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}});
    let path = "spec.rules.0.http.paths.0";
    refused(
        crate::networking::validation::ingress,
        &good,
        &[
            (
                "spec.rules",
                Value::Null,
                &[
                    "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
                ],
            ),
            (
                "spec.rules.0/host",
                json!("1.2.3.4"),
                &[
                    "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
                ],
            ),
            (
                &format!("{path}/pathType"),
                Value::Null,
                &[
                    "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
                ],
            ),
            (
                &format!("{path}/path"),
                json!("a//b"),
                &[
                    "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must be an absolute path",
                    "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must not contain '//'",
                ],
            ),
            (
                &format!("{path}/backend"),
                json!({}),
                &[
                    "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend is required",
                ],
            ),
            (
                &format!("{path}/backend.service.port"),
                json!({}),
                &[
                    "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
                ],
            ),
        ],
    );
}

#[test]
fn network_policies_that_are_wrong() {
    let good = json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
            "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}]}]}});
    refused(
        crate::networking::validation::network_policy,
        &good,
        &[
            (
                "spec.ingress.0/from",
                json!([{}]),
                &["spec.ingress[0].from[0]: Required value: must specify a peer"],
            ),
            (
                "spec.ingress.0.from.0/ipBlock.except",
                json!(["11.0.0.0/16"]),
                &[
                    "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
                ],
            ),
            (
                "spec.ingress.0.ports.0/port",
                json!(100),
                &[
                    "spec.ingress[0].ports[0].endPort: Invalid value: 100: must be greater than or equal to `port`",
                ],
            ),
            (
                "spec.policyTypes",
                json!(["In"]),
                &[
                    "spec.policyTypes[0]: Unsupported value: \"In\": supported values: \"Ingress\", \"Egress\"",
                ],
            ),
        ],
    );
}

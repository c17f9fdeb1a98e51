//! Refusals by the checks in `networking.rs`.

use serde_json::{Value, json};

use super::{found, found_in_change, messages, refused};

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
fn an_ingress_keeps_what_it_was_allowed_earlier() {
    use crate::networking::validation::{ingress, ingress_update};
    let with = |secret: &str, path: &str, host: &str| {
        let rule = json!({"host": host, "http": {"paths": [{"path": path, "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}});
        json!({"metadata": {"name": "i"}, "spec": {"rules": [rule], "tls": [{"secretName": secret}]}})
    };
    let right = with("s", "/", "*.example.com");
    let old = with("A", "x", "*.example.com");
    assert_eq!(messages(&found(ingress, &right)), [""; 0]);
    assert_eq!(found(ingress, &old).len(), 2);
    let fields = |new: &Value, old: &Value| -> Vec<String> {
        let errors = found_in_change(ingress_update, new, old);
        errors.into_iter().map(|error| error.field).collect()
    };
    assert_eq!(fields(&old, &old), [""; 0]);
    let both = ["spec.rules[0].http.paths[0].path", "spec.tls[0].secretName"];
    assert_eq!(fields(&old, &right), both);
    assert_eq!(fields(&with("A", "x", "example.com"), &old), both[..1]);
}

#[test]
fn references_to_objects_are_complete() {
    refused(
        crate::networking::validation::ingress_class,
        &json!({"spec": {"controller": "example.com/a"}}),
        &[
            (
                "spec.parameters",
                json!({"scope": "Cluster"}),
                &[
                    "spec.parameters.kind: Required value",
                    "spec.parameters.name: Required value",
                ],
            ),
            (
                "spec.controller",
                json!("example.com/a b"),
                &[
                    "spec.controller: Invalid value: \"a b\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
                ],
            ),
        ],
    );
}

#[test]
fn a_policy_keeps_selectors_that_it_was_allowed_earlier() {
    use crate::networking::validation::{network_policy_update, new_network_policy};
    let wrong = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]});
    let old = json!({"spec": {"podSelector": wrong, "egress": [{"to": [{"podSelector": wrong}]}]}});
    assert_eq!(found(new_network_policy, &old).len(), 2);
    assert_eq!(found_in_change(network_policy_update, &old, &old), []);
    let mut right = old.clone();
    right["spec"]["podSelector"] = json!({});
    assert_eq!(
        found_in_change(network_policy_update, &old, &right).len(),
        2
    );
}

#[test]
fn network_policies_that_are_wrong() {
    let good = json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
            "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}]}]}});
    refused(
        crate::networking::validation::new_network_policy,
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
                "spec.ingress.0.from.0/ipBlock.cidr",
                json!("10.0.0.1/8"),
                &[
                    "spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length",
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
                "spec.ingress.0.ports.0/port",
                json!("A"),
                &[
                    "spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric",
                    "spec.ingress[0].ports[0].port: Invalid value: \"A\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                    "spec.ingress[0].ports[0].port: Invalid value: \"A\": must contain at least one letter (a-z)",
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

#[test]
fn a_policy_keeps_networks_that_it_was_allowed_earlier() {
    use crate::networking::validation::{network_policy_update, new_network_policy};
    let policy = |cidr: &str, except: &str| json!({"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": cidr, "except": [except]}}, {"podSelector": {}}]}]}});
    let old = policy("10.0.0.1/8", "10.1.0.01/16");
    assert_eq!(found(new_network_policy, &old).len(), 2);
    let changed = |new: &Value| messages(&found_in_change(network_policy_update, new, &old));
    assert!(changed(&old).is_empty());
    assert_eq!(
        changed(&policy("10.0.0.1/8", "10.2.0.1/16")),
        [
            "spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"10.2.0.1/16\": must not have bits set beyond the prefix length"
        ]
    );
    // A peer without a block knows no network.
    assert_eq!(changed(&policy("10.0.0.1/8", "")).len(), 1);
}

#[test]
fn a_service_keeps_addresses_that_it_was_allowed_earlier() {
    use crate::core::service::validation::{new_service, service_update};
    let service = |ip: &str, range: &str| {
        json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "None", "clusterIP": ip, "clusterIPs": [ip],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Cluster",
            "internalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
            "externalIPs": ["010.1.1.1"], "loadBalancerSourceRanges": [range],
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}})
    };
    let old = service("10.0.0.077", "10.0.0.1/8");
    assert_eq!(
        messages(&found(new_service, &old)),
        [
            "spec.clusterIPs[0]: Invalid value: \"10.0.0.077\": must not have leading 0s",
            "spec.externalIPs[0]: Invalid value: \"010.1.1.1\": must not have leading 0s",
            "spec.LoadBalancerSourceRanges[0]: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length",
        ]
    );
    let changed = |new: &Value| messages(&found_in_change(service_update, new, &old));
    assert!(changed(&old).is_empty());
    assert!(changed(&service("10.0.0.077", " 10.0.0.1/8")).is_empty());
    assert_eq!(changed(&service("10.0.0.077", "10.0.0.2/8")).len(), 1);
}

#[test]
fn source_ranges_in_an_annotation_are_looked_at_as_those_in_the_field() {
    use crate::core::service::validation::{new_service, service_update};
    const FIELD: &str =
        "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]";
    let service = |kind: &str, ranges: &str| {
        json!({"metadata": {"annotations": {"service.beta.kubernetes.io/load-balancer-source-ranges": ranges}},
            "spec": {"type": kind, "sessionAffinity": "None", "externalTrafficPolicy": "Cluster",
                "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
                "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}})
    };
    let wrong = |service: &Value| {
        let errors = messages(&found(new_service, service)).into_iter();
        errors
            .filter(|it| it.starts_with(FIELD))
            .collect::<Vec<_>>()
    };
    assert!(wrong(&service("LoadBalancer", "10.0.0.0/8, fd00::/8 ")).is_empty());
    assert!(wrong(&service("LoadBalancer", " ")).is_empty());
    let old = service("LoadBalancer", "10.0.0.0/8,x");
    assert_eq!(
        wrong(&old),
        [format!(
            "{FIELD}: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        )]
    );
    assert_eq!(
        wrong(&service("NodePort", "10.0.0.0/8")),
        [format!(
            "{FIELD}: Forbidden: may only be used when `type` is 'LoadBalancer'"
        )]
    );
    let stays = messages(&found_in_change(service_update, &old, &old));
    assert!(!stays.iter().any(|it| it.starts_with(FIELD)), "{stays:?}");
}

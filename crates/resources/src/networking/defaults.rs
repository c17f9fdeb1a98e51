//! Defaults of the groups `networking.k8s.io` and `discovery.k8s.io`.
//!
//! Follows pkg/apis/networking/v1/defaults.go and pkg/apis/discovery/v1/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use crate::defaults::DefaultRule::{self, Fill, In, Set, Zero};
use crate::defaults::Literal::{Empty, Null, Text};
use crate::defaults::is_absent;

pub(crate) const INGRESS: &[DefaultRule] = &[Zero("spec", Empty)];

pub(crate) const INGRESS_CLASS: &[DefaultRule] =
    &[In("spec.parameters", &[Set("scope", Text("Cluster"))])];

const PORT: &[DefaultRule] = &[Set("protocol", Text("TCP"))];

pub(crate) const NETWORK_POLICY: &[DefaultRule] = &[
    Zero("spec.podSelector", Empty),
    In("spec.ingress[].ports[]", PORT),
    In("spec.egress[].ports[]", PORT),
    Fill("spec.policyTypes", name_the_directions),
];

pub(crate) const ENDPOINT_SLICE: &[DefaultRule] = &[
    Zero("endpoints", Null),
    Zero("ports", Null),
    In("endpoints[]", &[Set("conditions", Empty)]),
    In(
        "ports[]",
        &[Set("name", Text("")), Set("protocol", Text("TCP"))],
    ),
];

/// Sets the types of a NetworkPolicy: always `Ingress`, and `Egress` if it has rules for it.
fn name_the_directions(policy: &mut Value) {
    if is_absent(policy, "spec.policyTypes") {
        let types = if is_absent(policy, "spec.egress") {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        set(policy, "spec.policyTypes", types);
    }
}

//! Refusals by the checks of nodes, PriorityClasses, Leases and PodDisruptionBudgets.

use serde_json::json;

use super::refused;

#[test]
fn kinds_of_the_cluster_that_are_wrong() {
    refused(
        crate::policy::validation::disruption_budget,
        &json!({"spec": {"minAvailable": "50%", "selector": {}}}),
        &[
            (
                "spec.maxUnavailable",
                json!(1),
                &[
                    "spec: Invalid value: {\"MinAvailable\":\"50%\",\"Selector\":{},\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set",
                ],
            ),
            (
                "spec.minAvailable",
                json!("101%"),
                &["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
            ),
        ],
    );
    refused(
        crate::scheduling::priority_class,
        &json!({"metadata": {"name": "a"}, "value": 1}),
        &[
            (
                "preemptionPolicy",
                json!(""),
                &["preemptionPolicy: Required value"],
            ),
            (
                "value",
                json!(1_000_000_001),
                &[
                    "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
                ],
            ),
            (
                "metadata.name",
                json!("system-x"),
                &[
                    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class",
                ],
            ),
        ],
    );
    refused(
        crate::coordination::lease,
        &json!({"spec": {"leaseDurationSeconds": 15}}),
        &[(
            "spec.leaseDurationSeconds",
            json!(0),
            &["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        )],
    );
}

#[test]
fn nodes_that_are_wrong() {
    refused(
        crate::core::node::validation::node,
        &json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
        &[
            (
                "spec.taints",
                json!([{"key": "a", "effect": "Odd"}]),
                &[
                    "metadata.taints[0].effect: Unsupported value: \"Odd\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                ],
            ),
            (
                "spec.podCIDRs",
                json!(["10.0.0.1/24", "10.0.1.0/24"]),
                &[
                    "spec.podCIDRs[0]: Invalid value: \"10.0.0.1/24\": must not have bits set beyond the prefix length",
                    "spec.podCIDRs: Invalid value: [\"10.0.0.1/24\",\"10.0.1.0/24\"]: may specify no more than one CIDR for each IP family",
                ],
            ),
            ("spec.podCIDRs", json!(["10.0.0.0/24", "fd00::/64"]), &[]),
        ],
    );
}

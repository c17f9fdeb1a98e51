//! Refusals by the checks in `quotas.rs`.

use serde_json::json;

use super::refused;

#[test]
fn limits_and_quotas_that_are_wrong() {
    refused(
        crate::core::quota::limit_range,
        &json!({"spec": {"limits": [{"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}}]}}),
        &[
            (
                "spec.limits.0/min.cpu",
                json!("3"),
                &[
                    "spec.limits[0].min[cpu]: Invalid value: \"3\": min value 3 is greater than max value 2",
                ],
            ),
            (
                "spec.limits.0/maxLimitRequestRatio",
                json!({"cpu": "3", "memory": "3"}),
                &[
                    "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = 2.000000",
                ],
            ),
            (
                "spec.limits.0/maxLimitRequestRatio",
                json!({"cpu": "2"}),
                &[],
            ),
            (
                "spec.limits",
                json!([{"type": "Container", "default": {"hugepages-2Mi": "4Mi", "memory": "2"},
                    "defaultRequest": {"hugepages-2Mi": "2Mi", "memory": "1"}}]),
                &[
                    "spec.limits[0].defaultRequest[hugepages-2Mi]: Invalid value: \"2Mi\": default value 4Mi must equal to defaultRequest value 2Mi in hugepages-2Mi",
                ],
            ),
            (
                "spec.limits.0/type",
                json!("Odd"),
                &[
                    "spec.limits[0].type: Invalid value: \"Odd\": must be a standard limit type or fully qualified",
                ],
            ),
        ],
    );
    refused(
        crate::core::quota::quota,
        &json!({"spec": {"hard": {"pods": "1", "count/x.example.com": "2"}}}),
        &[
            (
                "spec.hard",
                json!({"pots": "1"}),
                &[
                    "spec.hard[pots]: Invalid value: \"pots\": must be a standard resource type or fully qualified",
                    "spec.hard[pots]: Invalid value: \"pots\": must be a standard resource for quota",
                ],
            ),
            (
                "spec.hard",
                json!({"pods": "-1.5"}),
                &[
                    "spec.hard[pods]: Invalid value: \"-1.5\": must be greater than or equal to 0",
                    "spec.hard[pods]: Invalid value: \"-1.5\": must be an integer",
                ],
            ),
            (
                "spec.scopes",
                json!(["BestEffort", "NotBestEffort"]),
                &[
                    "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes",
                ],
            ),
        ],
    );
}

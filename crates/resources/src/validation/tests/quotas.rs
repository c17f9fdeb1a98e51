//! Refusals by the checks in `quotas.rs`.

use serde_json::json;

use super::refused;

#[test]
fn limits_that_are_wrong() {
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
                "spec.limits",
                json!([{"type": "PersistentVolumeClaim", "maxLimitRequestRatio": {"-": "1"}}]),
                &[
                    "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
                    "spec.limits[0].maxLimitRequestRatio[-]: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ],
            ),
            (
                "spec.limits",
                json!([{"type": "Container", "min": {"cpu": "2", "memory": "2"}, "max": {"cpu": "1", "memory": "1"},
                    "default": {"cpu": "1"}}]),
                &[
                    "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
                    "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1",
                    "spec.limits[0].min[memory]: Invalid value: \"2\": min value 2 is greater than max value 1",
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
}

#[test]
fn quotas_that_are_wrong() {
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
                "spec",
                json!({"hard": {"hugepages-2Mi": "1", "requests.ephemeral-storage": "1", "pods": "1"},
                    "scopes": ["NotTerminating"]}),
                &["spec.scopes: Invalid value: [\"NotTerminating\"]: unsupported scope applied to resource";
                    2],
            ),
            (
                "spec",
                json!({"hard": {"cpu": "1"}, "scopeSelector": {"matchExpressions": [
                    {"scopeName": "BestEffort", "operator": "In"}]}}),
                &[
                    "spec.scopeSelector.matchExpressions: Invalid value: {\"matchExpressions\":[{\"operator\":\"In\",\"scopeName\":\"BestEffort\"}]}: unsupported scope applied to resource",
                    "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
                    "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
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

#[test]
fn quotas_of_requests_beyond_limits_are_told() {
    let warned = |hard: serde_json::Value| {
        let object = json!({"spec": {"hard": hard}});
        let mut warnings = Vec::new();
        crate::core::quota::quota_warnings(&crate::validation::Field::root(&object), &mut warnings);
        warnings
    };
    let none: [&str; 0] = [];
    assert_eq!(
        warned(json!({"requests.cpu": "1", "limits.cpu": "1"})),
        none
    );
    assert_eq!(
        warned(json!({"cpu": "2", "requests.cpu": "1", "limits.cpu": "1"})),
        none
    );
    assert_eq!(warned(json!({"storage": "2", "limits.storage": "1"})), none);
    assert_eq!(
        warned(
            json!({"cpu": "1500m", "limits.cpu": "1", "requests.storage": "2Gi", "limits.storage": "1Gi"})
        ),
        [
            "ResourceQuota cpu (1500m) should be less than limits.cpu (1)",
            "ResourceQuota requests.storage (2Gi) should be less than limits.storage (1Gi)",
        ]
    );
}

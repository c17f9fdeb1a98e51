//! Refusals by the checks of Deployments and StatefulSets.

use serde_json::{Value, json};

use super::*;

fn good_deployment() -> Value {
    let mut pod = good_pod();
    pod["metadata"] = json!({"labels": {"a": "b"}});
    json!({"metadata": {"name": "d"}, "spec": {"replicas": 1, "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": {"a": "b"}}, "template": pod,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}})
}

#[test]
fn deployments_that_are_wrong() {
    refused(
        crate::apps::validation::deployment,
        &good_deployment(),
        &[
            (
                "spec.selector",
                Value::Null,
                &[
                    "spec.selector: Required value",
                    "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`",
                ],
            ),
            (
                "spec.selector",
                json!({}),
                &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            ),
            (
                "spec.template.metadata.labels",
                json!({"a": "c"}),
                &[
                    "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`",
                ],
            ),
            (
                "spec.replicas",
                json!(-1),
                &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            ),
            (
                "spec.template.spec.restartPolicy",
                json!("Never"),
                &[
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                ],
            ),
            (
                "spec.strategy",
                json!({"type": "Odd"}),
                &[
                    "spec.strategy: Unsupported value: {\"Type\":\"Odd\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
                ],
            ),
            (
                "spec.strategy",
                json!({"type": "Recreate", "rollingUpdate": {}}),
                &[
                    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
                ],
            ),
            (
                "spec.strategy.rollingUpdate",
                json!({"maxSurge": 0, "maxUnavailable": "0%"}),
                &[
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
                ],
            ),
            (
                "spec.minReadySeconds",
                json!(600),
                &[
                    "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
                ],
            ),
        ],
    );
}

fn good_stateful_set() -> Value {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let mut good = good_deployment();
    set(&mut good, "spec.podManagementPolicy", json!("Parallel"));
    set(
        &mut good,
        "spec.updateStrategy",
        json!({"type": "OnDelete"}),
    );
    set(&mut good, "spec.volumeClaimTemplates", json!([claim]));
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    with(
        &good,
        "spec.template.spec.containers.0/volumeMounts",
        mounts,
    )
}

#[test]
fn stateful_sets_mount_their_claims() {
    let good = good_stateful_set();
    refused(
        crate::apps::validation::stateful_set,
        &good,
        &[
            (
                "spec.volumeClaimTemplates",
                json!([]),
                &["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""],
            ),
            (
                "spec.volumeClaimTemplates",
                json!([{"metadata": {"name": "data"}}, {"metadata": {}}]),
                &[
                    "spec.template.spec.volumes[1].persistentVolumeClaim.claimName: Required value",
                    "spec.template.spec.volumes[1].name: Required value",
                ],
            ),
            (
                "spec.template.spec.volumes",
                json!([{"name": "a"}, {"name": "data"}, {"name": "b"}]),
                &[
                    "spec.template.spec.volumes[1]: Required value: must specify a volume type",
                    "spec.template.spec.volumes[2]: Required value: must specify a volume type",
                ],
            ),
            (
                "spec.podManagementPolicy",
                json!("Odd"),
                &[
                    "spec.podManagementPolicy: Invalid value: \"Odd\": must be 'OrderedReady' or 'Parallel'",
                ],
            ),
            (
                "spec.selector",
                json!({"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
                &[
                    "spec.selector.matchExpressions[0].operator: Invalid value: \"Odd\": not a valid selector operator",
                    "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Odd\"}]}",
                ],
            ),
            (
                "spec.updateStrategy",
                json!({"type": "Odd"}),
                &[
                    "spec.updateStrategy: Invalid value: {\"Type\":\"Odd\",\"RollingUpdate\":null}: must be 'RollingUpdate' or 'OnDelete'",
                ],
            ),
        ],
    );
}

#[test]
fn stateful_sets_have_services_and_change_little() {
    let good = good_stateful_set();
    refused(
        crate::apps::validation::new_stateful_set,
        &good,
        &[
            ("spec.serviceName", json!("1a"), &[]),
            (
                "spec.serviceName",
                json!("a.b"),
                &["spec.serviceName: Invalid value: \"a.b\": must not contain dots"],
            ),
            (
                "spec.volumeClaimTemplates.0/spec.accessModes",
                Value::Null,
                &[
                    "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
                ],
            ),
        ],
    );
    let changed = |path: &str, value: Value| {
        let new = with(&good, path, value);
        found_in_change(crate::apps::validation::stateful_set_update, &new, &good).len()
    };
    assert_eq!(changed("spec.replicas", json!(3)), 0);
    assert_eq!(changed("spec.serviceName", json!("s")), 1);
}

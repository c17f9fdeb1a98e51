//! Refusals by the checks of Deployments and StatefulSets.

use serde_json::{Value, json};

use super::*;
use crate::apps::stateful_set_validation::{stateful_set, stateful_set_update};

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

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}})
}

fn good_stateful_set() -> Value {
    let mut good = good_deployment();
    set(&mut good, "spec.podManagementPolicy", json!("Parallel"));
    set(
        &mut good,
        "spec.updateStrategy",
        json!({"type": "OnDelete"}),
    );
    set(
        &mut good,
        "spec.volumeClaimTemplates",
        json!([claim("data")]),
    );
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
        stateful_set,
        &good,
        &[
            (
                "spec.volumeClaimTemplates",
                json!([]),
                &["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""],
            ),
            (
                "spec.volumeClaimTemplates",
                json!([claim("data"), claim("")]),
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
        stateful_set,
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
        found_in_change(stateful_set_update, &new, &good).len()
    };
    assert_eq!(changed("spec.replicas", json!(3)), 0);
    assert_eq!(changed("spec.serviceName", json!("s")), 1);
}

#[test]
fn what_a_stateful_set_names_its_pods_does_not_count() {
    refused(
        stateful_set,
        &good_stateful_set(),
        &[
            ("spec.template.spec.subdomain", json!("A.b"), &[]),
            ("spec.template.spec.hostname", json!("A.b"), &[]),
        ],
    );
}

#[test]
fn errors_of_a_stateful_set_come_in_the_order_of_its_checks() {
    let mut wrong = good_stateful_set();
    let claims = json!([claim("A"), {"metadata": {"name": "b"}}]);
    for (path, value) in [
        ("spec.replicas", json!(-1)),
        ("spec.serviceName", json!("a.b")),
        ("spec.volumeClaimTemplates", claims),
        ("spec.template.metadata.labels", json!({"a": "c d"})),
        ("spec.template.spec.containers", Value::Null),
    ] {
        wrong = with(&wrong, path, value);
    }
    let fields = |errors: Vec<FieldError>| -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    };
    let of_claims = "spec.volumeClaimTemplates[1].spec";
    let rest = [
        "spec.replicas",
        "spec.serviceName",
        "spec.template.metadata.labels",
        "spec.template.labels",
        "spec.template.spec.volumes[0].name",
        "spec.template.spec.containers",
    ];
    let mut all = vec![
        format!("{of_claims}.accessModes"),
        format!("{of_claims}.resources[storage]"),
    ];
    all.extend(rest.map(str::to_owned));
    assert_eq!(fields(found(stateful_set, &wrong)), all);
    // What is immutable is not checked again, and of a template that was wrong the metadata alone.
    let mut kept = rest.to_vec();
    kept.retain(|field| *field != "spec.serviceName" && !field.starts_with("spec.template.spec"));
    assert_eq!(
        fields(found_in_change(stateful_set_update, &wrong, &wrong)),
        kept
    );
}

#[test]
fn a_stateful_set_takes_down_some_of_its_pods() {
    let rolling = |unavailable: Value| {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": unavailable}});
        let set = with(&good_stateful_set(), "spec.updateStrategy", strategy);
        messages(&found(stateful_set, &set))
    };
    let field = "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value:";
    assert_eq!(rolling(json!("50%")), [""; 0]);
    assert_eq!(rolling(json!(0)), [format!("{field} 0: cannot be 0")]);
    assert_eq!(
        rolling(json!("101%")),
        [format!("{field} \"101%\": must not be greater than 100%")]
    );
}

#[test]
fn a_daemon_set_keeps_a_selector_that_could_be_wrong_earlier() {
    let mut pod = good_pod();
    pod["metadata"] = json!({"labels": {"a": "b"}});
    let rolling = json!({"maxUnavailable": 1, "maxSurge": 0});
    let old = json!({"metadata": {"name": "d"}, "spec": {"template": pod,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c d"]}]}}});
    assert_eq!(found(crate::apps::validation::daemon_set, &old).len(), 1);
    let changed = |new: &Value| {
        found_in_update(crate::apps::validation::daemon_set, new, &old)
            .into_iter()
            .map(|error| error.field)
            .collect::<Vec<_>>()
    };
    assert_eq!(changed(&old), [""; 0]);
    let mut other = old.clone();
    set(
        &mut other,
        "spec.selector",
        json!({"matchLabels": {"a": "b"}}),
    );
    set(&mut other, "spec.minReadySeconds", json!(-1));
    assert_eq!(changed(&other), ["spec.minReadySeconds"]);
}

#[test]
fn a_number_of_pods_may_have_many_digits() {
    let rolling = |unavailable: &str| {
        let strategy = json!({"maxSurge": 0, "maxUnavailable": unavailable});
        let deployment = with(&good_deployment(), "spec.strategy.rollingUpdate", strategy);
        messages(&found(crate::apps::validation::deployment, &deployment))
    };
    let field = "spec.strategy.rollingUpdate.maxUnavailable: Invalid value:";
    let many = "99999999999999999999%";
    assert_eq!(
        rolling(many),
        [format!("{field} {many:?}: must not be greater than 100%")]
    );
    assert_eq!(rolling("5%%").len(), 2);
}

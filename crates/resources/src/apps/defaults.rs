//! Defaults of the group `apps`.
//!
//! Follows pkg/apis/apps/v1/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use crate::core::pod::defaults::SPEC_TEMPLATE;
use crate::core::volume::defaults::CLAIM;
use crate::defaults::DefaultRule::{self, In, Run, Set, When, With};
use crate::defaults::Literal::{Empty, Int, Text};
use crate::defaults::is_absent;

pub(crate) const DEPLOYMENT: &[DefaultRule] = &[
    Set("spec.replicas", Int(1)),
    Set("spec.strategy.type", Text("RollingUpdate")),
    When(
        "spec.strategy.type",
        &["RollingUpdate"],
        &[
            Set("spec.strategy.rollingUpdate.maxUnavailable", Text("25%")),
            Set("spec.strategy.rollingUpdate.maxSurge", Text("25%")),
        ],
    ),
    Set("spec.revisionHistoryLimit", Int(10)),
    Set("spec.progressDeadlineSeconds", Int(600)),
    Set("spec.template", Empty),
    SPEC_TEMPLATE,
];

pub(crate) const REPLICA_SET: &[DefaultRule] = &[
    Set("spec.replicas", Int(1)),
    Set("spec.template", Empty),
    SPEC_TEMPLATE,
];

pub(crate) const DAEMON_SET: &[DefaultRule] = &[
    Set("spec.updateStrategy.type", Text("RollingUpdate")),
    When(
        "spec.updateStrategy.type",
        &["RollingUpdate"],
        &[
            Set("spec.updateStrategy.rollingUpdate.maxUnavailable", Int(1)),
            Set("spec.updateStrategy.rollingUpdate.maxSurge", Int(0)),
        ],
    ),
    // Kubernetes' internal type always has both.
    When(
        "spec.updateStrategy.type",
        &["OnDelete"],
        &[With(
            "spec.updateStrategy.rollingUpdate",
            &[
                Set("spec.updateStrategy.rollingUpdate.maxUnavailable", Int(0)),
                Set("spec.updateStrategy.rollingUpdate.maxSurge", Int(0)),
            ],
        )],
    ),
    Set("spec.revisionHistoryLimit", Int(10)),
    Set("spec.template", Empty),
    SPEC_TEMPLATE,
];

pub(crate) const STATEFUL_SET: &[DefaultRule] = &[
    Set("spec.podManagementPolicy", Text("OrderedReady")),
    Run(
        &[
            "spec.updateStrategy.type",
            "spec.updateStrategy.rollingUpdate",
        ],
        update_rolling,
    ),
    When(
        "spec.updateStrategy.type",
        &["RollingUpdate"],
        &[In(
            "spec.updateStrategy.rollingUpdate",
            &[Set("partition", Int(0))],
        )],
    ),
    Set(
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
        Text("Retain"),
    ),
    Set(
        "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
        Text("Retain"),
    ),
    Set("spec.replicas", Int(1)),
    Set("spec.revisionHistoryLimit", Int(10)),
    Set("spec.template", Empty),
    SPEC_TEMPLATE,
    In("spec.volumeClaimTemplates[]", &[Set("metadata", Empty)]),
    In("spec.volumeClaimTemplates[]", CLAIM),
];

/// Sets the update strategy to a rolling update with its parameters, if there is none. A strategy that the client has
/// named gets no parameters.
fn update_rolling(set_of_pods: &mut Value) {
    let (kind, details) = (
        "spec.updateStrategy.type",
        "spec.updateStrategy.rollingUpdate",
    );
    if !is_absent(set_of_pods, kind) {
        return;
    }
    set(set_of_pods, kind, "RollingUpdate".into());
    if is_absent(set_of_pods, details) {
        set(set_of_pods, details, json!({}));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::defaults::apply;

    #[test]
    fn a_named_strategy_of_a_stateful_set_gets_no_details() {
        let completed = |strategy: Value| {
            let mut pods = json!({"spec": {"updateStrategy": strategy}});
            apply(STATEFUL_SET, &mut pods);
            pods["spec"]["updateStrategy"].take()
        };
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
        assert_eq!(completed(Value::Null), rolling);
        assert_eq!(
            completed(json!({"type": "RollingUpdate", "rollingUpdate": {}})),
            rolling
        );
        let named = json!({"type": "RollingUpdate"});
        assert_eq!(completed(named.clone()), named);
    }

    #[test]
    fn a_deployment_is_completed() {
        let mut deployment = json!({"spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        }});
        apply(DEPLOYMENT, &mut deployment);
        assert_eq!(
            deployment,
            json!({
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"app": "d"}},
                    "template": {
                        "metadata": {"labels": {"app": "d"}},
                        "spec": {
                            "containers": [{
                                "name": "c",
                                "image": "nginx",
                                "resources": {},
                                "terminationMessagePath": "/dev/termination-log",
                                "terminationMessagePolicy": "File",
                                "imagePullPolicy": "Always",
                            }],
                            "restartPolicy": "Always",
                            "terminationGracePeriodSeconds": 30,
                            "dnsPolicy": "ClusterFirst",
                            "securityContext": {},
                            "schedulerName": "default-scheduler",
                        },
                    },
                    "strategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                    },
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                },
            })
        );
    }
}

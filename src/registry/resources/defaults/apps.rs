//! The group `apps`.

use super::Literal::{Empty, Int, Text};
use super::Rule::{self, In, Set, When};
use super::pod::SPEC_TEMPLATE;
use super::volume::CLAIM;

pub(in crate::registry::resources) const DEPLOYMENT: &[Rule] = &[
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
    SPEC_TEMPLATE,
];

pub(in crate::registry::resources) const REPLICA_SET: &[Rule] =
    &[Set("spec.replicas", Int(1)), SPEC_TEMPLATE];

pub(in crate::registry::resources) const DAEMON_SET: &[Rule] = &[
    Set("spec.updateStrategy.type", Text("RollingUpdate")),
    When(
        "spec.updateStrategy.type",
        &["RollingUpdate"],
        &[
            Set("spec.updateStrategy.rollingUpdate.maxUnavailable", Int(1)),
            Set("spec.updateStrategy.rollingUpdate.maxSurge", Int(0)),
        ],
    ),
    Set("spec.revisionHistoryLimit", Int(10)),
    SPEC_TEMPLATE,
];

pub(in crate::registry::resources) const STATEFUL_SET: &[Rule] = &[
    Set("spec.podManagementPolicy", Text("OrderedReady")),
    Set("spec.updateStrategy.type", Text("RollingUpdate")),
    When(
        "spec.updateStrategy.type",
        &["RollingUpdate"],
        &[Set("spec.updateStrategy.rollingUpdate.partition", Int(0))],
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
    SPEC_TEMPLATE,
    In("spec.volumeClaimTemplates[]", &[Set("metadata", Empty)]),
    In("spec.volumeClaimTemplates[]", CLAIM),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;

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

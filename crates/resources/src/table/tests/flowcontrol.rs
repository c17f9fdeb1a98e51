//! Tests of the tables of FlowSchemas and PriorityLevelConfigurations.

use serde_json::json;

use super::cells;

#[test]
fn flow_control_shows_its_numbers() {
    let group = "flowcontrol.apiserver.k8s.io";
    let schema = json!({"spec": {"priorityLevelConfiguration": {"name": "l"},
        "matchingPrecedence": 7, "distinguisherMethod": {"type": "ByUser"}},
        "status": {"conditions": [{"type": "Dangling", "status": "False"}]}});
    assert_eq!(
        cells(group, "FlowSchema", schema),
        json!(["l", 7, "ByUser", "False"])
    );
    let queuing = json!({"queues": 64, "handSize": 6, "queueLengthLimit": 50});
    let level = json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 30,
        "limitResponse": {"type": "Queue", "queuing": queuing}}}});
    let kind = "PriorityLevelConfiguration";
    assert_eq!(cells(group, kind, level), json!(["Limited", 30, 64, 6, 50]));
    let exempt = json!({"spec": {"type": "Exempt"}});
    assert_eq!(
        cells(group, kind, exempt),
        json!(["Exempt", "<none>", "<none>", "<none>", "<none>"])
    );
}

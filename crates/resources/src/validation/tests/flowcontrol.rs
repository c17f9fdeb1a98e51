//! Refusals by the checks in `flowcontrol.rs`.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use super::refused;
use crate::validation::*;

fn good_level() -> Value {
    json!({"metadata": {"name": "l"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": {"type": "Queue",
            "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}}}})
}

#[test]
fn priority_levels_that_are_wrong() {
    refused(
        crate::flowcontrol::validation::priority_level,
        &good_level(),
        &[
            (
                "spec.type",
                Value::Null,
                &["spec.type: Unsupported value: \"\": supported values: \"Exempt\", \"Limited\""],
            ),
            (
                "spec.type",
                json!("Exempt"),
                &[
                    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                    "spec.limited: Forbidden: must be nil if the type is not Limited",
                ],
            ),
            (
                "spec.limited",
                Value::Null,
                &["spec.limited: Required value: must not be empty when type is Limited"],
            ),
            (
                "metadata.annotations",
                json!({"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""}),
                &[
                    "metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden",
                ],
            ),
            (
                "spec.limited.lendablePercent",
                json!(101),
                &[
                    "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                ],
            ),
        ],
    );
}

#[test]
fn mandatory_priority_levels_are_fixed() {
    let catch_all = json!({"metadata": {"name": "catch-all"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}}});
    refused(
        crate::flowcontrol::validation::priority_level,
        &catch_all,
        &[
            (
                "spec.limited.nominalConcurrencyShares",
                json!(6),
                &[
                    r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":6,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value"#,
                ],
            ),
            (
                "spec.limited.limitResponse",
                json!({"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}),
                &[
                    r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":5,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":64,"HandSize":8,"QueueLengthLimit":50}},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value"#,
                ],
            ),
        ],
    );
    let mut limited = catch_all.clone();
    set(&mut limited, "metadata.name", json!("exempt"));
    assert_eq!(
        messages(&found(
            crate::flowcontrol::validation::priority_level,
            &limited
        )),
        [
            "spec.type: Invalid value: \"Limited\": must be 'Exempt' if and only if `name` is 'exempt'",
            r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":5,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"#,
        ]
    );
    refused(
        crate::flowcontrol::validation::priority_level,
        &json!({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {
            "nominalConcurrencyShares": 7, "lendablePercent": 50}}}),
        &[],
    );
}

#[test]
fn priority_levels_that_queue_in_odd_ways() {
    refused(
        crate::flowcontrol::validation::priority_level,
        &good_level(),
        &[
            (
                "spec.limited.limitResponse.type",
                Value::Null,
                &[
                    "spec.limited.limitResponse.type: Unsupported value: \"\": supported values: \"Queue\", \"Reject\"",
                ],
            ),
            (
                "spec.limited.limitResponse.type",
                json!("Reject"),
                &[
                    "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited",
                ],
            ),
            (
                "spec.limited.limitResponse.queuing",
                Value::Null,
                &[
                    "spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited",
                ],
            ),
            (
                "spec.limited.limitResponse.queuing",
                json!({"queues": 10_000_001, "handSize": -1, "queueLengthLimit": -1}),
                &[
                    "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                    "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000",
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
                ],
            ),
            (
                "spec.limited.limitResponse.queuing",
                json!({"queues": 128, "handSize": 9, "queueLengthLimit": 1}),
                &[
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 9: required entropy bits of deckSize 128 and handSize 9 should not be greater than 60",
                ],
            ),
        ],
    );
}

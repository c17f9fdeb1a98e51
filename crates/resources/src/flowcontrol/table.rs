//! Tables of API Priority and Fairness: FlowSchemas and PriorityLevelConfigurations.

use serde_json::Value;

use crate::table::{Column, TableConvertor, cells};

const NONE: &str = "<none>";

/// Table of FlowSchemas, with priority level, precedence and the condition `Dangling`.
pub(crate) static FLOW_SCHEMAS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("PriorityLevel", "The priority level of the requests."),
        Column::text(
            "MatchingPrecedence",
            "Which schema is tried first: the lowest.",
        ),
        Column::text("DistinguisherMethod", "What makes a flow of its own."),
        Column::AGE,
        Column::text("MissingPL", "Whether there is no such priority level."),
    ],
    |schema| {
        let mut conditions = schema.list("status.conditions");
        let dangling = conditions.find(|condition| condition.text("type") == "Dangling");
        cells![
            schema.name(),
            schema.text("spec.priorityLevelConfiguration.name"),
            schema.number("spec.matchingPrecedence"),
            schema.text_or("spec.distinguisherMethod.type", NONE),
            schema.age(),
            dangling.map_or("?", |condition| condition.text("status")),
        ]
    },
);

/// Table of PriorityLevelConfigurations, with shares and queues; `<none>` where the level does not limit or queue.
pub(crate) static PRIORITY_LEVELS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Type", "Whether the level is limited at all."),
        Column::text(
            "NominalConcurrencyShares",
            "Its part of all requests in flight.",
        ),
        Column::text("Queues", "How many queues it has."),
        Column::text("HandSize", "Among how many of them a flow is spread."),
        Column::text(
            "QueueLengthLimit",
            "How many requests wait in a queue at most.",
        ),
        Column::AGE,
    ],
    |level| {
        let queuing = level.has("spec.limited.limitResponse.queuing");
        let number = |there: bool, path: &str| {
            if there {
                Value::from(level.number(path))
            } else {
                NONE.into()
            }
        };
        let limited = level.has("spec.limited");
        cells![
            level.name(),
            level.text("spec.type"),
            number(limited, "spec.limited.nominalConcurrencyShares"),
            number(queuing, "spec.limited.limitResponse.queuing.queues"),
            number(queuing, "spec.limited.limitResponse.queuing.handSize"),
            number(
                queuing,
                "spec.limited.limitResponse.queuing.queueLengthLimit"
            ),
            level.age(),
        ]
    },
);

//! The group `flowcontrol.apiserver.k8s.io`.

use super::Literal::Int;
use super::Rule::{self, In, Set, When};

pub(in crate::registry::resources) const FLOW_SCHEMA: &[Rule] =
    &[Set("spec.matchingPrecedence", Int(1000))];

pub(in crate::registry::resources) const PRIORITY_LEVEL: &[Rule] = &[
    In(
        "spec.limited",
        &[
            Set("nominalConcurrencyShares", Int(30)),
            Set("lendablePercent", Int(0)),
            When(
                "limitResponse.type",
                &["Queue"],
                &[
                    Set("limitResponse.queuing.queues", Int(64)),
                    Set("limitResponse.queuing.handSize", Int(8)),
                    Set("limitResponse.queuing.queueLengthLimit", Int(50)),
                ],
            ),
        ],
    ),
    When(
        "spec.type",
        &["Exempt"],
        &[
            Set("spec.exempt.nominalConcurrencyShares", Int(0)),
            Set("spec.exempt.lendablePercent", Int(0)),
        ],
    ),
];

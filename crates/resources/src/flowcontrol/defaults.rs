//! Defaults of the group `flowcontrol.apiserver.k8s.io`.
//!
//! Follows pkg/apis/flowcontrol/v1/defaults.go, of Kubernetes 1.36.

use crate::defaults::DefaultRule::{self, In, Set};
use crate::defaults::Literal::Int;

pub(crate) const FLOW_SCHEMA: &[DefaultRule] = &[Set("spec.matchingPrecedence", Int(1000))];

pub(crate) const PRIORITY_LEVEL: &[DefaultRule] = &[
    In(
        "spec.limited",
        &[
            Set("nominalConcurrencyShares", Int(30)),
            Set("lendablePercent", Int(0)),
            In(
                "limitResponse.queuing",
                &[
                    Set("queues", Int(64)),
                    Set("handSize", Int(8)),
                    Set("queueLengthLimit", Int(50)),
                ],
            ),
        ],
    ),
    In(
        "spec.exempt",
        &[
            Set("nominalConcurrencyShares", Int(0)),
            Set("lendablePercent", Int(0)),
        ],
    ),
];

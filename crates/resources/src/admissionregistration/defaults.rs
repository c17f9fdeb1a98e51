//! Defaults of the groups `admissionregistration.k8s.io` and `apiregistration.k8s.io`.
//!
//! Follows pkg/apis/admissionregistration/v1/defaults.go, and kube-aggregator's
//! pkg/apis/apiregistration/v1/defaults.go, of Kubernetes 1.36.

use crate::defaults::DefaultRule::{self, In, Set};
use crate::defaults::Literal::{Empty, Int, Text};

const RULE: &[DefaultRule] = &[Set("scope", Text("*"))];

const WEBHOOK: &[DefaultRule] = &[
    Set("failurePolicy", Text("Fail")),
    Set("matchPolicy", Text("Equivalent")),
    Set("namespaceSelector", Empty),
    Set("objectSelector", Empty),
    Set("timeoutSeconds", Int(10)),
    In("rules[]", RULE),
    In("clientConfig.service", &[Set("port", Int(443))]),
];

pub(crate) const VALIDATING_WEBHOOKS: &[DefaultRule] = &[In("webhooks[]", WEBHOOK)];

pub(crate) const MUTATING_WEBHOOKS: &[DefaultRule] = &[
    In("webhooks[]", WEBHOOK),
    In("webhooks[]", &[Set("reinvocationPolicy", Text("Never"))]),
];

const MATCH: &[DefaultRule] = &[
    Set("matchPolicy", Text("Equivalent")),
    Set("namespaceSelector", Empty),
    Set("objectSelector", Empty),
    In("resourceRules[]", RULE),
    In("excludeResourceRules[]", RULE),
];

pub(crate) const POLICY: &[DefaultRule] = &[
    Set("spec.failurePolicy", Text("Fail")),
    In("spec.matchConstraints", MATCH),
];

pub(crate) const POLICY_BINDING: &[DefaultRule] = &[In("spec.matchResources", MATCH)];

pub(crate) const API_SERVICE: &[DefaultRule] = &[In("spec.service", &[Set("port", Int(443))])];

//! The variable `authorizer`, by which expressions check permissions.

use std::fmt::Debug;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Opaque;

use super::failure::{Failure, ValueResult};
use super::meter::Meter;

/// Cost of an authorization check: an expression affords two.
const CHECK_COST: u64 = 350_000;

/// The costs of a selector of labels or fields: of its list, and of each requirement.
const SELECTOR_COST: u64 = 10;
const REQUIREMENT_COST: u64 = 50;

/// Decides permission checks that expressions make by `authorizer`.
pub trait AuthorizerCheck: Send + Sync + Debug {
    /// Returns true if the request would be allowed, and the reason.
    fn decide(&self, attributes: &CheckAttributes) -> (bool, String);
}

/// The attributes of an authorization check of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckAttributes {
    /// The namespace and name of the service account whose permission is checked; `None` for the user of the request.
    pub account: Option<(String, String)>,
    /// The path that is checked; `None` for a check about a resource.
    pub path: Option<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the resource; empty if none is named.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The namespace; empty for cluster-scoped checks and those of all namespaces.
    pub namespace: String,
    /// The name of the object, or empty.
    pub name: String,
    /// The verb of the check, such as `get`.
    pub verb: String,
    /// The field selector as it was written; empty for none.
    pub fields: String,
    /// The label selector as it was written; empty for none.
    pub labels: String,
}

/// The type of a check that an expression is still building, such as `authorizer.group('apps')`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckStage {
    Authorizer,
    Path,
    Group,
    Resource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PartialCheck {
    stage: CheckStage,
    attributes: CheckAttributes,
}

impl Opaque for PartialCheck {
    fn runtime_type_name(&self) -> &'static str {
        match self.stage {
            CheckStage::Authorizer => "kubernetes.authorization.Authorizer",
            CheckStage::Path => "kubernetes.authorization.PathCheck",
            CheckStage::Group => "kubernetes.authorization.GroupCheck",
            CheckStage::Resource => "kubernetes.authorization.ResourceCheck",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Decision {
    allowed: bool,
    reason: String,
}

impl Opaque for Decision {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }
}

/// Returns the value of `authorizer`.
pub(super) fn authorizer() -> CelValue {
    check(CheckStage::Authorizer, CheckAttributes::default())
}

/// Returns the value of `authorizer.requestResource`: a check about the object that the request writes.
pub(super) fn resource_check(attributes: CheckAttributes) -> CelValue {
    check(CheckStage::Resource, attributes)
}

fn check(stage: CheckStage, attributes: CheckAttributes) -> CelValue {
    CelValue::Opaque(Arc::new(PartialCheck { stage, attributes }))
}

/// Calls a function of checks or decisions; returns `None` if it is none of them.
pub(super) fn call(
    authorizer: Option<&Arc<dyn AuthorizerCheck>>,
    meter: &mut Meter,
    name: &str,
    target: &CelValue,
    arguments: &[CelValue],
) -> Option<ValueResult> {
    let CelValue::Opaque(opaque) = target else {
        return None;
    };
    if let Some(decision) = opaque.downcast_ref::<Decision>() {
        return Some(
            meter
                .charge(1)
                .and_then(|()| about_decision(decision, name)),
        );
    }
    let partial = opaque.downcast_ref::<PartialCheck>()?;
    let texts: Option<Vec<&str>> = arguments.iter().map(text).collect();
    let Some(texts) = texts else {
        return Some(Err(Failure::NoOverload));
    };
    Some(match (name, texts.as_slice()) {
        ("check", [verb]) => decide(authorizer, meter, partial, verb),
        ("fieldSelector" | "labelSelector", [selector]) => meter
            .charge(selector_cost(selector.chars().count() as u64))
            .and_then(|()| extended(partial, name, &texts)),
        _ => meter
            .charge(1)
            .and_then(|()| extended(partial, name, &texts)),
    })
}

/// Returns the cost of a selector of so many characters, which may have a requirement in each two of them.
fn selector_cost(length: u64) -> u64 {
    SELECTOR_COST + length.div_ceil(10) + length.div_ceil(2).saturating_mul(REQUIREMENT_COST)
}

fn text(value: &CelValue) -> Option<&str> {
    match value {
        CelValue::String(text) => Some(text),
        _ => None,
    }
}

/// Returns the check with one more of its parts set.
fn extended(partial: &PartialCheck, name: &str, texts: &[&str]) -> ValueResult {
    let mut attributes = partial.attributes.clone();
    let stage = match (partial.stage, name, texts) {
        (CheckStage::Authorizer, "serviceAccount", [namespace, name]) => {
            attributes.account = Some(((*namespace).to_owned(), (*name).to_owned()));
            CheckStage::Authorizer
        }
        (CheckStage::Authorizer, "path", [path]) => {
            if path.is_empty() {
                return Err(Failure::Other("path must not be empty".into()));
            }
            attributes.path = Some((*path).to_owned());
            CheckStage::Path
        }
        (CheckStage::Authorizer, "group", [group]) => {
            (*group).clone_into(&mut attributes.group);
            CheckStage::Group
        }
        (CheckStage::Group, "resource", [resource]) => {
            if resource.is_empty() {
                return Err(Failure::Other("resource must not be empty".into()));
            }
            (*resource).clone_into(&mut attributes.resource);
            CheckStage::Resource
        }
        (CheckStage::Resource, member, [value]) => {
            let field = match member {
                "subresource" => &mut attributes.subresource,
                "namespace" => &mut attributes.namespace,
                "name" => &mut attributes.name,
                "fieldSelector" => &mut attributes.fields,
                "labelSelector" => &mut attributes.labels,
                _ => return Err(Failure::NoOverload),
            };
            (*value).clone_into(field);
            CheckStage::Resource
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(check(stage, attributes))
}

fn decide(
    authorizer: Option<&Arc<dyn AuthorizerCheck>>,
    meter: &mut Meter,
    partial: &PartialCheck,
    verb: &str,
) -> ValueResult {
    if !matches!(partial.stage, CheckStage::Path | CheckStage::Resource) {
        return Err(Failure::NoOverload);
    }
    meter.charge(CHECK_COST)?;
    let missing = || Failure::Other("no such attribute(s): authorizer".into());
    let authorizer = authorizer.ok_or_else(missing)?;
    let mut attributes = partial.attributes.clone();
    verb.clone_into(&mut attributes.verb);
    let (allowed, reason) = authorizer.decide(&attributes);
    Ok(CelValue::Opaque(Arc::new(Decision { allowed, reason })))
}

fn about_decision(decision: &Decision, name: &str) -> ValueResult {
    Ok(match name {
        "allowed" => CelValue::Bool(decision.allowed),
        "reason" => CelValue::from(decision.reason.as_str()),
        // Here every check has an answer.
        "errored" => CelValue::Bool(false),
        "error" => CelValue::from(""),
        _ => return Err(Failure::NoOverload),
    })
}

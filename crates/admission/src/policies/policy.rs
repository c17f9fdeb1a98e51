//! A policy, as it is stored.

use std::sync::Arc;

use ringwatch_cel::{Members, Program};
use serde_json::Value;

use super::member::text;
use super::mutation::Mutation;
use crate::conditions::Conditions;
use crate::expression::{PolicyExpression, compile};
use crate::matching::Criteria;

/// A ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) criteria: Criteria,
    pub(super) conditions: Conditions,
    /// The version and kind of params, if it has any.
    pub(super) param_kind: Option<(String, String)>,
    /// Names and expressions, each of which may use those before it.
    pub(super) variables: Arc<Members>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
    pub(super) mutations: Vec<Mutation>,
    /// True if the policy is evaluated again when later mutations change the object: `reinvocationPolicy: IfNeeded`.
    pub(super) reinvoked: bool,
    /// True if a request is denied when an expression fails: `failurePolicy: Fail`.
    pub(super) fails: bool,
}

/// A compiled entry of `spec.validations`.
#[derive(Debug)]
pub(super) struct Validation {
    /// The source of the expression.
    pub(super) text: String,
    pub(super) expression: PolicyExpression,
    pub(super) message: String,
    pub(super) message_expression: Option<Program>,
    pub(super) reason: String,
}

/// An entry of `spec.auditAnnotations`.
#[derive(Debug)]
pub(super) struct Annotation {
    pub(super) key: String,
    /// The source of the expression.
    pub(super) text: String,
    pub(super) expression: PolicyExpression,
}

impl Policy {
    /// Reads a policy out of its object, and compiles its expressions.
    ///
    /// # Errors
    /// A message that names the member that cannot be read.
    pub(super) fn read(object: &Value) -> Result<Self, String> {
        let spec = &object["spec"];
        let list = |name: &str| {
            spec.get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let param_kind = spec.get("paramKind").filter(|it| it.is_object());
        let variables = list("variables").map(|it| {
            let expression = compile(&text(it, "expression"));
            (text(it, "name"), expression)
        });
        Ok(Self {
            name: text(&object["metadata"], "name"),
            criteria: Criteria::read(&spec["matchConstraints"], "resourceRules")?,
            conditions: Conditions::read(spec),
            param_kind: param_kind.map(|it| (text(it, "apiVersion"), text(it, "kind"))),
            variables: Arc::new(variables.collect()),
            validations: list("validations").map(Validation::read).collect(),
            annotations: list("auditAnnotations").map(Annotation::read).collect(),
            mutations: list("mutations").map(Mutation::read).collect(),
            reinvoked: text(spec, "reinvocationPolicy") == "IfNeeded",
            fails: text(spec, "failurePolicy") != "Ignore",
        })
    }
}

impl Validation {
    fn read(entry: &Value) -> Self {
        let source = text(entry, "expression");
        let message = text(entry, "messageExpression");
        let message = Some(message).filter(|it| !it.is_empty());
        let reason = text(entry, "reason");
        Self {
            expression: compile(&source),
            text: source.trim().to_owned(),
            message: text(entry, "message").trim().to_owned(),
            message_expression: message.and_then(|it| compile(&it).ok()),
            reason: if reason.is_empty() {
                "Invalid".to_owned()
            } else {
                reason
            },
        }
    }
}

impl Annotation {
    fn read(entry: &Value) -> Self {
        let source = text(entry, "valueExpression").trim().to_owned();
        Self {
            key: text(entry, "key"),
            expression: compile(&source),
            text: source,
        }
    }
}

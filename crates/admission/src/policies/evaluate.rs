//! Evaluates a ValidatingAdmissionPolicy against a request with one set of params.

use kube_cel::cel::Value as CelValue;
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use serde_json::Value;

use super::policy::{Annotation, Policy, Validation};
use crate::expression::Variables;
use crate::match_context::MatchContext;

/// Maximum number of bytes of a message that an expression makes.
const MESSAGE_BYTES_MAX: usize = 5 << 10;

/// A validation of a policy that does not hold.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) message: String,
    pub(super) reason: String,
    /// True if the request is denied whatever the validation actions of the binding are.
    pub(super) always_denies: bool,
}

impl Violation {
    /// Makes a violation with the default reason, which denies the request whatever the binding says.
    pub(super) fn new(message: String) -> Self {
        Self {
            message,
            reason: "Invalid".to_owned(),
            always_denies: false,
        }
    }
}

/// The input of a policy's evaluation.
pub(super) struct EvaluationInput<'a> {
    pub(super) match_context: &'a MatchContext,
    pub(super) admission_request: &'a Request<'a>,
    pub(super) resource: &'a Resource,
    pub(super) object: &'a Value,
    pub(super) old: &'a Value,
    pub(super) request: &'a Value,
    pub(super) params: &'a Value,
    pub(super) namespace: &'a Value,
}

impl EvaluationInput<'_> {
    /// Returns the variables of match conditions.
    pub(super) fn variables(&self) -> Variables {
        let mut variables = Variables::new();
        for (name, value) in [
            ("object", self.object),
            ("oldObject", self.old),
            ("request", self.request),
            ("params", self.params),
            ("namespaceObject", self.namespace),
        ] {
            variables.add(name, value);
        }
        variables.add_authorizer(self.match_context, self.admission_request, self.resource);
        variables
    }
}

/// Returns the violations of a policy: the validations that do not hold and, with `failurePolicy: Fail`, the
/// expressions that fail.
pub(super) fn violations(policy: &Policy, input: &EvaluationInput<'_>) -> Vec<Violation> {
    let mut variables = input.variables();
    match policy.conditions.hold(&mut variables) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(why) if policy.fails => return vec![Violation::new(why)],
        Err(_) => return Vec::new(),
    }
    variables.add_computed(&policy.variables);
    let validations = policy.validations.iter();
    let mut found: Vec<Violation> = validations
        .filter_map(|it| violation(it, policy.fails, &mut variables))
        .collect();
    if policy.fails {
        let annotations = policy.annotations.iter();
        found.extend(annotations.filter_map(|it| failure(it, &mut variables)));
    }
    found
}

/// Returns the violation of an audit annotation whose value cannot be evaluated.
fn failure(annotation: &Annotation, variables: &mut Variables) -> Option<Violation> {
    let made = match &annotation.expression {
        Ok(expression) => variables.run(expression),
        Err(why) => Err(why.clone()),
    };
    let text = &annotation.text;
    let message = match made {
        Ok(CelValue::String(_) | CelValue::Null) => return None,
        Ok(_) => format!(
            "valueExpression '{text}' resulted in unsupported return type. Return type must be either string or null."
        ),
        Err(why) => format!("expression '{text}' resulted in error: {why}"),
    };
    Some(Violation {
        always_denies: true,
        ..Violation::new(message)
    })
}

fn violation(validation: &Validation, fails: bool, variables: &mut Variables) -> Option<Violation> {
    let decision = match &validation.expression {
        Ok(expression) => variables.run(expression),
        Err(why) => Err(why.clone()),
    };
    match decision {
        Ok(CelValue::Bool(true)) => None,
        Ok(_) => Some(Violation {
            message: message(validation, variables),
            reason: validation.reason.clone(),
            always_denies: false,
        }),
        Err(_) if !fails => None,
        Err(why) => {
            let text = &validation.text;
            let message = format!("expression '{text}' resulted in error: {why}");
            Some(Violation::new(message))
        }
    }
}

/// Returns the message that an expression makes, if it is a good one; else the one that is written.
fn message(validation: &Validation, variables: &mut Variables) -> String {
    let made = validation.message_expression.as_ref();
    if let Some(Ok(CelValue::String(text))) = made.map(|it| variables.run(it)) {
        let text = text.trim();
        if !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n') {
            return text.to_owned();
        }
    }
    if validation.message.is_empty() {
        format!("failed expression: {}", validation.text)
    } else {
        validation.message.clone()
    }
}

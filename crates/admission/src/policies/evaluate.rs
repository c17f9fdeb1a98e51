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

/// Maximum number of bytes of the value of an audit annotation.
const ANNOTATION_BYTES_MAX: usize = 10 << 10;

/// A validation of a policy that does not hold.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) message: String,
    pub(super) reason: String,
    /// True if the request is denied whatever the validation actions of the binding are.
    pub(super) always_denies: bool,
    /// The place of the validation in its policy.
    pub(super) place: usize,
}

/// The outcome of a policy's evaluation.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// The validations that do not hold, and the expressions that fail.
    pub(super) violations: Vec<Violation>,
    /// Keys and values of audit annotations.
    pub(super) annotations: Vec<(String, String)>,
}

impl From<Violation> for Evaluation {
    fn from(violation: Violation) -> Self {
        Self {
            violations: vec![violation],
            annotations: Vec::new(),
        }
    }
}

impl Violation {
    /// Makes a violation with the default reason, which denies the request whatever the binding says.
    pub(super) fn new(message: String) -> Self {
        Self {
            message,
            reason: "Invalid".to_owned(),
            always_denies: false,
            place: 0,
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

/// Evaluates a policy: returns the validations that do not hold and, with `failurePolicy: Fail`, the expressions that
/// fail. Audit annotations have values only if the request is recorded.
pub(super) fn evaluate(policy: &Policy, input: &EvaluationInput<'_>) -> Evaluation {
    let mut variables = input.variables();
    match policy.conditions.hold(&mut variables) {
        Ok(true) => {}
        Ok(false) => return Evaluation::default(),
        Err(why) if policy.fails => return Violation::new(why).into(),
        Err(_) => return Evaluation::default(),
    }
    variables.add_computed(&policy.variables);
    let mut evaluation = Evaluation::default();
    for (place, validation) in policy.validations.iter().enumerate() {
        match violation(validation, policy.fails, &mut variables) {
            Ok(None) => {}
            Ok(Some(violation)) => evaluation.violations.push(Violation { place, ..violation }),
            // Then no validation of the policy has a decision.
            Err(MessageTooDear(why)) if policy.fails => {
                return Violation::new(format!("failed messageExpression: {why}")).into();
            }
            Err(MessageTooDear(_)) => return Evaluation::default(),
        }
    }
    let is_recorded = input.admission_request.context.recording.is_some();
    if policy.fails || is_recorded {
        for annotation in &policy.annotations {
            match value(annotation, &mut variables) {
                Ok(value) if value.is_empty() => {}
                Ok(value) => evaluation.annotations.push((annotation.key.clone(), value)),
                Err(violation) if policy.fails => evaluation.violations.push(violation),
                Err(_) => {}
            }
        }
    }
    evaluation
}

/// Returns the value of an audit annotation, which is empty if there is to be none; or the violation that its
/// expression cannot be evaluated.
fn value(annotation: &Annotation, variables: &mut Variables) -> Result<String, Violation> {
    let made = match &annotation.expression {
        Ok(expression) => variables.run(expression),
        Err(why) => Err(why.clone()),
    };
    let text = &annotation.text;
    let message = match made {
        Ok(CelValue::String(value)) => return Ok(shortened(value.trim()).to_owned()),
        Ok(CelValue::Null) => return Ok(String::new()),
        Ok(_) => format!(
            "valueExpression '{text}' resulted in unsupported return type. Return type must be either string or null."
        ),
        Err(why) => format!("expression '{text}' resulted in error: {why}"),
    };
    Err(Violation {
        always_denies: true,
        ..Violation::new(message)
    })
}

/// Returns a value of an audit annotation, cut to the bytes that it may have.
fn shortened(value: &str) -> &str {
    let mut end = value.len().min(ANNOTATION_BYTES_MAX);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    &value[..end]
}

/// A message could not be made, since no cost was left for its expression; why.
struct MessageTooDear(String);

fn violation(
    validation: &Validation,
    fails: bool,
    variables: &mut Variables,
) -> Result<Option<Violation>, MessageTooDear> {
    let decision = match &validation.expression {
        Ok(expression) => variables.run(expression),
        Err(why) => Err(why.clone()),
    };
    Ok(match decision {
        Ok(CelValue::Bool(true)) => None,
        Ok(_) => Some(Violation {
            message: message(validation, variables)?,
            reason: validation.reason.clone(),
            always_denies: false,
            place: 0,
        }),
        Err(_) if !fails => None,
        Err(why) => {
            let text = &validation.text;
            let message = format!("expression '{text}' resulted in error: {why}");
            Some(Violation::new(message))
        }
    })
}

/// Returns the message that an expression makes, if it is a good one; else the one that is written.
fn message(validation: &Validation, variables: &mut Variables) -> Result<String, MessageTooDear> {
    let made = validation.message_expression.as_ref();
    match made.map(|it| variables.run(it)) {
        Some(Ok(CelValue::String(text))) => {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n') {
                return Ok(text.to_owned());
            }
        }
        Some(Err(why)) if variables.is_spent() => return Err(MessageTooDear(why)),
        _ => {}
    }
    Ok(if validation.message.is_empty() {
        format!("failed expression: {}", validation.text)
    } else {
        validation.message.clone()
    })
}

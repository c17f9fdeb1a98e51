//! Expressions of webhooks and policies, and the variables that they see.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use ringwatch_cel::{Members, Meter, Program, Scope, execute, on_large_stack, plain};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use serde_json::Value;

use super::authorizer_check::{RequestAuthorizer, request_resource};
use super::match_context::MatchContext;

/// A compiled expression, or a message that says why it cannot be run.
pub(super) type PolicyExpression = Result<Program, String>;

/// Compiles a stored expression.
///
/// # Errors
/// A message with the places in the text that are wrong.
pub(super) fn compile(text: &str) -> PolicyExpression {
    ringwatch_cel::compile(text.trim()).map_err(|error| error.detail())
}

/// The variables that expressions see on one request, and the cost that all of them together may still have.
pub(super) struct Variables {
    scope: Scope,
    meter: Meter,
}

impl Variables {
    pub(super) fn new() -> Self {
        Self {
            scope: Scope::default(),
            meter: Meter::new(),
        }
    }

    /// Adds a variable, or replaces the one of this name.
    pub(super) fn add(&mut self, name: &str, value: &Value) {
        self.scope.add(name, plain(value));
    }

    /// Adds the variable `authorizer`, which checks permissions of the request's user.
    pub(super) fn add_authorizer(
        &mut self,
        match_context: &MatchContext,
        request: &Request<'_>,
        resource: &Resource,
    ) {
        let authorizer = RequestAuthorizer {
            authorizer: Arc::clone(&match_context.authorizer),
            user: request.context.user.clone(),
        };
        let checked = request_resource(request, resource);
        self.scope.add_authorizer(Arc::new(authorizer), checked);
    }

    /// Adds the variable `variables`, whose members are computed when they are first used.
    pub(super) fn add_computed(&mut self, members: &Arc<Members>) {
        self.scope.add_computed("variables", members);
    }

    /// Evaluates an expression and charges its cost to the budget of the request.
    ///
    /// # Errors
    /// A message that says why it has no value.
    pub(super) fn run(&mut self, program: &Program) -> Result<CelValue, String> {
        on_large_stack(|| execute(program, &self.scope, &mut self.meter))
            .map_err(|error| error.to_string())
    }

    /// Returns true if no cost is left for further expressions on the request.
    pub(super) fn is_spent(&self) -> bool {
        self.meter.is_spent()
    }

    /// Evaluates an expression whose value must be a boolean.
    ///
    /// # Errors
    /// A message that says why it has no value, or that its value is no boolean.
    pub(super) fn decide(&mut self, program: &Program) -> Result<bool, String> {
        match self.run(program)? {
            CelValue::Bool(decision) => Ok(decision),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }
}

//! Expressions of webhooks and policies, and what they may see.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use ringwatch_cel::{Members, Meter, Program, Scope, execute, on_large_stack, plain};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use serde_json::Value;

use super::judge::{RequestJudge, request_resource};
use super::match_context::MatchContext;

/// A compiled expression, or why it cannot be run.
pub(super) type Expression = Result<Program, String>;

/// Compiles what was written.
///
/// # Errors
/// Why the expression does not compile.
pub(super) fn compile(text: &str) -> Expression {
    ringwatch_cel::compile(text.trim()).map_err(|error| format!("compilation failed: {error}"))
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

    /// Shows a value under a name.
    pub(super) fn add(&mut self, name: &str, value: &Value) {
        self.scope.add(name, plain(value));
    }

    /// Shows `authorizer`.
    pub(super) fn add_authorizer(
        &mut self,
        match_context: &MatchContext,
        request: &Request<'_>,
        resource: &Resource,
    ) {
        let judge = RequestJudge {
            authorizer: Arc::clone(&match_context.authorizer),
            user: request.context.user.clone(),
        };
        let checked = request_resource(request, resource);
        self.scope.add_authorizer(Arc::new(judge), checked);
    }

    /// Shows what expressions make as members of `variables`.
    pub(super) fn add_computed(&mut self, members: &Arc<Members>) {
        self.scope.add_computed("variables", members);
    }

    /// Runs an expression.
    ///
    /// # Errors
    /// Why it has no value.
    pub(super) fn run(&mut self, program: &Program) -> Result<CelValue, String> {
        on_large_stack(|| execute(program, &self.scope, &mut self.meter))
            .map_err(|error| error.to_string())
    }

    /// Runs an expression that must be true or false.
    ///
    /// # Errors
    /// Why it is neither.
    pub(super) fn decide(&mut self, program: &Program) -> Result<bool, String> {
        match self.run(program)? {
            CelValue::Bool(decision) => Ok(decision),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }
}

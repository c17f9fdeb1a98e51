//! Members of a variable that are computed when they are first used, such as those of `variables` in a policy.

use kube_cel::cel::Value as CelValue;

use super::Interpreter;
use crate::failure::{Failure, ValueResult, no_such_key};

/// Maximum number of computed members that may be computed for one another.
const NESTED_MAX: usize = 100;

/// Bytes of stack that evaluating one more member may take. If fewer are left, [`STACK_BYTES`] are added.
const STACK_LEFT_MIN: usize = 2 << 20;
const STACK_BYTES: usize = 8 << 20;

impl Interpreter<'_> {
    /// Returns a computed member of a variable, or, for `has()`, whether there is one of that name.
    pub(super) fn computed(&mut self, name: &str, test: bool) -> ValueResult {
        self.meter.charge(2)?;
        let scope = self.scope;
        let Some(position) = scope.computed_before(name, self.computed) else {
            return if test {
                Ok(CelValue::Bool(false))
            } else {
                Err(no_such_key(name))
            };
        };
        if test {
            return Ok(CelValue::Bool(true));
        }
        self.compute(position)
    }

    /// Returns the outcome of a computed member, which is evaluated at its first use: by itself, and with those before
    /// it.
    fn compute(&mut self, position: usize) -> ValueResult {
        let scope = self.scope;
        if let Some(known) = scope.known(position) {
            super::charge_failure(self.meter, &known)?;
            return known;
        }
        let (name, program) = scope.member(position);
        let nested = self.nested + 1;
        let outcome = match program {
            Err(why) => Err(Failure::Other(why.clone().into())),
            Ok(_) if nested > NESTED_MAX => Err(Failure::TooLarge),
            Ok(program) => stacker::maybe_grow(STACK_LEFT_MIN, STACK_BYTES, || {
                let mut interpreter = Interpreter::new(scope, self.meter);
                interpreter.computed = position;
                interpreter.nested = nested;
                interpreter.value(&program.expression)
            }),
        };
        let outcome = outcome.map_err(|error| match error {
            Failure::Other(why) => Failure::Other(
                format!("composited variable {name:?} fails to evaluate: {why}").into(),
            ),
            other => other,
        });
        scope.remember(position, outcome.clone());
        outcome
    }
}

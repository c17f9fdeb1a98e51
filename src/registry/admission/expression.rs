//! Expressions of webhooks and policies, and what they may see.

use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as CelValue};
use serde_json::Value;

use crate::registry::cel::cost::{self, Cost, Measure};
use crate::registry::cel::{self, FUNCTIONS, Failure, execute, on_large_stack, plain};

/// Steps that all expressions of one webhook or policy take at most on one request.
const STEPS_MAX: u64 = 2_500_000;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    program: Program,
    cost: Cost,
}

impl Expression {
    /// Compiles what was written, which may name these variables.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn compile(text: &str, names: &[&str]) -> Result<Self, String> {
        let program = cel::compile(text.trim(), names)
            .map_err(|error| format!("compilation failed: {error}"))?;
        let cost = cost::of(program.expression());
        Ok(Self { program, cost })
    }
}

/// What expressions see on one request.
pub(super) struct Variables {
    scope: Context<'static>,
    measure: Measure,
    left: u64,
}

impl Variables {
    pub(super) fn new() -> Self {
        Self {
            scope: FUNCTIONS.new_inner_scope(),
            measure: Measure::default(),
            left: STEPS_MAX,
        }
    }

    /// Shows a value under a name.
    pub(super) fn add(&mut self, name: &str, value: &Value) {
        let measure = Measure::of(value);
        self.measure.longest = self.measure.longest.max(measure.longest);
        self.measure.size += measure.size;
        self.add_made(name, plain(value));
    }

    fn add_made(&mut self, name: &str, value: CelValue) {
        self.scope.add_variable_from_value(name.to_owned(), value);
    }

    /// Shows what expressions have made as the members of a value of this name. The last of them is new.
    pub(super) fn add_members(&mut self, name: &str, members: &[(String, CelValue)]) {
        if let Some((_, made)) = members.last() {
            let measure = Measure::of_made(made);
            self.measure.longest = self.measure.longest.max(measure.longest);
            self.measure.size += measure.size;
        }
        let key = |name: &String| Key::String(Arc::new(name.clone()));
        let members = members
            .iter()
            .map(|(name, value)| (key(name), value.clone()));
        let map = Map {
            map: Arc::new(members.collect()),
        };
        self.add_made(name, CelValue::Map(map));
    }

    /// Runs an expression.
    ///
    /// # Errors
    /// Why it has no value.
    pub(super) fn run(&mut self, expression: &Expression) -> Result<CelValue, String> {
        let steps = expression.cost.steps(self.measure);
        let Some(left) = self.left.checked_sub(steps) else {
            self.left = 0;
            return Err("validation failed due to running out of cost budget, no further validation rules will be run".to_owned());
        };
        self.left = left;
        on_large_stack(|| execute(&expression.program, &self.scope)).map_err(|error| match error {
            Failure::NoOverload => "no such overload".to_owned(),
            Failure::Other(why) => why.into_owned(),
        })
    }

    /// Runs an expression that must be true or false.
    ///
    /// # Errors
    /// Why it is neither.
    pub(super) fn decide(&mut self, expression: &Expression) -> Result<bool, String> {
        match self.run(expression)? {
            CelValue::Bool(decision) => Ok(decision),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }
}

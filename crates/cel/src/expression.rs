//! Expressions in configuration files, which are checked when they are read, and their variables.

use kube_cel::cel::Value as CelValue;
use serde_json::Value;

use super::{
    Meter, Names, Program, Scope, Type, check_program, compile, execute, on_large_stack, plain,
};

/// An expression that has passed its checks.
#[derive(Debug)]
pub struct Expression(Program);

impl Expression {
    /// Compiles and checks an expression over these variables.
    ///
    /// # Errors
    /// A message with the places in the text that are wrong.
    pub fn compile(text: &str, names: &[&str]) -> Result<Self, String> {
        Self::checked(text, names).map(|(compiled, _)| compiled)
    }

    /// Compiles an expression whose value must be a boolean.
    ///
    /// # Errors
    /// A message that says why the expression does not compile, or that its result is not a boolean.
    pub fn condition(text: &str, names: &[&str]) -> Result<Self, String> {
        match Self::checked(text, names)? {
            (compiled, Type::Bool) => Ok(compiled),
            _ => Err("must evaluate to bool".to_owned()),
        }
    }

    fn checked(text: &str, names: &[&str]) -> Result<(Self, Type), String> {
        let mut known = Names::default();
        for name in names {
            known.add(name, Type::Dyn);
        }
        let text = text.trim();
        let compiled = compile(text).and_then(|program| {
            let gives = check_program(text, &program, &known)?.gives;
            Ok((Self(program), gives))
        });
        compiled.map_err(|error| error.detail())
    }
}

/// The variables that expressions see, and the cost that all of them together may still have.
#[derive(Debug)]
pub struct Variables {
    scope: Scope,
    meter: Meter,
}

impl Default for Variables {
    fn default() -> Self {
        Self::new()
    }
}

impl Variables {
    /// Creates an empty set of variables for one evaluation.
    #[must_use]
    pub fn new() -> Self {
        Self {
            scope: Scope::default(),
            meter: Meter::new(),
        }
    }

    /// Adds a variable.
    pub fn add(&mut self, name: &str, value: &Value) {
        self.scope.add(name, plain(value));
    }

    fn run(&mut self, expression: &Expression) -> Result<CelValue, String> {
        on_large_stack(|| execute(&expression.0, &self.scope, &mut self.meter))
            .map_err(|error| error.to_string())
    }

    /// Evaluates an expression to a string, a list of strings, or null for none.
    ///
    /// # Errors
    /// A message that says why it has no such value.
    pub fn texts(&mut self, expression: &Expression) -> Result<Vec<String>, String> {
        let text = |value: &CelValue| match value {
            CelValue::String(text) => Ok(text.to_string()),
            _ => Err("cel expression must evaluate to a string or a list of strings".to_owned()),
        };
        match self.run(expression)? {
            CelValue::Null => Ok(Vec::new()),
            CelValue::List(items) => items.iter().map(text).collect(),
            one => Ok(vec![text(&one)?]),
        }
    }

    /// Evaluates an expression to a string.
    ///
    /// # Errors
    /// A message that says why it has no such value.
    pub fn text(&mut self, expression: &Expression) -> Result<String, String> {
        match self.run(expression)? {
            CelValue::String(text) => Ok(text.to_string()),
            _ => Err("cel expression must evaluate to a string".to_owned()),
        }
    }

    /// Evaluates an expression to a boolean.
    ///
    /// # Errors
    /// A message that says why it has no such value.
    pub fn decide(&mut self, expression: &Expression) -> Result<bool, String> {
        match self.run(expression)? {
            CelValue::Bool(decision) => Ok(decision),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }
}

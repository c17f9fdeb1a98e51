//! Checks expressions when they are written: the names that they use, the types of their parts, and their maximum cost.
//!
//! ```text
//!   names with types --Checker--> types of all parts --estimate--> cost at most
//! ```
//!
//! Stored expressions were checked when they were written and are only compiled, so that one that an earlier version of
//! the server accepted goes on working.

mod aggregate;
mod call;
mod calls;
mod checker;
mod constants;
mod constructions;
#[cfg(test)]
mod cost_tests;
mod estimate;
mod field_path;
mod format_calls;
mod library;
mod literals;
mod part_estimate;
mod ranges;
#[cfg(test)]
mod tests;
mod unify;

use std::collections::BTreeMap;

use imbl::OrdMap;

use super::compile::{CompileError, Program, compile};
use super::execute::on_large_stack;
use super::source_errors;
use super::types::{DeclaredType, Object, Type};
use checker::Checker;

/// The variables and message types of an expression's environment.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The variables, with their declarations.
    pub variables: BTreeMap<String, DeclaredType>,
    /// The types that may be constructed, by name.
    pub messages: BTreeMap<String, Type>,
}

impl Names {
    /// Returns the type that a name constructs. An object that may have any fields may be constructed part by part, as
    /// `Object.spec`.
    fn message(&self, name: &str) -> Option<Type> {
        if let Some(found) = self.messages.get(name) {
            return Some(found.clone());
        }
        let (whole, _) = name.split_once('.')?;
        let Type::Object(whole) = self.messages.get(whole)? else {
            return None;
        };
        let part = Object {
            name: name.to_owned(),
            fields: OrdMap::new(),
            others: Some(whole.others.clone()?),
        };
        Some(Type::Object(part.into()))
    }

    /// Adds a variable whose size is not known.
    pub fn add(&mut self, name: &str, of: Type) {
        self.variables
            .insert(name.to_owned(), DeclaredType::unsized_(of));
    }
}

/// An expression that has passed all checks.
#[derive(Debug)]
pub struct CheckedExpression {
    /// The type of the result.
    pub gives: Type,
    /// The maximum cost of a run.
    pub cost: u64,
}

/// Compiles and checks an expression.
///
/// # Errors
/// [`CompileError`] with all errors of the expression and their places, up to 100.
pub fn check(source: &str, names: &Names) -> Result<CheckedExpression, CompileError> {
    check_program(source, &compile(source)?, names)
}

/// Checks an expression that was compiled before.
///
/// # Errors
/// [`CompileError`] with all errors of the expression and their places, up to 100.
pub fn check_program(
    source: &str,
    program: &Program,
    names: &Names,
) -> Result<CheckedExpression, CompileError> {
    on_large_stack(|| check_types(source, program, names))
}

fn check_types(
    source: &str,
    program: &Program,
    names: &Names,
) -> Result<CheckedExpression, CompileError> {
    let mut checker = Checker::new(names);
    let gives = checker.check(&program.expression);
    let gives = checker.bindings.resolve_or_dyn(&gives);
    if checker.errors.is_empty() {
        let aggregates = checker.aggregates.iter();
        let mixed = aggregates.flat_map(|it| it.errors(&checker.bindings));
        checker.wrong_literals.extend(mixed);
    }
    for errors in [&checker.errors, &checker.wrong_literals] {
        if !errors.is_empty() {
            let why = source_errors::describe_parts(source, errors);
            return Err(CompileError::Wrong(why));
        }
    }
    constants::check(&program.expression).map_err(CompileError::Instantiation)?;
    let cost = estimate::cost(&program.expression, &checker, names).max;
    Ok(CheckedExpression { gives, cost })
}

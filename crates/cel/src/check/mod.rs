//! Checks expressions when they are written: what they name, the types of their parts, and what they may cost at most.
//!
//! ```text
//!   names with types --Checker--> types of all parts --estimate--> cost at most
//! ```
//!
//! Stored expressions were checked when they were written and are only compiled, so that what an earlier server took is
//! honoured.

mod calls;
mod checker;
mod estimate;
mod literals;
mod ranges;
mod signatures;
#[cfg(test)]
mod tests;
mod types;
mod unify;

use std::collections::BTreeMap;

use imbl::OrdMap;
use kube_cel::cel::common::ast::{IdedExpr, SourceInfo};
use kube_cel::cel::parser::Parser;

use super::compile::{CompileError, Program, compile};
use checker::Checker;
pub use types::{Declared, Form, Object, Type};

/// Errors of an expression that are told, as in kube-apiserver.
const ERRORS_MAX: usize = 100;

/// After so many bytes about its errors the expression is not shown again with each.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// The variables and message types of an expression's environment.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Variables, and what they are.
    pub variables: BTreeMap<String, Declared>,
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

    /// Adds a variable.
    pub fn add(&mut self, name: &str, of: Type) {
        self.variables
            .insert(name.to_owned(), Declared::unsized_(of));
    }
}

/// An expression that is what it should be.
#[derive(Debug)]
pub struct Checked {
    /// The type of the result.
    pub gives: Type,
    /// The maximum cost of a run.
    pub cost: u64,
}

/// Something wrong in an expression.
#[derive(Debug)]
struct Wrong {
    id: u64,
    why: String,
}

impl Wrong {
    fn at(part: &IdedExpr, why: String) -> Self {
        Self::at_id(part.id, why)
    }

    fn at_id(id: u64, why: String) -> Self {
        Self { id, why }
    }
}

/// Returns true if there is a function of that name.
pub(super) fn is_function(name: &str) -> bool {
    signatures::FUNCTIONS.contains_key(name)
}

/// Checks an expression.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check(source: &str, names: &Names) -> Result<Checked, CompileError> {
    check_program(source, &compile(source)?, names)
}

/// Checks an expression that was compiled before.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check_program(
    source: &str,
    program: &Program,
    names: &Names,
) -> Result<Checked, CompileError> {
    super::on_large_stack(|| check_types(source, program, names))
}

fn check_types(source: &str, program: &Program, names: &Names) -> Result<Checked, CompileError> {
    let mut checker = Checker::new(names);
    let gives = checker.check(&program.expression);
    let gives = checker.bindings.settle(&gives);
    if checker.wrong.is_empty() {
        let cost = estimate::cost(&program.expression, &checker, names);
        return Ok(Checked { gives, cost });
    }
    let wrong = checker.wrong.iter();
    let wrong = wrong.map(|wrong| (wrong.id, wrong.why.as_str()));
    Err(CompileError::Wrong(describe_errors_of_parts(source, wrong)))
}

/// All errors and where they are, by the parts of the expression that they are about.
pub(super) fn describe_errors_of_parts<'w>(
    source: &str,
    wrong: impl ExactSizeIterator<Item = (u64, &'w str)>,
) -> String {
    let places = places(source);
    let wrong = wrong.map(|(id, why)| {
        let offset = places.as_ref().and_then(|it| it.offset_for(id));
        let place = place(source, offset.map_or(0, |(start, _)| start as usize));
        (place, why)
    });
    describe_errors(source, wrong)
}

/// All errors and where they are, as far as they are not too many.
pub(super) fn describe_errors<'w>(
    source: &str,
    wrong: impl ExactSizeIterator<Item = ((usize, usize), &'w str)>,
) -> String {
    let more = wrong.len().saturating_sub(ERRORS_MAX);
    let mut first: Vec<_> = wrong.take(ERRORS_MAX).collect();
    first.sort_unstable();
    first.dedup();
    let mut text = String::new();
    for (place, why) in first {
        let separator = if text.is_empty() { "" } else { "\n" };
        let is_shown = text.len() < SHOWN_BYTES_MAX;
        text = text + separator + &describe_error(source, place, why, is_shown);
    }
    if more > 0 {
        text += &format!("\n{more} more errors were truncated");
    }
    text
}

/// Where the parts of an expression stand. The parser tells it with errors only, so it is given one: a letter behind
/// the expression that is no part of the language, and is skipped.
fn places(source: &str) -> Option<std::sync::Arc<SourceInfo>> {
    let parser = Parser::new().enable_optional_syntax(true);
    let errors = parser.parse(&format!("{source}\n#")).err()?;
    errors
        .errors
        .into_iter()
        .find_map(|error| error.source_info)
}

/// The line and column of an offset, both from nought.
fn place(source: &str, offset: usize) -> (usize, usize) {
    let before: String = source.chars().take(offset).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default();
    (line, column.chars().count())
}

/// An error, and the line of the expression under which it points if that is to be shown.
fn describe_error(
    source: &str,
    (line, column): (usize, usize),
    why: &str,
    is_shown: bool,
) -> String {
    let message = format!("ERROR: <input>:{}:{}: {why}", line + 1, column + 1);
    if !is_shown {
        return message;
    }
    let text = source.lines().nth(line).unwrap_or_default();
    let text = text.replace('\t', " ");
    let dots = ".".repeat(column);
    format!("{message}\n | {text}\n | {dots}^")
}

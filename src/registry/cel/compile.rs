//! From the text of an expression to a program.

use std::panic::catch_unwind;
use std::str::Chars;

use kube_cel::cel::Program;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

use super::functions::TYPES;

/// Bytes that an expression has at most.
const EXPRESSION_BYTES_MAX: usize = 16 << 10;

/// Levels of its tree that an expression has at most, as far as they can be seen in its text. The parser takes stack for each.
const LEVELS_MAX: usize = 100;

/// Levels that a bracket counts for.
const BRACKET_LEVELS: usize = 3;

/// Bytes of stack for the parser: unoptimised, it takes 35 KB a level.
const PARSER_STACK_BYTES: usize = 16 << 20;

/// What stands before the name of a function.
const NAMESPACES: [&str; 10] = [
    "base64",
    "cidr",
    "format",
    "ip",
    "jsonpatch",
    "lists",
    "math",
    "optional",
    "sets",
    "strings",
];

/// Why an expression is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::registry) enum CompileError {
    /// It is long, or its tree is deep.
    #[error("expression is too large")]
    TooLarge,
    /// It names what nothing stands for.
    #[error("undeclared reference to '{0}' (in container '')")]
    Undeclared(String),
    /// It is not of the language.
    #[error("{0}")]
    Syntax(String),
}

/// Compiles an expression, which may name these variables.
///
/// # Errors
/// What is wrong with it.
pub(in crate::registry) fn compile(source: &str, names: &[&str]) -> Result<Program, CompileError> {
    if source.len() > EXPRESSION_BYTES_MAX || levels(source) > LEVELS_MAX {
        return Err(CompileError::TooLarge);
    }
    // The parser panics at some limits of its own; that is an error of the expression.
    let parse = || catch_unwind(|| Program::compile(source));
    let program = match stacker::grow(PARSER_STACK_BYTES, parse) {
        Ok(Ok(program)) => program,
        Ok(Err(error)) => return Err(CompileError::Syntax(error.to_string())),
        Err(_) => return Err(CompileError::TooLarge),
    };
    match undeclared(program.expression(), names, &mut Vec::new()) {
        Some(unknown) => Err(CompileError::Undeclared(unknown.to_owned())),
        None => Ok(program),
    }
}

/// How deep the tree of an expression may be: open brackets, and operators that follow each other. What is between
/// `&&`, `||` and commas stands side by side.
fn levels(source: &str) -> usize {
    let mut open = Vec::new();
    let (mut run, mut depth, mut deepest) = (0, 0, 0);
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => skip_text(&mut letters, letter),
            '(' | '[' | '{' => {
                open.push(run);
                depth += BRACKET_LEVELS;
                run = 0;
            }
            ')' | ']' | '}' => {
                depth = usize::saturating_sub(depth, run + BRACKET_LEVELS);
                run = open.pop().unwrap_or_default();
            }
            '&' | '|' | ',' => {
                depth = usize::saturating_sub(depth, run);
                run = 0;
            }
            '+' | '-' | '*' | '/' | '%' | '.' | '!' | '=' | '<' | '>' | '?' => {
                run += 1;
                depth += 1;
            }
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// After a quotation mark: what is quoted has no operators.
fn skip_text(letters: &mut Chars<'_>, quote: char) {
    while let Some(letter) = letters.next() {
        if letter == quote {
            return;
        }
        if letter == '\\' {
            letters.next();
        }
    }
}

/// A name that nothing stands for, if there is one. `bound` are the variables of the loops around.
fn undeclared<'e>(
    expression: &'e IdedExpr,
    names: &[&str],
    bound: &mut Vec<&'e str>,
) -> Option<&'e str> {
    match &expression.expr {
        Expr::Ident(name) => {
            let name = name.as_str();
            let known = names.contains(&name) || TYPES.contains(&name) || bound.contains(&name);
            (!known).then_some(name)
        }
        Expr::Call(call) => {
            if call.func_name == "range" || call.func_name == "lists.range" {
                return Some("lists.range");
            }
            let target = call
                .target
                .as_deref()
                .filter(|target| !is_namespace(target));
            let mut parts = target.into_iter().chain(&call.args);
            parts.find_map(|part| undeclared(part, names, bound))
        }
        Expr::Select(select) => undeclared(&select.operand, names, bound),
        Expr::List(list) => list
            .elements
            .iter()
            .find_map(|part| undeclared(part, names, bound)),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => undeclared(&entry.key, names, bound)
                .or_else(|| undeclared(&entry.value, names, bound)),
            EntryExpr::StructField(field) => undeclared(&field.value, names, bound),
        }),
        Expr::Comprehension(loops) => {
            let outside = undeclared(&loops.iter_range, names, bound);
            let depth = bound.len();
            bound.extend([loops.iter_var.as_str(), loops.accu_var.as_str()]);
            bound.extend(loops.iter_var2.as_deref());
            let inside = [
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ]
            .into_iter()
            .find_map(|part| undeclared(part, names, bound));
            bound.truncate(depth);
            outside.or(inside)
        }
        Expr::Literal(_) | Expr::Unspecified => None,
        Expr::Struct(made) => Some(&made.type_name),
    }
}

/// The first half of a function's name, such as `math` in `math.greatest`.
fn is_namespace(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if NAMESPACES.contains(&name.as_str()))
}

//! From the text of an expression to a program.

use std::panic::catch_unwind;

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
    if source.len() > EXPRESSION_BYTES_MAX || levels(source)? > LEVELS_MAX {
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
///
/// # Errors
/// [`CompileError::Syntax`] where what is quoted has no end that is sure: the parser might take for operators what
/// is not counted here.
fn levels(source: &str) -> Result<usize, CompileError> {
    let source = source.as_bytes();
    let mut open = Vec::new();
    let (mut run, mut depth, mut deepest) = (0, 0, 0);
    let mut at = 0;
    while let Some(letter) = source.get(at) {
        at += 1;
        match letter {
            b'\'' | b'"' => at = end_of_text(source, at - 1).ok_or_else(unclear_text)?,
            b'/' if source.get(at) == Some(&b'/') => at = end_of_line(source, at),
            b'(' | b'[' | b'{' => {
                open.push(run);
                depth += BRACKET_LEVELS;
                run = 0;
            }
            b')' | b']' | b'}' => {
                depth = usize::saturating_sub(depth, run + BRACKET_LEVELS);
                run = open.pop().unwrap_or_default();
            }
            b'&' | b'|' | b',' => {
                depth = usize::saturating_sub(depth, run);
                run = 0;
            }
            b'+' | b'-' | b'*' | b'/' | b'%' | b'.' | b'!' | b'=' | b'<' | b'>' | b'?' => {
                run += 1;
                depth += 1;
            }
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    Ok(deepest)
}

fn unclear_text() -> CompileError {
    CompileError::Syntax(
        "Syntax error: a string is not closed, or has an escape that is none".to_owned(),
    )
}

/// Where a comment ends. A carriage return may end it too: what follows is counted in any case.
fn end_of_line(source: &[u8], at: usize) -> usize {
    let rest = source[at..].iter();
    let length = rest.take_while(|letter| !matches!(letter, b'\n' | b'\r'));
    at + length.count()
}

/// Where what is quoted from here on ends; `None` if it does not, or not surely.
fn end_of_text(source: &[u8], at: usize) -> Option<usize> {
    let raw = is_raw(&source[..at])?;
    let quote = [source[at]; 3];
    let closing = if source[at..].starts_with(&quote) {
        &quote[..]
    } else {
        &quote[..1]
    };
    let mut end = at + closing.len();
    loop {
        let rest = source.get(end..).filter(|rest| !rest.is_empty())?;
        if rest.starts_with(closing) {
            return Some(end + closing.len());
        }
        end += match rest[0] {
            b'\\' if !raw => escape_length(rest)?,
            b'\n' | b'\r' if closing.len() == 1 => return None,
            _ => 1,
        };
    }
}

/// Whether what is quoted after this has no escapes; `None` after what can only be an error.
fn is_raw(before: &[u8]) -> Option<bool> {
    let word = before.iter().rev();
    let word = word.take_while(|letter| letter.is_ascii_alphanumeric() || **letter == b'_');
    let word: Vec<u8> = word.map(u8::to_ascii_lowercase).collect();
    match word.as_slice() {
        b"r" | b"rb" => Some(true),
        [b'r', ..] => None,
        _ => Some(false),
    }
}

/// How long an escape is; `None` if it is none.
fn escape_length(rest: &[u8]) -> Option<usize> {
    let is_octal = |letter: &u8| (b'0'..=b'7').contains(letter);
    let (length, fits): (usize, fn(&u8) -> bool) = match rest.get(1)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'?' | b'\'' | b'"' | b'`' => {
            return Some(2);
        }
        b'x' | b'X' => (4, u8::is_ascii_hexdigit),
        b'u' => (6, u8::is_ascii_hexdigit),
        b'U' => (10, u8::is_ascii_hexdigit),
        b'0'..=b'3' => (4, is_octal),
        _ => return None,
    };
    rest.get(2..length)?.iter().all(fits).then_some(length)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_or_remarked_hides_no_levels() {
        let deep = "+1".repeat(6_000);
        for hiding in [
            "// it's\n1",
            "// it's\r1",
            "// \"\n1",
            "'''it's''' + '1'",
            r"r'\' + '1'",
            r"br'\' + '1'",
            "'a' + 1",
            r"'\'' + '1'",
            r#""'" + "1""#,
        ] {
            let found = levels(&format!("{hiding}{deep}"));
            assert_eq!(found.map(|it| it > LEVELS_MAX), Ok(true), "{hiding}");
        }
        for unclear in ["'", r"'\q'", "'a\n'", "''''", "xr''", r"'\x4'", "1r''"] {
            let found = compile(&format!("{unclear}{deep}"), &[]).map(|_| ());
            assert!(
                matches!(found, Err(CompileError::Syntax(_))),
                "{unclear}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_quoted_is_no_level() {
        let dots = ".".repeat(1_000);
        for source in [
            format!(r#"'{dots}' == "{dots}""#),
            format!(r"r'{dots}\' == '''{dots}'{dots}\''''"),
            format!(r"'\u00e9\x41\101\n{dots}' == '' // {dots}"),
        ] {
            let found = levels(&source);
            assert_eq!(found.map(|it| it < 10), Ok(true), "{source}");
        }
    }
}

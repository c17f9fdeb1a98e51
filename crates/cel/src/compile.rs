//! Compiles the text of an expression to a program.

use std::panic::catch_unwind;

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::{ParseError, ParseErrors, Parser};

use super::quoted::{QuotedText, quoted};
use super::source_errors::{self, SourcePosition};
use super::spelling::{self, SpelledSource};
use super::{expectation, macros, names};

/// Maximum number of characters of an expression, as in kube-apiserver.
const CHARACTERS_MAX: usize = 100_000;

/// Maximum number of levels of an expression's tree, as estimated from its text. The parser takes stack for each.
const LEVELS_MAX: usize = 250;

/// Levels that a bracket counts for.
const BRACKET_LEVELS: usize = 3;

/// Levels that the second of two equal signs counts for, as in `--a` and `!!a`. The parser reads what follows in two
/// ways, so that nested ones take time and memory by powers of two.
const DOUBLED_LEVELS: usize = 18;

/// Maximum number of operators without an operand behind them. What each takes the parser grows with their number.
const BREAKS_MAX: usize = 1_000;

/// Characters of operators that an operand follows, and of members.
const OPERATORS: &[u8] = b"+-*/%.!=<>?";

/// Characters of which no part of an expression is made outside of strings and comments. The parser passes over them.
const OUTSIDE: &[u8] = b"#$;@\\^~";

/// Bytes of stack for the parser: unoptimised, it takes 35 KB a level.
const PARSER_STACK_BYTES: usize = 16 << 20;

/// Bytes of stack for each character of a text: the tree of one with errors may be as deep as it is long, and takes
/// half a KiB a level. What is not used takes no memory.
const STACK_BYTES_OF_CHARACTER: usize = 1 << 10;

/// An expression that can be run.
#[derive(Debug)]
pub struct Program {
    pub(super) expression: IdedExpr,
}

impl Program {
    /// Returns true if the expression refers to a variable.
    pub fn names(&self, variable: &str) -> bool {
        self.expression.references().has_variable(variable)
    }
}

/// The reason why a text does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text is too long, or its tree too deep.
    #[error("expression is too large")]
    TooLarge,
    /// The text is not of the language; the message shows the places.
    #[error("{0}")]
    Syntax(String),
    /// The types of its parts do not fit; the message shows the places.
    #[error("{0}")]
    Wrong(String),
    /// A constant in it has no value, such as a conversion of a literal that fails.
    #[error("{0}")]
    Instantiation(String),
}

impl CompileError {
    /// Returns what kube-apiserver calls the step that failed.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Instantiation(_) => "instantiation",
            _ => "compilation",
        }
    }

    /// Returns the error as kube-apiserver words it, with the step that failed.
    pub fn detail(&self) -> String {
        match self {
            Self::Instantiation(why) => format!("program instantiation failed: {why}"),
            other => format!("compilation failed: {other}"),
        }
    }
}

/// Compiles an expression. Unknown names are not errors here: they are found when the expression is checked, or when it
/// runs.
///
/// # Errors
/// [`CompileError`] with the places in the text that are wrong.
pub fn compile(source: &str) -> Result<Program, CompileError> {
    compile_with(source, false)
}

/// Compiles an expression that may use the macro `cel.bind`, which selectors of devices alone have.
///
/// # Errors
/// [`CompileError`] with the places in the text that are wrong.
pub fn compile_binding(source: &str) -> Result<Program, CompileError> {
    compile_with(source, true)
}

fn compile_with(source: &str, binds: bool) -> Result<Program, CompileError> {
    let size = source.chars().count();
    if size > CHARACTERS_MAX {
        return Err(CompileError::Syntax(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {CHARACTERS_MAX}"
        )));
    }
    let spelled = spelling::spell(source);
    if levels(&spelled.text)? > LEVELS_MAX {
        return Err(CompileError::TooLarge);
    }
    // The parser panics at some limits of its own; that is an error of the expression.
    let parser = || Parser::new().enable_optional_syntax(true);
    let parse = || {
        let mut parsed = catch_unwind(|| parser().parse(&spelled.text));
        let wrong = match &mut parsed {
            Ok(Ok(expression)) => {
                let mut wrong = spelled.restore(expression);
                wrong.extend(names::check(expression));
                wrong.extend(macros::expand(expression, binds));
                wrong
            }
            _ => Vec::new(),
        };
        (parsed, wrong)
    };
    let stack = PARSER_STACK_BYTES + size * STACK_BYTES_OF_CHARACTER;
    let expression = match stacker::grow(stack, parse) {
        (Ok(Ok(expression)), wrong) if wrong.is_empty() => expression,
        (Ok(Ok(_)), wrong) => {
            let why = source_errors::describe_parts(source, &wrong);
            return Err(CompileError::Syntax(why));
        }
        (Ok(Err(errors)), _) => {
            let why = describe_syntax_errors(source, &spelled, &errors);
            return Err(CompileError::Syntax(why));
        }
        (Err(_), _) => return Err(CompileError::TooLarge),
    };
    Ok(Program { expression })
}

fn describe_syntax_errors(source: &str, spelled: &SpelledSource, errors: &ParseErrors) -> String {
    let is_ours = |error: &&ParseError| !error.msg.contains('`') || error.msg.contains("Syntax");
    let errors: Vec<&ParseError> = match errors.errors.iter().filter(is_ours).collect::<Vec<_>>() {
        // There is no other about what the parser made of the expression.
        none if none.is_empty() => errors.errors.iter().collect(),
        some => some,
    };
    let words: Vec<_> = errors
        .iter()
        .map(|error| {
            spelled
                .in_original(&expectation::shortened(&error.msg))
                .into_owned()
        })
        .collect();
    let wrong = errors.iter().zip(&words).map(|(error, words)| {
        let at = |place: isize| usize::try_from(place - 1).unwrap_or_default();
        let position = SourcePosition {
            line: at(error.pos.0),
            column: at(error.pos.1),
        };
        (position, words.as_str())
    });
    source_errors::describe(source, wrong)
}

/// Returns a bound of the depth of an expression's tree: open brackets, and operators, `in` and indexes that follow
/// each other. What is between `&&`, `||` and commas stands side by side.
///
/// # Errors
/// [`CompileError::Syntax`] where it is not sure what is quoted: the parser might take for operators what is not
/// counted here. [`CompileError::TooLarge`] if too many operators lack an operand.
fn levels(source: &str) -> Result<usize, CompileError> {
    let source = source.as_bytes();
    let mut open = Vec::new();
    let (mut run, mut depth, mut deepest) = (0, 0, 0);
    let (mut at, mut breaks) = (0, 0);
    let mut before = None;
    while let Some(letter) = source.get(at) {
        at += 1;
        let is_comment = *letter == b'/' && source.get(at) == Some(&b'/');
        let is_doubled = matches!(letter, b'-' | b'!') && before == Some(letter);
        let is_index = *letter == b'[' && before.is_some_and(|it| ends_operand(*it));
        let needs_operand = before.is_some_and(|it| OPERATORS.contains(it));
        if needs_operand && matches!(letter, b')' | b']' | b'}' | b',' | b'&' | b'|') {
            breaks += 1;
            if breaks > BREAKS_MAX {
                return Err(CompileError::TooLarge);
            }
        }
        if letter.is_ascii_graphic() && !OUTSIDE.contains(letter) && !is_comment {
            before = Some(letter);
        }
        match letter {
            b'\'' | b'"' => {
                at = match quoted(source, at - 1) {
                    QuotedText::Closed(end) | QuotedText::Broken(end) => end,
                    QuotedText::Unclear => return Err(unclear_text()),
                }
            }
            b'/' if is_comment => at = end_of_line(source, at),
            b'(' | b'[' | b'{' => {
                if is_index {
                    run += 1;
                    depth += 1;
                }
                open.push((closer(*letter), run));
                depth += BRACKET_LEVELS;
                run = 0;
            }
            b')' | b']' | b'}' => {
                // The parser passes over one that does not fit, and what is open stays open.
                if let Some((_, outer)) = open.pop_if(|(closer, _)| closer == letter) {
                    depth = usize::saturating_sub(depth, run + BRACKET_LEVELS);
                    run = outer;
                }
            }
            b'&' | b'|' | b',' => {
                depth = usize::saturating_sub(depth, run);
                run = 0;
            }
            b'i' if is_in(source, at - 1) => {
                at += 1;
                // An operand follows it, as any other operator.
                before = OPERATORS.first();
                run += 1;
                depth += 1;
            }
            letter if OPERATORS.contains(letter) => {
                let levels = if is_doubled { DOUBLED_LEVELS } else { 1 };
                run += levels;
                depth += levels;
            }
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    Ok(deepest)
}

/// Returns true if the operator `in` begins there. A number may end right before it.
fn is_in(source: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| source[before]);
    let after = source.get(at + 2);
    source[at..].starts_with(b"in")
        && !before.is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && !after.is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_')
}

/// Returns true for the last letter of what an index may follow, which is the operand of the index.
fn ends_operand(letter: u8) -> bool {
    letter.is_ascii_alphanumeric()
        || matches!(letter, b'_' | b'`' | b'\'' | b'"' | b')' | b']' | b'}')
}

/// Returns the bracket that closes an open one.
fn closer(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

fn unclear_text() -> CompileError {
    CompileError::Syntax(
        "Syntax error: a string is not closed, or has an escape that is none".to_owned(),
    )
}

/// Returns where a comment ends. A carriage return may end it too: what follows is counted in any case.
fn end_of_line(source: &[u8], at: usize) -> usize {
    let rest = source[at..].iter();
    let length = rest.take_while(|letter| !matches!(letter, b'\n' | b'\r'));
    at + length.count()
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
            let found = compile(&format!("{unclear}{deep}")).map(|_| ());
            assert!(found.is_err(), "{unclear}: {found:?}");
        }
    }

    #[test]
    fn an_expression_has_so_many_characters() {
        for letter in ["y", "é"] {
            let long = |count: usize| format!("'{}'", letter.repeat(count - 2));
            assert!(compile(&long(CHARACTERS_MAX)).is_ok());
            let error = compile(&long(CHARACTERS_MAX + 1)).map(drop);
            let why = "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000";
            assert_eq!(error, Err(CompileError::Syntax(why.to_owned())));
        }
    }

    #[test]
    fn what_follows_each_other_is_a_level() {
        for (unit, most) in [("[0]", 247), (".a", 250), ("[?0]", 246), (".a[0]", 123)] {
            let chain = |count| format!("a{}", unit.repeat(count));
            assert!(compile(&chain(most)).is_ok(), "{unit}");
            let found = compile(&chain(most + 1)).map(drop);
            assert_eq!(found, Err(CompileError::TooLarge), "{unit}");
        }
        for unit in ["1 in ", "''in", "1in ", "[]in"] {
            let chain = |count| format!("{}[1]", unit.repeat(count));
            assert!(compile(&chain(247)).is_ok(), "{unit}");
            for count in [248, 19_000] {
                let found = compile(&chain(count)).map(drop);
                assert_eq!(found, Err(CompileError::TooLarge), "{unit}");
            }
        }
        for unit in ["[0],", "a[0]||", "[a in [0]],", "a in[0]||", "main,", "[],"] {
            let source = format!("[{}true]", unit.repeat(1_000));
            assert!(compile(&source).is_ok(), "{unit}");
        }
    }

    #[test]
    fn a_long_text_with_errors_is_told() {
        for unit in [",+a", ",[0]", "a&&-", "[(+,", "-}{", "(?)"] {
            let source = unit.repeat(CHARACTERS_MAX / unit.len());
            assert!(compile(&source).is_err(), "{unit}");
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

    #[test]
    fn doubled_signs_may_not_be_nested_deeply() {
        let nested = |sign: &str, depth| {
            format!("{}a{}", format!("{sign}[").repeat(depth), "]".repeat(depth))
        };
        for sign in ["--", "!!", "- -", "-//\n-", "-#\0-"] {
            assert_eq!(
                levels(&nested(sign, 9)).map(|it| it > LEVELS_MAX),
                Ok(false),
                "{sign:?}"
            );
            assert_eq!(
                levels(&nested(sign, 12)).map(|it| it > LEVELS_MAX),
                Ok(true),
                "{sign:?}"
            );
        }
        // Brackets that do not fit close nothing.
        for (open, wrong) in [("--[", ')'), ("--{", ']'), ("--(", '}')] {
            let unclosed = format!("{open}a{wrong}").repeat(12);
            let found = levels(&unclosed).map(|it| it > LEVELS_MAX);
            assert_eq!(found, Ok(true), "{open}");
        }
        for fine in ["-[", "a-[", "-![", "!-["] {
            assert_eq!(
                levels(&nested(fine, 12)).map(|it| it > LEVELS_MAX),
                Ok(false),
                "{fine}"
            );
        }
        assert!(compile("--a - -1 + !!b").is_ok());
    }
}

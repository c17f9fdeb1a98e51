//! Patterns are regular expressions of Go. The `regex` crate is of the same family (linear time, no look-around), but
//! reads some things in another way; here they are rewritten:
//!
//! | written | Go | here |
//! |---|---|---|
//! | `\d` `\w` `\s` `\b` | ASCII | the ASCII classes by name |
//! | `[`, `&&`, `--`, `~~` in a class | characters | escaped |
//! | `{` that begins no repetition | a character | escaped |
//! | `\<` `\>` | characters | the characters |
//! | `\Q...\E` | quoted text | escaped one by one |

use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// Bytes that a compiled pattern takes at most. Repetitions of repetitions grow without bound otherwise.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Bytes of the automaton that is built while a pattern runs.
const AUTOMATON_BYTES_MAX: usize = 1 << 18;

/// Brackets that may be open at once in a pattern.
const PATTERN_LEVELS_MAX: u32 = 100;

/// Compiles a pattern of a schema or an expression.
///
/// # Errors
///
/// What is wrong with it, or that it is too large.
pub(in crate::registry) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&rewrite(pattern))
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(AUTOMATON_BYTES_MAX)
        .nest_limit(PATTERN_LEVELS_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "expression is too large".to_owned(),
            other => last_line(&other.to_string()),
        })
}

/// The crate draws a picture of the place; the last line says what it is.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn rewrite(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        match next {
            '\\' => escape(&mut rest, &mut out, false),
            '[' => class(&mut rest, &mut out),
            '{' if !begins_repetition(rest.as_str()) => out.push_str(r"\{"),
            other => out.push(other),
        }
    }
    out
}

/// After a backslash.
fn escape(rest: &mut Chars<'_>, out: &mut String, in_class: bool) {
    let Some(next) = rest.next() else {
        return out.push('\\');
    };
    match (next, in_class) {
        ('d', _) => out.push_str("[[:digit:]]"),
        ('D', _) => out.push_str("[[:^digit:]]"),
        ('w', _) => out.push_str("[[:word:]]"),
        ('W', _) => out.push_str("[[:^word:]]"),
        ('s', _) => out.push_str(r"[\t\n\f\r ]"),
        ('S', _) => out.push_str(r"[^\t\n\f\r ]"),
        ('b', false) => out.push_str(r"(?-u:\b)"),
        ('B', false) => out.push_str(r"(?-u:\B)"),
        ('<' | '>', _) => out.push(next),
        ('Q', false) => quoted(rest, out),
        _ => out.extend(['\\', next]),
    }
}

fn quoted(rest: &mut Chars<'_>, out: &mut String) {
    let text = rest.as_str();
    let (quoted, after) = text.split_once(r"\E").unwrap_or((text, ""));
    out.push_str(&regex::escape(quoted));
    *rest = after.chars();
}

/// After an opening bracket, up to the one that closes.
fn class(rest: &mut Chars<'_>, out: &mut String) {
    out.push('[');
    if rest.as_str().starts_with('^') {
        rest.next();
        out.push('^');
    }
    // A closing bracket in the first place is a character.
    if rest.as_str().starts_with(']') {
        rest.next();
        out.push_str(r"\]");
    }
    while let Some(next) = rest.next() {
        match next {
            ']' => return out.push(']'),
            '\\' => escape(rest, out, true),
            '[' if rest.as_str().starts_with(':') && named(rest, out) => {}
            '[' => out.push_str(r"\["),
            '&' | '~' => out.extend(['\\', next]),
            '-' if rest.as_str().starts_with('-') => out.push_str(r"\-"),
            other => out.push(other),
        }
    }
}

/// A named class such as `[:alpha:]`, taken as it is.
fn named(rest: &mut Chars<'_>, out: &mut String) -> bool {
    let Some((name, after)) = rest.as_str().split_once(":]") else {
        return false;
    };
    if !name[1..]
        .chars()
        .all(|letter| letter.is_ascii_lowercase() || letter == '^')
    {
        return false;
    }
    out.extend(["[", name, ":]"]);
    *rest = after.chars();
    true
}

fn begins_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else {
        return false;
    };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "42", true),
            (r"^\d+$", "\u{0664}\u{0662}", false), // digits, but not of ASCII
            (r"^\w$", "\u{e4}", false),
            (r"^[\w-]+$", "a-b_c", true),
            (r"^[^\d]$", "x", true),
            (r"^[\D]$", "1", false),
            (r"^[[]$", "[", true),
            (r"^[]]$", "]", true),
            (r"^[^]]$", "]", false),
            (r"^[a&&b]$", "&", true),
            (r"^[a~~b]$", "~", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^{.*}$", "{x}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,3}$", "aaaa", false),
            (r"^a{,3}$", "a{,3}", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\<a\>$", "<a>", true),
            (r"a$", "a\n", false),
            (r"\bfoo\b", "a foo", true),
            ("", "anything", true),
        ] {
            let regex = compile(pattern).unwrap();
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn what_cannot_be_matched_in_linear_time_or_little_memory_is_refused() {
        for pattern in [
            "(",
            "a(?=b)",
            r"(a)\1",
            "[z-a]",
            "((a{500}){500}){500}",
            "*",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        let nested = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
        assert!(compile(&nested).is_err());
    }

    #[test]
    fn a_catastrophic_pattern_is_none_here() {
        let text = format!("{}!", "a".repeat(100_000));
        assert!(!compile("^(a+)+$").unwrap().is_match(&text));
    }
}

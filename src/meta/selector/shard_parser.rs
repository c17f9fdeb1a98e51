//! The parser of shard selectors: calls of `shardRange` joined by `||`, out of a CEL expression that is never
//! evaluated.
//!
//! The order of the checks and their texts are those of `Parse` in `k8s.io/apiserver/pkg/sharding/parser.go`, 1.36.
//! Only what is wrong with the syntax itself is told in words of [`super::shard_expression`].

use super::ParseError;
use super::shard::{ShardField, ShardRange, ShardSelector};
use super::shard_expression::{self, ShardExpression};

/// The only function of shard selectors.
const FUNCTION: &str = "shardRange";

/// The end of the last range, 2^64, which has a digit more than other bounds.
const SPACE_END: &str = "0x10000000000000000";

/// The number of hexadecimal digits of every other bound.
const DIGITS: usize = 16;

impl ShardSelector {
    /// Parses a selector such as `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`, or
    /// several of these with `||` between them.
    ///
    /// # Errors
    /// [`ParseError`] with kube-apiserver's text, also for the empty text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text.is_empty() {
            return error(
                "empty shard selector is not allowed; omit the parameter for unfiltered lists",
            );
        }
        let expression = shard_expression::parse(text)
            .map_err(|why| ParseError(format!("CEL parse error: {}", why.0)))?;
        let mut ranges = Vec::new();
        collect(&expression, &mut ranges)?;
        let Some((field, _)) = ranges.first().copied() else {
            return error("expression has no shardRange() call");
        };
        if let Some((other, _)) = ranges.iter().find(|(it, _)| *it != field) {
            return error(format!(
                "all shard ranges must use the same field, got {:?} and {:?}",
                field.path(),
                other.path()
            ));
        }
        let ranges: Vec<_> = ranges.into_iter().map(|(_, range)| range).collect();
        Ok(Self::new(field, &ranges))
    }
}

/// Collects the ranges of an expression, from left to right.
fn collect(
    expression: &ShardExpression,
    ranges: &mut Vec<(ShardField, ShardRange)>,
) -> Result<(), ParseError> {
    match expression {
        ShardExpression::Or(sides) => sides.iter().try_for_each(|it| collect(it, ranges)),
        ShardExpression::Call(function, arguments) if function == FUNCTION => {
            ranges.push(range(arguments)?);
            Ok(())
        }
        ShardExpression::Call(function, _) => unsupported(function),
        ShardExpression::Operator(function) => unsupported(function),
        other => error(format!(
            "unexpected expression kind {}; expected shardRange() call or || operator",
            other.kind()
        )),
    }
}

fn unsupported(function: &str) -> Result<(), ParseError> {
    error(format!(
        "unsupported function {function:?}; only shardRange() and || are allowed"
    ))
}

/// Reads the arguments of `shardRange`.
fn range(arguments: &[ShardExpression]) -> Result<(ShardField, ShardRange), ParseError> {
    let [field, start, end] = arguments else {
        return error(format!(
            "shardRange() requires exactly 3 arguments, got {}",
            arguments.len()
        ));
    };
    let path = match field {
        ShardExpression::Path { text, .. } => text,
        ShardExpression::FieldOf { kind } => return no_path(*kind),
        other => return no_path(other.kind()),
    };
    let Some(field) = ShardField::ALL.into_iter().find(|it| it.path() == path) else {
        return error(format!(
            "unsupported field path {path:?}; supported: object.metadata.uid, \
             object.metadata.namespace"
        ));
    };
    let (start, end) = (bound(start, "hexStart")?, bound(end, "hexEnd")?);
    let last = end.value.wrapping_sub(1);
    if start.value >= end.value {
        return error(format!(
            "shard range start {} must be less than end {}",
            start.text, end.text
        ));
    }
    // Both fit: the start is less than the end, which is at most 2^64.
    let low = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let (first, last) = (low(start.value), low(last));
    Ok((field, ShardRange { first, last }))
}

fn no_path<T>(kind: u8) -> Result<T, ParseError> {
    error(format!(
        "shardRange() first argument: expected field path (e.g. object.metadata.uid), got \
         expression kind {kind}"
    ))
}

/// A bound of a range, as it was written.
struct RangeBound<'a> {
    text: &'a str,
    value: u128,
}

/// Reads a bound: a text with all digits, `'0x00000000000000ff'`.
fn bound<'a>(expression: &'a ShardExpression, name: &str) -> Result<RangeBound<'a>, ParseError> {
    let text = match expression {
        ShardExpression::Text(text) => text.as_str(),
        ShardExpression::Literal(go_type) => {
            return error(format!("{name} must be a string literal, got {go_type}"));
        }
        other => {
            return error(format!(
                "{name} must be a string literal (e.g. '0xff'), got expression kind {}",
                other.kind()
            ));
        }
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return error(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    let count = digits.len();
    if digits.is_empty() {
        return error(format!("{name}: hex value is required after '0x'"));
    }
    if count > DIGITS + 1 {
        return error(format!(
            "{name}: hex value too long ({count} chars, max 17): {digits:?}"
        ));
    }
    let is_digit = |letter: &char| matches!(letter, '0'..='9' | 'a'..='f');
    if let Some(letter) = digits.chars().find(|it| !is_digit(it)) {
        let letter = letter.to_string();
        return error(format!(
            "{name}: invalid hex character {letter:?} in {text:?}"
        ));
    }
    if count > DIGITS && text != SPACE_END {
        return error(format!(
            "{name}: 17-digit hex value must be '{SPACE_END}' (2^64), got {text:?}"
        ));
    }
    if count < DIGITS {
        return error(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean \
             \"0x{digits:0>DIGITS$}\"?)"
        ));
    }
    let value = u128::from_str_radix(digits, 16)
        .map_err(|_| ParseError(format!("{name}: no number: {text:?}")))?;
    Ok(RangeBound { text, value })
}

fn error<T>(text: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "object.metadata.uid";
    const HALF: &str = "0x8000000000000000";
    const ZERO: &str = "0x0000000000000000";

    fn of(field: &str, start: &str, end: &str) -> String {
        format!("shardRange({field}, '{start}', '{end}')")
    }

    #[test]
    fn selectors_of_the_language_are_read_and_written() {
        let lower = of(UID, ZERO, HALF);
        let upper = of(UID, HALF, SPACE_END);
        let namespaces = of(
            "object.metadata.namespace",
            "0x00000000000000aa",
            "0x00000000000000ff",
        );
        let three = [("0", "5"), ("5", "a"), ("a", "f")]
            .map(|(start, end)| of(UID, &format!("0x{start:0>16}"), &format!("0x{end:0>16}")));
        for (text, written) in [
            (lower.clone(), lower.clone()),
            (of(UID, ZERO, SPACE_END), of(UID, ZERO, SPACE_END)),
            (namespaces.clone(), namespaces),
            (format!("{lower} || {upper}"), format!("{lower} || {upper}")),
            (format!("{upper} || {lower}"), format!("{upper} || {lower}")),
            (three.join(" || "), three.join(" || ")),
            (three.join("||"), three.join(" || ")),
            (lower.replace(", ", ","), lower.clone()),
            (
                format!(
                    "  {}  ",
                    lower
                        .replace(['(', ','], " ( ")
                        .replacen(" ( ", "(", 1)
                        .replace(" ( ", " , ")
                ),
                lower.clone(),
            ),
            (
                format!("(({lower})) || ({upper})"),
                format!("{lower} || {upper}"),
            ),
            (lower.replace('\'', "\""), lower.clone()),
            (lower.replace('\'', "'''"), lower.clone()),
            (format!("{lower} // which is all"), lower.clone()),
            // A call of a method has its arguments alone.
            (format!("x.{lower}"), lower),
        ] {
            let selector = ShardSelector::parse(&text).expect(&text);
            assert_eq!(selector.to_string(), written, "{text}");
            assert_eq!(
                ShardSelector::parse(&written).expect(&written),
                selector,
                "{text}"
            );
        }
    }

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn what_is_wrong_is_told_in_kube_apiservers_words() {
        let field = |field: &str| of(field, "0x00", "0x80");
        let start = |start: &str| of(UID, start, HALF);
        for (text, expected) in [
            (
                "",
                "empty shard selector is not allowed; omit the parameter for unfiltered lists",
            ),
            (
                "  ",
                "empty shard selector is not allowed; omit the parameter for unfiltered lists",
            ),
            (
                &start("0000000000000000"),
                "hexStart must have '0x' prefix, got \"0000000000000000\"",
            ),
            (
                &of(UID, ZERO, "8000000000000000"),
                "hexEnd must have '0x' prefix, got \"8000000000000000\"",
            ),
            (&start("0x"), "hexStart: hex value is required after '0x'"),
            (
                &field("object.metadata.name"),
                "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
            ),
            (
                &field("object.metadata.labels"),
                "unsupported field path \"object.metadata.labels\"; supported: object.metadata.uid, object.metadata.namespace",
            ),
            (
                "invalidFunc(object.metadata.uid, '0x00', '0x80')",
                "unsupported function \"invalidFunc\"; only shardRange() and || are allowed",
            ),
            (
                &start("0x000000000000000000"),
                "hexStart: hex value too long (18 chars, max 17): \"000000000000000000\"",
            ),
            (
                &start("0x0g"),
                "hexStart: invalid hex character \"g\" in \"0x0g\"",
            ),
            (
                &start("0xAA"),
                "hexStart: invalid hex character \"A\" in \"0xAA\"",
            ),
            (
                &start("0x20000000000000000"),
                "hexStart: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\"",
            ),
            (
                &start("0x0"),
                "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)",
            ),
            (
                &of(UID, ZERO, "0xff"),
                "hexEnd must be a 0x-prefixed 16-digit hex value, got \"0xff\" (did you mean \"0x00000000000000ff\"?)",
            ),
            (
                &start(HALF),
                "shard range start 0x8000000000000000 must be less than end 0x8000000000000000",
            ),
            (
                &of(UID, "0xffffffffffffffff", ZERO),
                "shard range start 0xffffffffffffffff must be less than end 0x0000000000000000",
            ),
            (
                &of(UID, SPACE_END, SPACE_END),
                "shard range start 0x10000000000000000 must be less than end 0x10000000000000000",
            ),
            (
                "shardRange(a, '0x0', '0x8') && shardRange(a, '0x8', '0xf')",
                "unsupported function \"_&&_\"; only shardRange() and || are allowed",
            ),
            (
                "shardRange(object.metadata.uid, 0, 8)",
                "hexStart must be a string literal, got int64",
            ),
            (
                "shardRange(object.metadata.uid, b'0x0', 8)",
                "hexStart must be a string literal, got []uint8",
            ),
            (
                "object.metadata.uid > '0x0'",
                "unsupported function \"_>_\"; only shardRange() and || are allowed",
            ),
            (
                "shardRange(object.metadata.uid, '0x0')",
                "shardRange() requires exactly 3 arguments, got 2",
            ),
            (
                "shardRange()",
                "shardRange() requires exactly 3 arguments, got 0",
            ),
            (
                "shardRange(object.metadata.uid, hex(0), '0x8')",
                "hexStart must be a string literal (e.g. '0xff'), got expression kind 1",
            ),
            (
                "shardRange(object['metadata'].uid, '0x0', '0x8')",
                "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 1",
            ),
            (
                "shardRange('object.metadata.uid', '0x0', '0x8')",
                "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 5",
            ),
            (
                "true",
                "unexpected expression kind 5; expected shardRange() call or || operator",
            ),
            (
                "object",
                "unexpected expression kind 3; expected shardRange() call or || operator",
            ),
            (
                "object.metadata",
                "unexpected expression kind 7; expected shardRange() call or || operator",
            ),
            (
                "[1, 2]",
                "unexpected expression kind 4; expected shardRange() call or || operator",
            ),
            (
                "{'a': 1}",
                "unexpected expression kind 6; expected shardRange() call or || operator",
            ),
            (
                "a.B{c: 1}",
                "unexpected expression kind 8; expected shardRange() call or || operator",
            ),
            (
                "a ? b : c",
                "unsupported function \"_?_:_\"; only shardRange() and || are allowed",
            ),
            (
                "!a",
                "unsupported function \"!_\"; only shardRange() and || are allowed",
            ),
            (
                "a in b",
                "unsupported function \"@in\"; only shardRange() and || are allowed",
            ),
            (
                "a[0]",
                "unsupported function \"_[_]\"; only shardRange() and || are allowed",
            ),
            ("package", "CEL parse error: reserved identifier: package"),
            (
                "as{}",
                "unexpected expression kind 8; expected shardRange() call or || operator",
            ),
            (
                "package.as{}",
                "unexpected expression kind 8; expected shardRange() call or || operator",
            ),
            (
                "package.a(b)",
                "CEL parse error: reserved identifier: package",
            ),
            (".void", "CEL parse error: reserved identifier: void"),
            ("if(a)", "CEL parse error: reserved identifier: if"),
            (
                &field("namespace"),
                "CEL parse error: reserved identifier: namespace",
            ),
            (
                &field("object.metadata.package"),
                "unsupported field path \"object.metadata.package\"; supported: object.metadata.uid, object.metadata.namespace",
            ),
            (
                "9223372036854775809",
                "CEL parse error: invalid int literal",
            ),
            (
                "-9223372036854775808",
                "unexpected expression kind 5; expected shardRange() call or || operator",
            ),
            (
                "0x10000000000000000",
                "CEL parse error: invalid int literal",
            ),
            (
                "18446744073709551616u",
                "CEL parse error: invalid uint literal",
            ),
            ("1e999", "CEL parse error: invalid double literal"),
        ] {
            let error = ShardSelector::parse(text).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text}");
        }
        let mixed = format!(
            "{} || {}",
            of(UID, ZERO, HALF),
            of("object.metadata.namespace", HALF, SPACE_END)
        );
        assert_eq!(
            ShardSelector::parse(&mixed).expect_err("mixed").to_string(),
            "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\""
        );
    }

    #[test]
    fn what_is_no_expression_is_refused_at_once() {
        let deep = "(".repeat(100_000);
        let long = vec![of(UID, ZERO, HALF); 10_000].join("||");
        for text in [
            "shardRange(",
            "shardRange(a,)",
            "a ||",
            "|| a",
            "a b",
            "'open",
            "a.1",
            "a | b",
            "#",
            "'\\q'",
            "a ? b",
            "{a}",
            &deep,
            &"!".repeat(100_000),
            &"[".repeat(100_000),
        ] {
            let error = ShardSelector::parse(text)
                .expect_err("no expression")
                .to_string();
            assert!(error.starts_with("CEL parse error: "), "{error}");
        }
        let ranges = ShardSelector::parse(&long).expect("many ranges");
        assert_eq!(ranges.ranges().len(), 1);
    }
}

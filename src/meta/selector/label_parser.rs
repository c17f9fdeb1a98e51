//! The parser of label selectors, with one token of look-ahead.
//!
//! The hard part is that `in` and `notin` are keywords only between a key and its values; elsewhere they are names.
//! The documented grammar is exceeded (`a in (,)`, `!a` with white space) where kube-apiserver exceeds it.

use std::collections::BTreeSet;

use super::label::{LabelSelector, Operator, Requirement};
use super::{ParseError, label_key_errors, label_value_errors};

/// The operators between a key and values, as error messages list them.
const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

impl LabelSelector {
    /// Parses a selector. The empty text selects everything.
    ///
    /// # Errors
    /// [`ParseError`] with kube-apiserver's text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self::from_requirements(requirements(text)?))
    }
}

/// Parses the requirements of a selector in the order of the text.
fn requirements(text: &str) -> Result<Vec<Requirement>, ParseError> {
    let mut parser = Parser {
        tokens: tokens(text),
        at: 0,
    };
    parser.selector().map_err(ParseError)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

/// Returns all tokens of a text with their words; the last is [`Token::End`].
fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(WHITE_SPACE);
    while !rest.is_empty() {
        let (token, length) = next_token(rest);
        let (word, after) = rest.split_at(length);
        tokens.push((token, word));
        rest = after.trim_start_matches(WHITE_SPACE);
    }
    tokens.push((Token::End, ""));
    tokens
}

fn next_token(rest: &str) -> (Token, usize) {
    let simple = [
        ("==", Token::DoubleEquals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (">", Token::Greater),
        ("<", Token::Less),
    ];
    if let Some((symbol, token)) = simple.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        return (*token, symbol.len());
    }
    let length = rest
        .find(|char| SYMBOLS.contains(&char) || WHITE_SPACE.contains(&char))
        .unwrap_or(rest.len());
    let token = match &rest[..length] {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Identifier,
    };
    (token, length)
}

const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// Returns the next token where no operator is expected: `in` and `notin` are names.
    fn peek(&self) -> (Token, &'a str) {
        match self.tokens.get(self.at) {
            Some((Token::In | Token::NotIn, word)) => (Token::Identifier, word),
            Some((token, word)) => (*token, word),
            None => (Token::End, ""),
        }
    }

    fn take(&mut self) -> (Token, &'a str) {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::Not, _) => {}
                (Token::End, _) => return Ok(requirements),
                (_, word) => {
                    return Err(format!(
                        "found '{word}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let requirement = self
                .requirement()
                .map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match self.take() {
                (Token::End, _) => return Ok(requirements),
                (Token::Comma, _) => {}
                (_, word) => {
                    return Err(format!("found '{word}', expected: ',' or 'end of string'"));
                }
            }
            let (token, word) = self.peek();
            if !matches!(token, Token::Identifier | Token::Not) {
                return Err(format!("found '{word}', expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (key, existence) = self.key()?;
        if let Some(operator) = existence {
            return Ok(Requirement {
                key: key.to_owned(),
                operator,
                values: Vec::new(),
            });
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => self.exact_value()?,
        };
        checked(key, operator, values)
    }

    /// Parses a key, and the operator if it is one of existence.
    fn key(&mut self) -> Result<(&'a str, Option<Operator>), String> {
        let (mut token, mut word) = self.take();
        let mut existence = None;
        if token == Token::Not {
            existence = Some(Operator::DoesNotExist);
            (token, word) = self.take();
        }
        if token != Token::Identifier {
            return Err(format!("found '{word}', expected: identifier"));
        }
        let errors = label_key_errors(word);
        if !errors.is_empty() {
            // A key of a query has no path: kube-apiserver writes it so.
            let errors = errors.join("; ");
            return Err(format!("<nil>: Invalid value: {word:?}: {errors}"));
        }
        if existence.is_none() && matches!(self.peek().0, Token::End | Token::Comma) {
            existence = Some(Operator::Exists);
        }
        Ok((word, existence))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let next = self.tokens.get(self.at).copied();
        self.at += 1;
        match next.unwrap_or((Token::End, "")) {
            (Token::In, _) => Ok(Operator::In),
            (Token::NotIn, _) => Ok(Operator::NotIn),
            (Token::Equals, _) => Ok(Operator::Equals),
            (Token::DoubleEquals, _) => Ok(Operator::DoubleEquals),
            (Token::NotEquals, _) => Ok(Operator::NotEquals),
            (Token::Greater, _) => Ok(Operator::GreaterThan),
            (Token::Less, _) => Ok(Operator::LessThan),
            (_, word) => Err(format!("found '{word}', expected: {BINARY_OPERATORS}")),
        }
    }

    /// Parses values in parentheses. Nothing between two commas or parentheses is the empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let (token, word) = self.take();
        if token != Token::Open {
            return Err(format!("found '{word}' expected: '('"));
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            (Token::Identifier | Token::Comma, _) => {}
            (Token::Close, _) => {
                self.at += 1;
                values.insert(String::new());
                return Ok(values);
            }
            (_, word) => {
                return Err(format!("found '{word}', expected: ',', ')' or identifier"));
            }
        }
        loop {
            match self.take() {
                (Token::Identifier, word) => {
                    values.insert(word.to_owned());
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => break,
                        (_, word) => return Err(format!("found '{word}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    let next = self.peek().0;
                    if values.is_empty() || matches!(next, Token::Comma | Token::Close) {
                        values.insert(String::new());
                    }
                    match next {
                        Token::Comma => self.at += 1,
                        Token::Close => break,
                        _ => {}
                    }
                }
                (_, word) => {
                    return Err(format!("found '{word}', expected: ',', or identifier"));
                }
            }
        }
        self.at += 1;
        Ok(values)
    }

    /// Parses one value, which may be empty.
    fn exact_value(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok([String::new()].into());
        }
        match self.take() {
            (Token::Identifier, word) => Ok([word.to_owned()].into()),
            (_, word) => Err(format!("found '{word}', expected: identifier")),
        }
    }
}

/// Returns a requirement whose key and values have been checked.
fn checked(key: &str, operator: Operator, values: BTreeSet<String>) -> Result<Requirement, String> {
    let mut errors: Vec<String> = Vec::new();
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
        for (index, value) in values.iter().enumerate() {
            if value.parse::<i64>().is_err() {
                errors.push(format!(
                    "values[{index}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
        }
    }
    for (index, value) in values.iter().enumerate() {
        let found = label_value_errors(value);
        if !found.is_empty() {
            let found = found.join("; ");
            errors.push(format!(
                "values[{index}][{key}]: Invalid value: {value:?}: {found}"
            ));
        }
    }
    match errors.as_slice() {
        [] => Ok(Requirement {
            key: key.to_owned(),
            operator,
            values: values.into_iter().collect(),
        }),
        [error] => Err(error.clone()),
        _ => Err(format!("[{}]", errors.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        LabelSelector::parse(text).expect_err(text).0
    }

    #[test]
    fn errors_say_what_was_found_and_expected() {
        for (text, message) in [
            (
                "a===b",
                "unable to parse requirement: found '=', expected: identifier",
            ),
            (
                ",a",
                "found ',', expected: !, identifier, or 'end of string'",
            ),
            (
                "=a",
                "found '=', expected: !, identifier, or 'end of string'",
            ),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            (
                "!",
                "unable to parse requirement: found '', expected: identifier",
            ),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "a in",
                "unable to parse requirement: found '' expected: '('",
            ),
            (
                "a in x",
                "unable to parse requirement: found 'x' expected: '('",
            ),
            (
                "a in (",
                "unable to parse requirement: found '', expected: ',', ')' or identifier",
            ),
            (
                "a in (x",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            (
                "a in (x y)",
                "unable to parse requirement: found 'y', expected: ',' or ')'",
            ),
            (
                "a in (x,,)",
                "unable to parse requirement: found ')', expected: ',', or identifier",
            ),
            (
                "a in (x,=)",
                "unable to parse requirement: found '=', expected: ',', or identifier",
            ),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
    }

    #[test]
    fn keys_and_values_are_checked() {
        assert_eq!(
            error("-a=b"),
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        );
        assert_eq!(
            error(&format!("a in (b,{})", "x".repeat(64))),
            format!(
                "unable to parse requirement: values[1][a]: Invalid value: \"{}\": \
                 must be no more than 63 bytes",
                "x".repeat(64)
            )
        );
        assert_eq!(
            error("a>x"),
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' \
             operators, the value must be an integer"
        );
    }
}

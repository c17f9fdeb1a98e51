//! The tokens of CEL expressions.

use std::str::Chars;

use super::ParseError;

/// The symbols, those before others that they begin.
const SYMBOLS: [&str; 24] = [
    "||", "&&", "<=", ">=", "==", "!=", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    "{", "}", ".", ",", ":", "?",
];

/// The words that are literals, and their types in Go.
const WORDS: [(&str, &str); 3] = [
    ("true", "bool"),
    ("false", "bool"),
    ("null", "structpb.NullValue"),
];

/// Maximum number of letters before an opening quote: one for raw texts and one for bytes.
const PREFIX_LETTERS_MAX: usize = 2;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier.
    Name(String),
    /// A text, unescaped.
    Text(String),
    /// Another literal, by its type in Go.
    Literal(&'static str),
    /// An operator, a bracket, a separator, or the word `in`.
    Symbol(&'static str),
    /// The end of the expression.
    End,
}

/// The tokens of an expression that are still to be read.
pub(super) struct Tokens {
    tokens: std::vec::IntoIter<Token>,
    next: Token,
}

impl Tokens {
    /// Splits an expression into its tokens.
    ///
    /// # Errors
    /// [`ParseError`] about what is no token.
    pub(super) fn new(text: &str) -> Result<Self, ParseError> {
        let mut tokens = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            if let Some(comment) = rest.strip_prefix("//") {
                rest = comment.split_once('\n').map_or("", |(_, after)| after);
                continue;
            }
            if rest.is_empty() {
                break;
            }
            let (token, after) = token(rest)?;
            tokens.push(token);
            rest = after;
        }
        let mut tokens = tokens.into_iter();
        let next = tokens.next().unwrap_or(Token::End);
        Ok(Self { tokens, next })
    }

    /// Returns the next token.
    pub(super) fn next(&mut self) -> Token {
        let next = self.tokens.next().unwrap_or(Token::End);
        std::mem::replace(&mut self.next, next)
    }

    /// Returns true if the next token is this symbol.
    pub(super) fn is(&self, symbol: &str) -> bool {
        matches!(&self.next, Token::Symbol(next) if *next == symbol)
    }

    /// Skips the next token if it is this symbol, and returns whether it was.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let is_it = self.is(symbol);
        if is_it {
            self.next();
        }
        is_it
    }
}

/// Reads one token, and returns it with the text after it.
fn token(text: &str) -> Result<(Token, &str), ParseError> {
    if let Some(found) = quoted(text)? {
        return Ok(found);
    }
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let first = text.chars().next().unwrap_or_default();
    if first.is_ascii_digit()
        || (first == '.' && text[1..].starts_with(|it: char| it.is_ascii_digit()))
    {
        return number(text);
    }
    if is_word(first) {
        let end = text.find(|it| !is_word(it)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let literal = WORDS.iter().find(|(name, _)| *name == word);
        let token = match literal {
            Some((_, go_type)) => Token::Literal(go_type),
            None if word == "in" => Token::Symbol("in"),
            None => Token::Name(word.to_owned()),
        };
        return Ok((token, rest));
    }
    let symbol = SYMBOLS.iter().find(|it| text.starts_with(**it));
    match symbol {
        Some(symbol) => Ok((Token::Symbol(symbol), &text[symbol.len()..])),
        None => Err(unrecognised(first)),
    }
}

fn unrecognised(letter: char) -> ParseError {
    ParseError(format!(
        "Syntax error: token recognition error at: '{letter}'"
    ))
}

/// Reads a number, which begins with a digit or with a dot before one.
fn number(text: &str) -> Result<(Token, &str), ParseError> {
    let digits = |text: &str, is_digit: fn(&char) -> bool| {
        text.chars()
            .take_while(is_digit)
            .map(char::len_utf8)
            .sum::<usize>()
    };
    let mut go_type = "int64";
    let mut end = match text.strip_prefix("0x") {
        Some(hex) => 2 + digits(hex, char::is_ascii_hexdigit),
        None => digits(text, char::is_ascii_digit),
    };
    if !text.starts_with("0x") {
        let fraction = text[end..]
            .strip_prefix('.')
            .map_or(0, |it| digits(it, char::is_ascii_digit));
        if fraction > 0 {
            go_type = "float64";
            end += 1 + fraction;
        }
        if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let count = digits(&exponent[sign..], char::is_ascii_digit);
            if count > 0 {
                go_type = "float64";
                end += 1 + sign + count;
            }
        }
    }
    if go_type == "int64" && text[end..].starts_with(['u', 'U']) {
        go_type = "uint64";
        end += 1;
    }
    let kind = go_type.trim_end_matches("64");
    let kind = if kind == "float" { "double" } else { kind };
    if is_out_of_range(&text[..end], go_type) {
        return Err(ParseError(format!("invalid {kind} literal")));
    }
    Ok((Token::Literal(go_type), &text[end..]))
}

/// Returns true if no number of a type of Go has such a value. The sign before it is not known, so one more is taken as
/// in range than there are positive numbers.
fn is_out_of_range(literal: &str, go_type: &str) -> bool {
    if go_type == "float64" {
        return literal.parse::<f64>().is_ok_and(f64::is_infinite);
    }
    let digits = literal.trim_end_matches(['u', 'U']);
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    value.map_or(true, |value| {
        go_type == "int64" && value > i64::MIN.unsigned_abs()
    })
}

/// Reads a text or bytes, if there is an opening quote with or without letters before it.
fn quoted(text: &str) -> Result<Option<(Token, &str)>, ParseError> {
    let is_quote = |byte: u8| matches!(byte, b'\'' | b'"');
    let prefix = text.bytes().take(PREFIX_LETTERS_MAX + 1).position(is_quote);
    let Some((letters, rest)) = prefix.map(|at| text.split_at(at)) else {
        return Ok(None);
    };
    let has = |letter: char| letters.contains([letter, letter.to_ascii_uppercase()]);
    let (is_raw, is_bytes) = (has('r'), has('b'));
    if letters.len() != usize::from(is_raw) + usize::from(is_bytes) {
        return Ok(None);
    }
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let quote = if rest.starts_with(&triple) {
        &triple
    } else {
        quote
    };
    let mut letters = rest[quote.len()..].chars();
    let mut content = String::new();
    loop {
        if let Some(after) = letters.as_str().strip_prefix(quote) {
            let token = if is_bytes {
                Token::Literal("[]uint8")
            } else {
                Token::Text(content)
            };
            return Ok(Some((token, after)));
        }
        match letters.next() {
            Some('\\') if is_raw => content.push('\\'),
            Some('\\') => content.push(escaped(&mut letters)?),
            Some('\n' | '\r') if quote.len() == 1 => return Err(unrecognised('\n')),
            Some(letter) => content.push(letter),
            None => return Err(unrecognised(text.chars().next().unwrap_or_default())),
        }
    }
}

/// Reads what follows a backslash.
fn escaped(letters: &mut Chars<'_>) -> Result<char, ParseError> {
    let letter = letters.next().unwrap_or_default();
    let (digits, base) = match letter {
        'a' => return Ok('\u{7}'),
        'b' => return Ok('\u{8}'),
        'f' => return Ok('\u{c}'),
        'n' => return Ok('\n'),
        'r' => return Ok('\r'),
        't' => return Ok('\t'),
        'v' => return Ok('\u{b}'),
        '\\' | '?' | '\'' | '"' | '`' => return Ok(letter),
        'x' | 'X' => (2, 16),
        'u' => (4, 16),
        'U' => (8, 16),
        '0'..='3' => (2, 8),
        _ => return Err(unrecognised('\\')),
    };
    let begin = if base == 8 {
        letter.to_digit(8)
    } else {
        Some(0)
    };
    let mut value = begin.unwrap_or_default();
    for _ in 0..digits {
        let digit = letters.next().and_then(|it| it.to_digit(base));
        value = value * base + digit.ok_or_else(|| unrecognised('\\'))?;
    }
    char::from_u32(value).ok_or_else(|| unrecognised('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
        let mut tokens = Tokens::new(text)?;
        let next = || Some(tokens.next()).filter(|it| *it != Token::End);
        Ok(std::iter::from_fn(next).collect())
    }

    fn text(text: &str) -> Token {
        Token::Text(text.to_owned())
    }

    #[test]
    fn texts_are_unescaped() {
        let quoted = r#"'a' "b'" r'\n' '\n\x30\u0031\061\\' '''c
'd''' R"\" '' "#;
        let expected = ["a", "b'", "\\n", "\n011\\", "c\n'd", "\\", ""].map(text);
        assert_eq!(tokens(quoted).expect("texts"), expected);
        for wrong in ["'\n'", r"'\q'", r"'\x3'", r"'\ud800'", "'", "b'", "'''a'"] {
            tokens(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn literals_have_types_of_go() {
        let found =
            tokens("1 0x1f 2u 1.5 .5 1e3 1e 7.a true null b'x' rb'x' inn in").expect("tokens");
        let literal = Token::Literal;
        let name = |text: &str| Token::Name(text.to_owned());
        let expected = [
            literal("int64"),
            literal("int64"),
            literal("uint64"),
            literal("float64"),
            literal("float64"),
            literal("float64"),
            literal("int64"),
            name("e"),
            literal("int64"),
            Token::Symbol("."),
            name("a"),
            literal("bool"),
            literal("structpb.NullValue"),
            literal("[]uint8"),
            literal("[]uint8"),
            name("inn"),
            Token::Symbol("in"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_token_is_named() {
        for (wrong, letter) in [("a | b", '|'), ("#", '#'), ("a = b", '='), ("ä", 'ä')] {
            let error = tokens(wrong).expect_err(wrong).to_string();
            let expected = format!("Syntax error: token recognition error at: '{letter}'");
            assert_eq!(error, expected);
        }
        assert_eq!(tokens("a // b\n c").expect("names").len(), 2);
    }
}

//! Spells expressions so that the library's parser takes them for what they are to cel-go's.
//!
//! The parser takes what is between quotes for the text of a literal, though there may be three quotes or quotes in a
//! text; it knows few escapes in byte strings, takes no sign before hexadecimal numbers, and `!!a` for `!a`. So such
//! literals are replaced by strings that stand for them, and pairs of signs by spaces. All characters keep their
//! places, so that errors are shown where they are.

use std::borrow::Cow;

use kube_cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::part_error::PartError;
use super::parts;
use super::quoted::{QuotedText, quoted};
use unescape::unescape;

mod unescape;

/// The first of the characters that tell which literal a string stands for: those of the last private plane. Literals
/// with such characters are replaced themselves.
const STAND_IN_FIRST: u32 = 0x10_0000;

/// An expression as the parser reads it.
#[derive(Debug)]
pub(super) struct SpelledSource {
    /// The text that the parser reads.
    pub(super) text: String,
    literals: Vec<Literal>,
}

/// A literal for which a string stands.
#[derive(Debug)]
struct Literal {
    original: String,
    stand_in: String,
    value: Result<LiteralValue, &'static str>,
}

impl SpelledSource {
    /// Puts the literals into the places of those that stand for them. Returns those that are none.
    pub(super) fn restore(&self, expression: &mut IdedExpr) -> Vec<PartError> {
        let mut wrong = Vec::new();
        parts::for_each(expression, &mut |part| {
            let Expr::Literal(literal) = &mut part.expr else {
                return;
            };
            let LiteralValue::String(text) = literal else {
                return;
            };
            let number = text.inner().chars().find_map(number_of);
            match number.and_then(|it| self.literals.get(it)) {
                None => {}
                Some(stood_for) => match &stood_for.value {
                    Ok(value) => *literal = value.clone(),
                    Err(why) => wrong.push(PartError::at(part.id, *why)),
                },
            }
        });
        wrong
    }

    /// Returns a message of the parser with the literals as they were written.
    pub(super) fn in_original<'m>(&self, message: &'m str) -> Cow<'m, str> {
        let mut message = Cow::Borrowed(message);
        let numbers: Vec<usize> = message.chars().filter_map(number_of).collect();
        for literal in numbers.into_iter().filter_map(|it| self.literals.get(it)) {
            let (stand_in, original) = (escaped(&literal.stand_in), escaped(&literal.original));
            message = Cow::Owned(message.replacen(&stand_in, &original, 1));
        }
        message
    }
}

fn number_of(letter: char) -> Option<usize> {
    let number = u32::from(letter).checked_sub(STAND_IN_FIRST)?;
    usize::try_from(number).ok()
}

/// Escapes a text as the parser does in messages.
fn escaped(text: &str) -> String {
    text.replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t")
}

/// Spells an expression.
pub(super) fn spell(source: &str) -> SpelledSource {
    let mut speller = Speller {
        source,
        spelled: SpelledSource {
            text: String::with_capacity(source.len()),
            literals: Vec::new(),
        },
        at: 0,
        is_operand: false,
    };
    while speller.at < source.len() {
        speller.step();
    }
    speller.spelled
}

struct Speller<'s> {
    source: &'s str,
    spelled: SpelledSource,
    /// The place of the next byte that is read.
    at: usize,
    /// True behind what an operator may follow.
    is_operand: bool,
}

impl Speller<'_> {
    /// Reads a token, or what stands between tokens.
    fn step(&mut self) {
        let rest = &self.source[self.at..];
        let between = between_tokens(rest);
        if between > 0 {
            return self.copy(between);
        }
        let bytes = rest.as_bytes();
        match bytes[0] {
            b'\'' | b'"' => self.literal(self.at),
            b'!' if bytes.get(1) == Some(&b'=') => self.operator(2),
            b'!' => self.signs(b'!'),
            b'-' if !self.is_operand => self.signs(b'-'),
            b'`' => {
                let name = rest[1..].find('`').map_or(1, |end| end + 2);
                self.copy(name);
                self.is_operand = true;
            }
            b')' | b']' | b'}' => {
                self.copy(1);
                self.is_operand = true;
            }
            letter if is_word(letter) => self.word(),
            _ => {
                let letter = rest.chars().next().map_or(1, char::len_utf8);
                self.operator(letter);
            }
        }
    }

    fn copy(&mut self, length: usize) {
        let end = self.at + length;
        self.spelled.text.push_str(&self.source[self.at..end]);
        self.at = end;
    }

    fn operator(&mut self, length: usize) {
        self.copy(length);
        self.is_operand = false;
    }

    /// Reads a name or a number, or the letters before a literal.
    fn word(&mut self) {
        let rest = &self.source[self.at..];
        let is_number = rest.as_bytes()[0].is_ascii_digit();
        let word: &str = if is_number {
            rest.split(|it: char| !it.is_ascii_digit())
                .next()
                .unwrap_or(rest)
        } else {
            rest.split(|it: char| !it.is_ascii() || !is_word(it as u8))
                .next()
                .unwrap_or(rest)
        };
        let is_quoted = rest[word.len()..].starts_with(['\'', '"']);
        let prefix = ["r", "b", "br"]
            .iter()
            .any(|it| word.eq_ignore_ascii_case(it));
        if is_quoted && prefix {
            return self.literal(self.at + word.len());
        }
        let is_operand = word != "in";
        self.copy(word.len());
        self.is_operand = is_operand;
    }

    /// Reads a literal whose quotes begin here.
    fn literal(&mut self, quote: usize) {
        let QuotedText::Closed(end) = quoted(self.source.as_bytes(), quote) else {
            // What follows an error is not looked at.
            return self.copy(self.source.len() - self.at);
        };
        self.is_operand = true;
        let original = &self.source[self.at..end];
        let prefix = original[..quote - self.at].to_ascii_lowercase();
        let quotes = &self.source[quote..quote + 1];
        let is_long = original.len() - prefix.len() >= 6
            && original[prefix.len()..].starts_with(&quotes.repeat(3));
        let width = if is_long { 3 } else { 1 };
        let content = &original[prefix.len() + width..original.len() - width];
        let has_more = content.contains('\\') || content.chars().any(|it| number_of(it).is_some());
        if !is_long && prefix.is_empty() && !has_more {
            return self.copy(original.len());
        }
        let is_bytes = prefix.contains('b');
        let value = unescape(content, prefix.contains('r'), is_bytes).and_then(|value| {
            if is_bytes {
                return Ok(LiteralValue::Bytes(value.into()));
            }
            let text = String::from_utf8(value).map_err(|_| unescape::UNABLE)?;
            Ok(LiteralValue::String(text.into()))
        });
        let filler = format!("{prefix}{content}");
        self.stand_in(original, &quotes.repeat(width), &filler, value);
    }

    /// Writes a string that stands for a literal, with characters in the place of what fills it, or the literal itself
    /// if there is no character for it.
    fn stand_in(
        &mut self,
        original: &str,
        quotes: &str,
        filler: &str,
        value: Result<LiteralValue, &'static str>,
    ) {
        let number = u32::try_from(self.spelled.literals.len()).unwrap_or(u32::MAX);
        let mut marker = STAND_IN_FIRST.checked_add(number).and_then(char::from_u32);
        let filling = filler.chars().map(|letter| match letter {
            '\n' => '\n',
            _ => marker.take().unwrap_or(' '),
        });
        let stand_in = format!("{quotes}{}{quotes}", filling.collect::<String>());
        if marker.is_some() {
            return self.copy(original.len());
        }
        self.spelled.text.push_str(&stand_in);
        self.at += original.len();
        self.spelled.literals.push(Literal {
            original: original.to_owned(),
            stand_in,
            value,
        });
    }

    /// Reads signs in a row before an operand, and leaves pairs of them out.
    fn signs(&mut self, sign: u8) {
        let bytes = self.source.as_bytes();
        let (mut count, mut end, mut next) = (0, self.at, self.at);
        while bytes.get(next) == Some(&sign)
            && !(sign == b'!' && bytes.get(next + 1) == Some(&b'='))
        {
            count += 1;
            end = next + 1;
            next = end + all_between_tokens(&self.source[end..]);
        }
        self.is_operand = false;
        if matches!(bytes.get(next), Some(b'!' | b'-')) {
            // That is an error, which the parser words.
            return self.copy(end - self.at);
        }
        if sign == b'-' && count % 2 == 1 && self.negative_hexadecimal(next) {
            return;
        }
        let mut kept = count % 2;
        for letter in self.source[self.at..end].chars() {
            let is_blank = letter == char::from(sign) && {
                kept -= 1;
                kept < 0
            };
            self.spelled.text.push(if is_blank { ' ' } else { letter });
        }
        self.at = end;
    }

    /// Reads a hexadecimal number with its signs, which begin here. Returns false if it is none.
    fn negative_hexadecimal(&mut self, number: usize) -> bool {
        let Some(rest) = self.source[number..].strip_prefix("0x") else {
            return false;
        };
        let digits = rest.split(|it: char| !it.is_ascii_hexdigit()).next();
        let digits = digits.unwrap_or_default();
        let is_unsigned = rest[digits.len()..].starts_with(['u', 'U']);
        let signed = format!("-{digits}");
        let (Ok(value), false) = (i64::from_str_radix(&signed, 16), is_unsigned) else {
            return false;
        };
        let original = &self.source[self.at..number + 2 + digits.len()];
        if original.contains('\n') {
            return false;
        }
        self.is_operand = true;
        let filler = &original[2..];
        self.stand_in(original, "'", filler, Ok(LiteralValue::Int(value.into())));
        true
    }
}

fn is_word(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_'
}

/// Returns the length of the space or the comment that a text begins with.
fn between_tokens(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    let is_space = |it: char| matches!(it, '\t' | ' ' | '\r' | '\n' | '\u{c}');
    text.len() - text.trim_start_matches(is_space).len()
}

/// Returns the length of all space and comments that a text begins with.
fn all_between_tokens(text: &str) -> usize {
    let mut length = 0;
    loop {
        match between_tokens(&text[length..]) {
            0 => return length,
            more => length += more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_keep_their_places() {
        for source in [
            "r'' + b'é' + '''it's\n''' + '\\u00e9' + -0x1f + !!a + - -a",
            "br\"\"\"\n\"\"\" == b'' && r'''''' == ''",
            "'a\u{100001}b' + 'it' // it's '",
            "a.`b-c'` + ''''''",
        ] {
            let spelled = spell(source).text;
            assert_eq!(spelled.chars().count(), source.chars().count(), "{source}");
            let lines = |text: &str| {
                text.lines()
                    .map(|it| it.chars().count())
                    .collect::<Vec<_>>()
            };
            assert_eq!(lines(&spelled), lines(source), "{source}");
        }
    }

    #[test]
    fn pairs_of_signs_are_left_out() {
        for (source, spelled) in [
            ("!!a", "  a"),
            ("!!!a", "!  a"),
            ("! /* */ !a", "! /* */ !a"),
            ("!//x\n!a", " //x\n a"),
            ("!!=a", "!!=a"),
            ("a--b", "a--b"),
            ("a---b", "a-  b"),
            ("--b", "  b"),
            ("a in --b", "a in   b"),
            ("!!-a", "!!-a"),
            ("'a'--b", "'a'--b"),
            ("[a]--b", "[a]--b"),
            ("[--b]", "[  b]"),
            ("1--1", "1--1"),
        ] {
            assert_eq!(spell(source).text, spelled);
        }
    }
}

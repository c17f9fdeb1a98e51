//! Escapes and classes of characters.

use std::fmt::Write as _;

use super::{PatternReader, UNICODE_CLASSES_MAX, unicode_names, wrong};
use crate::pattern::PatternError;

/// A class without characters, which never matches.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// A class of all characters.
const ALL: &str = r"[\x{0}-\x{10FFFF}]";

/// The surrogates, which are not characters in UTF-8, although Go's syntax can name them.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

const LAST_CHARACTER: u32 = 0x10_FFFF;

/// Classes that are known by names, such as `[:alpha:]`.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Maximum number of digits of an octal escape.
const OCTAL_DIGITS_MAX: usize = 3;

const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_RANGE: &str = "invalid character class range";

/// Writes a character, escaped if it could have another meaning.
pub(super) fn write_character(out: &mut String, character: u32) {
    match char::from_u32(character) {
        Some(plain) if plain.is_ascii_alphanumeric() || !plain.is_ascii() => out.push(plain),
        Some(_) => _ = write!(out, r"\x{{{character:X}}}"),
        None => out.push_str(NOTHING),
    }
}

/// Writes the range from one character to another.
fn write_range(out: &mut String, low: u32, high: u32) {
    let low = if SURROGATES.contains(&low) {
        0xE000
    } else {
        low
    };
    let high = if SURROGATES.contains(&high) {
        0xD7FF
    } else {
        high
    };
    if low <= high {
        _ = write!(out, r"\x{{{low:X}}}-\x{{{high:X}}}");
    }
}

impl PatternReader<'_> {
    /// Returns a class in brackets.
    pub(super) fn class(&mut self) -> Result<(), PatternError> {
        let whole = self.rest;
        self.rest = &whole[1..];
        let negated = self.rest.strip_prefix('^');
        self.rest = negated.unwrap_or(self.rest);
        let start = self.out.len();
        self.out
            .push_str(if negated.is_some() { "[^" } else { "[" });
        let empty = self.out.len();
        let mut first = true;
        // A closing bracket in the first place is a character.
        while first || !self.rest.starts_with(']') {
            first = false;
            if self.posix_class()? || self.named_class()? {
                continue;
            }
            let before = self.rest;
            let low = self.class_character(whole)?;
            let mut high = low;
            if let Some(rest) = self.rest.strip_prefix('-')
                && !rest.is_empty()
                && !rest.starts_with(']')
            {
                self.rest = rest;
                high = self.class_character(whole)?;
                if high < low {
                    let read = before.len() - self.rest.len();
                    return Err(wrong(INVALID_RANGE, &before[..read]));
                }
            }
            write_range(&mut self.out, low, high);
        }
        self.rest = &self.rest[1..];
        if self.out.len() == empty {
            self.out.truncate(start);
            self.out.push_str(if negated.is_some() {
                r"(?s:.)"
            } else {
                NOTHING
            });
        } else {
            self.out.push(']');
        }
        self.part();
        Ok(())
    }

    fn class_character(&mut self, whole: &str) -> Result<u32, PatternError> {
        let Some(next) = self.rest.chars().next() else {
            return Err(wrong("missing closing ]", whole));
        };
        if next == '\\' {
            return self.escape();
        }
        self.rest = &self.rest[next.len_utf8()..];
        Ok(u32::from(next))
    }

    /// Reads `[:alpha:]` in a class. Returns true if there was one.
    fn posix_class(&mut self) -> Result<bool, PatternError> {
        let Some(inside) = self.rest.strip_prefix("[:") else {
            return Ok(false);
        };
        let Some((name, after)) = inside.split_once(":]") else {
            return Ok(false);
        };
        let source = &self.rest[..self.rest.len() - after.len()];
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(wrong(INVALID_RANGE, source));
        }
        self.out.push_str(source);
        self.rest = after;
        Ok(true)
    }

    /// Reads `\d` and the like, and `\pL` and the like. Returns true if there was one.
    pub(super) fn named_class(&mut self) -> Result<bool, PatternError> {
        let before = self.rest;
        let Some(after) = before.strip_prefix('\\') else {
            return Ok(false);
        };
        let source = match after.chars().next() {
            Some('d') => "[[:digit:]]",
            Some('D') => "[[:^digit:]]",
            Some('w') => "[[:word:]]",
            Some('W') => "[[:^word:]]",
            Some('s') => r"[\t\n\f\r\x{20}]",
            Some('S') => r"[^\t\n\f\r\x{20}]",
            Some('p' | 'P') => {
                self.unicode_class()?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.rest = &before[2..];
        self.out.push_str(source);
        Ok(true)
    }

    fn unicode_class(&mut self) -> Result<(), PatternError> {
        let before = self.rest;
        let mut negated = before.starts_with(r"\P");
        let after = &before[2..];
        let (name, rest) = match after.strip_prefix('{') {
            Some(inside) => {
                let split = inside.split_once('}');
                split.ok_or_else(|| wrong(INVALID_RANGE, before))?
            }
            None => {
                let letter = after.chars().next().map_or(0, char::len_utf8);
                after.split_at(letter)
            }
        };
        let source = &before[..before.len() - rest.len()];
        let named = name.strip_prefix('^');
        negated ^= named.is_some();
        let name = named.unwrap_or(name);
        if !unicode_names::is_known(name) {
            return Err(wrong(INVALID_RANGE, source));
        }
        self.unicode_classes += 1;
        if self.unicode_classes > UNICODE_CLASSES_MAX {
            return Err(PatternError::TooLarge);
        }
        match (negated, unicode_names::is_surrogates(name)) {
            (true, true) => self.out.push_str(ALL),
            (false, true) => self.out.push_str(NOTHING),
            (true, false) => _ = write!(self.out, r"\P{{{name}}}"),
            (false, false) => _ = write!(self.out, r"\p{{{name}}}"),
        }
        self.rest = rest;
        Ok(())
    }

    /// Reads the character after a backslash.
    pub(super) fn escape(&mut self) -> Result<u32, PatternError> {
        let before = self.rest;
        let mut rest = before[1..].chars();
        let Some(next) = rest.next() else {
            return Err(wrong("trailing backslash at end of expression", ""));
        };
        let is_octal = |it: char| it.is_digit(8);
        let read = match next {
            '1'..='7' if !rest.as_str().starts_with(is_octal) => None,
            '0'..='7' => {
                let digits = before[1..].chars().take_while(|it| is_octal(*it));
                let count = digits.take(OCTAL_DIGITS_MAX).count();
                rest = before[1 + count..].chars();
                u32::from_str_radix(&before[1..=count], 8).ok()
            }
            'x' => hexadecimal(&mut rest),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => Some(u32::from(other)),
            _ => None,
        };
        self.rest = rest.as_str();
        let source = &before[..before.len() - self.rest.len()];
        read.ok_or_else(|| wrong(INVALID_ESCAPE, source))
    }
}

/// Reads `41` or `{41}`, after `\x`.
fn hexadecimal(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = rest.next()?;
    if first != '{' {
        let second = rest.next()?;
        return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
    }
    let mut number = None;
    for next in rest.by_ref() {
        if next == '}' {
            return number;
        }
        let digits = number.unwrap_or(0) * 16 + next.to_digit(16)?;
        if digits > LAST_CHARACTER {
            return None;
        }
        number = Some(digits);
    }
    None
}

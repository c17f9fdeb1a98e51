//! The ends of quoted texts in an expression, as the lexer finds them.

/// A text that is quoted from a place on.
pub(super) enum QuotedText {
    /// It ends before this place.
    Closed(usize),
    /// It is no literal, and the lexer goes on at this place.
    Broken(usize),
    /// It may be either.
    Unclear,
}

/// Returns what is quoted from here on.
pub(super) fn quoted(source: &[u8], at: usize) -> QuotedText {
    let Some(is_raw) = is_raw(&source[..at]) else {
        return QuotedText::Unclear;
    };
    let quote = [source[at]; 3];
    let is_long = source[at..].starts_with(&quote);
    let closing = if is_long { &quote[..] } else { &quote[..1] };
    match end_of_text(source, at, closing, is_raw) {
        Ok(end) => QuotedText::Closed(end),
        // The first two quotes are a text of their own.
        Err(_) if is_long => QuotedText::Broken(at + 2),
        // The letter before it is a name.
        Err(_) if is_raw => match end_of_text(source, at, closing, false) {
            Ok(end) => QuotedText::Closed(end),
            Err(end) => QuotedText::Broken(end + 1),
        },
        Err(end) => QuotedText::Broken(end + 1),
    }
}

/// Returns where a text ends; the error is where it cannot go on.
fn end_of_text(source: &[u8], at: usize, closing: &[u8], is_raw: bool) -> Result<usize, usize> {
    let mut end = at + closing.len();
    loop {
        let rest = source
            .get(end..)
            .filter(|rest| !rest.is_empty())
            .ok_or(end)?;
        if rest.starts_with(closing) {
            return Ok(end + closing.len());
        }
        end += match rest[0] {
            b'\\' if !is_raw => escape_length(rest).map_err(|length| end + length)?,
            b'\n' | b'\r' if closing.len() == 1 => return Err(end),
            _ => 1,
        };
    }
}

/// Returns true if the string that is quoted after this has no escapes; `None` after a prefix that can only be an
/// error.
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

/// Returns how long an escape is; the error is the length of what could be one.
fn escape_length(rest: &[u8]) -> Result<usize, usize> {
    let is_octal = |letter: &u8| (b'0'..=b'7').contains(letter);
    let (length, fits): (usize, fn(&u8) -> bool) = match rest.get(1).ok_or(1_usize)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'?' | b'\'' | b'"' | b'`' => {
            return Ok(2);
        }
        b'x' | b'X' => (4, u8::is_ascii_hexdigit),
        b'u' => (6, u8::is_ascii_hexdigit),
        b'U' => (10, u8::is_ascii_hexdigit),
        b'0'..=b'3' => (4, is_octal),
        _ => return Err(1),
    };
    let digits = rest[2..].iter().take(length - 2).take_while(|it| fits(it));
    match 2 + digits.count() {
        whole if whole == length => Ok(length),
        part => Err(part),
    }
}

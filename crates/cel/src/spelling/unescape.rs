//! The text of literals. Follows `unescape` of cel-go.

/// The error of a literal that has an escape which is none.
pub(super) const UNABLE: &str = "unable to unescape string";

/// Returns the bytes of a literal, whose content is between its quotes.
///
/// # Errors
/// Fails with the words of cel-go about the first escape that is wrong.
pub(super) fn unescape(
    content: &str,
    is_raw: bool,
    is_bytes: bool,
) -> Result<Vec<u8>, &'static str> {
    let content = content.replace("\r\n", "\n").replace('\r', "\n");
    if is_raw {
        return Ok(content.into_bytes());
    }
    let mut made = Vec::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(letter) = rest.next() {
        let mut utf8 = [0; 4];
        let mut push = |letter: char| made.extend(letter.encode_utf8(&mut utf8).bytes());
        if letter != '\\' {
            push(letter);
            continue;
        }
        let number = match rest.next().ok_or(UNABLE)? {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            same @ ('\\' | '\'' | '"' | '`' | '?') => u32::from(same),
            'x' | 'X' => digits(&mut rest, 2)?,
            'u' if !is_bytes => digits(&mut rest, 4)?,
            'U' if !is_bytes => digits(&mut rest, 8)?,
            first @ '0'..='3' => {
                let mut value = first.to_digit(8).ok_or(UNABLE)?;
                for _ in 0..2 {
                    let digit = rest.next().and_then(|it| it.to_digit(8));
                    let why = "unable to unescape octal sequence in string";
                    value = value * 8 + digit.ok_or(why)?;
                }
                value
            }
            _ => return Err(UNABLE),
        };
        match (is_bytes, u8::try_from(number)) {
            (true, Ok(byte)) => made.push(byte),
            _ => push(char::from_u32(number).ok_or("invalid unicode code point")?),
        }
    }
    Ok(made)
}

/// Reads so many hexadecimal digits.
fn digits(rest: &mut std::str::Chars<'_>, count: usize) -> Result<u32, &'static str> {
    let mut value: u32 = 0;
    for _ in 0..count {
        let digit = rest.next().and_then(|it| it.to_digit(16));
        value = value.wrapping_mul(16) | digit.ok_or(UNABLE)?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_unescaped_as_by_cel_go() {
        for (content, text) in [
            ("it's \\'\\\"\\`\\?", Ok("it's '\"`?")),
            ("\\x41\\X41\\101\\u00e9\\U0001F600", Ok("AAAé😀")),
            ("\\xe9\\351", Ok("éé")),
            ("a\r\nb\rc", Ok("a\nb\nc")),
            ("\\ud800", Err("invalid unicode code point")),
            ("\\q", Err(UNABLE)),
        ] {
            let found = unescape(content, false, false);
            assert_eq!(found, text.map(|it| it.as_bytes().to_vec()), "{content}");
        }
        let bytes = unescape("\\xff\\377é\\n", false, true);
        assert_eq!(bytes, Ok(b"\xff\xff\xc3\xa9\n".to_vec()));
        assert_eq!(unescape("\\u00e9", false, true), Err(UNABLE));
        assert_eq!(unescape("\\n", true, false), Ok(b"\\n".to_vec()));
    }
}

//! JSON strings as Go writes them: characters that are special in HTML or JavaScript are escaped too, and every byte
//! that is not UTF-8 becomes a replacement character.

use super::output::Output;

/// The bytes that are never escaped, by value.
const PLAIN: [bool; 256] = plain();

/// A word of which every byte is 1, and one with the highest bit of every byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHEST: u64 = ONES << 7;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The length of the line and the paragraph separator in bytes. Go escapes both, since JavaScript ends a line there.
pub(super) const SEPARATOR_BYTES: usize = 3;

/// The number of quotes around a string.
const QUOTES: usize = 2;

/// The replacement of bytes that are not UTF-8.
pub(super) const REPLACEMENT: &[u8] = b"\\ufffd";

/// Appends a string, with its quotes.
#[inline]
pub(super) fn put(out: &mut Output, text: &[u8]) {
    let start = out.len();
    if let Some([open, room @ .., close]) = out.room(text.len() + QUOTES) {
        if copy_plain(room, text) {
            (*open, *close) = (b'"', b'"');
            return;
        }
        out.truncate(start);
    }
    escape(out, text);
}

/// Copies a text into a buffer of its length; false if a byte may have to be escaped, and not everything was copied.
/// Eight bytes are looked at together, some of them twice.
#[inline]
fn copy_plain(room: &mut [u8], text: &[u8]) -> bool {
    if let (Some(last), Some(last_room)) = (text.last_chunk(), room.last_chunk_mut()) {
        let mut others = may_be_other(u64::from_le_bytes(*last));
        *last_room = *last;
        let (words, _) = text.as_chunks::<8>();
        let (rooms, _) = room.as_chunks_mut::<8>();
        for (room, word) in rooms.iter_mut().zip(words) {
            others |= may_be_other(u64::from_le_bytes(*word));
            *room = *word;
        }
        others & HIGHEST == 0
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let ends = [u32::from_le_bytes(*first), u32::from_le_bytes(*last)];
        room.copy_from_slice(text);
        may_be_other(u64::from(ends[0]) << 32 | u64::from(ends[1])) & HIGHEST == 0
    } else {
        room.copy_from_slice(text);
        text.iter().all(|byte| is_plain(*byte))
    }
}

/// Returns a word in which the highest bit of some byte is set if a byte must be escaped; perhaps for `^`, `|` and `~`
/// too, which look like `<`, `>` and backslashes then.
#[inline]
const fn may_be_other(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20);
    let quote_or_and = (word | (ONES * 0x04)) ^ (ONES * b'&' as u64);
    let bracket_or_backslash = (word | (ONES * 0x62)) ^ (ONES * 0x7e);
    control | word | quote_or_and.wrapping_sub(ONES) | bracket_or_backslash.wrapping_sub(ONES)
}

/// Returns how many bytes at the beginning need no escape. Eight are looked at together.
#[inline]
pub(super) fn plain_bytes(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let others = not_plain(u64::from_le_bytes(*word));
        if others != 0 {
            return at * 8 + others.trailing_zeros() as usize / 8;
        }
    }
    let other = rest.iter().position(|byte| !is_plain(*byte));
    words.len() * 8 + other.unwrap_or(rest.len())
}

/// Returns how many bytes at the beginning are neither quotes nor backslashes. Eight are looked at together.
#[inline]
pub(super) fn unquoted_bytes(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((word, after)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        let others = (equal(word, b'"') | equal(word, b'\\')) & HIGHEST;
        if others != 0 {
            return text.len() - rest.len() + others.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    let other = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    text.len() - rest.len() + other.unwrap_or(rest.len())
}

/// Returns a word in which the highest bit of every byte that must be escaped is set; above the first of them it may be
/// set for others too.
#[inline]
const fn not_plain(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote_or_and = equal(word | (ONES * 0x04), b'&');
    let less_or_greater = equal(word | (ONES * 0x02), b'>');
    (control | word | quote_or_and | less_or_greater | equal(word, b'\\')) & HIGHEST
}

/// Returns true if a byte is never escaped.
#[inline]
pub(super) fn is_plain(byte: u8) -> bool {
    PLAIN[usize::from(byte)]
}

/// Returns true if a text begins with U+2028 or U+2029.
pub(super) fn is_separator(text: &[u8]) -> bool {
    matches!(text, [0xe2, 0x80, 0xa8 | 0xa9, ..])
}

/// Appends the escape of the separator with which a text begins.
pub(super) fn put_separator(out: &mut Output, text: &[u8]) {
    let is_line = text.starts_with(&[0xe2, 0x80, 0xa8]);
    out.put(if is_line { b"\\u2028" } else { b"\\u2029" });
}

/// Appends the escape of a byte.
pub(super) fn put_escaped(out: &mut Output, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        8 => b'b',
        12 => b'f',
        _ => {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.put(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            return;
        }
    };
    out.put(&[b'\\', short]);
}

#[cold]
fn escape(out: &mut Output, text: &[u8]) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid().as_bytes();
        let mut from = 0;
        for (at, byte) in valid.iter().enumerate() {
            if is_plain(*byte) || *byte >= 0x80 && !is_separator(&valid[at..]) {
                continue;
            }
            out.put(&valid[from..at]);
            if *byte < 0x80 {
                put_escaped(out, *byte);
                from = at + 1;
            } else {
                put_separator(out, &valid[at..]);
                from = at + SEPARATOR_BYTES;
            }
        }
        out.put(&valid[from..]);
        for _ in chunk.invalid() {
            out.put(REPLACEMENT);
        }
    }
    out.push(b'"');
}

/// Returns a word in which the highest bit of the first byte that is equal to `byte` is set.
#[inline]
const fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference
}

const fn plain() -> [bool; 256] {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x80 {
        plain[byte] = !matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&');
        byte += 1;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_looked_at_as_bytes_are() {
        for byte in 0..=255u8 {
            for at in 0..9 {
                let mut text = *b"abcdefghi";
                text[at] = byte;
                let expected = text.iter().position(|byte| !is_plain(*byte));
                assert_eq!(plain_bytes(&text), expected.unwrap_or(9), "{byte} at {at}");
            }
        }
    }

    #[test]
    fn texts_are_escaped_wherever_they_need_it() {
        let written = |write: fn(&mut Output, &[u8]), text: &[u8]| {
            let mut out = Output::new(text.len());
            write(&mut out, text);
            out.finish().expect("room")
        };
        for byte in 0..=255u8 {
            for length in 1..=25 {
                for at in 0..length {
                    let mut text = b"abcdefghijklmnopqrstuvwxyz"[..length].to_vec();
                    text[at] = byte;
                    assert_eq!(
                        written(put, &text),
                        written(escape, &text),
                        "{byte} at {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn texts_are_those_of_go() {
        for (text, expected) in [
            (&b""[..], r#""""#),
            (b"plain text \x7f", "\"plain text \x7f\""),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\x00\x08\x0c\n\r\t\x1f", r#""\u0000\b\f\n\r\t\u001f""#),
            (b"<a href=\"x\">&", r#""\u003ca href=\"x\"\u003e\u0026""#),
            ("é € 😀".as_bytes(), "\"é € 😀\""),
            (
                "a\u{2028}b\u{2029}c\u{2027}".as_bytes(),
                "\"a\\u2028b\\u2029c\u{2027}\"",
            ),
            (b"a\xffb\xe2\x80", r#""a\ufffdb\ufffd\ufffd""#),
        ] {
            let mut out = Output::new(text.len());
            put(&mut out, text);
            let written = out.finish().expect("room");
            assert_eq!(String::from_utf8(written).expect("text"), expected);
        }
    }
}

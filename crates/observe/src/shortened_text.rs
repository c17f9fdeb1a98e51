//! Texts that clients choose, shortened for the status document.

/// Maximum number of bytes that are kept of each.
const TEXT_BYTES_MAX: usize = 256;

/// The characters that change the direction or the lines of a text.
const DIRECTIONS: [char; 14] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
    '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Returns the start of a text.
pub(crate) fn prefix(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Returns a copy of the start of a text. A terminal or page shows it as one line from left to right: characters that
/// would change that are replaced.
pub(crate) fn shortened(text: &str) -> Box<str> {
    let shown = |it: char| match it.is_control() || DIRECTIONS.contains(&it) {
        true => char::REPLACEMENT_CHARACTER,
        false => it,
    };
    let text = prefix(text);
    // Nearly all are printable ASCII, and each request has some.
    match text.bytes().all(|it| matches!(it, b' '..=b'~')) {
        true => text.into(),
        false => text.chars().map(shown).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_off_between_characters() {
        assert_eq!(&*shortened("short"), "short");
        let long = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        assert_eq!(shortened(&long).len(), TEXT_BYTES_MAX - 1);
    }

    #[test]
    fn a_text_stays_one_line_from_left_to_right() {
        let shown = shortened("a\n!! forged\u{1b}[2J\u{202e}b");
        assert_eq!(&*shown, "a\u{fffd}!! forged\u{fffd}[2J\u{fffd}b");
    }
}

//! Texts that clients choose and that are kept for those who look at the server, cut off where they are long.

/// Maximum number of bytes that are kept of each.
const TEXT_BYTES_MAX: usize = 256;

/// Returns the start of a text.
pub(crate) fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Returns a copy of the start of a text.
pub(crate) fn start_of(text: &str) -> Box<str> {
    start(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_off_between_characters() {
        assert_eq!(&*start_of("short"), "short");
        let long = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        assert_eq!(start_of(&long).len(), TEXT_BYTES_MAX - 1);
    }
}

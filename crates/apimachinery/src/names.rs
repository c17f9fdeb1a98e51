//! Names of objects that are created with `generateName`.

use rand::seq::IndexedRandom;

/// Maximum length of a generated name in bytes.
const NAME_BYTES_MAX: usize = 63;
/// Number of random characters at the end of a generated name.
const SUFFIX_BYTES: usize = 5;
/// Characters of the random end: no vowels, which could form words, and none that is easily misread.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Generates a name: `base`, cut so that the name fits `NAME_BYTES_MAX`, and `SUFFIX_BYTES` random characters.
pub fn generate_name(base: &str) -> String {
    let mut end = base.len().min(NAME_BYTES_MAX - SUFFIX_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut random = rand::rng();
    let suffix = (0..SUFFIX_BYTES).filter_map(|_| ALPHABET.choose(&mut random));
    base[..end]
        .chars()
        .chain(suffix.map(|byte| char::from(*byte)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_characters_of_the_alphabet_follow_the_base() {
        let name = generate_name("web-");
        let suffix = name.strip_prefix("web-").expect("the base comes first");
        assert_eq!(suffix.len(), 5);
        assert!(
            suffix.bytes().all(|byte| ALPHABET.contains(&byte)),
            "{suffix}"
        );
        assert_ne!(
            generate_name("web-"),
            generate_name("web-"),
            "by one in 14 million"
        );
    }

    #[test]
    fn a_long_base_is_cut() {
        assert_eq!(generate_name(&"a".repeat(100)).len(), 63);
        let name = generate_name(&"é".repeat(100));
        assert!(
            name.starts_with(&"é".repeat(29)) && name.len() == 63,
            "{name}"
        );
    }
}

//! The syntax of label keys and values, with Kubernetes' error messages.

/// Maximum number of bytes of a label's value, and of a key without its prefix.
const NAME_BYTES_MAX: usize = 63;
/// Maximum number of bytes of a key's prefix.
const SUBDOMAIN_BYTES_MAX: usize = 253;

const KEY_SYNTAX: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
    used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_SYNTAX: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN_SYNTAX: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Returns the errors in a label's key.
#[must_use]
pub fn label_key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {KEY_SYNTAX} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            let found = if prefix.is_empty() {
                vec!["must be non-empty".to_owned()]
            } else {
                subdomain_errors(prefix)
            };
            errors.extend(found.iter().map(|error| format!("prefix part {error}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_BYTES_MAX {
        errors.push(format!("name part {}", too_long(NAME_BYTES_MAX)));
    }
    if !is_name(name) {
        errors.push(format!("name part {KEY_SYNTAX}"));
    }
    errors
}

/// Returns the errors in a label's value.
#[must_use]
pub fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > NAME_BYTES_MAX {
        errors.push(too_long(NAME_BYTES_MAX));
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(VALUE_SYNTAX.to_owned());
    }
    errors
}

fn subdomain_errors(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !text
        .split('.')
        .all(|part| is_word(part, alphanumeric, |byte| byte == b'-'))
    {
        errors.push(SUBDOMAIN_SYNTAX.to_owned());
    }
    errors
}

fn is_name(text: &str) -> bool {
    is_word(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// Returns true if a text consists of letters, and of marks except at its ends.
fn is_word(text: &str, letter: impl Fn(u8) -> bool, mark: impl Fn(u8) -> bool) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(&letter))
        && text.bytes().all(|byte| letter(byte) || mark(byte))
}

fn too_long(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_name_and_maybe_a_subdomain() {
        let long = "x".repeat(63);
        for key in ["a", "A_b-C.9", "example.com/a", "a-b.c/x", &long] {
            assert_eq!(label_key_errors(key), Vec::<String>::new(), "{key}");
        }
        for (key, starts) in [
            (
                "",
                vec!["name part must be non-empty", "name part must consist"],
            ),
            (
                "a/",
                vec!["name part must be non-empty", "name part must consist"],
            ),
            ("/a", vec!["prefix part must be non-empty"]),
            ("A/a", vec!["prefix part a lowercase RFC 1123 subdomain"]),
            ("a..b/a", vec!["prefix part a lowercase RFC 1123 subdomain"]),
            ("a/b/c", vec!["a valid label key must consist"]),
            ("-a", vec!["name part must consist"]),
            ("a\u{e4}", vec!["name part must consist"]),
            (
                &"x".repeat(64),
                vec!["name part must be no more than 63 bytes"],
            ),
        ] {
            let errors = label_key_errors(key);
            assert_eq!(errors.len(), starts.len(), "{key}: {errors:?}");
            for (error, start) in errors.iter().zip(starts) {
                assert!(error.starts_with(start), "{key}: {error}");
            }
        }
    }

    #[test]
    fn values_are_names_or_empty() {
        for value in ["", "a", "1.2_3-x"] {
            assert_eq!(label_value_errors(value), Vec::<String>::new(), "{value}");
        }
        for value in ["-", "a/b", "a ", ".a"] {
            assert_eq!(label_value_errors(value).len(), 1, "{value}");
        }
    }
}

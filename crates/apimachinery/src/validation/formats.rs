//! The formats of names, labels and keys.
//!
//! Every function returns one message for each rule that the value breaks, and none if it is valid.
//! The messages quote Kubernetes' regular expressions, though no regular expression runs.

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const DNS_LABEL_BYTES_MAX: usize = 63;
const DNS_SUBDOMAIN_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// The syntax of the names of a type's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower case labels joined by dots (RFC 1123).
    DnsSubdomain,
    /// One lower case label (RFC 1123).
    DnsLabel,
    /// Lower case labels joined by dots (RFC 1123), of kinds that declare so. The beginning of a generated name can be
    /// that of any segment of a URL path.
    GeneratedDnsSubdomain,
    /// Any text that can be one segment of a URL path.
    PathSegment,
    /// Any text that can be one segment of a URL path, as must be the beginning of a generated name.
    StrictPathSegment,
    /// Any text: the kind's own validation has a rule.
    OfKind,
}

/// Checks a name against a rule. With `prefix` it is the beginning of a generated name, which may end with a dash.
#[must_use]
pub fn name(value: &str, rule: NameRule, prefix: bool) -> Vec<String> {
    let masked = || {
        if prefix {
            mask_trailing_dash(value)
        } else {
            value.to_owned()
        }
    };
    match rule {
        NameRule::DnsLabel => dns_label(&masked()),
        NameRule::GeneratedDnsSubdomain if prefix => path_segment(value, prefix),
        NameRule::GeneratedDnsSubdomain => declared_subdomain(value),
        NameRule::DnsSubdomain => dns_subdomain(&masked()),
        NameRule::PathSegment => path_segment(value, prefix),
        NameRule::StrictPathSegment => path_segment(value, false),
        NameRule::OfKind => Vec::new(),
    }
}

/// Checks a lower case label of a domain name (RFC 1123).
#[must_use]
pub fn dns_label(value: &str) -> Vec<String> {
    let mut wrong = name_too_long(value, DNS_LABEL_BYTES_MAX);
    if !is_dns_label(value) {
        wrong.push(if is_dns_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            mismatch(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                DNS_LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    wrong
}

/// Checks a lower case label of a domain name that begins with a letter (RFC 1035).
#[must_use]
pub fn dns_1035_label(value: &str) -> Vec<String> {
    let mut wrong = name_too_long(value, DNS_LABEL_BYTES_MAX);
    if !is_dns_label(value) || !value.starts_with(|first: char| first.is_ascii_lowercase()) {
        wrong.push(mismatch(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            DNS_1035_LABEL,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// Checks a lower case domain name (RFC 1123).
#[must_use]
pub fn dns_subdomain(value: &str) -> Vec<String> {
    let mut wrong = name_too_long(value, DNS_SUBDOMAIN_BYTES_MAX);
    wrong.extend(subdomain_mismatch(value));
    wrong
}

/// Checks a lower case domain name (RFC 1123) in the words of declarative validation, which counts bytes.
fn declared_subdomain(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, DNS_SUBDOMAIN_BYTES_MAX);
    wrong.extend(subdomain_mismatch(value));
    wrong
}

/// Returns the error of a text that has not the form of a domain name, however long it is.
fn subdomain_mismatch(value: &str) -> Option<String> {
    let wrong = || {
        mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            DNS_SUBDOMAIN,
            &["example.com"],
        )
    };
    (!is_dns_subdomain(value)).then(wrong)
}

/// Checks a segment of a URL path, or with `prefix` the beginning of one.
#[must_use]
pub fn path_segment(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(value, "." | "..") {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| value.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// Checks the key of a label: `name` or `prefix/name`. Finalizers and keys of annotations have the same form.
#[must_use]
pub fn label_key(value: &str) -> Vec<String> {
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let (prefix, name) = match value.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            let words = mismatch(WORDS, LABEL_KEY, EXAMPLES);
            return vec![format!(
                "a valid label key {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, value),
    };
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => wrong.extend(
            too_long(prefix, DNS_SUBDOMAIN_BYTES_MAX)
                .into_iter()
                .chain(subdomain_mismatch(prefix))
                .map(|words| format!("prefix part {words}")),
        ),
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(
        too_long(name, LABEL_BYTES_MAX)
            .into_iter()
            .map(|words| format!("name part {words}")),
    );
    if !is_label_name(name) {
        let words = mismatch(WORDS, LABEL_KEY, EXAMPLES);
        wrong.push(format!("name part {words}"));
    }
    wrong
}

/// Checks the value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_BYTES_MAX);
    if !value.is_empty() && !is_label_name(value) {
        wrong.push(mismatch(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

fn is_dns_label(value: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = value.as_bytes();
    bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

fn is_dns_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

fn is_label_name(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Replaces a dash at the end of a prefix, since generated characters will follow it.
pub fn mask_trailing_dash(prefix: &str) -> String {
    let mut masked = prefix.to_owned();
    if prefix.len() > 1 && masked.ends_with('-') {
        masked.pop();
        masked.pop();
        masked.push('a');
    }
    masked
}

/// Returns the error of a value of more than `bytes_max` bytes, or nothing.
pub fn too_long(value: &str, bytes_max: usize) -> Vec<String> {
    if value.len() > bytes_max {
        vec![format!("must be no more than {bytes_max} bytes")]
    } else {
        Vec::new()
    }
}

/// Returns the error of a name of more than `bytes_max` bytes, or nothing. The words are those of `MaxLenError` beside
/// `IsDNS1123Label`, which differ from those for keys and values of labels.
pub fn name_too_long(value: &str, bytes_max: usize) -> Vec<String> {
    let why = || format!("must be no more than {bytes_max} characters");
    (value.len() > bytes_max).then(why).into_iter().collect()
}

/// Formats the message for a value that does not match a regular expression. Examples are joined as Kubernetes joins
/// them, spaces included.
pub fn mismatch(words: &str, expression: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|it| format!("'{it}', ")).collect();
    format!(
        "{words} (e.g. {}regex used for validation is '{expression}')",
        examples.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subdomains_in_kubernetes_words() {
        assert!(dns_subdomain("a.b-c.1").is_empty());
        assert_eq!(
            dns_subdomain("Bad_Name"),
            [
                r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        for wrong in ["", "-a", "a-", "a..b", ".a", "a.", "a_b", "é"] {
            assert_eq!(dns_subdomain(wrong).len(), 1, "{wrong:?}");
        }
        assert_eq!(
            dns_subdomain(&"a".repeat(254)),
            ["must be no more than 253 characters"]
        );
    }

    #[test]
    fn labels_have_no_dots() {
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert!(
            dns_label("A")[0].contains("(e.g. 'my-name',  or '123-abc', regex used for validation")
        );
        assert!(dns_label("1a").is_empty());
        assert_eq!(dns_1035_label("1a").len(), 1);
        assert!(dns_1035_label("a1").is_empty());
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        assert!(name("web-", NameRule::DnsSubdomain, true).is_empty());
        assert!(!name("web-", NameRule::DnsSubdomain, false).is_empty());
        assert!(!name("Web-", NameRule::DnsLabel, true).is_empty());
        assert!(!name("-", NameRule::DnsSubdomain, true).is_empty());
    }

    #[test]
    fn path_segments_take_almost_anything() {
        assert!(name("system:Node 1", NameRule::PathSegment, false).is_empty());
        assert_eq!(
            name("..", NameRule::PathSegment, false),
            ["may not be '..'"]
        );
        assert!(name("..", NameRule::PathSegment, true).is_empty());
        assert_eq!(
            name("..", NameRule::StrictPathSegment, true),
            ["may not be '..'"]
        );
        assert!(name("A_", NameRule::GeneratedDnsSubdomain, true).is_empty());
        assert!(!name("a/", NameRule::GeneratedDnsSubdomain, true).is_empty());
        assert!(!name("A_b", NameRule::GeneratedDnsSubdomain, false).is_empty());
        assert_eq!(
            name(&"a".repeat(254), NameRule::GeneratedDnsSubdomain, false),
            ["must be no more than 253 bytes"]
        );
        assert!(name("a/b", NameRule::OfKind, false).is_empty());
        assert_eq!(
            path_segment("a/%", false),
            ["may not contain '/'", "may not contain '%'"]
        );
    }

    #[test]
    fn label_keys_have_a_name_and_perhaps_a_prefix() {
        for right in [
            "a",
            "A_b.c-1",
            "example.com/a",
            "kubernetes.io/metadata.name",
        ] {
            assert!(label_key(right).is_empty(), "{right}");
        }
        assert!(label_key("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert!(label_key("/a")[0].starts_with("prefix part must be non-empty"));
        assert!(label_key("A/a")[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
        assert_eq!(label_key("").len(), 2);
        assert_eq!(
            label_key(&"a".repeat(64)),
            ["name part must be no more than 63 bytes"]
        );
    }

    #[test]
    fn label_values_may_be_empty() {
        assert!(label_value("").is_empty());
        assert!(label_value("a_B.1").is_empty());
        assert!(label_value("a b")[0].starts_with("a valid label must be an empty string"));
        assert_eq!(label_value(&"a".repeat(64)).len(), 1);
    }
}

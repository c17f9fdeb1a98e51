//! The options of pods and containers on Windows.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};

/// Maximum length of the credentials of a container, in bytes.
const CREDENTIALS_BYTES_MAX: usize = 64 * 1024;
/// Maximum lengths of the two parts of a user's name, in bytes.
const DOMAIN_BYTES_MAX: usize = 255;
const USER_BYTES_MAX: usize = 104;
const NETBIOS_CHARACTERS_MAX: usize = 15;
const DNS_LABEL_BYTES_MAX: usize = 63;

/// Checks the options for Windows of a security context. Follows `validateWindowsSecurityContextOptions`.
pub(super) fn options(at: &Field<'_, '_>, errors: &mut Errors) {
    let name = at.at("gmsaCredentialSpecName");
    if name.is_set() {
        name.must_conform(formats::dns_subdomain, errors);
    }
    let spec = at.at("gmsaCredentialSpec");
    if spec.is_set() && spec.is_empty() {
        errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
    } else if spec.text().len() > CREDENTIALS_BYTES_MAX {
        let kibibytes = CREDENTIALS_BYTES_MAX / 1024;
        let why = format!("gmsaCredentialSpec size must be under {kibibytes} KiB");
        errors.push(spec.invalid(why));
    }
    let user = at.at("runAsUserName");
    if user.is_set() {
        user.must_conform(user_name, errors);
    }
}

/// Returns the errors in `USER` or `DOMAIN\USER`.
fn user_name(name: &str) -> Vec<String> {
    const REFUSED: &[char] = &[
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ];
    let only = |why: &str| vec![format!("runAsUserName {why}")];
    if name.is_empty() {
        return only("cannot be an empty string");
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return only("cannot contain control characters");
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return only("cannot contain more than one backslash"),
    };
    let mut wrong = Vec::new();
    if domain.is_some_and(|it| it.len() > DOMAIN_BYTES_MAX) {
        let bound = DOMAIN_BYTES_MAX + 1;
        wrong.push(format!(
            "runAsUserName's Domain length must be under {bound} characters"
        ));
    }
    if domain.is_some_and(|it| !is_netbios_name(it) && !is_dns_name(it)) {
        let why = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
        wrong.push(why.to_owned());
    }
    if user.is_empty() {
        wrong.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_BYTES_MAX {
        wrong.push(format!(
            "runAsUserName's User length must not be longer than {USER_BYTES_MAX} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        wrong.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(REFUSED) {
        let why =
            r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#;
        wrong.push(why.to_owned());
    }
    wrong
}

fn is_netbios_name(name: &str) -> bool {
    const REFUSED: &[char] = &['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    let is_short = (1..=NETBIOS_CHARACTERS_MAX).contains(&name.chars().count());
    is_short && !name.starts_with('.') && !name.contains(REFUSED)
}

/// Returns true for labels of a name in DNS, of letters of both cases, with dots between.
fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=DNS_LABEL_BYTES_MAX).contains(&label.len())
            && label.trim_matches('-') == label
            && label.chars().all(is_inner)
    };
    name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_have_a_domain_or_none() {
        for right in ["a", r"D\a b", r"example.com\x", r"a\.a"] {
            assert_eq!(user_name(right), [""; 0], "{right}");
        }
        let long = "x".repeat(USER_BYTES_MAX + 1);
        for wrong in [
            "", "a\tb", r".\a", r"a\b\c", r"\a", r"a*b\a?", "...", "a/b", r"D\", &long,
        ] {
            assert_eq!(
                user_name(wrong).len(),
                1 + usize::from(wrong == r"a*b\a?"),
                "{wrong}"
            );
        }
    }
}

//! The order of preference of a group's versions: `version.CompareKubeAwareVersionStrings` in Go.

use std::cmp::Reverse;

/// Returns a key that is greater for versions that clients should prefer: `v1` before `v2beta1` before `v1alpha3`.
/// Names of another form come last, in alphabetical order.
#[must_use]
pub fn version_order(name: &str) -> (u8, u64, u64, Reverse<&str>) {
    let other = (0, 0, 0, Reverse(name));
    let Some(rest) = name.strip_prefix('v') else {
        return other;
    };
    let (major, minor) = match rest.find(|letter: char| !letter.is_ascii_digit()) {
        None => (rest, None),
        Some(at) => (&rest[..at], Some(&rest[at..])),
    };
    let (stage, minor) = match minor {
        None => (3, "0"),
        Some(minor) => match (minor.strip_prefix("beta"), minor.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return other,
        },
    };
    // kube-apiserver reads `v1beta` as the same as `v1beta0`.
    let minor = if minor.is_empty() { "0" } else { minor };
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (stage, major, minor, Reverse("")),
        _ => other,
    }
}

//! References to images, of which the tag decides when an image is pulled.
//!
//! Follows the grammar of github.com/distribution/reference, with which Kubernetes 1.36 reads them.

use ringwatch_apimachinery::path::{set, text};
use serde_json::Value;

use crate::defaults::is_absent;

/// Maximum length of a repository's name without its domain, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// The domain of names without one, and the one that it had before.
const OWN_DOMAINS: [&str; 2] = ["docker.io", "index.docker.io"];
/// The folder of the repositories of [`OWN_DOMAINS`] that are in none.
const OWN_FOLDER: &str = "library/";
/// Maximum length of a tag, in bytes.
const TAG_BYTES_MAX: usize = 128;
/// Algorithms of digests, with the number of their hexadecimal digits.
const DIGESTS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// Sets a pull policy by the tag of the image, if there is none.
pub(crate) fn fill_pull_policy(object: &mut Value, member: &str, image: &str) {
    if is_absent(object, member) {
        let latest = is_latest(text(object, image));
        let policy = if latest { "Always" } else { "IfNotPresent" };
        set(object, member, policy.into());
    }
}

/// Returns true if an image's tag is `latest`, which is the default for an image with neither tag nor digest. False for
/// what is no reference to an image.
fn is_latest(image: &str) -> bool {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let last_name = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last_name..].find(':') {
        Some(colon) => (
            &rest[..last_name + colon],
            Some(&rest[last_name + colon + 1..]),
        ),
        None => (rest, None),
    };
    if !is_name(name) || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
        return false;
    }
    match tag {
        Some(tag) => tag == "latest",
        None => digest.is_none(),
    }
}

/// Returns true for the name of a repository, which may begin with a domain.
fn is_name(name: &str) -> bool {
    let is_id = |name: &str| name.len() == 64 && name.bytes().all(is_hex);
    if is_id(name) {
        return false;
    }
    let domain = |first: &str| {
        first == "localhost"
            || first.contains(['.', ':'])
            || first.chars().any(|c| c.is_ascii_uppercase())
    };
    let (first, path) = match name.split_once('/') {
        Some((first, path)) if domain(first) => {
            if !is_domain(first) {
                return false;
            }
            (first, path)
        }
        _ => (OWN_DOMAINS[0], name),
    };
    // Docker's own images are in a folder that names leave out.
    let is_own = OWN_DOMAINS.contains(&first) && !path.contains('/');
    let folder_bytes = if is_own { OWN_FOLDER.len() } else { 0 };
    folder_bytes + path.len() <= NAME_BYTES_MAX && path.split('/').all(is_component)
}

/// Returns true for a name of letters and digits, which single dots, one or two underscores or hyphens separate.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let ends_well = ends.iter().all(|it| it.is_some_and(|byte| is_word(*byte)));
    let mut separators = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends_well
        && separators
            .all(|it| matches!(it, "" | "." | "_" | "__") || it.bytes().all(|byte| byte == b'-'))
}

/// Returns true for a host name or an IPv6 address in brackets, with a port or without.
fn is_domain(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_label = |label: &str| {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(word)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_host = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(address) => {
            !address.is_empty()
                && address
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        }
        None => host.split('.').all(is_label),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_host && port.is_none_or(is_port)
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_BYTES_MAX
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || b".-".contains(&byte))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        DIGESTS.contains(&(algorithm, hex.len())) && hex.bytes().all(is_hex)
    })
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_image_is_known_by_its_tag() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        for latest in [
            "nginx",
            "nginx:latest",
            "a/b__c--d.e/f",
            "host:5000/nginx",
            "Example.com/nginx",
            "[fd00::1]:5000/a",
            "localhost/a",
        ] {
            assert!(is_latest(latest), "{latest}");
            assert!(!is_latest(&format!("{latest}@{digest}")) || latest.ends_with(":latest"));
        }
        assert!(is_latest(&format!("nginx:latest@{digest}")));
        for other in ["host:5000/nginx:1", "nginx:v1", ""] {
            assert!(!is_latest(other), "{other}");
        }
    }

    #[test]
    fn what_is_no_image_has_no_tag() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        let longest = &long[1..];
        for name in [
            &format!("example.com/{longest}"),
            &longest[OWN_FOLDER.len()..],
            &format!("docker.io/{}", &longest[OWN_FOLDER.len()..]),
            &format!("docker.io/a/{}", &longest[2..]),
        ] {
            assert!(is_latest(name), "{name}");
        }
        for name in [longest, &format!("index.docker.io/{longest}")] {
            assert!(!is_latest(name), "{name}");
        }
        let id = "0".repeat(64);
        for wrong in [
            "NGINX",
            "i_!",
            "a..b",
            "a___b",
            "-a",
            "a/",
            "a//b",
            "host:x/a",
            "-host.com/a",
            "nginx:latest@sha256:abc",
            "nginx@md5:0123",
            "nginx:",
            &long,
            &id,
        ] {
            assert!(!is_latest(wrong), "{wrong}");
        }
    }
}

//! The names in a pod's network: name servers, domains in which names are looked up, and aliases of hosts.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};
use crate::validation::values::ip;

/// Maximum numbers of name servers and of search domains of a pod.
const NAME_SERVERS_MAX: usize = 3;
const SEARCH_DOMAINS_MAX: usize = 32;
/// Maximum length of all search domains with spaces between them.
const SEARCH_CHARACTERS_MAX: usize = 2048;

/// Checks where the names of a pod are looked up. Follows `validatePodDNSConfig`.
pub(super) fn name_servers(spec: &Field<'_, '_>, errors: &mut Errors) {
    let config = spec.at("dnsConfig");
    let servers = config.at("nameservers");
    if spec.at("dnsPolicy").text() == "None" && servers.is_empty() {
        errors.push(if config.is_set() {
            servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None")
        } else {
            config.required("must provide `dnsConfig` when `dnsPolicy` is None")
        });
        return;
    }
    if servers.len() > NAME_SERVERS_MAX {
        let why = format!("must not have more than {NAME_SERVERS_MAX} nameservers");
        errors.push(servers.invalid(why));
    }
    for server in servers.items("") {
        server.must_conform(ip, errors);
    }
    let domains = config.at("searches");
    if domains.len() > SEARCH_DOMAINS_MAX {
        let why = format!("must not have more than {SEARCH_DOMAINS_MAX} search paths");
        errors.push(domains.invalid(why));
    }
    let characters: usize = domains.items("").map(|it| it.text().len() + 1).sum();
    if characters > SEARCH_CHARACTERS_MAX + 1 {
        let why = format!(
            "must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        );
        errors.push(domains.invalid(why));
    }
    for domain in domains.items("").filter(|it| it.text() != ".") {
        let text = domain.text();
        let text = text.strip_suffix('.').unwrap_or(text);
        let wrong = search_domain(text).into_iter();
        errors.extend(wrong.map(|why| domain.invalid_value(text, why)));
    }
    for option in config.items("options") {
        if option.at("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

/// Checks the names of hosts that a pod knows by itself. Follows `ValidateHostAliases`.
pub(super) fn host_aliases(spec: &Field<'_, '_>, errors: &mut Errors) {
    for alias in spec.items("hostAliases") {
        alias.at("ip").must_conform(ip, errors);
        for name in alias.items("hostnames") {
            name.must_conform(formats::dns_subdomain, errors);
        }
    }
}

/// Returns the errors in a domain in which names are looked up; it may have underscores.
fn search_domain(text: &str) -> Vec<String> {
    const BYTES_MAX: usize = 253;
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.strip_prefix('_').unwrap_or(part).as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|it| it.is_some_and(|byte| word(*byte)))
            && bytes.iter().all(|byte| word(*byte) || b"-_".contains(byte))
    };
    let mut wrong = formats::too_long(text, BYTES_MAX);
    if !text.split('.').all(is_part) {
        wrong.push(formats::mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    wrong
}

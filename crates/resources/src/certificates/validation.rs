//! CertificateSigningRequests: the request, its approval, and the issued certificate.
//!
//! Follows pkg/apis/certificates/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::go_text::quoted;
use ringwatch_apimachinery::path::{list, text};
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::certificates::pem::{SigningRequest, bytes, check_certificates};
use crate::validation::field::{Errors, Field};

/// The signer of old requests, of which no new ones are made.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// The conditions that only approvers may set, and only once.
const VERDICTS: &[&str] = &["Approved", "Denied"];
/// The conditions that may not be removed.
const FINAL: &[&str] = &["Approved", "Denied", "Failed"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];
const CONDITIONS: &str = "status.conditions";
const DNS_SUBDOMAIN_BYTES_MAX: usize = 253;
/// Maximum length of a signer's name: a domain, a slash, and a path that is a subdomain, a dot and a label.
const SIGNER_BYTES_MAX: usize = DNS_SUBDOMAIN_BYTES_MAX + 1 + 253 + 1 + 63;

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Checks the spec of a new CertificateSigningRequest. The spec is immutable. Follows
/// `ValidateCertificateSigningRequestCreate`.
pub(crate) fn new_request(request: &Field<'_, '_>, errors: &mut Errors) {
    let spec = request.at("spec");
    let pem = spec.at("request");
    if let Err(why) = SigningRequest::read(&bytes(pem.text())) {
        errors.push(pem.invalid_value(pem.value().clone(), why));
    }
    spec.at("usages").must_be_set(errors);
    for usage in spec.items("usages") {
        if !USAGES.contains(&usage.text()) {
            errors.push(usage.unsupported(USAGES));
        }
    }
    let mut seen = HashSet::new();
    for usage in spec.items("usages") {
        if !seen.insert(usage.text()) {
            errors.push(usage.duplicate());
        }
    }
    let signer = spec.at("signerName");
    if signer.text() == LEGACY_SIGNER {
        errors.push(signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        signer_name(&signer, errors);
    }
    let seconds = spec.at("expirationSeconds");
    if seconds
        .number()
        .is_some_and(|it| it < EXPIRATION_SECONDS_MIN)
    {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(seconds.invalid(why));
    }
}

/// Checks the name of a signer: a domain and a path. Follows `ValidateSignerName` in pkg/apis/core/validation.
fn signer_name(signer: &Field<'_, '_>, errors: &mut Errors) {
    if signer.text().is_empty() {
        errors.push(signer.required(""));
        return;
    }
    let segments: Vec<&str> = signer.text().split('/').collect();
    let [domain, path] = segments[..] else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(signer.invalid(why));
        return;
    };
    if domain.len() > DNS_SUBDOMAIN_BYTES_MAX {
        errors.push(signer.too_long(DNS_SUBDOMAIN_BYTES_MAX));
    }
    labels(signer, domain, formats::dns_label, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(signer.invalid_value(domain, why));
    }
    labels(signer, path, formats::dns_subdomain, errors);
    if signer.text().len() > SIGNER_BYTES_MAX {
        errors.push(signer.too_long(SIGNER_BYTES_MAX));
    }
}

/// Adds an error about the first invalid one of the labels between dots.
fn labels(signer: &Field<'_, '_>, text: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let wrong = text.split('.').map(|label| (label, rule(label)));
    let Some((label, why)) = wrong.into_iter().find(|(_, why)| !why.is_empty()) else {
        return;
    };
    let why = why
        .iter()
        .map(|why| format!("validating label {}: {why}", quoted(label)));
    errors.extend(why.map(|why| signer.invalid_value(text, &why)));
}

/// Checks an update of `approval`: a request is approved or denied once. Follows
/// `ValidateCertificateSigningRequestApprovalUpdate`.
pub(crate) fn approval(request: &Value, old: &Value) -> Errors {
    let mut errors = conditions(request, old);
    errors.extend(taken_back(request, old));
    errors
}

/// Checks an update of the status: a certificate is issued once, and the signer does not approve. Follows
/// `ValidateCertificateSigningRequestStatusUpdate`.
pub(crate) fn status(request: &Value, old: &Value) -> Errors {
    let mut errors = conditions(request, old);
    let certificate = Field::root(request);
    let certificate = certificate.at("status.certificate");
    let before = text(old, "status.certificate");
    let (issued, before) = (bytes(certificate.text()), bytes(before));
    let tolerated = issued.is_empty() || !before.is_empty() && check_certificates(&before).is_err();
    if issued != before
        && !tolerated
        && let Err(why) = check_certificates(&issued)
    {
        errors.push(certificate.invalid_value("<certificate data>", &why));
    }
    errors.extend(taken_back(request, old));
    for kind in VERDICTS {
        if count(request, kind) > count(old, kind) {
            let why = format!("updates may not add a condition of type {kind:?}");
            errors.push(FieldError::forbidden(CONDITIONS, why));
        }
    }
    if issued != before && !before.is_empty() {
        errors.push(certificate.forbidden("updates may not modify existing certificate content"));
    }
    errors
}

fn taken_back(request: &Value, old: &Value) -> Errors {
    let gone = FINAL
        .iter()
        .filter(|kind| count(request, kind) < count(old, kind));
    let why = gone.map(|kind| format!("updates may not remove a condition of type {kind:?}"));
    why.map(|why| FieldError::forbidden(CONDITIONS, why))
        .collect()
}

/// Returns the errors in conditions, of which the old object may have those that there once could be. Follows
/// `validateConditions`.
fn conditions(request: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let before: Vec<&str> = list(old, CONDITIONS)
        .iter()
        .map(|it| text(it, "type"))
        .collect();
    let unique: HashSet<_> = before.iter().collect();
    let had_both = VERDICTS.iter().all(|kind| unique.contains(kind));
    let (had_empty, had_twice) = (unique.contains(&""), unique.len() < before.len());
    let mut seen: HashSet<&str> = HashSet::new();
    let root = Field::root(request);
    for condition in root.items(CONDITIONS) {
        let kind = condition.at("type");
        if !had_empty {
            kind.must_be_set(&mut errors);
        }
        let allowed = match kind.text() {
            it if FINAL.contains(&it) => &["True"][..],
            _ => STATUSES,
        };
        condition.at("status").must_be_one_of(allowed, &mut errors);
        let other = VERDICTS.iter().find(|other| **other != kind.text());
        let is_verdict = VERDICTS.contains(&kind.text());
        if is_verdict && !had_both && other.is_some_and(|other| seen.contains(*other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(root.at(CONDITIONS).invalid_value(kind.text(), why));
        }
        if !seen.insert(kind.text()) && !had_twice {
            errors.push(kind.duplicate_of(kind.text()));
        }
    }
    errors
}

fn count(request: &Value, kind: &str) -> usize {
    let conditions = list(request, CONDITIONS).iter();
    conditions.filter(|it| text(it, "type") == kind).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    fn signers(name: &str) -> Vec<String> {
        let name = json!(name);
        let mut errors = Errors::new();
        signer_name(&Field::root(&name), &mut errors);
        messages(&errors)
    }

    #[test]
    fn a_signer_is_a_domain_and_a_path() {
        assert_eq!(signers("example.com/a.b"), [""; 0]);
        assert_eq!(
            signers("example/a"),
            [
                ": Invalid value: \"example\": should be a domain with at least two segments separated by dots"
            ]
        );
        let domain = "a.".repeat(126) + "a";
        let path = |bytes: usize| "b.".repeat(bytes / 2 - 1) + &"b".repeat(2 + bytes % 2);
        assert_eq!(signers(&format!("{domain}/{}", path(317))), [""; 0]);
        assert_eq!(
            signers(&format!("{domain}/{}", path(318))),
            [": Too long: may not be more than 571 bytes"]
        );
        assert_eq!(signers(&format!("a.b/{}", path(500))), [""; 0]);
    }

    #[test]
    fn faults_that_conditions_had_may_stay() {
        let with = |kinds: &[&str]| {
            let condition = |kind: &&str| json!({"type": kind, "status": "True"});
            json!({"status": {"conditions": kinds.iter().map(condition).collect::<Vec<_>>()}})
        };
        let wrong = |new: &[&str], old: &[&str]| conditions(&with(new), &with(old)).len();
        assert_eq!(wrong(&["Approved", "Denied"], &["Approved"]), 1);
        assert_eq!(wrong(&["Approved", "Denied"], &["Denied", "Approved"]), 0);
        assert_eq!(
            wrong(&["X", "X", ""], &["Y", "Y"]),
            1,
            "an empty type is new"
        );
        assert_eq!(
            wrong(&["X", "X", ""], &[""]),
            1,
            "a type that is there twice is new"
        );
        let mut odd = with(&["Failed"]);
        odd["status"]["conditions"][0]["status"] = json!("False");
        assert_eq!(
            conditions(&odd, &odd).len(),
            1,
            "a status is always checked"
        );
    }

    #[test]
    fn base64_may_have_line_breaks() {
        assert_eq!(bytes("Y\nWI=\n"), b"ab");
        assert_eq!(bytes("YR=="), b"a");
    }
}

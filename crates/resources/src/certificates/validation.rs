//! CertificateSigningRequests: the request, its approval, and the issued certificate.
//!
//! Follows pkg/apis/certificates/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::certificates::pem::{SigningRequest, check_certificates};
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
/// A subdomain, a dot and a label.
const SIGNER_PATH_BYTES_MAX: usize = 253 + 1 + 63;

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
    if let Err(why) = SigningRequest::read(&bytes(pem.value())) {
        errors.push(pem.invalid(why));
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

/// Checks the name of a signer: a domain and a path.
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
    if path.len() > SIGNER_PATH_BYTES_MAX {
        errors.push(signer.too_long(SIGNER_PATH_BYTES_MAX));
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
        .map(|why| format!("validating label {label:?}: {why}"));
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
    let before = get(old, "status.certificate").unwrap_or(&Value::Null);
    let (issued, before) = (bytes(certificate.value()), bytes(before));
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

/// Returns the errors in conditions, unless there were errors before.
fn conditions(request: &Value, old: &Value) -> Errors {
    let mut before = Errors::new();
    conditions_of(&Field::root(old), &mut before);
    let mut errors = Errors::new();
    if before.is_empty() {
        conditions_of(&Field::root(request), &mut errors);
    }
    errors
}

fn conditions_of(request: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for condition in request.items(CONDITIONS) {
        let kind = condition.at("type");
        kind.must_be_set(errors);
        let status = condition.at("status");
        if status.is_empty() {
            errors.push(status.required(""));
        } else if FINAL.contains(&kind.text()) {
            status.must_be_one_of(&["True"], errors);
        } else {
            status.must_be_one_of(STATUSES, errors);
        }
        let other = VERDICTS.iter().find(|other| **other != kind.text());
        if VERDICTS.contains(&kind.text()) && other.is_some_and(|other| seen.contains(*other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(request.at(CONDITIONS).invalid_value(kind.text(), why));
        }
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate());
        }
    }
}

fn count(request: &Value, kind: &str) -> usize {
    let conditions = list(request, CONDITIONS).iter();
    conditions.filter(|it| text(it, "type") == kind).count()
}

/// Decodes base64. Other texts were refused before.
fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    STANDARD.decode(text).unwrap_or_default()
}

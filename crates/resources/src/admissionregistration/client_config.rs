//! The client configuration of webhooks: URL or service, and the review versions that they support.
//!
//! Admission webhooks and the conversion webhooks of custom resources have the same rules, but for `caBundle`, which is
//! checked of conversion webhooks alone.

use std::collections::BTreeSet;

use ringwatch_apimachinery::go_url::Url;
use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};

/// The versions of reviews that this server can send.
pub(super) const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

const PORT_MAX: i64 = 65_535;
const URL_FORM: &str = "; desired format: https://host[/path]";

/// Checks that the review versions of a webhook occur once. With `known_version`, one must be of those that this server
/// sends.
pub(crate) fn review_versions(versions: &Field<'_, '_>, known_version: bool, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for version in versions.items("") {
        if seen.insert(version.text()) {
            version.must_conform(formats::dns_1035_label, errors);
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    if known_version && !REVIEW_VERSIONS.iter().any(|it| seen.contains(it)) {
        let known = REVIEW_VERSIONS.join(", ");
        errors.push(versions.invalid(format!("must include at least one of {known}")));
    }
}

/// Checks the client configuration of a webhook: a URL or a service.
pub(crate) fn client(config: &Field<'_, '_>, errors: &mut Errors) {
    let (url, service) = (config.at("url"), config.at("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => webhook_url(&url, errors),
        (false, true) => webhook_service(&service, errors),
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

/// Follows `ValidateWebhookURL` in apiserver's pkg/util/webhook.
fn webhook_url(at: &Field<'_, '_>, errors: &mut Errors) {
    let url = match Url::parse(at.text()) {
        Ok(url) => url,
        Err(why) => {
            errors.push(at.required(&format!("url must be a valid URL: {why}{URL_FORM}")));
            return;
        }
    };
    if url.scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{URL_FORM}");
        errors.push(at.invalid_value(url.scheme.as_str(), why));
    }
    if url.host.is_empty() {
        errors.push(at.invalid_value("", format!("host must be specified{URL_FORM}")));
    }
    if let Some(user) = url.user() {
        errors.push(at.invalid_value(user, "user information is not permitted in the URL"));
    }
    for (part, why) in [
        (url.fragment(), "fragments are not permitted in the URL"),
        (
            url.raw_query().to_owned(),
            "query parameters are not permitted in the URL",
        ),
    ] {
        if !part.is_empty() {
            errors.push(at.invalid_value(part, why));
        }
    }
}

/// Follows `ValidateWebhookService` in apiserver's pkg/util/webhook.
fn webhook_service(service: &Field<'_, '_>, errors: &mut Errors) {
    // Kubernetes confuses the two: it blames the one that is there.
    for (missing, blamed) in [("namespace", "name"), ("name", "namespace")] {
        if service.at(missing).is_empty() {
            errors.push(service.at(blamed).required(""));
        }
    }
    let port = service.at("port");
    let number = port.number().unwrap_or_default();
    if !(1..=PORT_MAX).contains(&number) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(port.invalid_value(number, why));
    }
    webhook_path(&service.at("path"), errors);
}

fn webhook_path(path: &Field<'_, '_>, errors: &mut Errors) {
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => {
            errors.push(path.invalid("segment[0] may not be empty"));
            return;
        }
        _ => {}
    }
    if !text.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    // Kubernetes leaves the first byte out, whatever it is.
    let below = String::from_utf8_lossy(text.as_bytes().get(1..).unwrap_or_default());
    let below = below.strip_suffix('/').unwrap_or(&below);
    for (place, step) in below.split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{place}] may not be empty")));
            continue;
        }
        let wrong = formats::dns_subdomain(step).into_iter();
        errors.extend(wrong.map(|why| path.invalid(format!("segment[{place}]: {why}"))));
    }
}

//! Checks of APIServices.

use ringwatch_apimachinery::go_text::quoted;
use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};

const GROUP_PRIORITY_MAX: i64 = 20_000;
const VERSION_PRIORITY_MAX: i64 = 1_000;
const PORT_MAX: i64 = 65_535;

const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// Checks an APIService. Follows `ValidateAPIService` of kube-aggregator.
pub(crate) fn api_service(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let (group, version) = (spec.at("group"), spec.at("version"));
    let named = format!("{}.{}", version.text(), group.text());
    for name in ["metadata.generateName", "metadata.name"] {
        let name = object.at(name);
        // That there must be a name is said of all objects.
        if !name.is_empty()
            && name.text() != named
            && formats::path_segment(name.text(), false).is_empty()
        {
            let named = quoted(&named);
            errors.push(name.invalid(format!("must be `spec.version+\".\"+spec.group`: {named}")));
        }
    }
    if group.is_empty() && version.text() != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(group.required(why));
    }
    group.may_conform(formats::dns_subdomain, errors);
    version.must_conform(formats::dns_1035_label, errors);
    for (field, most) in [
        ("groupPriorityMinimum", GROUP_PRIORITY_MAX),
        ("versionPriority", VERSION_PRIORITY_MAX),
    ] {
        let priority = spec.at(field);
        let number = priority.number().unwrap_or_default();
        if !(1..=most).contains(&number) {
            let why = format!("must be positive and less than {most}");
            errors.push(priority.invalid_value(number, why));
        }
    }
    service(&spec, errors);
}

/// Checks the status of an APIService. Follows `ValidateAPIServiceStatus`.
pub(super) fn status(object: &Field<'_, '_>, errors: &mut Errors) {
    for condition in object.items("status.conditions") {
        let status = condition.at("status");
        if !STATUSES.contains(&status.text()) {
            errors.push(status.unsupported(&STATUSES));
        }
    }
}

/// Returns the number of bytes that base64 stands for.
fn base64_bytes(text: &str) -> usize {
    let digits = text.bytes().filter(|it| !b"=\r\n".contains(it)).count();
    digits * 3 / 4
}

/// Checks the service that serves the API, if this server does not.
fn service(spec: &Field<'_, '_>, errors: &mut Errors) {
    let (service, insecure) = (spec.at("service"), spec.at("insecureSkipTLSVerify"));
    let bundle = spec.at("caBundle");
    if !service.is_set() {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", base64_bytes(bundle.text()));
            let why = "local APIServices may not have a caBundle";
            errors.push(bundle.invalid_value(shown, why));
        }
        if insecure.is_true() {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(insecure.invalid(why));
        }
        return;
    }
    for field in ["namespace", "name"] {
        service.at(field).must_be_set(errors);
    }
    let port = service.at("port");
    if port
        .number()
        .is_some_and(|it| !(1..=PORT_MAX).contains(&it))
    {
        let why = format!("port is not valid: must be between 1 and {PORT_MAX}, inclusive");
        errors.push(port.invalid(why));
    }
    if insecure.is_true() && !bundle.is_empty() {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
}

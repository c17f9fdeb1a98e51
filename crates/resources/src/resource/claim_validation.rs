//! ResourceClaims: the spec is immutable, and an allocation stays until it is removed as a whole.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::path::{get, list};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use crate::validation::field::{Errors, Field};

const IMMUTABLE: &str = "field is immutable";
const ONE_FORM: &str = "exactly one of `exactly` or `firstAvailable` is required";
const RESERVED: &str = "status.reservedFor";
const RESERVED_MAX: usize = 256;
const REQUESTS_MAX: usize = 32;
/// Maximum number of alternatives of a device request.
const ALTERNATIVES_MAX: usize = 8;

/// Checks a ResourceClaim. Follows `ValidateResourceClaim`.
pub(crate) fn claim(claim: &Field<'_, '_>, errors: &mut Errors) {
    devices(&claim.at("spec.devices"), errors);
}

/// Checks a ResourceClaimTemplate. Follows `ValidateResourceClaimTemplate`.
pub(crate) fn template(template: &Field<'_, '_>, errors: &mut Errors) {
    devices(&template.at("spec.spec.devices"), errors);
}

/// Checks the device requests of a claim.
fn devices(devices: &Field<'_, '_>, errors: &mut Errors) {
    if has_too_many(&devices.at("requests"), REQUESTS_MAX, errors) {
        return;
    }
    let mut names = HashSet::new();
    for request in devices.items("requests") {
        let name = request.at("name");
        name.must_conform(formats::dns_label, errors);
        if !names.insert(name.text()) {
            errors.push(request.duplicate_of(name.text()));
        }
        let (exactly, first) = (request.at("exactly"), request.at("firstAvailable"));
        match (exactly.is_set(), !first.is_empty()) {
            (false, false) => errors.push(request.required(ONE_FORM)),
            (true, true) => {
                let why = format!("{ONE_FORM}, but multiple fields are set");
                errors.push(FieldError::invalid(request.field(), &Value::Null, why));
            }
            (true, false) => wanted(&exactly, errors),
            (false, true) if has_too_many(&first, ALTERNATIVES_MAX, errors) => {}
            (false, true) => {
                for sub in request.items("firstAvailable") {
                    sub.at("name").must_conform(formats::dns_label, errors);
                    wanted(&sub, errors);
                }
            }
        }
    }
}

/// Refuses a list that is too long. Its items are not looked at then.
fn has_too_many(list: &Field<'_, '_>, most: usize, errors: &mut Errors) -> bool {
    let count = list.len();
    if count > most {
        let why = format!("{count}: must have at most {most} items");
        let error = FieldError::new(FieldErrorKind::TooMany, list.field(), why);
        errors.push(error);
    }
    count > most
}

/// Checks the class of a request's devices, and its allocation mode with the number that goes with it.
fn wanted(request: &Field<'_, '_>, errors: &mut Errors) {
    let class = request.at("deviceClassName");
    class.must_be_set_and_conform(formats::dns_subdomain, errors);
    let (mode, count) = (request.at("allocationMode"), request.at("count"));
    let number = count.number().unwrap_or(0);
    match mode.text() {
        "ExactCount" if number <= 0 => errors.push(count.invalid("must be greater than zero")),
        "All" if number != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        _ => mode.may_be_one_of(&["All", "ExactCount"], errors),
    }
}

/// Checks an update of a ResourceClaim: its spec is immutable. Follows `ValidateResourceClaimUpdate`.
pub(crate) fn update(claim: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    claim.at("spec").must_stay(&old.at("spec"), errors);
}

/// Checks a change of the status of a ResourceClaim: an allocation is only removed as a whole, and only allocated
/// claims are reserved. Follows `ValidateResourceClaimStatusUpdate`.
pub(crate) fn status(claim: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let root = Field::root(claim);
    let reserved = root.at(RESERVED);
    let looked_at = !has_too_many(&reserved, RESERVED_MAX, &mut errors);
    let mut uids = HashSet::new();
    for user in reserved.items("").filter(|_| looked_at) {
        for member in ["resource", "name", "uid"] {
            user.at(member).must_be_set(&mut errors);
        }
        let uid = user.at("uid");
        if !uids.insert(uid.text()) {
            errors.push(uid.duplicate());
        }
    }
    let allocation = root.at("status.allocation");
    if !reserved.is_empty() && !allocation.is_set() {
        let why = "may not be specified when `allocated` is not set";
        errors.push(reserved.forbidden(why));
    } else if get(claim, "metadata.deletionTimestamp").is_some() {
        let before: HashSet<&Value> = list(old, RESERVED).iter().collect();
        if list(claim, RESERVED)
            .iter()
            .any(|user| !before.contains(user))
        {
            let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(reserved.forbidden(why));
        }
    }
    let before = get(old, "status.allocation").filter(|it| !it.is_null());
    if before.is_some_and(|before| allocation.is_set() && allocation.value() != before) {
        errors.push(FieldError::invalid(
            allocation.field(),
            allocation.value(),
            IMMUTABLE,
        ));
    }
    errors
}

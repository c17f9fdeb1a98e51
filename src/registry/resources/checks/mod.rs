//! Validation of objects of the built-in kinds, a file for each family of kinds.
//!
//! A check looks at a [`At`] place and pushes what is wrong with it, in kube-apiserver's words and
//! under the path that it names. Checks are put together as the types are: that of a deployment
//! asks that of a template, which asks that of a container.

pub(super) mod access;
pub(super) mod addresses;
pub(super) mod admission;
pub(super) mod api_services;
mod at;
pub(super) mod autoscaling;
pub(super) mod certificates;
pub(super) mod claims;
pub(super) mod cluster;
mod container;
pub(super) mod endpoints;
mod env;
pub(super) mod events;
pub(super) mod flowcontrol;
pub(super) mod job_status;
pub(super) mod jobs;
mod labels;
mod mounts;
pub(super) mod networking;
pub(super) mod pod;
mod pod_resources;
mod probes;
mod quantities;
pub(super) mod quotas;
pub(super) mod resource_claims;
pub(super) mod resource_slices;
mod schedule;
mod scheduling;
pub(super) mod security;
pub(super) mod services;
pub(super) mod storage;
mod success_policy;
pub(super) mod values;
mod volumes;
pub(super) mod warnings;
pub(super) mod webhook_client;
pub(super) mod workloads;

#[cfg(test)]
mod tests;

pub(super) use at::{At, Errors};

use serde_json::Value;

use crate::registry::FieldError;

/// A check of an object.
pub(super) type Check = fn(&At<'_, '_>, &mut Errors);

/// A check of a change: the new object and the old one.
pub(super) type CheckOfChange = fn(&At<'_, '_>, &At<'_, '_>, &mut Errors);

/// Gathers what clients are told about an object that is not refused.
pub(super) type Warn = fn(&At<'_, '_>, &mut Vec<String>);

/// Returns the errors that a check finds in an object.
pub(super) fn found(check: Check, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    check(&At::root(object), &mut errors);
    errors
}

/// Returns the errors that a check finds in a change.
pub(super) fn found_in_change(
    check: CheckOfChange,
    object: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let mut errors = Errors::new();
    check(&At::root(object), &At::root(old), &mut errors);
    errors
}

/// Returns the messages of errors, a line each.
#[cfg(test)]
pub(super) fn messages(errors: &[FieldError]) -> Vec<String> {
    let line = |error: &FieldError| format!("{}: {}", error.field, error.message());
    errors.iter().map(line).collect()
}

//! Prepares an object from a client for admission and the strategy; in kube-apiserver the handlers around the store do
//! this.

use std::collections::HashSet;

use ringwatch::codec;
use ringwatch_apimachinery::accessor::{self, copy, format_time, remove, set, text};
use ringwatch_apimachinery::path::keeping_empty_lists;
use ringwatch_apimachinery::{Error, bounds};
use ringwatch_apply::Manager;
use serde_json::{Map, Value};

use super::Store;
use crate::{RequestContext, Resource};

impl Store {
    /// Converts an object from the served to the storage version, with its defaults. Server-side apply does not decode
    /// what it has merged (`is_applied`), as all else is decoded.
    pub(super) fn incoming(
        &self,
        context: &RequestContext,
        mut object: Value,
        is_applied: bool,
    ) -> Result<Value, Error> {
        if !self.resource.is_custom() {
            keep_reset(&mut object);
        } else if is_applied {
            // It need not be what metadata can be decoded from, of which the rest is dropped.
            bounds::check(&object)?;
            self.strategy().default_applied(&mut object);
        }
        let mut object = to_storage_version(&self.resource, object)?;
        if !is_applied {
            self.strategy().default(&mut object);
        } else if !self.resource.is_custom() {
            self.strategy().default_applied(&mut object);
        }
        // Those of a patch are looked at after admission alone.
        if context.verb != "patch" {
            deduplicate_owners(context, "", &mut object);
        }
        Ok(object)
    }

    /// Adds the zero values that Go writes, so that an update that changes nothing equals the stored object. To be
    /// called after fields are tracked, since the client does not manage these.
    pub(super) fn complete(&self, object: &mut Value) {
        in_types(&self.resource, object, codec::complete);
    }

    /// Records the field manager of the request in managedFields. Fields are those of the served version.
    pub(super) fn track_fields(
        &self,
        context: &RequestContext,
        live: Option<&Value>,
        object: &mut Value,
    ) {
        let manager = Manager {
            name: &context.field_manager,
            api_version: &self.resource.group_version.to_string(),
            subresource: &context.subresource,
            has_status_subresource: self.resource.subresource("status").is_some(),
            custom: self.resource.strategy.merge_schema(),
            time: Some(context.clock.wall()),
        };
        if self.check_kind(object).is_err() {
            // Of another type, no fields are known.
            return remove(object, "managedFields");
        }
        let strategy = self.strategy();
        if strategy.converts() {
            let mut served = strategy.to_served(object.clone());
            ringwatch_apply::update(live, &mut served, &manager);
            copy(object, &served, "managedFields");
        } else {
            ringwatch_apply::update(live, object, &manager);
        }
    }

    /// Sets the namespace of an object to that of the request.
    ///
    /// # Errors
    /// [`Error::BadRequest`] when it says that it belongs to another.
    pub fn ensure_namespace(&self, namespace: &str, object: &mut Value) -> Result<(), Error> {
        ensure_namespace(&self.resource, namespace, object)
    }
}

/// Sets the namespace of an object to that of the request, or removes it if the resource has none.
///
/// # Errors
/// [`Error::BadRequest`] when it says that it belongs to another.
pub fn ensure_namespace(
    resource: &Resource,
    namespace: &str,
    object: &mut Value,
) -> Result<(), Error> {
    if !resource.namespaced {
        remove(object, "namespace");
        return Ok(());
    }
    let found = text(object, "namespace");
    if found.is_empty() {
        set(object, "namespace", namespace);
    } else if found != namespace {
        return Err(Error::BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Makes an empty list of managed fields, which resets them, one that conversion and defaults do not drop. In a custom
/// resource kube-apiserver does not tell it from none.
fn keep_reset(object: &mut Value) {
    if let Some(list) = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("managedFields"))
        .and_then(Value::as_array_mut)
        && list.is_empty()
    {
        list.push(Value::Object(Map::new()));
    }
}

/// Converts an object that admission has changed, from the version in which it was `shown` to that in which the
/// resource that is written is stored, with defaults and the zero values that Go writes.
pub fn admitted_to_storage_version(
    written: &Resource,
    shown: &Resource,
    object: Value,
) -> Result<Value, Error> {
    // The store of a custom resource works in the version that it serves, and its strategy takes objects of all others.
    let (resource, object) = if written.is_custom() {
        (written, written.strategy.to_served(object))
    } else {
        (shown, object)
    };
    let mut object = to_storage_version(resource, object)?;
    resource.strategy.default_admitted(&mut object);
    in_types(resource, &mut object, codec::complete);
    Ok(object)
}

/// Returns the object in the storage version, without what says nothing.
///
/// # Errors
/// [`Error::TooLarge`] when it nests too deep or has too many maps.
pub fn to_storage_version(resource: &Resource, mut object: Value) -> Result<Value, Error> {
    bounds::check(&object)?;
    let version = &resource.group_version.version;
    if resource.is_custom() {
        accessor::decode_metadata(&mut object, version, &resource.kind)?;
    }
    accessor::normalize(&mut object, version, &resource.kind)?;
    let is_deleted = accessor::is_terminating(&object);
    keeping_empty_lists(resource.strategy.told_if_empty(), &mut object, |object| {
        in_types(resource, object, codec::canonicalize);
    });
    if is_deleted && !accessor::is_terminating(&object) {
        // In Go the member points to a zero time then, which the validation of updates tells from none.
        set(&mut object, "deletionTimestamp", accessor::ZERO_TIME);
    }
    Ok(resource.strategy.to_stored(object))
}

/// Calls `change` on an object with its kind in the codec's tables. Custom resources have none.
fn in_types(
    resource: &Resource,
    object: &mut Value,
    change: fn(codec::Kind, &mut Map<String, Value>),
) {
    if resource.is_custom() {
        return;
    }
    let kind =
        |object: &Value| codec::kind(object["apiVersion"].as_str()?, object["kind"].as_str()?);
    if let (Some(kind), Some(members)) = (kind(object), object.as_object_mut()) {
        change(kind, members);
    }
}

/// Removes the fields that clients may not set on new objects.
pub fn wipe_system_fields(object: &mut Value) {
    for member in [
        "creationTimestamp",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        remove(object, member);
    }
}

/// Sets the fields that every new object gets from the server.
pub(super) fn fill_system_fields(context: &RequestContext, object: &mut Value) {
    set(
        object,
        "creationTimestamp",
        format_time(context.clock.wall()),
    );
    set(object, "uid", uuid::Uuid::new_v4().to_string());
}

/// Gives the metadata of an object that a client has sent, and that is not stored itself, the form that Go's type
/// writes, and removes repeated owners, of which the client is warned.
pub fn normalize_sent_metadata(context: &RequestContext, object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        codec::canonicalize_metadata(metadata);
    }
    deduplicate_owners(context, "", object);
}

/// Removes repeated owners, and warns the client, with what happened before.
pub(super) fn deduplicate_owners(context: &RequestContext, before: &str, object: &mut Value) {
    let Some(owners) = object["metadata"]["ownerReferences"].as_array() else {
        return;
    };
    // Nearly all objects have one owner or none.
    if owners.len() < 2 {
        return;
    }
    let mut seen = HashSet::new();
    let mut kept = Vec::with_capacity(owners.len());
    let mut repeated = Vec::new();
    for owner in owners {
        if seen.insert(owner.to_string()) {
            kept.push(owner.clone());
        } else {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
    }
    if !repeated.is_empty() {
        context.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{before}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
        set(object, "ownerReferences", kept);
    }
}

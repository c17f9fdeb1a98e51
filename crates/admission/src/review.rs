//! The AdmissionRequest that webhooks and expressions see.

use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::Resource;
use ringwatch_registry::admission::{Operation, Request};
use serde_json::{Map, Value, json};

use super::match_context::namespace_name;

/// The objects of a request in the version in which a webhook or policy matches it.
pub(super) struct ConvertedObjects {
    /// The new object; null on deletion.
    pub(super) object: Value,
    /// The old object; null on creation.
    pub(super) old: Value,
}

impl ConvertedObjects {
    /// Converts the objects of a request to the version of this resource.
    pub(super) fn new(request: &Request<'_>, resource: &Resource, object: &Value) -> Self {
        let shown = |object: &Value| {
            if object.is_null() || !is_own_kind(request) {
                object.clone()
            } else {
                resource.strategy.to_served(object.clone())
            }
        };
        Self {
            object: shown(object),
            old: request.old.map_or(Value::Null, shown),
        }
    }
}

/// Returns true if the written object is of the resource's own kind, rather than of a subresource's such as Scale.
pub(super) fn is_own_kind(request: &Request<'_>) -> bool {
    let resource = request.resource;
    request.operation != Operation::Connect
        && request.kind() == (&resource.group_version, resource.kind.as_str())
}

/// Returns the AdmissionRequest without the objects.
pub(super) fn describe(
    request: &Request<'_>,
    resource: &Resource,
    uid: &str,
) -> Map<String, Value> {
    let own = is_own_kind(request);
    let (version, kind) = request.kind();
    let request_kind = kind_of(version, kind);
    let seen_kind = if own {
        kind_of(&resource.group_version, &resource.kind)
    } else {
        request_kind.clone()
    };
    let user = &request.context.user;
    let mut user_info = json!({});
    if !user.name.is_empty() {
        user_info["username"] = user.name.as_str().into();
    }
    if !user.uid.is_empty() {
        user_info["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        user_info["groups"] = user.groups.clone().into();
    }
    if !user.extra.is_empty() {
        user_info["extra"] = json!(user.extra);
    }
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        let says_nothing = value.as_str().is_some_and(str::is_empty);
        if !says_nothing {
            members.insert(name.to_owned(), value);
        }
    };
    put("uid", uid.into());
    put("kind", seen_kind);
    put("resource", resource_of(resource));
    put("subResource", request.subresource().into());
    put("requestKind", request_kind);
    put("requestResource", resource_of(request.resource));
    put("requestSubResource", request.subresource().into());
    put("name", request.name.into());
    put("namespace", namespace_name(request).into());
    put("operation", request.operation.name().into());
    put("userInfo", user_info);
    put("dryRun", request.dry_run.into());
    put("options", options(request));
    members
}

fn kind_of(version: &GroupVersion, kind: &str) -> Value {
    json!({"group": version.group, "version": version.version, "kind": kind})
}

fn resource_of(resource: &Resource) -> Value {
    let GroupVersion { group, version } = &resource.group_version;
    json!({"group": group, "version": version, "resource": resource.plural})
}

/// Returns the options of the write, as the client sent them. An update that creates has CreateOptions.
fn options(request: &Request<'_>) -> Value {
    let said = request.context.options.get();
    let mut options = said.cloned().unwrap_or(Value::Null);
    if request.operation == Operation::Create
        && let Some(members) = options.as_object_mut()
    {
        members.insert("kind".to_owned(), "CreateOptions".into());
        members.remove("force");
    }
    options
}

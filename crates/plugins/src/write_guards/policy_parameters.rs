//! Checks that the author of an admission policy may read the parameters that it names: what a policy says of them
//! comes back in the messages of its refusals.
//!
//! A policy needs `get` on all objects of its `paramKind`, a binding `get` on the object that its `paramRef` names, or
//! `list` if it selects them, as in `authz.go` of Kubernetes 1.36 (`pkg/registry/admissionregistration`).

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::storage::{GetOptions, Interface};
use ringwatch_admission::ServedTypes;
use ringwatch_apimachinery::path::text;
use ringwatch_apimachinery::{Error, FieldError, User};
use ringwatch_authorization::Attributes;
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_registry::Request;
use ringwatch_registry::WriteGuard;
use serde_json::Value;

/// Stands for all groups, resources, namespaces or names.
const ALL: &str = "*";

/// Checks the policies of one form, validating or mutating, and their bindings.
#[derive(Debug)]
pub struct PolicyParameters {
    /// The storage of the policies.
    pub policies: Arc<dyn Interface>,
    /// The prefix of their keys.
    pub prefix: &'static str,
    /// Finds the resources of kinds; without it all resources of a group are checked.
    pub types: Option<Arc<ServedTypes>>,
}

/// The group, version and resource of a kind; `*` for what is not known.
struct ParameterTarget {
    group: String,
    version: String,
    resource: String,
    /// True if a resource has been found.
    is_resolved: bool,
}

#[async_trait]
impl WriteGuard for PolicyParameters {
    async fn check_valid(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        if request.context.authorizer.is_none() || !request.subresource().is_empty() {
            return Ok(());
        }
        let member = |object: &Value, name: &str| object["spec"][name].clone();
        let stays = |name: &str| {
            request
                .old
                .is_some_and(|old| member(old, name) == member(object, name))
        };
        if request.resource.plural.ends_with("policies") {
            let kind = &object["spec"]["paramKind"];
            if kind.is_null() || stays("paramKind") {
                return Ok(());
            }
            self.check_policy(request, kind).await
        } else {
            let reference = &object["spec"]["paramRef"];
            if reference.is_null() || stays("paramRef") && stays("policyName") {
                return Ok(());
            }
            let policy = text(object, "spec.policyName");
            self.check_binding(request, policy, reference).await
        }
    }
}

impl PolicyParameters {
    async fn check_policy(&self, request: &Request<'_>, kind: &Value) -> Result<(), Error> {
        let target = self.target(kind);
        let attributes = target.attributes(request, "get", ALL, ALL);
        if allows(request, &attributes).await {
            return Ok(());
        }
        let why = format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
            shown(&request.context.user),
            text(kind, "kind"),
            text(kind, "apiVersion"),
        );
        Err(refusal(request, "spec.paramKind", why))
    }

    async fn check_binding(
        &self,
        request: &Request<'_>,
        policy: &str,
        reference: &Value,
    ) -> Result<(), Error> {
        let kind = self.parameter_kind(policy).await?;
        let target = self.target(kind.as_ref().unwrap_or(&Value::Null));
        let (namespace, name) = (text(reference, "namespace"), text(reference, "name"));
        let verb = if name.is_empty() { "list" } else { "get" };
        let attributes = target.attributes(request, verb, namespace, name);
        if allows(request, &attributes).await {
            return Ok(());
        }
        let user = shown(&request.context.user);
        let lacks = format!("user {user} does not have \"{verb}\" permission");
        let why = match &kind {
            Some(kind) if kind.is_null() || target.is_resolved => {
                format!("{lacks} on the object referenced by paramRef")
            }
            unknown => {
                let unknown = unknown.as_ref().map_or_else(
                    || format!("get policy {policy}"),
                    |it| {
                        let [version, kind] = ["apiVersion", "kind"].map(|part| text(it, part));
                        format!("resolve paramKind &{{{version} {kind}}}")
                    },
                );
                format!(
                    "unable to {unknown} to determine minimum required permissions and {lacks} for all groups, versions and resources"
                )
            }
        };
        Err(refusal(request, "spec.paramRef", why))
    }

    /// Returns the `paramKind` of a policy, which is null if it has none; `None` if there is no such policy.
    async fn parameter_kind(&self, policy: &str) -> Result<Option<Value>, Error> {
        let key = format!("/{}/{policy}", self.prefix);
        match self.policies.get(&key, GetOptions::default()).await {
            Ok(found) => {
                offload_if_large(Work::Object, found.stored()).await;
                let mut policy = codec::tree(&found)?;
                Ok(Some(policy["spec"]["paramKind"].take()))
            }
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(Error::Storage(error)),
        }
    }

    fn target(&self, kind: &Value) -> ParameterTarget {
        let version = text(kind, "apiVersion");
        let all = || ALL.to_owned();
        if version.is_empty() {
            return ParameterTarget {
                group: all(),
                version: all(),
                resource: all(),
                is_resolved: false,
            };
        }
        let types = self.types.as_ref();
        let served = types.and_then(|types| types.of_kind(version, text(kind, "kind")));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        ParameterTarget {
            group: group.to_owned(),
            version: version.to_owned(),
            is_resolved: served.is_some(),
            resource: served.map_or_else(all, |(resource, _)| resource.plural.clone()),
        }
    }
}

impl ParameterTarget {
    fn attributes<'a>(
        &'a self,
        request: &'a Request<'_>,
        verb: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> Attributes<'a> {
        let user = &request.context.user;
        Attributes {
            namespace,
            name,
            version: &self.version,
            ..Attributes::of_resource(user, verb, &self.group, &self.resource)
        }
    }
}

async fn allows(request: &Request<'_>, attributes: &Attributes<'_>) -> bool {
    match &request.context.authorizer {
        Some(authorizer) => authorizer.decide(attributes).await.allowed,
        None => true,
    }
}

/// Returns a user as Go's `%v` shows it.
fn shown(user: &User) -> String {
    let extra = user.extra.iter();
    let extra: Vec<_> = extra
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    let (groups, extra) = (user.groups.join(" "), extra.join(" "));
    format!("&{{{} {} [{groups}] map[{extra}]}}", user.name, user.uid)
}

fn refusal(request: &Request<'_>, field: &str, why: String) -> Error {
    request.invalid(vec![FieldError::forbidden(field, why)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_shown_as_go_shows_it() {
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        let user = User {
            name: "kim".to_owned(),
            groups: list(&["a", "b"]),
            extra: [("k".to_owned(), list(&["1", "2"]))].into(),
            ..User::default()
        };
        assert_eq!(shown(&user), "&{kim  [a b] map[k:[1 2]]}");
        assert_eq!(shown(&User::default()), "&{  [] map[]}");
    }
}

//! Privilege escalation checks of RBAC: nobody grants permissions that they do not hold themselves.
//!
//! Whoever writes a role needs its rules, or the verb `escalate` on it; whoever writes a binding needs the
//! rules of its role, or the verb `bind` on that, as in kube-apiserver.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{GetOptions, Interface, ListOptions, StorageError};
use ringwatch_apimachinery::path::text;
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_authorization::{
    Attributes, Authorizer, Role, Rule, describe_rules, everything, go_list, missing_rules,
};
use ringwatch_offload::{Work, offload};
use ringwatch_registry::{Operation, Request};
use ringwatch_registry::{WriteGuard, check_names};
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Metadata members that may change without a check, since they grant nothing: the garbage collector changes them.
const COLLECTED_MEMBERS: [&str; 3] = ["ownerReferences", "finalizers", "managedFields"];

/// The check of writes of roles and bindings against the permissions of their writer.
#[derive(Debug)]
pub struct Escalation {
    /// The storage of Roles.
    pub roles: Arc<dyn Interface>,
    /// The storage of ClusterRoles.
    pub cluster_roles: Arc<dyn Interface>,
}

#[async_trait]
impl WriteGuard for Escalation {
    async fn check(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let Some(authorizer) = &request.context.authorizer else {
            return Ok(());
        };
        if changes_nothing_given(request.old, object) {
            return Ok(());
        }
        // A short binding may be of a role with many rules.
        offload(Work::Permissions).await;
        if request.resource.plural.ends_with("roles") {
            check_role(authorizer, request, object).await
        } else {
            self.check_binding(authorizer, request, object).await
        }
    }
}

impl Escalation {
    async fn check_binding(
        &self,
        authorizer: &Authorizer,
        request: &Request<'_>,
        binding: &Value,
    ) -> Result<(), Error> {
        let name = text(binding, "roleRef.name");
        let plural = match text(binding, "roleRef.kind") {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            // There is no such role, as validation says.
            _ => return Ok(()),
        };
        let bind = Attributes {
            namespace: request.namespace,
            name,
            ..Attributes::of_resource(&request.context.user, "bind", GROUP, plural)
        };
        if authorizer.decide(&bind).await.allowed {
            return Ok(());
        }
        let rules = self
            .role_rules(authorizer, plural, request.namespace, name)
            .await?;
        confirm(authorizer, request, binding, &rules)
    }

    /// Returns the rules of the role that is bound. If the authorizer does not know the role yet, it is read from
    /// storage, with the ClusterRoles that it aggregates.
    async fn role_rules(
        &self,
        authorizer: &Authorizer,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<[Rule]>, Error> {
        let (storage, namespace, key) = if plural == "roles" {
            check_names(Some(namespace), name)?;
            (&self.roles, namespace, format!("/roles/{namespace}/{name}"))
        } else {
            check_names(None, name)?;
            (&self.cluster_roles, "", format!("/clusterroles/{name}"))
        };
        if let Some(rules) = authorizer.role_rules(namespace, name) {
            return Ok(rules);
        }
        match storage.get(&key, GetOptions::default()).await {
            Ok(object) => {
                let role = stored(&object)?;
                let others = if role.aggregates() {
                    self.cluster_roles().await?
                } else {
                    Vec::new()
                };
                Ok(Arc::from(role.resolve(&others)))
            }
            Err(StorageError::KeyNotFound { .. }) => {
                Err(Error::not_found(format!("{plural}.{GROUP}"), name))
            }
            Err(error) => Err(Error::Storage(error)),
        }
    }

    async fn cluster_roles(&self) -> Result<Vec<Arc<Role>>, Error> {
        let options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        let list = self.cluster_roles.get_list("/clusterroles/", options).await;
        let items = list.map_err(Error::Storage)?.items;
        items.iter().map(|it| stored(it).map(Arc::new)).collect()
    }
}

fn stored(role: &Object) -> Result<Role, Error> {
    let role = codec::tree(role)?;
    read(&role)
}

/// Returns true if an update changes nothing but [`COLLECTED_MEMBERS`], as the garbage collector's updates do.
fn changes_nothing_given(old: Option<&Value>, object: &Value) -> bool {
    let Some(old) = old else { return false };
    let mut object = object.clone();
    for member in COLLECTED_MEMBERS {
        accessor::copy(&mut object, old, member);
    }
    object == *old
}

async fn check_role(
    authorizer: &Authorizer,
    request: &Request<'_>,
    role: &Value,
) -> Result<(), Error> {
    // Somebody who may escalate a role by its name may not therefore create it.
    let created = request.operation == Operation::Create;
    let plural = &request.resource.plural;
    let escalate = Attributes {
        namespace: request.namespace,
        name: if created { "" } else { request.name },
        ..Attributes::of_resource(&request.context.user, "escalate", GROUP, plural)
    };
    if authorizer.decide(&escalate).await.allowed {
        return Ok(());
    }
    let aggregates = |role: &Value| !role["aggregationRule"].is_null();
    if aggregates(role) || request.old.is_some_and(aggregates) {
        let held = authorizer.rules(&request.context.user, "").rules;
        if !missing_rules(&held, &everything()).is_none() {
            let message = "must have cluster-admin privileges to use an aggregationRule";
            return Err(request.forbid(role, message));
        }
    }
    confirm(authorizer, request, role, read(role)?.rules())
}

/// Checks that the user holds all permissions of the rules that the object grants.
fn confirm(
    authorizer: &Authorizer,
    request: &Request<'_>,
    object: &Value,
    rules: &[Rule],
) -> Result<(), Error> {
    let user = &request.context.user;
    let held = authorizer.rules(user, request.namespace);
    let missing = missing_rules(&held.rules, rules);
    if missing.is_none() {
        return Ok(());
    }
    let mut message = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        go_list(&user.groups),
        describe_rules(missing)
    );
    if !held.errors.is_empty() {
        message += &format!("; resolution errors: [{}]", held.errors.join(", "));
    }
    Err(request.forbid(object, message))
}

fn read(role: &Value) -> Result<Role, Error> {
    serde_json::from_value(role.clone()).map_err(|error| Error::BadRequest(error.to_string()))
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::User;
    use ringwatch_authorization::{AuthorizationMode, AuthorizerStep};
    use ringwatch_registry::testing::{MemoryStorage, context};
    use ringwatch_resources::built_in;
    use serde_json::json;

    use super::*;

    /// Checks a binding of a ClusterRole that is stored, while the authorizer does not know any roles yet.
    async fn bound(role: &str) -> Result<(), String> {
        bound_in("ns", "ClusterRole", role).await
    }

    /// Checks a binding in a namespace, or in none.
    async fn bound_in(namespace: &str, kind: &str, role: &str) -> Result<(), String> {
        let cluster_roles = MemoryStorage::new("/clusterroles");
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
        for (name, more) in [
            (
                "reads",
                json!({"metadata": {"name": "reads", "labels": {"part": "x"}}, "rules": rules}),
            ),
            (
                "nothing",
                json!({"metadata": {"name": "nothing"}, "rules": []}),
            ),
            (
                "all",
                json!({"metadata": {"name": "all"}, "rules": null, "aggregationRule":
                {"clusterRoleSelectors": [{"matchLabels": {"part": "x"}}]}}),
            ),
        ] {
            let mut role = more;
            role["kind"] = "ClusterRole".into();
            role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
            let key = format!("/clusterroles/{name}");
            let created = cluster_roles.create(&key, &role, None);
            created.await.expect("created");
        }
        let escalation = Escalation {
            roles: MemoryStorage::new("/roles"),
            cluster_roles,
        };
        let user = User {
            name: "jane".to_owned(),
            ..User::default()
        };
        let mut context = context();
        context.user = user;
        context.authorizer = Some(Arc::new(Authorizer::new(vec![AuthorizerStep::Mode(
            AuthorizationMode::Rbac,
        )])));
        let resources = built_in();
        let bindings = resources.iter().find(|it| it.plural == "rolebindings");
        let request = Request {
            context: &context,
            operation: Operation::Create,
            resource: bindings.expect("built in"),
            namespace,
            name: "b",
            old: None,
            dry_run: false,
        };
        let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": kind, "name": role}});
        let checked = escalation.check(&request, &binding).await;
        checked.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_role_that_nobody_knows_yet_gives_what_it_aggregates() {
        assert_eq!(bound("nothing").await, Ok(()));
        for role in ["reads", "all"] {
            let refused = bound(role).await.expect_err(role);
            let missing = r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#;
            assert!(refused.ends_with(missing), "{role}: {refused}");
        }
        let gone = bound("gone").await.expect_err("no such role");
        assert!(gone.ends_with("\"gone\" not found"), "{gone}");
    }

    /// These are refused as names in paths are, though they come before the validation of the binding.
    #[tokio::test]
    async fn a_name_that_no_role_can_have_is_a_bad_request() {
        for (namespace, kind, name, why) in [
            ("ns", "ClusterRole", "a/b", "may not contain '/'"),
            ("", "ClusterRole", "..", "may not be '..'"),
            ("", "ClusterRole", "", "Name parameter required."),
            ("ns", "Role", "/a", "may not contain '/'"),
            ("", "Role", "a", "Namespace parameter required."),
        ] {
            let refused = bound_in(namespace, kind, name).await.expect_err(name);
            assert!(refused.ends_with(why), "{kind} {name:?}: {refused}");
        }
    }
}

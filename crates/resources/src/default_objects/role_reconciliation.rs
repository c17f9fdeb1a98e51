//! Brings the default roles and bindings to what they should be at least, as kube-apiserver does at every start.
//!
//! Missing parts are added: the object, rules that its own do not cover, subjects, labels. Additions of users stay. An
//! object that says so in an annotation is left alone.

use futures::{StreamExt, TryStreamExt};
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_authorization::default_roles::{AUTO_UPDATE, DefaultRoles};
use ringwatch_authorization::{Rule, missing_rules};
use ringwatch_registry::{DeleteOptions, FunctionUpdate, RequestContext, Store, UpdateOptions};
use serde_json::{Value, json};

use super::ensure;

/// Maximum number of objects that are reconciled at the same time.
const AT_ONCE_MAX: usize = 8;

/// The stores of roles and bindings.
#[derive(Clone, Copy, Debug)]
pub struct RolesAndBindings<'a> {
    /// The store of ClusterRoles.
    pub cluster_roles: &'a Store,
    /// The store of ClusterRoleBindings.
    pub cluster_role_bindings: &'a Store,
    /// The store of Roles.
    pub roles: &'a Store,
    /// The store of RoleBindings.
    pub role_bindings: &'a Store,
}

/// Creates those of the default roles and bindings that do not exist, and adds to the others what they lack.
///
/// # Errors
/// When one cannot be read or written; others may be as they should.
pub async fn ensure_default_roles(
    stores: RolesAndBindings<'_>,
    clock: &Clock,
) -> Result<(), Error> {
    let all = DefaultRoles::of_every_cluster();
    let in_cluster = |object: &Value| object["metadata"]["namespace"].is_null();
    let roles = all.roles.into_iter().map(|role| {
        let store = if in_cluster(&role) {
            stores.cluster_roles
        } else {
            stores.roles
        };
        (store, role, complete_role as Complete)
    });
    let bindings = all.bindings.into_iter().map(|binding| {
        let store = if in_cluster(&binding) {
            stores.cluster_role_bindings
        } else {
            stores.role_bindings
        };
        (store, binding, complete_binding as Complete)
    });
    let wanted: Vec<_> = roles.chain(bindings).collect();
    futures::stream::iter(wanted)
        .map(|(store, wanted, complete)| reconcile(store, wanted, complete, clock))
        .buffer_unordered(AT_ONCE_MAX)
        .try_collect()
        .await
}

/// Adds to an object what it lacks of another.
type Complete = fn(&mut Value, &Value);

async fn reconcile(
    store: &Store,
    wanted: Value,
    complete: Complete,
    clock: &Clock,
) -> Result<(), Error> {
    let namespace = wanted["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let name = wanted["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let found = match store.get(&namespace, &name, GetOptions::default()).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return ensure(store, &namespace, wanted, clock).await,
        Err(error) => return Err(error),
    };
    let found = codec::tree(&found)?;
    if found["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        return Ok(());
    }
    let context = RequestContext::of_server(clock);
    if found["roleRef"] != wanted["roleRef"] {
        // What a binding is of cannot be changed.
        let deleted = store
            .delete(&context, &namespace, &name, DeleteOptions::default())
            .await;
        deleted?;
        return ensure(store, &namespace, wanted, clock).await;
    }
    let mut completed = found.clone();
    complete(&mut completed, &wanted);
    if completed == found {
        return Ok(());
    }
    // Whatever there is by then.
    let mut update = FunctionUpdate::new(|object| {
        if object.is_null() {
            *object = wanted.clone();
        }
        complete(object, &wanted);
        Ok(())
    });
    let options = UpdateOptions::default();
    let updated = store
        .update(&context, &namespace, &name, &mut update, &options)
        .await;
    updated.map(|_| ())
}

fn complete_role(role: &mut Value, wanted: &Value) {
    complete_metadata(role, wanted);
    let rules = |role: &Value| -> Vec<Rule> {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules
            .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
            .collect()
    };
    let missing = missing_rules(&rules(role), &rules(wanted));
    append(
        role,
        "rules",
        missing.parts.into_iter().map(|rule| json!(rule)).collect(),
    );
    if let Some(selectors) = wanted["aggregationRule"]["clusterRoleSelectors"].as_array() {
        let known = role["aggregationRule"]["clusterRoleSelectors"].take();
        let mut all = known.as_array().cloned().unwrap_or_default();
        all.extend(
            selectors
                .iter()
                .filter(|it| !all.contains(it))
                .cloned()
                .collect::<Vec<_>>(),
        );
        role["aggregationRule"] = json!({"clusterRoleSelectors": all});
    }
}

fn complete_binding(binding: &mut Value, wanted: &Value) {
    complete_metadata(binding, wanted);
    let known = binding["subjects"].as_array().cloned().unwrap_or_default();
    let wanted = wanted["subjects"].as_array().into_iter().flatten();
    let missing = wanted
        .filter(|subject| !known.contains(subject))
        .cloned()
        .collect();
    append(binding, "subjects", missing);
}

/// Labels and annotations that the object has of its own stay as they are.
fn complete_metadata(object: &mut Value, wanted: &Value) {
    for kind in ["labels", "annotations"] {
        for (name, value) in wanted["metadata"][kind].as_object().into_iter().flatten() {
            let known = &mut object["metadata"][kind];
            if known[name].is_null() {
                known[name] = value.clone();
            }
        }
    }
}

fn append(object: &mut Value, member: &str, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    let mut all = object[member].as_array().cloned().unwrap_or_default();
    all.extend(more);
    object[member] = json!(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_added_and_the_rest_stays() {
        let wanted = json!({"metadata": {"labels": {"a": "b"}, "annotations": {AUTO_UPDATE: "true"}},
            "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]});
        let mut role = json!({"metadata": {"labels": {"a": "mine"}},
            "rules": [{"verbs": ["get", "delete"], "apiGroups": ["*"], "resources": ["pods"]}]});
        complete_role(&mut role, &wanted);
        assert_eq!(
            role,
            json!({"metadata": {"labels": {"a": "mine"}, "annotations": {AUTO_UPDATE: "true"}},
                "rules": [{"verbs": ["get", "delete"], "apiGroups": ["*"], "resources": ["pods"]},
                    {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]})
        );
        let before = role.clone();
        complete_role(&mut role, &wanted);
        assert_eq!(role, before);
    }

    #[test]
    fn selectors_and_subjects_are_added() {
        let selector = |name: &str| json!({"matchLabels": {name: "true"}});
        let wanted = json!({"aggregationRule": {"clusterRoleSelectors": [selector("a")]}});
        let mut role =
            json!({"metadata": {}, "aggregationRule": {"clusterRoleSelectors": [selector("b")]}});
        complete_role(&mut role, &wanted);
        assert_eq!(
            role["aggregationRule"]["clusterRoleSelectors"],
            json!([selector("b"), selector("a")])
        );
        let subject = |name: &str| json!({"kind": "User", "name": name});
        let mut binding = json!({"metadata": {}, "subjects": [subject("jane")]});
        complete_binding(
            &mut binding,
            &json!({"subjects": [subject("joe"), subject("jane")]}),
        );
        assert_eq!(
            binding["subjects"],
            json!([subject("jane"), subject("joe")])
        );
    }
}

//! The cluster roles and bindings that are there from the start, where roles count.
//!
//! `admin`, `edit` and `view` are stored without rules, as kube-apiserver stores them: they aggregate the roles
//! `system:aggregate-to-...`, which the authorizer follows by itself.

use serde_json::{Value, json};

use super::ensure;
use crate::clock::Clock;
use crate::registry::{Error, Store};

const TABLE: &str = include_str!("default_roles.txt");
const GROUP: &str = "rbac.authorization.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// Creates those of the default roles and bindings that do not exist. What exists stays as it is.
///
/// # Errors
/// When one can neither be created nor is there; those before it exist.
pub async fn ensure_default_roles(
    roles: &Store,
    bindings: &Store,
    clock: &Clock,
) -> Result<(), Error> {
    let (default_roles, default_bindings) = read(TABLE);
    for role in default_roles {
        ensure(roles, "", role, clock).await?;
    }
    for binding in default_bindings {
        ensure(bindings, "", binding, clock).await?;
    }
    Ok(())
}

/// The roles and the bindings of the table.
fn read(table: &str) -> (Vec<Value>, Vec<Value>) {
    let (mut roles, mut bindings): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["role", name, options @ ..] = words.as_slice() {
            let (role, binding) = begin(name, options);
            roles.push(role);
            bindings.extend(binding);
        } else if let Some(Value::Array(rules)) = roles.last_mut().map(|role| role["rules"].take())
        {
            let more = rule(&words).into_iter();
            let rules: Vec<Value> = rules.into_iter().chain(more).collect();
            if let Some(role) = roles.last_mut() {
                role["rules"] = Value::Array(rules);
            }
        }
    }
    (roles, bindings)
}

/// A role without rules, and the binding to the groups that have it.
fn begin(name: &str, options: &[&str]) -> (Value, Option<Value>) {
    let metadata = json!({"name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}});
    let mut role = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
        "metadata": metadata, "rules": []});
    let mut binding = None;
    for (option, value) in options.iter().filter_map(|option| option.split_once('=')) {
        let label = format!("{GROUP}/aggregate-to-{value}");
        match option {
            "into" => role["metadata"]["labels"][label] = json!("true"),
            "aggregates" => {
                role["aggregationRule"] =
                    json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
            }
            _ => {
                let subjects = value.split(',');
                let subjects = subjects
                    .map(|group| json!({"apiGroup": GROUP, "kind": "Group", "name": group}));
                binding = Some(
                    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
                    "metadata": metadata, "subjects": subjects.collect::<Vec<_>>(),
                    "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}}),
                );
            }
        }
    }
    (role, binding)
}

/// The rule of a line: about resources with three words, about paths with two.
fn rule(words: &[&str]) -> Option<Value> {
    let list = |text: &str| text.split(',').map(String::from).collect::<Vec<_>>();
    let verbs = |text: &str| {
        let verbs = text.split(',').flat_map(|verb| match verb {
            "read" => READ.to_vec(),
            "write" => WRITE.to_vec(),
            verb => vec![verb],
        });
        verbs.map(String::from).collect::<Vec<_>>()
    };
    match words {
        [verb, paths] => Some(json!({"verbs": verbs(verb), "nonResourceURLs": list(paths)})),
        [verb, group, resources] => {
            let group = if *group == "core" { "" } else { *group };
            Some(json!({"verbs": verbs(verb), "apiGroups": [group], "resources": list(resources)}))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_role_or_a_rule() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        let (roles, bindings) = read(TABLE);
        let rules = roles.iter().filter_map(|role| role["rules"].as_array());
        let rules: usize = rules.map(Vec::len).sum();
        assert_eq!(roles.len() + rules, lines);
        assert_eq!(bindings.len(), 4);
    }
}

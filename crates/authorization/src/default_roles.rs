//! The roles and bindings that exist from the start with RBAC.
//!
//! `admin`, `edit` and `view` are stored without rules, as kube-apiserver stores them: they aggregate the roles
//! `system:aggregate-to-...`, which the authorizer follows by itself.

use serde_json::{Value, json};

use crate::Rule;

const TABLE: &str = include_str!("default_roles.txt");
/// The annotation that allows the server to bring an object up to date at its start.
pub const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const GROUP: &str = "rbac.authorization.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// The role of kubelets.
const NODE_ROLE: &str = "system:node";

/// The namespace of the system's service accounts.
const ACCOUNTS_NAMESPACE: &str = "kube-system";

/// Roles and ClusterRoles, with their bindings.
#[derive(Debug, Default)]
pub struct DefaultRoles {
    /// The Roles and ClusterRoles.
    pub roles: Vec<Value>,
    /// The RoleBindings and ClusterRoleBindings.
    pub bindings: Vec<Value>,
}

impl DefaultRoles {
    /// Returns the default roles and bindings of every cluster.
    pub fn of_every_cluster() -> Self {
        Self::read(TABLE)
    }

    fn read(table: &str) -> Self {
        let mut all = Self::default();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["role", name, options @ ..] => all.begin(name, options),
                ["controller", name] => {
                    let accounts = format!("accounts={name}");
                    all.begin(&format!("system:controller:{name}"), &[&accounts]);
                }
                words => all.add_rule(words),
            }
        }
        all
    }

    /// Begins a role without rules, and the binding to those who have it.
    fn begin(&mut self, name: &str, options: &[&str]) {
        let (mut namespace, mut binding_name) = ("", name);
        let mut subjects = None;
        let mut role =
            json!({"apiVersion": format!("{GROUP}/v1"), "metadata": metadata(name), "rules": []});
        for (option, value) in options.iter().filter_map(|option| option.split_once('=')) {
            let label = format!("{GROUP}/aggregate-to-{value}");
            match option {
                "in" => namespace = value,
                "binding" => binding_name = value,
                "into" => role["metadata"]["labels"][label] = json!("true"),
                "aggregates" => {
                    role["aggregationRule"] =
                        json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
                }
                kind => subjects
                    .get_or_insert_with(Vec::new)
                    .extend(list(value).iter().filter_map(|name| subject(kind, name))),
            }
        }
        let (role_kind, binding_kind) = if namespace.is_empty() {
            ("ClusterRole", "ClusterRoleBinding")
        } else {
            role["metadata"]["namespace"] = json!(namespace);
            ("Role", "RoleBinding")
        };
        role["kind"] = json!(role_kind);
        if let Some(subjects) = subjects {
            let mut binding = json!({"apiVersion": format!("{GROUP}/v1"), "kind": binding_kind,
                "metadata": metadata(binding_name),
                "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": name}});
            if !namespace.is_empty() {
                binding["metadata"]["namespace"] = json!(namespace);
            }
            if !subjects.is_empty() {
                binding["subjects"] = json!(subjects);
            }
            self.bindings.push(binding);
        }
        self.roles.push(role);
    }

    /// Adds the rule of a line to the last role.
    fn add_rule(&mut self, words: &[&str]) {
        let role = self.roles.last_mut();
        let rules = role.and_then(|role| role["rules"].as_array_mut());
        if let (Some(rules), Some(rule)) = (rules, rule(words)) {
            rules.push(json!(rule));
        }
    }
}

/// Returns the rules of every node, whatever its pods need.
pub fn node_rules() -> Vec<Rule> {
    let roles = DefaultRoles::of_every_cluster().roles;
    let of_nodes = roles
        .iter()
        .filter(|role| role["metadata"]["name"] == NODE_ROLE);
    let rules = of_nodes
        .filter_map(|role| role["rules"].as_array())
        .flatten();
    rules
        .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
        .collect()
}

fn metadata(name: &str) -> Value {
    json!({"name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTO_UPDATE: "true"}})
}

/// Returns a binding's subject of this kind and name.
fn subject(kind: &str, name: &str) -> Option<Value> {
    match kind {
        "groups" => Some(json!({"apiGroup": GROUP, "kind": "Group", "name": name})),
        "users" => Some(json!({"apiGroup": GROUP, "kind": "User", "name": name})),
        "accounts" => Some(json!({"kind": "ServiceAccount", "name": name,
            "namespace": ACCOUNTS_NAMESPACE})),
        _ => None,
    }
}

/// Reads the rule of a line: about paths with two words, about resources with three, about some of their names with
/// four.
fn rule(words: &[&str]) -> Option<Rule> {
    let mut rule = match words {
        [_, paths] => Rule {
            non_resource_urls: list(paths),
            ..Rule::default()
        },
        [_, groups, resources, names @ ..] if names.len() <= 1 => Rule {
            api_groups: list(groups),
            resources: list(resources),
            resource_names: names.first().map(|names| list(names)).unwrap_or_default(),
            ..Rule::default()
        },
        _ => return None,
    };
    for group in rule.api_groups.iter_mut().filter(|group| *group == "core") {
        group.clear();
    }
    rule.verbs = verbs(words.first()?);
    Some(rule)
}

/// Splits a list into words. In the table they are sorted, as in kube-apiserver's rules.
fn list(text: &str) -> Vec<String> {
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(String::from).collect()
}

fn verbs(text: &str) -> Vec<String> {
    let mut verbs: Vec<String> = text
        .split(',')
        .flat_map(|verb| match verb {
            "read" => READ.to_vec(),
            "write" => WRITE.to_vec(),
            verb => vec![verb],
        })
        .map(String::from)
        .collect();
    verbs.sort();
    verbs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(all: &'a [Value], name: &str) -> &'a Value {
        let found = all.iter().find(|it| it["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn every_line_of_the_table_is_a_role_or_a_rule() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        let all = DefaultRoles::of_every_cluster();
        let rules = all.roles.iter().filter_map(|role| role["rules"].as_array());
        let rules: usize = rules.map(Vec::len).sum();
        assert_eq!(all.roles.len() + rules, lines);
        let name = |of: &Value| (of["kind"].clone(), of["name"].clone());
        for binding in &all.bindings {
            let bound = |role: &&Value| {
                let metadata = &role["metadata"];
                metadata["namespace"] == binding["metadata"]["namespace"]
                    && (role["kind"].clone(), metadata["name"].clone()) == name(&binding["roleRef"])
            };
            assert!(all.roles.iter().any(|role| bound(&role)), "{binding}");
        }
    }

    #[test]
    fn nodes_may_do_something() {
        assert!(node_rules().len() > 10);
    }

    #[test]
    fn lists_are_sorted() {
        let all = DefaultRoles::of_every_cluster();
        for rule in all
            .roles
            .iter()
            .filter_map(|role| role["rules"].as_array())
            .flatten()
        {
            for (name, list) in rule.as_object().expect("a rule") {
                let list = list.as_array().expect("a list");
                let texts: Vec<_> = list.iter().filter_map(Value::as_str).collect();
                assert!(texts.is_sorted(), "{name}: {texts:?}");
            }
        }
    }

    #[test]
    fn roles_are_what_kube_apiserver_has() {
        let all = DefaultRoles::of_every_cluster();
        let role = named(&all.roles, "system:controller:endpoint-controller");
        assert_eq!(
            role["rules"][1],
            json!({"apiGroups": [""], "resources": ["endpoints"],
                "verbs": ["create", "delete", "get", "list", "update", "watch"]})
        );
        let binding = named(&all.bindings, "system:controller:endpoint-controller");
        assert_eq!(
            binding["subjects"],
            json!([{"kind": "ServiceAccount", "name": "endpoint-controller", "namespace": "kube-system"}])
        );
        let binding = named(
            &all.bindings,
            "system::extension-apiserver-authentication-reader",
        );
        assert_eq!(
            binding["roleRef"]["name"],
            "extension-apiserver-authentication-reader"
        );
        assert_eq!(binding["subjects"][1]["name"], "system:kube-scheduler");
        assert!(named(&all.bindings, "system:node")["subjects"].is_null());
    }

    #[test]
    fn roles_have_what_came_to_them_lately() {
        let all = DefaultRoles::of_every_cluster();
        for (role, line) in [
            ("system:monitoring", "get core nodes/metrics"),
            (
                "system:service-account-issuer-discovery",
                "get /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/",
            ),
            ("system:aggregate-to-view", "read core,events.k8s.io events"),
            (
                "system:aggregate-to-edit",
                "write core,events.k8s.io events",
            ),
            (
                "system:node",
                "create,patch,update core,events.k8s.io events",
            ),
            (
                "system:kube-scheduler",
                "read,update coordination.k8s.io leases kube-scheduler",
            ),
            (
                "system:kube-scheduler",
                "patch,update resource.k8s.io resourceclaims/binding",
            ),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let wanted = json!(rule(&words).expect("a rule"));
            let rules = named(&all.roles, role)["rules"].as_array();
            assert!(rules.expect("rules").contains(&wanted), "{role}: {line}");
        }
    }
}

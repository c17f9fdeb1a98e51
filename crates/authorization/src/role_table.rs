//! An index of roles and bindings by their subjects.
//!
//! A role with an aggregationRule has the rules of the roles that the rule selects. In a cluster a controller writes
//! them into the role; here they are collected when the table is built, so that `admin`, `edit` and `view` have their
//! rules without that controller, and the same rules with it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ringwatch_apimachinery::User;
use serde::Deserialize;

use super::grants::Grant;
use super::{Attributes, Rule};

/// A Role or ClusterRole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    #[serde(default)]
    metadata: RoleMetadata,
    #[serde(default)]
    rules: Option<Vec<Rule>>,
    #[serde(default)]
    aggregation_rule: Option<AggregationRule>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    #[serde(default)]
    metadata: RoleMetadata,
    #[serde(default)]
    subjects: Option<Vec<BindingSubject>>,
    role_ref: RoleRef,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RoleMetadata {
    name: String,
    namespace: String,
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    #[serde(default)]
    cluster_role_selectors: Option<Vec<Selector>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<SelectorExpression>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SelectorExpression {
    key: String,
    operator: String,
    values: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct BindingSubject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

/// A subject of bindings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    User(String),
    Group(String),
}

/// An index of roles and bindings by their subjects.
#[derive(Debug, Default)]
pub struct RoleTable {
    /// The grants by subject and namespace; those that hold everywhere have no namespace.
    grants: HashMap<Who, HashMap<String, Grants>>,
    roles: HashMap<(String, String), ResolvedRole>,
}

/// The rules of a role.
#[derive(Debug)]
struct ResolvedRole {
    rules: Arc<[Rule]>,
    /// The number of words that the rules have.
    words: usize,
}

/// The grants to a subject in one place.
#[derive(Debug, Default)]
struct Grants {
    grants: Vec<Grant>,
    /// The number of words that the roles have. A role that is bound twice counts twice.
    words: usize,
}

impl RoleTable {
    /// Builds a table of these roles and bindings. Those that belong to the cluster have no namespace.
    #[must_use]
    pub fn new(roles: &[Arc<Role>], bindings: &[Arc<Binding>]) -> Self {
        let rules = roles.iter().map(|role| {
            let key = (role.metadata.namespace.clone(), role.metadata.name.clone());
            let rules: Arc<[Rule]> = role.resolve(roles).into();
            let words = rules.iter().map(Rule::words).sum();
            (key, ResolvedRole { rules, words })
        });
        let mut table = Self {
            roles: rules.collect(),
            grants: HashMap::new(),
        };
        for binding in bindings {
            table.file(binding);
        }
        table
    }

    fn file(&mut self, binding: &Binding) {
        let (rules, words) = match self.role(&binding.metadata.namespace, &binding.role_ref) {
            Ok(role) => (Ok(Arc::clone(&role.rules)), role.words),
            Err(why) => (Err(why), 0),
        };
        for subject in binding.subjects.iter().flatten() {
            let Some(who) = subject.who(&binding.metadata.namespace) else {
                continue;
            };
            let grant = Grant {
                description: binding.describe(subject).into(),
                rules: rules.clone(),
            };
            let of_subject = self.grants.entry(who).or_default();
            let namespace = binding.metadata.namespace.clone();
            let here = of_subject.entry(namespace).or_default();
            here.grants.push(grant);
            // The binding itself is looked at as well.
            here.words += words + 1;
        }
    }

    /// Returns the role that a binding in a namespace refers to.
    fn role(&self, namespace: &str, reference: &RoleRef) -> Result<&ResolvedRole, Arc<str>> {
        let name = &reference.name;
        let (namespace, resource) = if reference.kind == "Role" {
            (namespace, "role")
        } else {
            ("", "clusterrole")
        };
        let key = (namespace.to_owned(), name.clone());
        self.roles.get(&key).ok_or_else(|| {
            format!("{resource}.rbac.authorization.k8s.io {name:?} not found").into()
        })
    }

    /// Returns the rules of a role; without a namespace it is one of the cluster.
    pub(super) fn rules(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        let key = (namespace.to_owned(), name.to_owned());
        Some(Arc::clone(&self.roles.get(&key)?.rules))
    }

    /// Lists the grants to a user in a namespace: first those that hold everywhere.
    pub(super) fn grants(&self, user: &User, namespace: &str) -> impl Iterator<Item = &Grant> {
        let places = self.places(user, namespace).into_iter();
        places.flat_map(|place| &place.grants)
    }

    /// Counts the words that [`Self::decide`] may have to compare.
    pub(super) fn words(&self, user: &User, namespace: &str) -> usize {
        let places = self.places(user, namespace).into_iter();
        places.map(|place| place.words).sum()
    }

    fn places(&self, user: &User, namespace: &str) -> Vec<&Grants> {
        let groups = user.groups.iter().cloned().map(Who::Group);
        let subjects: Vec<_> = std::iter::once(Who::User(user.name.clone()))
            .chain(groups)
            .filter_map(|who| self.grants.get(&who))
            .collect();
        let mut found = Vec::new();
        for place in ["", namespace]
            .iter()
            .take(1 + usize::from(!namespace.is_empty()))
        {
            found.extend(subjects.iter().filter_map(|it| it.get(*place)));
        }
        found
    }

    /// Finds a binding that allows the request, and returns its description.
    ///
    /// # Errors
    /// The errors about roles of the user's bindings that do not exist, if nothing allows the request.
    pub(super) fn decide(&self, attributes: &Attributes<'_>) -> Result<&str, Vec<&str>> {
        let mut missing = Vec::new();
        // A role may be bound to a user many times over: looking through it once is enough.
        let mut seen = HashSet::new();
        for grant in self.grants(attributes.user, attributes.namespace) {
            match &grant.rules {
                Ok(rules)
                    if seen.insert(Arc::as_ptr(rules))
                        && rules.iter().any(|rule| rule.allows(attributes)) =>
                {
                    return Ok(&grant.description);
                }
                Ok(_) => {}
                Err(why) => missing.push(&**why),
            }
        }
        Err(missing)
    }
}

impl Role {
    /// Returns the role's own rules, as they are stored.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// Returns true if its rules are aggregated from other roles.
    #[must_use]
    pub fn aggregates(&self) -> bool {
        self.aggregation_rule.is_some()
    }

    /// Returns the role's own rules, or those of the roles that it aggregates.
    #[must_use]
    pub fn resolve(&self, roles: &[Arc<Self>]) -> Vec<Rule> {
        let mut rules = Vec::new();
        self.gather(roles, &mut HashSet::new(), &mut rules);
        rules
    }

    /// Adds the rules of a role, and of those that it selects, unless they have been added before.
    fn gather<'a>(
        &'a self,
        roles: &'a [Arc<Self>],
        seen: &mut HashSet<&'a str>,
        rules: &mut Vec<Rule>,
    ) {
        let Some(aggregation) = &self.aggregation_rule else {
            rules.extend(self.rules.iter().flatten().cloned());
            return;
        };
        for role in roles {
            let metadata = &role.metadata;
            if metadata.namespace.is_empty()
                && aggregation.selects(metadata)
                && seen.insert(&metadata.name)
            {
                role.gather(roles, seen, rules);
            }
        }
    }
}

impl AggregationRule {
    fn selects(&self, metadata: &RoleMetadata) -> bool {
        let selectors = self.cluster_role_selectors.iter().flatten();
        let mut selectors = selectors.map(|selector| selector.matches(&metadata.labels));
        selectors.any(|selected| selected)
    }
}

impl Selector {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let exact = self.match_labels.iter();
        exact
            .clone()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|it| it.matches(labels))
    }
}

impl SelectorExpression {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

impl BindingSubject {
    fn who(&self, namespace: &str) -> Option<Who> {
        match self.kind.as_str() {
            "User" => Some(Who::User(self.name.clone())),
            "Group" => Some(Who::Group(self.name.clone())),
            "ServiceAccount" => {
                let own = Some(self.namespace.as_str()).filter(|it| !it.is_empty());
                let namespace = own.unwrap_or(namespace);
                let name = format!("system:serviceaccount:{namespace}:{}", self.name);
                (!namespace.is_empty()).then_some(Who::User(name))
            }
            _ => None,
        }
    }
}

impl Binding {
    fn describe(&self, subject: &BindingSubject) -> String {
        let RoleMetadata {
            name, namespace, ..
        } = &self.metadata;
        let binding = if namespace.is_empty() {
            format!("ClusterRoleBinding {name:?}")
        } else {
            format!("RoleBinding {:?}", format!("{name}/{namespace}"))
        };
        let who = if subject.kind == "ServiceAccount" {
            format!("{}/{}", subject.name, subject.namespace)
        } else {
            subject.name.clone()
        };
        let RoleRef { kind, name } = &self.role_ref;
        format!("{binding} of {kind} {name:?} to {} {who:?}", subject.kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn table(roles: &[Value], bindings: &[Value]) -> RoleTable {
        let roles = roles.iter().cloned().map(serde_json::from_value);
        let roles: Vec<_> = roles.map(|it| Arc::new(it.expect("a role"))).collect();
        let bindings = bindings.iter().cloned().map(serde_json::from_value);
        let bindings: Vec<_> = bindings
            .map(|it| Arc::new(it.expect("a binding")))
            .collect();
        RoleTable::new(&roles, &bindings)
    }

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(ToString::to_string).collect(),
            ..User::default()
        }
    }

    fn pods(verb: &str) -> Value {
        json!([{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}])
    }

    #[test]
    fn bindings_hold_for_their_subjects_in_their_namespace() {
        let roles = [
            json!({"metadata": {"name": "r", "namespace": "a"}, "rules": pods("get")}),
            json!({"metadata": {"name": "c"}, "rules": pods("list")}),
        ];
        let bindings = [
            json!({"metadata": {"name": "one", "namespace": "a"},
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "robot"}, {"kind": "Group", "name": "g"}]}),
            json!({"metadata": {"name": "two"}, "roleRef": {"kind": "ClusterRole", "name": "c"},
                "subjects": [{"kind": "User", "name": "jane"}]}),
            json!({"metadata": {"name": "three"}, "roleRef": {"kind": "ClusterRole", "name": "gone"},
                "subjects": [{"kind": "User", "name": "jane"}]}),
        ];
        let table = table(&roles, &bindings);
        let ask = |user: &User, verb: &str, namespace: &str| {
            let attributes = Attributes {
                namespace,
                ..Attributes::of_resource(user, verb, "", "pods")
            };
            let decision = table.decide(&attributes);
            decision
                .map(String::from)
                .map_err(|missing| missing.join(", "))
        };
        let robot = user("system:serviceaccount:a:robot", &[]);
        assert_eq!(
            ask(&robot, "get", "a").expect("allowed"),
            r#"RoleBinding "one/a" of Role "r" to ServiceAccount "robot/""#
        );
        assert_eq!(ask(&robot, "get", "b"), Err(String::new()));
        assert_eq!(ask(&robot, "get", ""), Err(String::new()));
        assert!(ask(&user("x", &["g"]), "get", "a").is_ok());
        let jane = user("jane", &["other"]);
        assert!(ask(&jane, "list", "b").is_ok() && ask(&jane, "list", "").is_ok());
        assert_eq!(
            ask(&jane, "get", "a").expect_err("refused"),
            r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#
        );
    }

    #[test]
    fn the_words_of_a_user_are_those_of_all_bound_roles() {
        let role = json!({"metadata": {"name": "r", "namespace": "a"}, "rules": pods("get")});
        let binding = |name: &str, subject: Value| {
            json!({"metadata": {"name": name, "namespace": "a"},
                "roleRef": {"kind": "Role", "name": "r"}, "subjects": [subject]})
        };
        let bindings = [
            binding("one", json!({"kind": "User", "name": "jane"})),
            binding("two", json!({"kind": "Group", "name": "g"})),
        ];
        let table = table(&[role], &bindings);
        let jane = user("jane", &["g"]);
        // A verb, a group, a resource and the binding.
        assert_eq!(table.words(&jane, "a"), 2 * 4);
        assert_eq!(table.words(&jane, ""), 0);
        assert_eq!(table.words(&user("jane", &[]), "a"), 4);
    }

    #[test]
    fn aggregated_roles_have_the_rules_of_those_they_select_and_no_circle_hangs() {
        let aggregated = |name: &str, by: &str, of: &str| {
            json!({"metadata": {"name": name, "labels": {by: "true"}}, "rules": pods("stale"),
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {of: "true"}}]}})
        };
        let roles = [
            aggregated("admin", "to-circle", "to-admin"),
            aggregated("edit", "to-admin", "to-edit"),
            aggregated("circle", "to-admin", "to-circle"),
            json!({"metadata": {"name": "part", "labels": {"to-edit": "true"}}, "rules": pods("get")}),
        ];
        let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "User", "name": "jane"}]});
        let table = table(&roles, &[binding]);
        let jane = user("jane", &[]);
        let may = |verb| table.decide(&Attributes::of_resource(&jane, verb, "", "pods"));
        assert!(may("get").is_ok());
        assert!(may("stale").is_err());
    }
}

//! Which rules somebody lacks who wants others: whether one set of rules allows all that another does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Rule;
use super::rule::ALL;

/// Those of the wanted rules that none of the held ones covers, taken apart: each has one verb of one resource
/// or path. A verb that only several rules together allow on something counts, since each is looked for by itself.
#[must_use]
pub fn missing_rules(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let parts = wanted.iter().flat_map(apart);
    parts
        .filter(|part| !held.iter().any(|rule| rule.covers(part)))
        .collect()
}

/// Rules that differ in nothing but their verb put together, each as a line for people.
#[must_use]
pub fn describe_rules(parts: Vec<Rule>) -> String {
    let mut verbs: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in parts {
        if part.non_resource_urls.is_empty() {
            let about = (part.api_groups, part.resources, part.resource_names);
            let known = verbs.entry(about).or_default();
            known.extend(part.verbs);
        } else {
            lines.insert(part.to_string());
        }
    }
    for ((api_groups, resources, resource_names), mut verbs) in verbs {
        let mut seen = BTreeSet::new();
        verbs.retain(|verb| seen.insert(verb.clone()));
        let rule = Rule {
            verbs,
            api_groups,
            resources,
            resource_names,
            ..Rule::default()
        };
        lines.insert(rule.to_string());
    }
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// A rule as rules of one verb, one group, one resource and one name or path each.
fn apart(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    let names: Vec<Vec<String>> = if rule.resource_names.is_empty() {
        vec![Vec::new()]
    } else {
        rule.resource_names.iter().map(one).collect()
    };
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                parts.extend(names.iter().map(|names| Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    resource_names: names.clone(),
                    ..Rule::default()
                }));
            }
        }
    }
    for path in &rule.non_resource_urls {
        parts.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: one(verb),
            non_resource_urls: one(path),
            ..Rule::default()
        }));
    }
    parts
}

impl Rule {
    /// Whether this rule alone allows all that the other does.
    fn covers(&self, other: &Self) -> bool {
        let all_of = |held: &[String], wanted: &[String]| {
            held.iter().any(|it| it == ALL) || wanted.iter().all(|it| held.contains(it))
        };
        let names = self.resource_names.is_empty()
            || !other.resource_names.is_empty()
                && other
                    .resource_names
                    .iter()
                    .all(|it| self.resource_names.contains(it));
        let resources = other.resources.iter().all(|it| self.covers_resource(it));
        let paths = other.non_resource_urls.iter().all(|it| self.has_path(it));
        all_of(&self.verbs, &other.verbs)
            && all_of(&self.api_groups, &other.api_groups)
            && resources
            && names
            && paths
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        let part_of_all = wanted.split_once('/').map(|(_, part)| format!("*/{part}"));
        self.resources
            .iter()
            .any(|held| held == ALL || held == wanted || part_of_all.as_ref() == Some(held))
    }
}

/// As kube-apiserver tells rules to people.
impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let lists = lists.iter().filter(|(_, list)| !list.is_empty());
        let lists: Vec<String> = lists
            .map(|(name, list)| format!("{name}:{}", go_list(list)))
            .collect();
        write!(formatter, "{{{}}}", lists.join(", "))
    }
}

/// Texts as Go quotes a list of them.
#[must_use]
pub fn go_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;
    use crate::registry::User;
    use crate::registry::authorization::Attributes;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn rule(verbs: &[&str], group: &str, resources: &[&str], names: &[&str]) -> Rule {
        Rule {
            verbs: list(verbs),
            api_groups: list(&[group]),
            resources: list(resources),
            resource_names: list(names),
            ..Rule::default()
        }
    }

    fn paths(verbs: &[&str], paths: &[&str]) -> Rule {
        Rule {
            verbs: list(verbs),
            non_resource_urls: list(paths),
            ..Rule::default()
        }
    }

    #[test]
    fn what_is_missing_is_told_by_resource() {
        let held = [
            rule(&["get"], "", &["pods"], &[]),
            rule(&["list"], "", &["pods"], &[]),
            rule(&["get"], "", &["secrets"], &["mine"]),
            rule(&["*"], "apps", &["*/scale"], &[]),
            paths(&["get"], &["/healthz/*"]),
        ];
        let missing = |wanted: Rule| describe_rules(missing_rules(&held, &[wanted]));
        assert_eq!(missing(rule(&["get", "list"], "", &["pods"], &[])), "");
        assert_eq!(missing(rule(&["get"], "", &["secrets"], &["mine"])), "");
        assert_eq!(
            missing(rule(&["get"], "apps", &["deployments/scale"], &[])),
            ""
        );
        assert_eq!(missing(paths(&["get"], &["/healthz/ping"])), "");
        assert_eq!(
            missing(rule(
                &["watch", "get", "create"],
                "",
                &["pods", "pods/log"],
                &[]
            )),
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"create\"]}\n\
             {APIGroups:[\"\"], Resources:[\"pods/log\"], Verbs:[\"watch\" \"get\" \"create\"]}"
        );
        assert_eq!(
            missing(rule(&["get"], "", &["secrets"], &[])),
            "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
        );
        assert_eq!(
            missing(rule(&["get"], "", &["secrets"], &["mine", "yours"])),
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"yours\"], Verbs:[\"get\"]}"
        );
        assert_eq!(
            missing(paths(&["get"], &["/metrics"])),
            "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"
        );
    }

    proptest! {
        /// Whoever lacks nothing of a rule may do whatever the rule allows.
        #[test]
        fn what_is_covered_is_allowed(
            held in prop::collection::vec(rules(), 0..4),
            wanted in rules(),
            verb in select(&["get", "list"][..]),
            group in select(&["", "apps"][..]),
            resource in select(&["pods", "nodes"][..]),
            subresource in select(&["", "log"][..]),
            name in select(&["", "a", "b"][..]),
        ) {
            let user = User::default();
            let asked = Attributes {
                subresource,
                name,
                ..Attributes::of_resource(&user, verb, group, resource)
            };
            let covered = missing_rules(&held, std::slice::from_ref(&wanted)).is_empty();
            if covered && wanted.allows(&asked) {
                prop_assert!(held.iter().any(|rule| rule.allows(&asked)));
            }
        }
    }

    fn rules() -> impl Strategy<Value = Rule> {
        let lists =
            |of: &'static [&'static str]| subsequence(of, 0..=of.len()).prop_map(|it| list(&it));
        (
            lists(&["get", "list", "*"]),
            lists(&["", "apps", "*"]),
            lists(&["pods", "pods/log", "nodes", "*/log", "*"]),
            lists(&["a", "b"]),
        )
            .prop_map(|(verbs, api_groups, resources, resource_names)| Rule {
                verbs,
                api_groups,
                resources,
                resource_names,
                ..Rule::default()
            })
    }
}

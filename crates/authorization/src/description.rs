//! Formats rules for messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Missing, Rule};

/// Joins rules that differ only in their verb, and formats each as a line of a message.
#[must_use]
pub fn describe_rules(missing: Missing) -> String {
    let mut verbs: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in missing.parts {
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
    let mut lines: Vec<String> = lines.into_iter().collect();
    if missing.more {
        lines.push("and more than can be told; grant fewer rules at a time".to_owned());
    }
    lines.join("\n")
}

/// Formats a rule as kube-apiserver does in messages.
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

//! One rule of a role, and the requests that it allows.

use serde::{Deserialize, Serialize};

use super::Attributes;

/// The wildcard that stands for every verb, group, resource or path.
pub(super) const ALL: &str = "*";

/// A rule of a role: every listed verb on every listed resource, or on every listed path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Verbs such as `list`, or `*`.
    #[serde(deserialize_with = "null_is_empty")]
    pub verbs: Vec<String>,
    /// API groups; the core is empty.
    #[serde(
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub api_groups: Vec<String>,
    /// Resources such as `pods`, `pods/log` or `*/scale`.
    #[serde(
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<String>,
    /// The names of objects that the rule is restricted to; empty for all.
    #[serde(
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_names: Vec<String>,
    /// Paths; a `*` at the end stands for whatever follows.
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

/// Deserializes a list; Go writes nil slices as null.
fn null_is_empty<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Option::<Vec<String>>::deserialize(from).map(Option::unwrap_or_default)
}

impl Rule {
    /// Counts the words that [`Self::allows`] may have to compare.
    pub(super) fn words(&self) -> usize {
        let lists = [
            &self.verbs,
            &self.api_groups,
            &self.resources,
            &self.resource_names,
            &self.non_resource_urls,
        ];
        lists.iter().map(|list| list.len()).sum()
    }

    /// Returns true if the rule allows a request.
    #[must_use]
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        if attributes.is_resource {
            has(&self.api_groups, attributes.group)
                && self.has_resource(attributes)
                && self.has_name(attributes.name)
        } else {
            self.has_path(attributes.path)
        }
    }

    fn has_resource(&self, attributes: &Attributes<'_>) -> bool {
        self.resources.iter().any(|known| {
            let (resource, subresource) = match known.split_once('/') {
                // Without a name there is no subresource.
                Some((_, "")) => return false,
                Some((resource, subresource)) => (resource, subresource),
                None if known == ALL => return true,
                None => (known.as_str(), ""),
            };
            // `*/scale` is that part of every resource; a `*` is no wildcard anywhere else.
            subresource == attributes.subresource
                && (resource == attributes.resource || resource == ALL && !subresource.is_empty())
        })
    }

    fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == name)
    }

    /// Returns true if one of the paths is this one, or a pattern that matches it.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|known| {
            known == path || known.ends_with(ALL) && path.starts_with(known.trim_end_matches(ALL))
        })
    }
}

/// Returns true if a list contains a string or the wildcard.
fn has(list: &[String], text: &str) -> bool {
    list.iter().any(|known| known == ALL || known == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};
    use ringwatch_apimachinery::User;

    use super::*;

    const VERBS: &[&str] = &["get", "watch", "*"];
    const GROUPS: &[&str] = &["", "apps", "*"];
    const RESOURCES: &[&str] = &[
        "pods", "pods/log", "nodes", "*/log", "*", "pods/*", "pods/", "/log",
    ];
    const NAMES: &[&str] = &["a", "b", "*"];
    const PATHS: &[&str] = &["/api", "/api/*", "/metrics", "/m*", "*"];

    fn lists(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        subsequence(of, 0..=of.len()).prop_map(|list| list.into_iter().map(String::from).collect())
    }

    fn rules() -> impl Strategy<Value = Rule> {
        (
            lists(VERBS),
            lists(GROUPS),
            lists(RESOURCES),
            lists(NAMES),
            lists(PATHS),
        )
            .prop_map(
                |(verbs, api_groups, resources, resource_names, non_resource_urls)| Rule {
                    verbs,
                    api_groups,
                    resources,
                    resource_names,
                    non_resource_urls,
                },
            )
    }

    /// Returns true if a pattern with one star at its end matches a text.
    fn globs(pattern: &str, text: &str) -> bool {
        match pattern.strip_suffix('*') {
            Some(start) => text.len() >= start.len() && &text[..start.len()] == start,
            None => pattern == text,
        }
    }

    /// Decides the same from the sentence in Kubernetes' documentation for each list.
    fn model(rule: &Rule, attributes: &Attributes<'_>) -> bool {
        let any = |list: &[String], text: &str| {
            list.contains(&"*".to_owned()) || list.contains(&text.to_owned())
        };
        let verb = any(&rule.verbs, attributes.verb);
        if !attributes.is_resource {
            return verb
                && rule
                    .non_resource_urls
                    .iter()
                    .any(|it| globs(it, attributes.path));
        }
        let combined = attributes.combined_resource();
        let star = format!("*/{}", attributes.subresource);
        let resource = any(&rule.resources, &combined)
            || !attributes.subresource.is_empty() && rule.resources.contains(&star);
        let name = rule.resource_names.is_empty()
            || rule.resource_names.contains(&attributes.name.to_owned());
        verb && any(&rule.api_groups, attributes.group) && resource && name
    }

    proptest! {
        #[test]
        fn rules_allow_what_the_plain_model_allows(
            rule in rules(),
            verb in select(&["get", "watch", "list"][..]),
            group in select(&["", "apps", "batch"][..]),
            resource in select(&["pods", "nodes"][..]),
            subresource in select(&["", "log", "status"][..]),
            name in select(&["", "a", "c"][..]),
            path in select(&["/api", "/api/v1", "/apis", "/metrics", "/"][..]),
        ) {
            let user = User::default();
            let resource = Attributes {
                subresource,
                name,
                ..Attributes::of_resource(&user, verb, group, resource)
            };
            let path = Attributes::of_path(&user, verb, path);
            prop_assert_eq!(rule.allows(&resource), model(&rule, &resource));
            prop_assert_eq!(rule.allows(&path), model(&rule, &path));
        }
    }

    #[test]
    fn lists_may_be_null() {
        let rule = r#"{"verbs": ["get"], "apiGroups": null, "nonResourceURLs": ["/x"]}"#;
        let rule: Rule = serde_json::from_str(rule).expect("a rule");
        assert!(rule.allows(&Attributes::of_path(&User::default(), "get", "/x")));
    }
}

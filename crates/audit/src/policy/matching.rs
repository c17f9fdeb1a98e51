//! Matches requests with rules: `ruleMatches` of Kubernetes 1.36 (`audit/policy/checker.go`).

use ringwatch_authorization::Attributes;

use super::{GroupResources, PolicyRule};

impl PolicyRule {
    /// Returns true if the rule is about such a request.
    pub(super) fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let user = attributes.user;
        let has = |list: &[String], value: &str| list.is_empty() || holds(list, value);
        let in_group = || user.groups.iter().any(|it| holds(&self.user_groups, it));
        has(&self.users, &user.name)
            && (self.user_groups.is_empty() || in_group())
            && has(&self.verbs, attributes.verb)
            && self.matches_target(attributes)
    }

    fn matches_target(&self, attributes: &Attributes<'_>) -> bool {
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return attributes.is_resource
                && (self.namespaces.is_empty() || holds(&self.namespaces, attributes.namespace))
                && (self.resources.is_empty() || self.matches_resource(attributes));
        }
        if !self.non_resource_urls.is_empty() {
            let urls = || self.non_resource_urls.iter();
            return !attributes.is_resource && urls().any(|it| path_matches(attributes.path, it));
        }
        true
    }

    fn matches_resource(&self, attributes: &Attributes<'_>) -> bool {
        self.resources.iter().any(|it| it.matches(attributes))
    }
}

impl GroupResources {
    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        if self.group != attributes.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.names.is_empty() && !holds(&self.names, attributes.name) {
            return false;
        }
        let (resource, subresource) = (attributes.resource, attributes.subresource);
        self.resources.iter().any(|pattern| {
            let Some((of, sub)) = pattern.split_once('/') else {
                return pattern == "*" || subresource.is_empty() && pattern == resource;
            };
            let exact = !subresource.is_empty() && of == resource && sub == subresource;
            // A pattern `*/*` is for all subresources of a resource that is called `*`, and for a subresource `*`.
            exact
                || of == "*" && !subresource.is_empty() && sub == subresource
                || pattern.strip_suffix("/*") == Some(resource)
        })
    }
}

fn path_matches(path: &str, pattern: &str) -> bool {
    let prefix = || pattern.trim_end_matches('*');
    pattern == "*" || pattern == path || pattern.ends_with('*') && path.starts_with(prefix())
}

/// Returns true if a list that policies have has a value.
fn holds(list: &[String], value: &str) -> bool {
    list.iter().any(|it| it == value)
}

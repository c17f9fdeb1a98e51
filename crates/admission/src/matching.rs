//! The criteria by which a webhook or a policy matches writes: rules and selectors.

use std::sync::Arc;

use ringwatch::meta::LabelSelector;
use ringwatch_apimachinery::{accessor, selector_text};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use serde_json::Value;

use super::served_types::ServedTypes;

/// The group of configurations of webhooks and policies, which are never intercepted: whoever broke
/// one must be able to mend it.
const CONFIGURATIONS: &str = "admissionregistration.k8s.io";

/// Returns true if the request is about a configuration of admission itself, which no webhook or policy intercepts.
pub(super) fn is_exempt(request: &Request<'_>) -> bool {
    request.resource.group_version.group == CONFIGURATIONS
}

/// The criteria by which a webhook, a policy or a binding matches writes.
#[derive(Debug)]
pub(super) struct Criteria {
    rules: Vec<MatchRule>,
    excluded: Vec<MatchRule>,
    /// True if rules match resources that are served in other versions too: `matchPolicy: Equivalent`.
    equivalent: bool,
    pub(super) namespaces: LabelSelector,
    objects: LabelSelector,
}

/// One rule, all parts of which must match.
#[derive(Debug)]
struct MatchRule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// The names of objects; empty for all.
    names: Vec<String>,
    scope: String,
}

impl Criteria {
    /// Reads what stands in a webhook (`rules`) or a policy (`resourceRules`).
    ///
    /// # Errors
    /// A message about a selector that cannot be read.
    pub(super) fn read(source: &Value, rules_name: &str) -> Result<Self, String> {
        let rules = |name: &str| {
            let rules = source.get(name).and_then(Value::as_array);
            rules.into_iter().flatten().map(MatchRule::read).collect()
        };
        let selector = |name: &str| {
            let text = source.get(name).map(selector_text::label_selector);
            LabelSelector::parse(&text.unwrap_or_default()).map_err(|error| error.to_string())
        };
        Ok(Self {
            rules: rules(rules_name),
            excluded: rules("excludeResourceRules"),
            equivalent: source.get("matchPolicy").and_then(Value::as_str) != Some("Exact"),
            namespaces: selector("namespaceSelector")?,
            objects: selector("objectSelector")?,
        })
    }

    /// Reads where a binding holds: without rules, wherever its policy does.
    ///
    /// # Errors
    /// A message about a selector that cannot be read.
    pub(super) fn read_binding(source: &Value) -> Result<Self, String> {
        let mut criteria = Self::read(source, "resourceRules")?;
        if criteria.rules.is_empty() {
            criteria.rules.push(MatchRule::everything());
        }
        Ok(criteria)
    }

    /// Returns the resource as which the request matches: its own or, with `matchPolicy: Equivalent`, another version
    /// of it. `None` if it does not match.
    pub(super) fn matched(
        &self,
        request: &Request<'_>,
        types: &ServedTypes,
    ) -> Option<Arc<Resource>> {
        if self.find(&self.excluded, request, types).is_some() {
            return None;
        }
        self.find(&self.rules, request, types)
    }

    fn find(
        &self,
        rules: &[MatchRule],
        request: &Request<'_>,
        types: &ServedTypes,
    ) -> Option<Arc<Resource>> {
        let covers = |resource: &Resource| rules.iter().any(|rule| rule.covers(request, resource));
        if covers(request.resource) {
            return Some(Arc::clone(request.resource));
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let found = types.equivalent(request.resource, covers)?;
        // What only a webhook could convert is shown as it is written.
        if found.strategy.knows_other_versions() {
            Some(found)
        } else {
            Some(Arc::clone(request.resource))
        }
    }

    /// Returns true if the object selector matches the new or the old object.
    pub(super) fn selects(&self, object: &Value, old: Option<&Value>) -> bool {
        let selects = |object: &Value| self.objects.matches(accessor::labels(object).as_labels());
        self.objects.is_empty() || selects(object) || old.is_some_and(selects)
    }
}

impl MatchRule {
    fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        Self {
            operations: all(),
            groups: all(),
            versions: all(),
            resources: vec!["*/*".to_owned()],
            names: Vec::new(),
            scope: "*".to_owned(),
        }
    }

    fn read(source: &Value) -> Self {
        let texts = |name: &str| -> Vec<String> {
            let list = source.get(name).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let scope = source.get("scope").and_then(Value::as_str);
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            scope: scope.unwrap_or("*").to_owned(),
        }
    }

    /// Returns true if the rule matches the request as one for `resource`.
    fn covers(&self, request: &Request<'_>, resource: &Resource) -> bool {
        let among = |all: &[String], one: &str| all.iter().any(|it| it == "*" || it == one);
        let version = &resource.group_version;
        among(&self.operations, request.operation.name())
            && among(&self.groups, &version.group)
            && among(&self.versions, &version.version)
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
            && match self.scope.as_str() {
                "Cluster" => !resource.namespaced,
                "Namespaced" => resource.namespaced,
                _ => true,
            }
            && self.resources.iter().any(|rule| {
                let (plural, part) = rule.split_once('/').unwrap_or((rule, ""));
                (plural == "*" || plural == resource.plural)
                    && (part == "*" || part == request.subresource())
            })
    }
}

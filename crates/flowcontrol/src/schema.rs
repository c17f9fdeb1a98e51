//! FlowSchemas: the requests that each selects.

use ringwatch_apimachinery::{User, service_account};
use ringwatch_authorization::Attributes;
use serde::Deserialize;
use serde_json::Value;

/// The wildcard that stands for every user, verb, group, resource, namespace or path.
const ALL: &str = "*";

/// A FlowSchema object, as far as it selects requests and names their priority level.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schema {
    pub(super) metadata: ObjectMetadata,
    pub(super) spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectMetadata {
    pub(super) name: String,
    pub(super) uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) matching_precedence: i64,
    pub(super) priority_level_configuration: NamedObject,
    distinguisher_method: Option<Distinguisher>,
    rules: Option<Vec<SchemaRule>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NamedObject {
    pub(super) name: String,
    namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Distinguisher {
    r#type: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SchemaRule {
    subjects: Option<Vec<FlowSubject>>,
    resource_rules: Option<Vec<ResourceRule>>,
    non_resource_rules: Option<Vec<PathRule>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlowSubject {
    user: Option<NamedObject>,
    group: Option<NamedObject>,
    service_account: Option<NamedObject>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

impl Schema {
    /// Reads a stored schema.
    ///
    /// # Errors
    /// Fails when the object is no FlowSchema.
    pub fn read(schema: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(schema)
    }

    /// Returns true if the schema matches a request.
    pub(super) fn has(&self, attributes: &Attributes<'_>) -> bool {
        let mut rules = self.spec.rules.iter().flatten();
        rules.any(|rule| rule.has_user(attributes.user) && rule.has_request(attributes))
    }

    /// Returns the flow distinguisher of a request.
    pub(super) fn distinguisher<'a>(&self, attributes: &Attributes<'a>) -> &'a str {
        let method = self.spec.distinguisher_method.as_ref();
        match method.map(|method| method.r#type.as_str()) {
            Some("ByUser") => &attributes.user.name,
            Some("ByNamespace") => attributes.namespace,
            _ => "",
        }
    }
}

impl SchemaRule {
    fn has_user(&self, user: &User) -> bool {
        self.subjects
            .iter()
            .flatten()
            .any(|subject| subject.is(user))
    }

    fn has_request(&self, attributes: &Attributes<'_>) -> bool {
        if attributes.is_resource {
            self.resource_rules
                .iter()
                .flatten()
                .any(|rule| rule.has(attributes))
        } else {
            self.non_resource_rules
                .iter()
                .flatten()
                .any(|rule| rule.has(attributes))
        }
    }
}

impl FlowSubject {
    fn is(&self, user: &User) -> bool {
        let named = |it: &NamedObject, name: &str| it.name == ALL || it.name == name;
        let account = |it: &NamedObject| {
            let account = service_account(&user.name);
            account.is_some_and(|(namespace, name)| it.namespace == namespace && named(it, name))
        };
        self.user.as_ref().is_some_and(|it| named(it, &user.name))
            || self
                .group
                .as_ref()
                .is_some_and(|it| user.groups.iter().any(|group| named(it, group)))
            || self.service_account.as_ref().is_some_and(account)
    }
}

impl ResourceRule {
    fn has(&self, attributes: &Attributes<'_>) -> bool {
        let mut namespaces = self.namespaces.iter().flatten();
        let in_place = if attributes.namespace.is_empty() {
            self.cluster_scope
        } else {
            namespaces.any(|it| it == ALL || it == attributes.namespace)
        };
        in_place
            && any(&self.verbs, attributes.verb)
            && any(&self.api_groups, attributes.group)
            && any(&self.resources, &attributes.combined_resource())
    }
}

impl PathRule {
    fn has(&self, attributes: &Attributes<'_>) -> bool {
        let is = |path: &String| match path.strip_suffix(ALL) {
            Some(start) => attributes.path.starts_with(start),
            None => path == attributes.path,
        };
        any(&self.verbs, attributes.verb) && self.paths.iter().any(is)
    }
}

fn any(list: &[String], text: &str) -> bool {
    list.iter().any(|known| known == ALL || known == text)
}

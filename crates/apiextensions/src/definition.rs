//! A parsed CustomResourceDefinition, and the resources that it defines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use ringwatch::meta::{FieldPath, FieldSchema};
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::{FieldError, GroupVersion};
use ringwatch_registry::PrinterColumns;
use ringwatch_registry::{Resource, ScalePaths, SelectorForm, ServedBy, Subresource, Verb};
use serde_json::Value;

use super::completion::SchemaCompletion;
use super::deprecation;
use super::schema::{Patterns, Strictness, StructuralSchema};
use super::strategy::CustomResource;

/// The verbs of custom resources, in the order of discovery.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The verbs of their subresources.
const PART_VERBS: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

/// The finalizer of a definition whose objects must go before it may.
pub const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition, read from its object as served in v1.
#[derive(Clone, Debug)]
pub struct Definition {
    object: Arc<Value>,
    /// The schemas of all versions, read at their first use.
    read: Arc<OnceLock<ReadSchemas>>,
}

/// Schemas by version, or what is wrong with them.
type ReadSchemas = BTreeMap<String, Result<Arc<StructuralSchema>, Vec<FieldError>>>;

/// A definition from which no resource can be made.
#[derive(Debug, thiserror::Error)]
#[error("version {version} has no usable schema: {}", first(.errors))]
pub struct Unusable {
    /// The version that has the schema.
    version: String,
    /// The errors of the schema.
    errors: Vec<FieldError>,
}

fn first(errors: &[FieldError]) -> String {
    errors.first().map(FieldError::message).unwrap_or_default()
}

impl Definition {
    /// Reads a definition out of its object.
    #[must_use]
    pub fn new(object: Value) -> Self {
        Self {
            object: Arc::new(object),
            read: Arc::default(),
        }
    }

    /// Returns the CustomResourceDefinition as an object.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Returns the name: plural and group.
    #[must_use]
    pub fn name(&self) -> &str {
        text(&self.object, "metadata.name")
    }

    /// Tells this definition from a later one of the same name.
    #[must_use]
    pub fn uid(&self) -> &str {
        text(&self.object, "metadata.uid")
    }

    /// Returns true if another definition, of the same uid, defines the same resources.
    #[must_use]
    pub fn defines_the_same(&self, other: &Self) -> bool {
        let of = |definition: &Self, path| get(&definition.object, path).cloned();
        let same = |path| of(self, path) == of(other, path);
        same("spec")
            && same("status.acceptedNames")
            && self.is_terminating() == other.is_terminating()
    }

    /// Returns true if the objects of another definition are those of this one, and are read in the same way.
    #[must_use]
    pub fn is_stored_as(&self, other: &Self) -> bool {
        self.uid() == other.uid()
            && self.selectable_names() == other.selectable_names()
            && self.preserves_unknown_fields() == other.preserves_unknown_fields()
            && self.schemas().eq(other.schemas())
    }

    /// Returns how objects are completed when they are read: by the schema of the version in which they were written.
    #[must_use]
    pub fn completion(&self) -> SchemaCompletion {
        let versions = list(&self.object, "spec.versions").iter();
        SchemaCompletion::new(versions.filter_map(|version| {
            let group_version = GroupVersion::new(self.group(), text(version, "name"));
            Some((group_version, self.schema(version).ok()?))
        }))
    }

    /// Returns the group of its resources.
    #[must_use]
    pub fn group(&self) -> &str {
        text(&self.object, "spec.group")
    }

    /// Returns true if the condition has the status `True`.
    #[must_use]
    pub fn has(&self, condition: &str) -> bool {
        let conditions = list(&self.object, "status.conditions").iter();
        conditions
            .filter(|it| text(it, "type") == condition)
            .any(|it| text(it, "status") == "True")
    }

    /// Returns true if its resources are served: its names are accepted, or were when it was established.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.has("NamesAccepted") || self.has("Established")
    }

    /// Returns true if the definition is being deleted.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        get(&self.object, "metadata.deletionTimestamp").is_some_and(|it| !it.is_null())
    }

    /// Returns true if its objects have to be deleted before the definition can be.
    #[must_use]
    pub fn is_to_be_cleaned_up(&self) -> bool {
        let finalizers = list(&self.object, "metadata.finalizers");
        finalizers.iter().any(|it| it == CLEAN_UP)
    }

    /// Returns the plural of its kind.
    #[must_use]
    pub fn plural(&self) -> &str {
        text(&self.object, "spec.names.plural")
    }

    /// Returns where its objects are stored.
    #[must_use]
    pub fn storage_prefix(&self) -> String {
        format!("{}/{}", self.group(), self.plural())
    }

    /// Returns the selectable fields of all its versions, which are read out of every object.
    #[must_use]
    pub fn selectable_fields(&self) -> FieldSchema {
        fields(self.selectable_names())
    }

    /// Returns the dotted paths of the selectable fields of all versions.
    #[must_use]
    pub fn selectable_names(&self) -> BTreeSet<&str> {
        let versions = list(&self.object, "spec.versions");
        versions.iter().flat_map(selectable).collect()
    }

    /// Returns the resources that it defines, one for each served version.
    ///
    /// # Errors
    /// [`Unusable`] when the schema of a version cannot be followed.
    pub fn resources(&self) -> Result<Vec<Resource>, Unusable> {
        let versions = list(&self.object, "spec.versions");
        let storage = versions
            .iter()
            .find(|it| it.get("storage") == Some(&Value::Bool(true)));
        let storage = storage.map_or("", |it| text(it, "name"));
        let served = versions
            .iter()
            .filter(|it| it.get("served") == Some(&Value::Bool(true)));
        served.map(|it| self.resource(it, storage)).collect()
    }

    fn resource(&self, version: &Value, storage: &str) -> Result<Resource, Unusable> {
        let names = get(&self.object, "status.acceptedNames").unwrap_or(&Value::Null);
        let group_version = GroupVersion::new(self.group(), text(version, "name"));
        let storage_version = GroupVersion::new(self.group(), storage);
        let texts = |name| {
            let texts = list(names, name).iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let kind = text(names, "kind").to_owned();
        let scale = get(version, "subresources.scale").map(|it| self.scale_paths(it));
        let strategy = CustomResource::new(
            self.schema(version)?,
            &group_version,
            get(version, "subresources.status").is_some(),
            scale.clone(),
            text(&self.object, "spec.conversion.strategy") == "Webhook",
        );
        Ok(Resource {
            plural: text(names, "plural").to_owned(),
            singular: text(names, "singular").to_owned(),
            list_kind: text(names, "listKind").to_owned(),
            short_names: texts("shortNames"),
            categories: texts("categories"),
            namespaced: text(&self.object, "spec.scope") == "Namespaced",
            verbs: self.verbs(),
            subresources: subresources(version, &kind),
            storage_prefix: self.storage_prefix(),
            storage_version,
            storage_kind: kind.clone(),
            kind,
            served: ServedBy::Store,
            schema: fields(selectable(version)),
            field_aliases: &[],
            scale,
            printer_columns: Some(Arc::new(PrinterColumns::read(version))),
            deprecated: deprecation::warning(&self.object, version),
            strategy: Arc::new(strategy),
            group_version,
        })
    }

    /// Returns the paths of the Scale of a version.
    fn scale_paths(&self, scale: &Value) -> ScalePaths {
        let path = |name| text(scale, name).trim_start_matches('.').to_owned();
        let selector = path("labelSelectorPath");
        let of_version = |version: &Value| {
            let name = GroupVersion::new(self.group(), text(version, "name")).to_string();
            let replicas = get(version, "subresources.scale").map(spec_replicas);
            (name, replicas)
        };
        let versions = list(&self.object, "spec.versions").iter();
        ScalePaths {
            spec_replicas: spec_replicas(scale),
            versions: versions.map(of_version).collect(),
            status_replicas: path("statusReplicasPath"),
            selector: (!selector.is_empty()).then_some(selector),
            selector_form: SelectorForm::Text,
        }
    }

    /// Returns the verbs of its objects. Nothing is created any more while they are being deleted.
    fn verbs(&self) -> Vec<Verb> {
        let verbs = VERBS.iter().copied();
        let terminating = self.is_terminating();
        verbs
            .filter(|verb| !terminating || *verb != Verb::Create)
            .collect()
    }

    /// Returns the schemas of all versions.
    fn schemas(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let versions = list(&self.object, "spec.versions").iter();
        versions.map(|it| (text(it, "name"), get(it, "schema.openAPIV3Schema")))
    }

    fn preserves_unknown_fields(&self) -> bool {
        get(&self.object, "spec.preserveUnknownFields") == Some(&Value::Bool(true))
    }

    /// Returns the schema of a version.
    fn schema(&self, version: &Value) -> Result<Arc<StructuralSchema>, Unusable> {
        let name = text(version, "name");
        let unusable = |errors| Unusable {
            version: name.to_owned(),
            errors,
        };
        match self.read_schemas().get(name) {
            Some(read) => read.clone().map_err(unusable),
            None => Err(unusable(Vec::new())),
        }
    }

    /// Returns the schemas of all versions, which are read once.
    fn read_schemas(&self) -> &ReadSchemas {
        let everything = Value::Object(serde_json::Map::new());
        let preserve = self.preserves_unknown_fields();
        let mut patterns = Patterns::default();
        let read = |(name, schema): (&str, Option<&Value>)| {
            let schema = schema.unwrap_or(&everything);
            // What was stored is served, by whichever rules it was accepted.
            let followed = Strictness::of([schema].into_iter());
            let read = StructuralSchema::read_beside(schema, preserve, &mut patterns, followed);
            (name.to_owned(), read.map(Arc::new))
        };
        self.read.get_or_init(|| self.schemas().map(read).collect())
    }
}

/// Returns the paths of a version's selectable fields, without their leading dots.
fn selectable(version: &Value) -> impl Iterator<Item = &str> {
    let fields = list(version, "selectableFields").iter();
    fields.map(|field| text(field, "jsonPath").trim_start_matches('.'))
}

fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> FieldSchema {
    FieldSchema::new(names.into_iter().map(|name| FieldPath {
        name: name.to_owned().into(),
        default: "",
        from: &[],
        indexed: false,
    }))
}

fn subresources(version: &Value, kind: &str) -> Vec<Subresource> {
    let part = |name: &str, group_version, kind: &str, served| Subresource {
        name: name.to_owned(),
        group_version,
        kind: kind.to_owned(),
        verbs: PART_VERBS.to_vec(),
        served,
    };
    let status = get(version, "subresources.status");
    let status = status.map(|_| part("status", None, kind, ServedBy::Store));
    let autoscaling = GroupVersion::new("autoscaling", "v1");
    let scale = get(version, "subresources.scale");
    let scale = scale.map(|_| part("scale", Some(autoscaling), "Scale", ServedBy::Handler));
    status.into_iter().chain(scale).collect()
}

/// Returns the path of the desired replicas.
fn spec_replicas(scale: &Value) -> String {
    text(scale, "specReplicasPath")
        .trim_start_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scale_knows_the_replicas_of_all_versions() {
        let version = |name: &str, subresources: Value| {
            json!({"name": name, "served": name != "v2", "storage": name == "v1", "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object"}}})
        };
        let scale = |path: &str| json!({"scale": {"specReplicasPath": path}});
        let definition = Definition::new(json!({
            "spec": {"group": "example.com", "versions": [version("v1", scale(".spec.size")),
                version("v2", scale(".spec.replicas")), version("v3", json!({}))]},
            "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget"}},
        }));
        let resources = definition.resources().expect("resources");
        let paths: Vec<_> = resources.iter().map(|it| it.scale.as_ref()).collect();
        let [Some(paths), None] = paths.as_slice() else {
            panic!("{paths:?}");
        };
        assert_eq!(paths.spec_replicas, "spec.size");
        let of = |version: &str| paths.versions[&format!("example.com/{version}")].as_deref();
        let found = ["v1", "v2", "v3"].map(of);
        assert_eq!(found, [Some("spec.size"), Some("spec.replicas"), None]);
        assert_eq!(paths.versions.len(), 3);
    }
}

//! The schemas of custom resources: those of their definitions, completed by the fields that all objects have.
//!
//! Nothing is cached here; the definitions are read from the watch cache.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Store};
use serde_json::{Map, Value, json};

use super::built_in::Index;
use super::form::OpenApiVersion;
use super::{names, v3};

/// The built-in types from which custom ones take the members that all objects and lists have.
const OBJECT: &str = "io.k8s.api.core.v1.ConfigMap";
const LIST: &str = "io.k8s.api.core.v1.ConfigMapList";

/// The description of the metadata of their lists: that of PartialObjectMetadataList, not that of built-in lists.
const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The descriptions of the type of embedded objects, which differ from those of whole ones.
const EMBEDDED_DESCRIPTIONS: [(&str, &str); 2] = [
    (
        "apiVersion",
        "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    ),
    (
        "kind",
        "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    ),
];

/// Maximum depth of schemas that are rewritten; deeper ones are shown unchanged.
const LEVELS_MAX: usize = 64;

/// Finds the schemas of custom resources in their definitions.
#[derive(Debug)]
pub(super) struct CustomSchemas {
    /// The store of CustomResourceDefinitions.
    definitions: Option<Arc<Store>>,
    /// The custom resources by their group and version.
    resources: BTreeMap<GroupVersion, Vec<Arc<Resource>>>,
}

impl CustomSchemas {
    /// Collects the custom resources among these stores.
    pub(super) fn new(stores: &[Arc<Store>]) -> Self {
        let mut resources: BTreeMap<GroupVersion, Vec<Arc<Resource>>> = BTreeMap::new();
        for resource in stores
            .iter()
            .map(|it| it.resource())
            .filter(|it| it.is_custom())
        {
            let version = resource.group_version.clone();
            resources
                .entry(version)
                .or_default()
                .push(Arc::clone(resource));
        }
        let is_definitions = |store: &&Arc<Store>| {
            let resource = store.resource();
            resource.group_version.group == "apiextensions.k8s.io"
                && resource.plural == "customresourcedefinitions"
        };
        Self {
            definitions: stores.iter().find(is_definitions).cloned(),
            resources,
        }
    }

    /// Returns the version of the definition of a resource; 0 if it is gone.
    pub(super) async fn version(&self, resource: &Resource) -> u64 {
        let definition = self.definition(resource).await;
        definition.map_or(0, |it| it.revision())
    }

    /// Returns the schema of a kind, or of a kind of list; open if nothing is known of it.
    pub(super) async fn schema(
        &self,
        group_version: &GroupVersion,
        kind: &str,
        form: OpenApiVersion,
        built_in: &Index<'_>,
    ) -> Value {
        let mut resources = self.resources.get(group_version).into_iter().flatten();
        let is_of = |it: &&Arc<Resource>| it.kind == kind || it.list_kind == kind;
        let Some(resource) = resources.find(is_of) else {
            return json!({"type": "object"});
        };
        let definition = self.served_definition(resource).await;
        let version = definition.as_ref().and_then(|it| version(it, resource));
        let mut schema = if resource.list_kind == kind {
            list(resource, built_in)
        } else {
            object(definition.as_ref(), version, form, built_in)
        };
        schema["x-kubernetes-group-version-kind"] = json!([
            {"group": group_version.group, "version": group_version.version, "kind": kind}]);
        if let Some(fields) = version.and_then(selectable_fields) {
            schema["x-kubernetes-selectable-fields"] = fields;
        }
        schema
    }

    /// Returns the definition of a resource as it is served.
    async fn served_definition(&self, resource: &Resource) -> Option<Value> {
        let definition = self.definition(resource).await?;
        self.definitions.as_ref()?.served_value(&definition).ok()
    }

    /// Returns the definition of a resource.
    async fn definition(&self, resource: &Resource) -> Option<Arc<Object>> {
        let options = GetOptions {
            resource_version: ResourceVersion::parse("0").ok().flatten(),
        };
        let store = self.definitions.as_ref()?;
        store
            .get("", &resource.qualified_name(), options)
            .await
            .ok()
    }
}

/// Returns the version of a definition that a resource is served in.
fn version<'a>(definition: &'a Value, resource: &Resource) -> Option<&'a Value> {
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    versions.find(|it| it["name"] == resource.group_version.version)
}

/// Returns the selectable fields of a version as documents tell them. Follows `buildSelectableFields`.
fn selectable_fields(version: &Value) -> Option<Value> {
    let fields = version.get("selectableFields")?.as_array()?.iter();
    let path = |field: &Value| {
        Some(
            field["jsonPath"]
                .as_str()?
                .trim_start_matches('.')
                .to_owned(),
        )
    };
    let fields = fields.filter_map(path);
    let fields: Vec<Value> = fields.map(|it| json!({"fieldPath": it})).collect();
    (!fields.is_empty()).then(|| fields.into())
}

/// Returns the schema of the objects of a version; open if there is none. Follows `buildKubeNative`.
fn object(
    definition: Option<&Value>,
    version: Option<&Value>,
    form: OpenApiVersion,
    built_in: &Index<'_>,
) -> Value {
    let open = || json!({"type": "object"});
    let schema = version.and_then(|it| it.get("schema")?.get("openAPIV3Schema"));
    let Some(mut schema) = schema.cloned() else {
        return open();
    };
    unfold(&mut schema, LEVELS_MAX);
    if form == OpenApiVersion::V2 {
        let preserves = definition.is_some_and(|it| it["spec"]["preserveUnknownFields"] == true);
        if preserves || is_true(&schema, PRESERVE_UNKNOWN) {
            return open();
        }
        strip(&mut schema, LEVELS_MAX);
    }
    let frame = members(built_in, OBJECT);
    embed(&mut schema, &frame, form, LEVELS_MAX);
    put(&mut schema, &frame);
    schema
}

const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

fn is_true(schema: &Value, extension: &str) -> bool {
    schema.get(extension) == Some(&Value::Bool(true))
}

/// Returns the members of every object, as a built-in type describes them.
fn members(built_in: &Index<'_>, name: &str) -> Map<String, Value> {
    let schema = built_in.schema(name).map_or("{}", |it| it.json);
    let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let names = ["apiVersion", "kind", "metadata"];
    let member = |name: &str| {
        Some((
            name.to_owned(),
            schema.get_mut("properties")?.get_mut(name)?.take(),
        ))
    };
    let mut members: Map<String, Value> = names.into_iter().filter_map(member).collect();
    // Custom resources have no Go struct whose zero would be written.
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("default");
    }
    members
}

/// Puts members into a schema.
fn put(schema: &mut Value, members: &Map<String, Value>) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(members.iter().map(|(name, it)| (name.clone(), it.clone())));
    }
}

/// Returns the schema of lists of a resource.
fn list(resource: &Resource, built_in: &Index<'_>) -> Value {
    let item = names::of_custom(&resource.group_version, &resource.kind);
    let mut schema = json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {"items": {
            "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", resource.plural),
            "type": "array",
            "items": {"$ref": format!("{}{item}", v3::REFERENCE)},
        }},
    });
    put(&mut schema, &members(built_in, LIST));
    schema["properties"]["metadata"]["description"] = json!(LIST_METADATA);
    schema
}

/// Adds the members of every object to embedded objects.
fn embed(schema: &mut Value, frame: &Map<String, Value>, form: OpenApiVersion, levels: usize) {
    if levels == 0 {
        return;
    }
    inner(schema, &mut |it| embed(it, frame, form, levels - 1));
    // kubectl would refuse members that are not listed next to it.
    if is_true(schema, EMBEDDED)
        && !(form == OpenApiVersion::V2 && is_true(schema, PRESERVE_UNKNOWN))
    {
        put(schema, frame);
        for (name, description) in EMBEDDED_DESCRIPTIONS {
            schema["properties"][name]["description"] = json!(description);
        }
        let required = schema.get("required").and_then(Value::as_array);
        let mut required = required.cloned().unwrap_or_default();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|it| it == name) {
                required.push(name.into());
            }
        }
        schema["required"] = required.into();
    }
}

/// Writes out that a value is an integer or a string, unless the schema says so itself. Follows `Structural.Unfold`.
fn unfold(schema: &mut Value, levels: usize) {
    if levels == 0 {
        return;
    }
    inner(schema, &mut |it| unfold(it, levels - 1));
    if !is_true(schema, INT_OR_STRING) {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first = schema.get("allOf").and_then(|all| all.get(0)?.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || first == Some(&either) {
        return;
    }
    let is_list = |it: &&Value| it.as_array().is_some_and(|it| !it.is_empty());
    if schema.get("anyOf").filter(is_list).is_none() {
        schema["anyOf"] = either;
        return;
    }
    let others = schema.get("allOf").and_then(Value::as_array).cloned();
    let mut all = vec![json!({"anyOf": either})];
    all.extend(others.unwrap_or_default());
    schema["allOf"] = all.into();
}

/// Removes what OpenAPI v2 cannot express and what kubectl does not understand. Follows `ToStructuralOpenAPIV2`.
fn strip(schema: &mut Value, levels: usize) {
    let Some(members) = schema.as_object_mut().filter(|_| levels > 0) else {
        return;
    };
    for name in ["allOf", "oneOf", "anyOf", "not"] {
        members.remove(name);
    }
    let nullable = members.remove("nullable") == Some(Value::Bool(true));
    if nullable {
        members.remove("type");
    }
    let preserves = members.get(PRESERVE_UNKNOWN) == Some(&Value::Bool(true));
    if nullable || preserves {
        members.remove("items");
        members.remove("properties");
    }
    let is = |kind: &str| members.get("type") == Some(&kind.into());
    if !members.contains_key("items") && is("array") || preserves && is("object") {
        members.remove("type");
    }
    let may_be_null = |schema: &Value| is_true(schema, "nullable");
    if members.get("additionalProperties").is_some_and(may_be_null) {
        members.remove("required");
    }
    let properties = members.get("properties").and_then(Value::as_object);
    let nulls: Vec<String> = properties
        .into_iter()
        .flatten()
        .filter(|(_, it)| may_be_null(it))
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(required) = members.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|it| !nulls.iter().any(|name| it == name));
        if required.is_empty() {
            members.remove("required");
        }
    }
    inner(schema, &mut |it| strip(it, levels - 1));
}

/// Visits the schemas right below a schema.
fn inner(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for name in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(name).filter(|it| it.is_object()) {
            visit(below);
        }
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, below) in properties.into_iter().flatten() {
        visit(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_version_is_spared_what_it_cannot_say() {
        for (schema, stripped) in [
            (
                json!({"type": "string", "nullable": true, "description": "d"}),
                json!({"description": "d"}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"a": {"type": "string"}}}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (json!({"type": "array", "nullable": false}), json!({})),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {
                    "a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
                json!({"type": "object", "required": ["b"], "properties": {
                    "a": {}, "b": {"type": "string"}}}),
            ),
            (
                json!({"type": "object", "required": ["a"], "additionalProperties": {
                    "type": "string", "nullable": true}}),
                json!({"type": "object", "additionalProperties": {}}),
            ),
            (
                json!({"type": "array", "items": {"anyOf": [{"type": "string"}], "type": "string",
                    "not": {"enum": ["x"]}}}),
                json!({"type": "array", "items": {"type": "string"}}),
            ),
        ] {
            let mut found = schema.clone();
            strip(&mut found, LEVELS_MAX);
            assert_eq!(found, stripped, "{schema}");
        }
    }

    #[test]
    fn what_is_an_integer_or_a_string_says_so() {
        let either = || json!([{"type": "integer"}, {"type": "string"}]);
        let schema = |more: Value| {
            let mut schema = more;
            schema[INT_OR_STRING] = json!(true);
            schema
        };
        for (written, published) in [
            (schema(json!({})), schema(json!({"anyOf": either()}))),
            (
                schema(json!({"pattern": "a", "anyOf": []})),
                schema(json!({"pattern": "a", "anyOf": either()})),
            ),
            (
                schema(json!({"anyOf": either()})),
                schema(json!({"anyOf": either()})),
            ),
            (
                schema(json!({"allOf": [{"anyOf": either()}, {"maximum": 1}]})),
                schema(json!({"allOf": [{"anyOf": either()}, {"maximum": 1}]})),
            ),
            (
                schema(json!({"anyOf": [{"maximum": 1}], "allOf": [{"minimum": 0}]})),
                schema(
                    json!({"anyOf": [{"maximum": 1}], "allOf": [{"anyOf": either()}, {"minimum": 0}]}),
                ),
            ),
        ] {
            for name in ["items", "additionalProperties"] {
                let mut found = json!({"properties": {"a": {name: written}}});
                unfold(&mut found, LEVELS_MAX);
                assert_eq!(found, json!({"properties": {"a": {name: published}}}));
            }
        }
    }

    #[test]
    fn embedded_objects_have_what_objects_have() {
        let frame = Map::from_iter([("kind".to_owned(), json!({"type": "string"}))]);
        let open = json!({"type": "object", EMBEDDED: true, PRESERVE_UNKNOWN: true});
        let mut schema = json!({"properties": {"a": {"items": open}}});
        embed(&mut schema, &frame, OpenApiVersion::V2, LEVELS_MAX);
        assert_eq!(schema["properties"]["a"]["items"], open);
        embed(&mut schema, &frame, OpenApiVersion::V3, LEVELS_MAX);
        let item = &schema["properties"]["a"]["items"];
        assert_eq!(item["required"], json!(["kind", "apiVersion"]));
        assert_eq!(item["properties"]["kind"]["type"], "string");
        let described = item["properties"]["kind"]["description"].as_str();
        assert!(described.is_some_and(|it| it.starts_with("kind is a string value")));
    }

    #[test]
    fn selectable_fields_are_told_by_their_paths() {
        let version = json!({"selectableFields": [{"jsonPath": ".spec.color"}]});
        let told = selectable_fields(&version);
        assert_eq!(told, Some(json!([{"fieldPath": "spec.color"}])));
        assert_eq!(selectable_fields(&json!({"selectableFields": []})), None);
        assert_eq!(selectable_fields(&json!({})), None);
    }
}

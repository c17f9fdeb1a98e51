//! The group `apiextensions.k8s.io`: CustomResourceDefinitions.
//!
//! Definitions are stored as v1beta1, as kube-apiserver stores them: there, the schema, subresources and columns that
//! all versions of a kind have in common are at the top of the spec.

mod conversion;
mod defaults;
mod internal_form;
mod names_validation;
mod schema_form;
mod schema_validation;
mod spec_validation;
mod validation;
mod version_validation;

use std::collections::HashSet;

use ringwatch_apiextensions::CLEAN_UP;
use ringwatch_apiextensions::schema::unrecognized_formats;
use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::conditions::put_condition;
use ringwatch_apimachinery::path::{get, keep, list, remove, set};
use ringwatch_registry::{GarbageCollection, RequestContext};
use serde_json::{Map, Value, json};

use self::schema_validation::schemas;
use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};

const V1: RowGroup = RowGroup::new("apiextensions.k8s.io", "v1");
const V1BETA1: RowGroup = RowGroup::new("apiextensions.k8s.io", "v1beta1");

/// Members that all versions of a kind may share: the name in a version, and the name at the top of a v1beta1 spec.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

pub(super) fn rows() -> Vec<RowBuilder> {
    let status = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": null,
    });
    vec![
        V1.cluster("customresourcedefinitions", "CustomResourceDefinition")
            .short(&["crd", "crds"])
            .category("api-extensions")
            .stored_in(V1BETA1)
            .prefix("apiextensions.k8s.io/customresourcedefinitions")
            .status()
            .strategy(
                Generic::with_status()
                    .part("status", validation::status())
                    .verbatim()
                    .told_if_empty(&["spec.versions"])
                    .defaults(defaults::DEFINITION)
                    .hooks(Definitions)
                    .initial_status(status)
                    .garbage_collection(GarbageCollection::Unsupported)
                    .generation(&["spec"])
                    .conditional_update(),
            ),
    ]
}

/// The behaviour of CustomResourceDefinitions: validation, conversion, and deletion after that of their objects.
#[derive(Debug)]
struct Definitions;

impl KindHooks for Definitions {
    fn is_costly(&self) -> bool {
        true
    }

    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        remember_storage_version(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        remember_storage_version(object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        validation::validate_create(object)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validation::validate_update(object, old)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let known: HashSet<_> = old.into_iter().flat_map(formats_without_meaning).collect();
        let new = formats_without_meaning(object).into_iter();
        let new = new.filter(|format| !known.contains(format));
        new.map(|format| format!("unrecognized format {format:?}"))
            .collect()
    }

    /// Returns true until deletion has begun. Then the finalizer that `prepare_for_deletion` adds holds it.
    fn holds_deletion(&self, object: &Value) -> bool {
        get(object, "metadata.deletionTimestamp").is_none_or(Value::is_null)
    }

    /// Adds the finalizer of the cleanup, which deletes the custom resources first, and the condition `Terminating`.
    fn prepare_for_deletion(&self, object: &mut Value) {
        let mut finalizers = list(object, "metadata.finalizers").to_vec();
        if !finalizers.iter().any(|it| it == CLEAN_UP) {
            finalizers.push(CLEAN_UP.into());
        }
        set(object, "metadata.finalizers", Value::Array(finalizers));
        let condition = json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": get(object, "metadata.deletionTimestamp"),
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        });
        put_condition(object, condition);
    }

    fn to_served(&self, mut object: Value) -> Value {
        share_out(&mut object);
        let strategy = get(&object, "spec.conversion.strategy").cloned();
        if let Some(strategy) = strategy {
            let mut conversion = json!({"strategy": strategy});
            for (from, to) in [
                ("webhookClientConfig", "webhook.clientConfig"),
                (
                    "conversionReviewVersions",
                    "webhook.conversionReviewVersions",
                ),
            ] {
                if let Some(value) = remove(&mut object, &format!("spec.conversion.{from}")) {
                    set(&mut conversion, to, value);
                }
            }
            set(&mut object, "spec.conversion", conversion);
        }
        if get(&object, "spec.preserveUnknownFields") == Some(&Value::Bool(false)) {
            drop(remove(&mut object, "spec.preserveUnknownFields"));
        }
        drop(remove(&mut object, "spec.version"));
        set(
            &mut object,
            "apiVersion",
            V1.group_version().to_string().into(),
        );
        object
    }

    fn to_stored(&self, mut object: Value) -> Value {
        each_version(&mut object, |version| {
            let status = version.get("subresources").and_then(|it| it.get("status"));
            let has_status = status.is_some_and(|it| !it.is_null());
            let schema = version.get_mut("schema");
            let schema = schema.and_then(|it| it.get_mut("openAPIV3Schema"));
            if let Some(schema) = schema {
                schema_form::drop_empty(schema, has_status);
            }
        });
        gather(&mut object);
        if let Some(webhook) = remove(&mut object, "spec.conversion.webhook") {
            for (from, to) in [
                ("clientConfig", "webhookClientConfig"),
                ("conversionReviewVersions", "conversionReviewVersions"),
            ] {
                if let Some(value) = webhook.get(from) {
                    set(&mut object, &format!("spec.conversion.{to}"), value.clone());
                }
            }
        }
        if get(&object, "spec.preserveUnknownFields").is_none() {
            set(&mut object, "spec.preserveUnknownFields", json!(false));
        }
        let first = list(&object, "spec.versions").first();
        if let Some(name) = first.and_then(|version| version.get("name")).cloned() {
            set(&mut object, "spec.version", name);
        }
        set(
            &mut object,
            "apiVersion",
            V1BETA1.group_version().to_string().into(),
        );
        object
    }

    fn converts(&self) -> bool {
        true
    }
}

/// Returns true if this is the storage version.
fn stores(version: &&Value) -> bool {
    version.get("storage") == Some(&Value::Bool(true))
}

/// Returns the formats in all schemas of a definition that are not known.
fn formats_without_meaning(object: &Value) -> Vec<String> {
    schemas(object).flat_map(unrecognized_formats).collect()
}

/// Adds the storage version to `status.storedVersions`, which lists every version in which objects may be stored.
fn remember_storage_version(object: &mut Value) {
    let versions = list(object, "spec.versions").iter();
    let Some(name) = versions
        .filter(stores)
        .find_map(|it| it.get("name"))
        .cloned()
    else {
        return;
    };
    let mut stored = list(object, "status.storedVersions").to_vec();
    if !stored.contains(&name) {
        stored.push(name);
        set(object, "status.storedVersions", Value::Array(stored));
    }
}

/// Moves members that all versions have in common to the top of the spec.
fn gather(object: &mut Value) {
    for (member, top) in SHARED {
        let versions = list(object, "spec.versions");
        let Some(common) = versions.first().and_then(|it| it.get(member)).cloned() else {
            continue;
        };
        if common.is_null() || versions.iter().any(|it| it.get(member) != Some(&common)) {
            continue;
        }
        each_version(object, |version| drop(version.remove(member)));
        set(object, &format!("spec.{top}"), common);
    }
    rename_in_columns(object, "jsonPath", "JSONPath");
}

/// Moves members at the top of the spec to every version.
fn share_out(object: &mut Value) {
    for (member, top) in SHARED {
        if let Some(common) = remove(object, &format!("spec.{top}")) {
            each_version(object, |version| {
                version.entry(member).or_insert_with(|| common.clone());
            });
        }
    }
    rename_in_columns(object, "JSONPath", "jsonPath");
}

fn each_version(object: &mut Value, mut change: impl FnMut(&mut Map<String, Value>)) {
    let versions = ringwatch_apimachinery::path::get_mut(object, "spec.versions")
        .and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(members) = version.as_object_mut() {
            change(members);
        }
    }
}

/// Renames the path member of printer columns, which v1 spells `jsonPath` and v1beta1 `JSONPath`.
fn rename_in_columns(object: &mut Value, from: &str, to: &str) {
    let rename = |owner: &mut Map<String, Value>| {
        let columns = owner.get_mut("additionalPrinterColumns");
        let columns = columns.and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten() {
            if let Some(path) = remove(column, from) {
                set(column, to, path);
            }
        }
    };
    each_version(object, rename);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        rename(spec);
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::error::ERROR_BYTES_MAX;

    use super::*;
    use crate::defaults::apply;

    fn definition(versions: Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "conversion": {"strategy": "Webhook", "webhook": {
                    "clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]}},
                "versions": versions,
            },
        })
    }

    #[test]
    fn what_is_common_stands_once_and_comes_back() {
        let column = json!({"name": "Color", "type": "string", "jsonPath": ".spec.color"});
        let version = |name: &str, storage: bool, kind: &str| {
            json!({"name": name, "served": true, "storage": storage,
                "schema": {"openAPIV3Schema": {"type": kind}},
                "additionalPrinterColumns": [column]})
        };
        let alike = definition(json!([
            version("v1", true, "object"),
            version("v2", false, "object")
        ]));
        let stored = Definitions.to_stored(alike.clone());
        assert_eq!(stored["apiVersion"], "apiextensions.k8s.io/v1beta1");
        let spec = &stored["spec"];
        assert_eq!(spec["version"], "v1");
        assert_eq!(
            spec["validation"],
            json!({"openAPIV3Schema": {"type": "object"}})
        );
        assert_eq!(
            spec["additionalPrinterColumns"][0]["JSONPath"],
            ".spec.color"
        );
        assert_eq!(
            spec["versions"][0],
            json!({"name": "v1", "served": true, "storage": true})
        );
        assert_eq!(
            spec["conversion"]["webhookClientConfig"],
            json!({"url": "https://x"})
        );
        assert_eq!(Definitions.to_served(stored), alike);

        let unlike = definition(json!([
            version("v1", true, "object"),
            version("v2", false, "string")
        ]));
        let stored = Definitions.to_stored(unlike.clone());
        assert_eq!(stored["spec"].get("validation"), None);
        assert_eq!(
            stored["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["type"],
            "string"
        );
        assert_eq!(Definitions.to_served(stored), unlike);
    }

    #[test]
    fn a_definition_is_completed_and_checked() {
        use ringwatch::clock::Clock;
        use ringwatch_apimachinery::User;
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let mut object = definition(json!([{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]));
        apply(defaults::DEFINITION, &mut object);
        Definitions.prepare_for_create(&context, &mut object);
        assert_eq!(
            object["spec"]["names"],
            json!({"plural": "widgets", "kind": "Widget", "singular": "widget",
                "listKind": "WidgetList"})
        );
        assert_eq!(object["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(Definitions.validate_update(&object, &object), []);
        set(&mut object, "metadata.name", json!("other"));
        set(&mut object, "spec.versions", json!([]));
        let errors = Definitions.validate_update(&object, &object);
        let fields: Vec<_> = errors.into_iter().map(|error| error.field).collect();
        assert!(fields.iter().any(|it| it == "spec.versions"));
        let errors = Definitions.validate_create(&object);
        assert!(errors.iter().any(|error| error.field == "metadata.name"));
    }

    #[test]
    fn nulls_of_a_conversion_are_forgotten() {
        let mut object = definition(json!([]));
        set(
            &mut object,
            "spec.conversion.webhook.clientConfig",
            json!({"url": null, "caBundle": null, "service": {"name": "a", "namespace": "b", "path": null}}),
        );
        let mut object = Definitions.to_stored(object);
        apply(defaults::DEFINITION, &mut object);
        assert_eq!(
            object["spec"]["conversion"]["webhookClientConfig"],
            json!({"service": {"name": "a", "namespace": "b", "port": 443}})
        );
    }

    #[test]
    fn formats_that_say_nothing_are_warned_of_once_they_come() {
        let definition = |format: &str| {
            let x = json!({"type": "string", "format": format});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"x": x}}});
            json!({"spec": {"versions": [{"name": "v1", "schema": schema}]}})
        };
        let shared = Definitions.to_stored(definition("odd"));
        let (odd, told) = (definition("odd"), ["unrecognized format \"odd\""]);
        assert_eq!(Definitions.warnings(&odd, None), told);
        assert_eq!(Definitions.warnings(&shared, None), told);
        assert_eq!(Definitions.warnings(&odd, Some(&definition("date"))), told);
        assert!(Definitions.warnings(&odd, Some(&shared)).is_empty());
        assert!(Definitions.warnings(&definition("date"), None).is_empty());
    }

    /// Returns a definition of so many versions, whose objects have a member `x`.
    fn versions_of_x(count: usize, x: &Value) -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"x": x}}});
        let version = |place| json!({"name": format!("v{place}"), "served": true, "storage": place == 1, "schema": schema});
        definition((1..=count).map(version).collect())
    }

    fn said_of(object: &Value) -> Vec<FieldError> {
        spec_validation::spec_errors(object, None)
    }

    fn said_of_rules(object: &Value) -> Vec<String> {
        let errors = said_of(object).into_iter();
        let errors = errors.filter(|it| it.field.contains("properties[x]"));
        errors
            .map(|it| format!("{}: {}", it.field, it.message()))
            .collect()
    }

    /// Returns a list with a default of so many items, and a rule that compares each with each.
    fn compared(items: usize) -> Value {
        json!({"type": "array", "items": {"type": "integer"}, "maxItems": items, "default": vec![0; items],
            "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b))"}]})
    }

    #[test]
    fn the_rules_of_defaults_share_a_budget_in_all_versions() {
        let x = compared(300);
        assert_eq!(said_of_rules(&versions_of_x(2, &x)), [""; 0]);
        let said = said_of_rules(&versions_of_x(60, &x));
        assert!(
            said.iter().any(|it| it.contains("out of cost budget")),
            "{said:?}"
        );
    }

    #[test]
    fn no_more_is_said_of_all_versions_than_is_told() {
        let broken = json!({"type": "array", "default": vec![0; 1_000], "items": {"type": "integer",
            "x-kubernetes-validations": [{"rule": "self > 0", "message": "m".repeat(200)}]}});
        let wrong = json!({"type": "object", "properties": {"n".repeat(1_000): {"type": "object",
            "properties": (0..300).map(|it| (format!("p{it}"), json!({"type": "none"}))).collect::<Map<_, _>>()}}});
        for x in [broken, wrong] {
            let object = versions_of_x(10, &x);
            let errors = said_of(&object).into_iter();
            let errors = errors.filter(|it| it.field.contains("properties[x]"));
            let bytes: usize = errors.map(|it| it.field.len() + it.detail.len()).sum();
            assert!(
                bytes > ERROR_BYTES_MAX && bytes < ERROR_BYTES_MAX + (4 << 10),
                "{bytes}"
            );
        }
    }

    #[test]
    fn no_default_is_checked_after_one_whose_rule_costs_too_much() {
        let rule = "self.all(a, self.all(b, self.all(c, a == b || b == c || a == c || true)))";
        let mut list = compared(100);
        list["x-kubernetes-validations"][0]["rule"] = json!(rule);
        let lists: Map<_, _> = (0..4).map(|it| (format!("l{it}"), list.clone())).collect();
        let x = json!({"type": "object", "properties": lists});
        let said = said_of_rules(&versions_of_x(2, &x));
        let ended = said
            .iter()
            .filter(|it| it.contains("no further validation rules will be run"));
        assert_eq!(ended.count(), 2, "{said:?}");
    }
}

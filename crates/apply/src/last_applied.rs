//! The annotation in which `kubectl apply` without `--server-side` keeps what it applied last.
//!
//! An object that was applied in that way may be applied by the server from then on: `kubectl` may take the fields that
//! it has applied before, and the annotation follows what it applies, so that there is a way back. Other managers do
//! not touch either. Follows `lastAppliedManager` and `lastAppliedUpdater` of apimachinery's `managedfields`.

use ringwatch_apimachinery::go_text;
use ringwatch_apimachinery::validation::annotations_too_long;
use serde_json::Value;

use super::Manager;
use super::schema::Schema;
use super::set::FieldSet;
use super::typed::{ApplySide, is_typed};
use super::walk::{Comparison, field_set};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const KUBECTL: &str = "kubectl";

/// Returns true if a manager takes over what was applied without the server. A Scale has not the object's annotations.
pub(super) fn follows(manager: &Manager<'_>) -> bool {
    manager.name == KUBECTL && manager.subresource != "scale"
}

/// Returns the fields that were applied last and have had their values since; none if the annotation cannot be read, or
/// is about another type, or has a member that the type does not have.
pub(super) fn agreed_fields(schema: Schema<'_>, live: &Value, api_version: &str) -> FieldSet {
    let Some(last) = last_applied(live) else {
        return FieldSet::default();
    };
    let Ok(last) = serde_json::from_str::<Value>(last) else {
        return FieldSet::default();
    };
    let is_of_type = last["apiVersion"] == api_version && last["kind"] == schema.kind();
    let is_once = ApplySide::Live { repeats: false };
    if !is_of_type
        || !is_typed(schema, &last, ApplySide::Applied)
        || !is_typed(schema, live, is_once)
    {
        return FieldSet::default();
    }
    let mut agreed = field_set(schema, &last);
    let comparison = Comparison::new(schema, &last, live);
    for different in [&comparison.modified, &comparison.added, &comparison.removed] {
        agreed.subtract(different);
    }
    agreed
}

/// Writes a configuration into the annotation of an object that has one, unless its annotations would be too long: then
/// it goes.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations_mut(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let text = go_text::json(&config) + "\n";
    let annotations = &mut object["metadata"]["annotations"];
    annotations[ANNOTATION] = text.into();
    if annotations_too_long(annotations)
        && let Some(annotations) = annotations.as_object_mut()
    {
        annotations.remove(ANNOTATION);
    }
}

fn last_applied(object: &Value) -> Option<&str> {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str()?;
    (!text.is_empty()).then_some(text)
}

fn annotations_mut(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let annotations = object.get_mut("metadata")?.get_mut("annotations")?;
    annotations.as_object_mut()
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::Error;
    use serde_json::json;

    use super::*;
    use crate::{MemberSchema, MergeSchema, Merging, Takes, ValueSchema, apply, update};

    fn manager(name: &'static str) -> Manager<'static> {
        Manager::for_tests(name, "v1", "")
    }

    fn config(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
    }

    /// Makes an object as `kubectl apply` creates it.
    fn applied_before(data: &Value, last: &str) -> Value {
        let mut object = config(data.clone());
        object["metadata"]["annotations"] = json!({ANNOTATION: last});
        update(None, &mut object, &manager("kubectl-client-side-apply"));
        object
    }

    fn annotation(object: &Value) -> &Value {
        &object["metadata"]["annotations"][ANNOTATION]
    }

    #[test]
    fn what_was_applied_before_is_taken_over() {
        let data = json!({"a": "1", "b": "2"});
        let last = config(data.clone()).to_string();
        let live = applied_before(&data, &last);
        let next = config(json!({"a": "<3>", "b": "2"}));
        let taken = apply(Some(&live), &next, &manager("kubectl"), false).expect("no conflict");
        assert_eq!(taken["data"], next["data"]);
        let told = "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"\\u003c3\\u003e\",\"b\":\"2\"},\
                    \"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}\n";
        assert_eq!(annotation(&taken), told);
        // It tells what was applied even if that changes nothing.
        let less = config(json!({"b": "2"}));
        let same = apply(Some(&live), &less, &manager("kubectl"), false).expect("no conflict");
        assert_eq!(same["data"], data);
        assert_eq!(*annotation(&same), less.to_string() + "\n");
        // And so may no other manager.
        let refused = apply(Some(&live), &next, &manager("other"), false);
        assert!(matches!(refused, Err(Error::ApplyConflict { .. })));
        let forced = apply(Some(&live), &next, &manager("other"), true).expect("an object");
        assert_eq!(*annotation(&forced), last);
    }

    #[test]
    fn what_others_have_changed_since_is_a_conflict() {
        let last = config(json!({"a": "1", "b": "1"})).to_string();
        let live = applied_before(&json!({"a": "1", "b": "2", "c": "1"}), &last);
        let next = config(json!({"a": "3", "b": "3", "c": "3"}));
        let refused = apply(Some(&live), &next, &manager("kubectl"), false);
        let Err(Error::ApplyConflict { causes }) = refused else {
            panic!("no conflict: {refused:?}");
        };
        let fields: Vec<_> = causes.into_iter().map(|(_, field)| field).collect();
        assert_eq!(fields, [".data.b", ".data.c"]);
    }

    /// A schema that has nothing but `data`, which may be anything.
    #[derive(Debug)]
    enum OnlyData {
        Root,
        Data,
    }

    impl MergeSchema for OnlyData {
        fn merging(&self, _: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
            Some(Merging::Members { named: false })
        }

        fn values(&self) -> Option<&dyn ValueSchema> {
            Some(self)
        }
    }

    impl ValueSchema for OnlyData {
        fn takes(&self) -> Takes {
            match self {
                Self::Root => Takes::Members,
                Self::Data => Takes::Any,
            }
        }

        fn is_whole_object(&self) -> bool {
            false
        }

        fn preserves_unknown(&self) -> bool {
            matches!(self, Self::Data)
        }

        fn member(&self, name: &str) -> MemberSchema<'_> {
            match (self, name) {
                (Self::Root, "data") => MemberSchema::Known(&Self::Data),
                (Self::Root, _) => MemberSchema::Undeclared,
                (Self::Data, _) => MemberSchema::Any,
            }
        }

        fn items(&self) -> Option<&dyn ValueSchema> {
            None
        }
    }

    #[test]
    fn the_schema_of_a_custom_type_says_what_it_has() {
        let mut kubectl = Manager::for_tests("kubectl", "example.com/v1", "");
        kubectl.custom = Some(&OnlyData::Root);
        let widget = |data: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "data": data});
        let live = |last: &Value| {
            let mut object = widget(json!({"a": "1"}));
            object["metadata"]["annotations"] = json!({ANNOTATION: last.to_string()});
            let mut before = kubectl.clone();
            before.name = "kubectl-client-side-apply";
            update(None, &mut object, &before);
            object
        };
        let next = widget(json!({"a": "2"}));
        let mut last = widget(json!({"a": "1"}));
        let taken = apply(Some(&live(&last)), &next, &kubectl, false).expect("no conflict");
        assert_eq!(taken["data"], next["data"]);
        last["other"] = 1.into();
        let refused = apply(Some(&live(&last)), &next, &kubectl, false);
        assert!(matches!(refused, Err(Error::ApplyConflict { .. })));
    }

    #[test]
    fn an_annotation_that_tells_nothing_allows_nothing() {
        let data = json!({"a": "1"});
        let next = config(json!({"a": "2"}));
        let but = |pointer: &str, value: Value| {
            let mut last = config(data.clone());
            *last.pointer_mut(pointer).expect(pointer) = value;
            last.to_string()
        };
        let mut nameless = config(data.clone());
        nameless.as_object_mut().expect("an object").remove("kind");
        for last in [
            String::new(),
            "{".to_owned(),
            "[]".to_owned(),
            but("/apiVersion", json!("v2")),
            but("/kind", json!("Secret")),
            nameless.to_string(),
            but("/metadata", json!({"name": "c", "colour": "red"})),
            but("/metadata/name", json!(7)),
            but(
                "",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "x": {}}),
            ),
        ] {
            let live = applied_before(&data, &last);
            let refused = apply(Some(&live), &next, &manager("kubectl"), false);
            assert!(
                matches!(refused, Err(Error::ApplyConflict { .. })),
                "{last}"
            );
        }
        let long = applied_before(&data, &config(data.clone()).to_string());
        let next = config(json!({"a": "x".repeat(256 << 10)}));
        let next = apply(Some(&long), &next, &manager("kubectl"), false).expect("an object");
        assert_eq!(*annotation(&next), Value::Null);
    }
}

//! Brings the sets of managers up to a type that has changed: who owned a part of what merges as a whole now owns the
//! whole. Without that nobody would be found to own it, and the next manager would take it without a conflict.
//!
//! Follows `ReconcileFieldSetWithSchema` of structured-merge-diff. What was a whole and is none now needs nothing.

use std::collections::BTreeSet;

use super::managed_fields::ManagedFields;
use super::schema::Schema;
use super::set::FieldSet;

/// Brings all sets up to a type. Those in versions that it no longer has are of no use, and go.
pub(super) fn reconcile(schema: Schema<'_>, managed: &mut ManagedFields) {
    let versions = managed.entries.values().map(|entry| &entry.api_version);
    let gone: BTreeSet<String> = versions
        .filter(|it| !schema.has_version(it))
        .cloned()
        .collect();
    managed
        .entries
        .retain(|_, entry| !gone.contains(&entry.api_version));
    for entry in managed.entries.values_mut() {
        reconcile_set(schema, &mut entry.fields);
    }
}

fn reconcile_set(schema: Schema<'_>, set: &mut FieldSet) {
    set.join_below(&mut Vec::new(), &|path, has_items| {
        schema.is_declared_whole(path, has_items)
    });
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::Error;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Manager, MergeSchema, Merging, apply, update};

    /// A type whose `spec` is one whole, or is not.
    #[derive(Debug)]
    struct Spec {
        is_whole: bool,
    }

    impl MergeSchema for Spec {
        fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
            let is_spec = steps.next() == Some(Some("spec")) && steps.next().is_none();
            Some(match is_spec && self.is_whole {
                true => Merging::Whole,
                false => Merging::Members { named: true },
            })
        }
    }

    fn manager<'a>(name: &'a str, schema: &'a Spec) -> Manager<'a> {
        Manager {
            custom: Some(schema),
            ..Manager::for_tests(name, "example.com/v1", "")
        }
    }

    fn thing(spec: Value) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
    }

    #[test]
    fn who_owned_a_part_owns_the_whole_that_it_has_become() {
        let (parts, whole) = (Spec { is_whole: false }, Spec { is_whole: true });
        let config = thing(json!({"a": "1", "b": "1"}));
        let live = apply(None, &config, &manager("one", &parts), false).expect("an object");
        let other = thing(json!({"b": "2"}));
        let refused = apply(Some(&live), &other, &manager("two", &whole), false);
        let Err(Error::ApplyConflict { causes }) = refused else {
            panic!("no conflict: {refused:?}");
        };
        assert_eq!(
            causes,
            [("conflict with \"one\"".to_owned(), ".spec".to_owned())]
        );
        // An update, even of what others do not own, leaves sets of the new type.
        let mut next = live.clone();
        next["metadata"]["labels"] = json!({"l": "1"});
        update(Some(&live), &mut next, &manager("two", &whole));
        let entries = &next["metadata"]["managedFields"];
        assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {}}));
        // And so does one that another manager has made before.
        for value in ["2", "3"] {
            let before = next.clone();
            next["spec"]["b"] = value.into();
            update(Some(&before), &mut next, &manager("two", &whole));
        }
        let entries = next["metadata"]["managedFields"]
            .as_array()
            .expect("entries");
        let names: Vec<_> = entries.iter().map(|it| &it["manager"]).collect();
        assert_eq!(names, ["two"]);
    }

    #[test]
    fn owners_in_versions_that_are_gone_own_nothing() {
        let manager = Manager::for_tests("new", "apps/v1", "");
        let mut live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1}});
        let mut next = live.clone();
        let entry = |operation: &str, version: &str| {
            json!({"manager": "old", "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:replicas": {}}}})
        };
        let entries = [
            entry("Apply", "apps/v1beta1"),
            entry("Update", "extensions/v1beta1"),
        ];
        live["metadata"]["managedFields"] = json!(entries);
        next["spec"]["replicas"] = 2.into();
        assert!(apply(Some(&live), &next, &manager, false).is_ok());
        update(Some(&live), &mut next, &manager);
        let entries = next["metadata"]["managedFields"]
            .as_array()
            .expect("entries");
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0]["manager"], "new");
    }

    #[test]
    fn lists_of_built_in_types_that_are_whole_now_have_one_path() {
        let fields = json!({"f:spec": {"f:tolerations": {"k:{\"key\":\"a\"}": {".": {}, "f:key": {}}},
            "f:nodeSelector": {".": {}, "f:a": {}}, "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}}}});
        let mut set = FieldSet::from_json(&fields).expect("a set");
        reconcile_set(Schema::new("v1", "Pod", None), &mut set);
        let expected = json!({"f:spec": {"f:tolerations": {}, "f:nodeSelector": {},
            "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}}}});
        assert_eq!(set.to_json(), expected);
    }
}

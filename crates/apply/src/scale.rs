//! Managers of an object's replicas, seen as managers of its `Scale`.
//!
//! A write of a Scale changes the managers of the Scale, which are those of the object that have its replicas. What
//! that makes of them is then written back to the object. Follows `ScaleHandler` of Kubernetes, with all that it does
//! to other managers: an update names the version that it writes in its identity, and that of an entry which has been
//! carried over is the Scale's. So each manager that had updated the replicas is another one afterwards, that of the
//! replicas alone. What is new in the object has no time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::managed_fields::{
    EntryOperation, Identity, ManagedFields, ManagerEntry, UnreadableEntries,
};
use super::set::FieldSet;

/// The version of Scales.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The replicas of a Scale.
const SCALE_REPLICAS: &str = "spec.replicas";

/// The replicas of an object that has a Scale.
#[derive(Clone, Copy, Debug)]
pub struct Replicas<'a> {
    /// The version of the object, such as `apps/v1`.
    pub api_version: &'a str,
    /// The dotted path of the replicas in this version.
    pub path: &'a str,
    /// The dotted paths of the replicas in all versions of the type; `None` for a version without a Scale.
    pub versions: &'a BTreeMap<String, Option<String>>,
}

impl Replicas<'_> {
    /// Sets the managed fields of an object's Scale to those that the object has of its replicas. Follows
    /// `ToSubresource`.
    ///
    /// # Errors
    /// [`UnreadableEntries`] of the object.
    pub fn manage_scale(&self, object: &Value, scale: &mut Value) -> Result<(), UnreadableEntries> {
        let mut managed = ManagedFields::default();
        for (identity, entry) in ManagedFields::decode(object)?.entries {
            let replicas = self.versions.get(&entry.api_version).cloned().flatten();
            if !replicas.is_some_and(|it| has(&entry.fields, &path(&it))) {
                continue;
            }
            managed.entries.insert(
                of_scale(identity),
                ManagerEntry {
                    api_version: SCALE_VERSION.to_owned(),
                    time: entry.time,
                    fields: path(SCALE_REPLICAS),
                },
            );
        }
        managed.encode(scale);
        Ok(())
    }

    /// Sets the managed fields of an object to what a write of its Scale has made of them. Follows `ToParent`.
    ///
    /// # Errors
    /// [`UnreadableEntries`] of the object or the Scale.
    pub fn manage_object(
        &self,
        scale: &Value,
        object: &mut Value,
    ) -> Result<(), UnreadableEntries> {
        let scale_replicas = path(SCALE_REPLICAS);
        let before = ManagedFields::decode(object)?.entries;
        let mut scaled = ManagedFields::decode(scale)?.entries;
        let mut managed = ManagedFields::default();
        for (identity, entry) in &before {
            // Entries of versions that the type does not have are dropped.
            let Some(replicas) = self.versions.get(&entry.api_version) else {
                continue;
            };
            let replicas = replicas.as_deref().map(path);
            let replicas = replicas.filter(|it| has(&entry.fields, it));
            let mut entry = entry.clone();
            // Who has lost the replicas keeps the rest.
            if let Some(replicas) = replicas
                && scaled.remove(identity).is_none()
            {
                entry.fields.subtract(&replicas);
                if entry.fields.is_empty() {
                    continue;
                }
            }
            managed.entries.insert(identity.clone(), entry);
        }
        for (identity, entry) in scaled {
            if has(&entry.fields, &scale_replicas) {
                let entry = ManagerEntry {
                    api_version: self.api_version.to_owned(),
                    time: before.get(&identity).and_then(|it| it.time.clone()),
                    fields: path(self.path),
                };
                managed.entries.insert(identity, entry);
            }
        }
        managed.encode(object);
        Ok(())
    }
}

fn path(path: &str) -> FieldSet {
    std::iter::once(path).collect()
}

fn has(fields: &FieldSet, path: &FieldSet) -> bool {
    !fields.intersection(path).is_empty()
}

/// Returns the identity that a manager of an object has as one of its Scale.
fn of_scale(identity: Identity) -> Identity {
    let api_version = match identity.operation {
        EntryOperation::Apply => String::new(),
        EntryOperation::Update => SCALE_VERSION.to_owned(),
    };
    Identity {
        api_version,
        ..identity
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Manager, apply, update};

    fn versions(paths: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
        let paths = paths.iter();
        let owned = |(version, path): &(&str, Option<&str>)| {
            ((*version).to_owned(), path.map(str::to_owned))
        };
        paths.map(owned).collect()
    }

    fn object(entries: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "uid": "u", "managedFields": entries}, "spec": {"replicas": 2}})
    }

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "time": "2025-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}})
    }

    /// Returns the entries of an object in short, after a write of its Scale.
    fn scaled(object: Value, write: impl FnOnce(&Value) -> Value) -> Vec<(String, Value)> {
        let versions = versions(&[("apps/v1", Some("spec.replicas"))]);
        let replicas = Replicas {
            api_version: "apps/v1",
            path: "spec.replicas",
            versions: &versions,
        };
        let short = |entry: Value| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            assert_eq!(text("apiVersion"), "apps/v1");
            let names = ["manager", "operation", "subresource", "time"].map(text);
            (names.join(" "), entry["fieldsV1"]["f:spec"].clone())
        };
        let entries = scaled_by(replicas, object, write);
        entries.into_iter().map(short).collect()
    }

    /// Returns the entries of an object after a write of its Scale.
    fn scaled_by(
        replicas: Replicas<'_>,
        mut object: Value,
        write: impl FnOnce(&Value) -> Value,
    ) -> Vec<Value> {
        let mut scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 2}});
        replicas.manage_scale(&object, &mut scale).expect("entries");
        let scale = write(&scale);
        replicas
            .manage_object(&scale, &mut object)
            .expect("entries");
        let list = object["metadata"]["managedFields"].as_array().cloned();
        list.unwrap_or_default()
    }

    fn updated(replicas: u32) -> impl FnOnce(&Value) -> Value {
        move |live| {
            let mut new = live.clone();
            new["spec"]["replicas"] = replicas.into();
            let manager = Manager::for_tests("me", SCALE_VERSION, "scale");
            update(Some(live), &mut new, &manager);
            new
        }
    }

    #[test]
    fn who_updates_a_scale_has_the_replicas_without_a_time() {
        let both = json!({"f:replicas": {}, "f:paused": {}});
        let live = object(json!([
            entry("a", "Apply", both.clone()),
            entry("b", "Update", json!({"f:replicas": {}})),
            entry("c", "Update", json!({"f:minReadySeconds": {}})),
        ]));
        let owned = json!({"f:replicas": {}});
        let rest = json!({"f:paused": {}});
        assert_eq!(
            scaled(live, updated(3)),
            [
                ("a Apply - 2025-01-01T00:00:00Z".to_owned(), rest),
                ("me Update scale -".to_owned(), owned),
                (
                    "c Update - 2025-01-01T00:00:00Z".to_owned(),
                    json!({"f:minReadySeconds": {}})
                ),
            ]
        );
    }

    #[test]
    fn a_write_without_change_tears_updates_apart() {
        let both = json!({"f:replicas": {}, "f:paused": {}});
        let live = object(json!([
            entry("a", "Apply", both.clone()),
            entry("b", "Update", both.clone())
        ]));
        let owned = json!({"f:replicas": {}});
        assert_eq!(
            scaled(live, updated(2)),
            [
                ("a Apply - 2025-01-01T00:00:00Z".to_owned(), both),
                ("b Update - -".to_owned(), owned),
                (
                    "b Update - 2025-01-01T00:00:00Z".to_owned(),
                    json!({"f:paused": {}})
                ),
            ]
        );
    }

    #[test]
    fn replicas_that_nobody_has_are_nobodys_after_an_update() {
        let live = object(json!([entry("a", "Update", json!({"f:paused": {}}))]));
        let time = "a Update - 2025-01-01T00:00:00Z".to_owned();
        assert_eq!(scaled(live, updated(3)), [(time, json!({"f:paused": {}}))]);
    }

    #[test]
    fn who_applies_a_scale_has_the_replicas_without_a_time() {
        let live = object(json!([entry("b", "Update", json!({"f:replicas": {}}))]));
        let config = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "d"}, "spec": {"replicas": 3}});
        let manager = Manager::for_tests("me", SCALE_VERSION, "scale");
        let refused = scaled(live.clone(), |live| {
            let error = apply(Some(live), &config, &manager, false).expect_err("a conflict");
            assert_eq!(
                error.to_string(),
                "Apply failed with 1 conflict: conflict with \"b\" using autoscaling/v1: .spec.replicas"
            );
            live.clone()
        });
        assert_eq!(refused[0].0, "b Update - -");
        let forced = scaled(live, |live| {
            apply(Some(live), &config, &manager, true).expect("a Scale")
        });
        let owned = json!({"f:replicas": {}});
        assert_eq!(forced, [("me Apply scale -".to_owned(), owned)]);
    }

    fn applied(config: Value) -> impl FnOnce(&Value) -> Value {
        move |live| {
            let mut scale =
                json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}});
            if !config.is_null() {
                scale["spec"] = config;
            }
            let manager = Manager::for_tests("me", SCALE_VERSION, "scale");
            apply(Some(live), &scale, &manager, true).expect("a Scale")
        }
    }

    #[test]
    fn replicas_of_nobody_were_there_before_an_apply() {
        let live = object(json!([entry("a", "Update", json!({"f:paused": {}}))]));
        let owned = json!({"f:replicas": {}});
        let before = json!({"f:paused": {}});
        assert_eq!(
            scaled(live, applied(json!({"replicas": 2}))),
            [
                ("me Apply scale -".to_owned(), owned.clone()),
                ("before-first-apply Update scale -".to_owned(), owned),
                ("a Update - 2025-01-01T00:00:00Z".to_owned(), before),
            ]
        );
    }

    #[test]
    fn who_applies_no_replicas_any_more_removes_those_that_are_its_own() {
        let mut own = entry("me", "Apply", json!({"f:replicas": {}}));
        own["subresource"] = "scale".into();
        let live = object(json!([own]));
        let found = scaled(live, |live| {
            let scale = applied(Value::Null)(live);
            assert_eq!(scale.pointer("/spec/replicas"), None);
            scale
        });
        assert_eq!(found, []);
    }

    #[test]
    fn who_updates_replicas_to_none_takes_them_from_all_and_has_none() {
        let live = object(json!([
            entry("a", "Apply", json!({"f:replicas": {}, "f:paused": {}})),
            entry("b", "Update", json!({"f:replicas": {}}))
        ]));
        let found = scaled(live, |live| {
            let mut new = live.clone();
            // As the type of a Scale leaves out a 0.
            new["spec"] = json!({});
            let manager = Manager::for_tests("me", SCALE_VERSION, "scale");
            update(Some(live), &mut new, &manager);
            new
        });
        let applied = "a Apply - 2025-01-01T00:00:00Z".to_owned();
        assert_eq!(found, [(applied, json!({"f:paused": {}}))]);
    }

    #[test]
    fn the_first_of_two_entries_of_a_manager_is_lost_with_the_next_write() {
        let both = json!({"f:replicas": {}, "f:paused": {}});
        let live = object(json!([entry("b", "Update", both)]));
        let mut next = live.clone();
        next["metadata"]["managedFields"] = scaled_by(
            Replicas {
                api_version: "apps/v1",
                path: "spec.replicas",
                versions: &versions(&[("apps/v1", Some("spec.replicas"))]),
            },
            live,
            updated(2),
        )
        .into();
        let found = |at: usize| next["metadata"]["managedFields"][at]["fieldsV1"]["f:spec"].clone();
        assert_eq!(
            [found(0), found(1)],
            [json!({"f:replicas": {}}), json!({"f:paused": {}})]
        );
        // Both have one identity, of which the last entry counts.
        let manager = Manager::for_tests("other", "apps/v1", "");
        let before = next.clone();
        next["spec"]["minReadySeconds"] = 1.into();
        update(Some(&before), &mut next, &manager);
        let text = next["metadata"]["managedFields"].to_string();
        assert!(
            !text.contains("f:replicas") && text.contains("f:paused"),
            "{text}"
        );
    }

    #[test]
    fn entries_of_unknown_versions_are_dropped() {
        for unknown in ["apps/v2", "other/v1"] {
            let mut other = entry("b", "Apply", json!({"f:replicas": {}, "f:paused": {}}));
            other["apiVersion"] = unknown.into();
            assert_eq!(scaled(object(json!([other])), updated(3)), []);
        }
    }

    #[test]
    fn each_version_of_a_custom_resource_has_its_own_path() {
        let of = |version: &str, fields: Value| {
            let mut entry = entry(version, "Apply", fields);
            entry["apiVersion"] = format!("example.com/{version}").into();
            entry
        };
        let (size, replicas) = (json!({"f:size": {}}), json!({"f:replicas": {}}));
        let live = object(json!([
            of("v1", size.clone()),
            of("v2", replicas.clone()),
            of("v3", size.clone()),
            of("v4", size.clone()),
        ]));
        let versions = versions(&[
            ("example.com/v1", Some("spec.size")),
            ("example.com/v2", Some("spec.replicas")),
            ("example.com/v3", None),
        ]);
        let by = Replicas {
            api_version: "example.com/v1",
            path: "spec.size",
            versions: &versions,
        };
        let short = |entry: &Value| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let names = ["manager", "apiVersion"].map(text).join(" ");
            (names, entry["fieldsV1"]["f:spec"].clone())
        };
        let entries = scaled_by(by, live, updated(3));
        // The version without a Scale keeps what it has, and what is not in the definition is dropped.
        assert_eq!(
            entries.iter().map(short).collect::<Vec<_>>(),
            [
                ("v3 example.com/v3".to_owned(), size.clone()),
                ("me example.com/v1".to_owned(), size),
            ]
        );
    }

    #[test]
    fn nobody_loses_replicas_by_entries_that_cannot_be_read() {
        let versions = versions(&[("apps/v1", Some("spec.replicas"))]);
        let replicas = Replicas {
            api_version: "apps/v1",
            path: "spec.replicas",
            versions: &versions,
        };
        let wrong = object(json!([{"manager": "a"}]));
        let mut right = object(json!([entry("a", "Apply", json!({"f:replicas": {}}))]));
        let (before, mut scale) = (right.clone(), json!({}));
        let unreadable = Err(UnreadableEntries::Operation);
        assert_eq!(replicas.manage_scale(&wrong, &mut scale), unreadable);
        assert_eq!(replicas.manage_object(&wrong, &mut right), unreadable);
        assert_eq!(right, before);
        assert_eq!(
            replicas.manage_object(&right, &mut wrong.clone()),
            unreadable
        );
    }
}

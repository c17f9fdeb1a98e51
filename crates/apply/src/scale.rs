//! Managers of an object's replicas, seen as managers of its `Scale`.
//!
//! A write of a Scale changes the managers of the Scale, which are those of the object that have its replicas. What
//! that makes of them is then written back to the object. Follows `ScaleHandler` of Kubernetes, with all that it does
//! to other managers: an update names the version that it writes in its identity, and that of an entry which has been
//! carried over is the Scale's. So each manager that had updated the replicas is another one afterwards, that of the
//! replicas alone. What is new in the object has no time.

use serde_json::Value;

use super::managed_fields::{EntryOperation, Identity, ManagedFields, ManagerEntry};
use super::set::FieldSet;

/// The version of Scales.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The replicas of a Scale.
const SCALE_REPLICAS: &str = "spec.replicas";

/// Versions in which Kubernetes has had its types with replicas.
const BUILT_IN_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1beta2"];

/// The replicas of an object that has a Scale.
#[derive(Clone, Copy, Debug)]
pub struct Replicas<'a> {
    /// The version of the object, such as `apps/v1`.
    pub api_version: &'a str,
    /// The dotted path of the replicas.
    pub path: &'a str,
    /// True if the object is a custom resource.
    pub is_custom: bool,
}

impl Replicas<'_> {
    /// Sets the managed fields of an object's Scale to those that the object has of its replicas.
    pub fn manage_scale(&self, object: &Value, scale: &mut Value) {
        let replicas = path(self.path);
        let mut managed = ManagedFields::default();
        for (identity, entry) in decoded(object).entries {
            if !self.is_known(&entry.api_version) || !has(&entry.fields, &replicas) {
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
    }

    /// Sets the managed fields of an object to what a write of its Scale has made of them.
    pub fn manage_object(&self, scale: &Value, object: &mut Value) {
        let (replicas, scale_replicas) = (path(self.path), path(SCALE_REPLICAS));
        let before = decoded(object).entries;
        let mut scaled = decoded(scale).entries;
        let mut managed = ManagedFields::default();
        for (identity, entry) in &before {
            if !self.is_known(&entry.api_version) {
                continue;
            }
            let mut entry = entry.clone();
            // Who has lost the replicas keeps the rest.
            if has(&entry.fields, &replicas) && scaled.remove(identity).is_none() {
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
                    fields: replicas.clone(),
                };
                managed.entries.insert(identity, entry);
            }
        }
        managed.encode(object);
    }

    /// Returns true if the type has been served in this version. Entries of other versions are dropped.
    fn is_known(&self, version: &str) -> bool {
        let split = |version: &str| match version.split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), version.to_owned()),
        };
        let (group, version) = split(version);
        let is_served = self.is_custom || BUILT_IN_VERSIONS.contains(&&*version);
        group == split(self.api_version).0 && is_served
    }
}

fn path(path: &str) -> FieldSet {
    std::iter::once(path).collect()
}

fn has(fields: &FieldSet, path: &FieldSet) -> bool {
    !fields.intersection(path).is_empty()
}

/// Returns the entries of an object. The store has none that cannot be read.
fn decoded(object: &Value) -> ManagedFields {
    ManagedFields::decode(object).unwrap_or_default()
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

    const REPLICAS: Replicas<'_> = Replicas {
        api_version: "apps/v1",
        path: "spec.replicas",
        is_custom: false,
    };

    fn object(entries: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "uid": "u", "managedFields": entries}, "spec": {"replicas": 2}})
    }

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "time": "2025-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}})
    }

    /// Returns the entries of an object in short, after a write of its Scale.
    fn scaled(mut object: Value, write: impl FnOnce(&Value) -> Value) -> Vec<(String, Value)> {
        let mut scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 2}});
        REPLICAS.manage_scale(&object, &mut scale);
        let scale = write(&scale);
        REPLICAS.manage_object(&scale, &mut object);
        let list = object["metadata"]["managedFields"].as_array().cloned();
        let short = |entry: Value| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            assert_eq!(text("apiVersion"), "apps/v1");
            let names = ["manager", "operation", "subresource", "time"].map(text);
            (names.join(" "), entry["fieldsV1"]["f:spec"].clone())
        };
        list.unwrap_or_default().into_iter().map(short).collect()
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

    #[test]
    fn entries_of_unknown_versions_are_dropped() {
        let mut other = entry("b", "Apply", json!({"f:replicas": {}}));
        other["apiVersion"] = "other/v1".into();
        assert_eq!(scaled(object(json!([other])), updated(3)), []);
    }
}

//! The sources of a claim's data: `dataSource`, which can be a claim or a snapshot, and `dataSourceRef`, which can be
//! anything. Kubernetes keeps both alike.
//!
//! Follows pkg/api/persistentvolumeclaim/util.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, remove, set, text};
use ringwatch_registry::RequestContext;
use serde_json::{Map, Value};

use crate::strategy::kind_hooks::KindHooks;

const SOURCE: &str = "spec.dataSource";
const REFERENCE: &str = "spec.dataSourceRef";
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";

/// The behaviour of PersistentVolumeClaims: both sources are kept alike.
#[derive(Debug)]
pub(crate) struct ClaimSources;

impl KindHooks for ClaimSources {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        keep_alike(object, &Value::Null);
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep_alike(object, old);
    }
}

/// Drops sources that are not allowed, unless the old claim has one, and fills in the other field.
fn keep_alike(claim: &mut Value, old: &Value) {
    // The feature gate of references to other namespaces is off.
    let elsewhere = !text(claim, "spec.dataSourceRef.namespace").is_empty();
    if elsewhere && !is_set(old, REFERENCE) {
        drop(remove(claim, REFERENCE));
    }
    let had_one = is_set(old, SOURCE) || is_set(old, REFERENCE);
    if !had_one && !is_set(claim, REFERENCE) && !is_claim_or_snapshot(claim) {
        drop(remove(claim, SOURCE));
    }
    normalize(claim);
}

/// Fills in the one of both sources that is missing from the other.
pub(super) fn normalize(claim: &mut Value) {
    let missing = match (is_set(claim, SOURCE), is_set(claim, REFERENCE)) {
        (true, false) => (SOURCE, REFERENCE),
        (false, true) if text(claim, "spec.dataSourceRef.namespace").is_empty() => {
            (REFERENCE, SOURCE)
        }
        _ => return,
    };
    let (from, to) = missing;
    let members = get(claim, from).and_then(Value::as_object);
    let copied: Map<String, Value> = members
        .into_iter()
        .flatten()
        .filter(|(name, value)| *name != "namespace" && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    set(claim, to, Value::Object(copied));
}

fn is_set(claim: &Value, path: &str) -> bool {
    get(claim, path).is_some_and(|it| !it.is_null())
}

fn is_claim_or_snapshot(claim: &Value) -> bool {
    let of = |member: &str| text(claim, &format!("{SOURCE}.{member}"));
    matches!(
        (of("kind"), of("apiGroup")),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", SNAPSHOTS)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_sources_are_alike() {
        let claim = json!({"kind": "PersistentVolumeClaim", "name": "c"});
        let snapshot = json!({"kind": "VolumeSnapshot", "name": "s", "apiGroup": SNAPSHOTS});
        let other = json!({"kind": "Populator", "name": "p", "apiGroup": "example.com"});
        let far = json!({"kind": "PersistentVolumeClaim", "name": "c", "namespace": "n"});
        let both = |it: &Value| json!({"spec": {"dataSource": it, "dataSourceRef": it}});
        let none = json!({"spec": {}});
        for (spec, old, expected) in [
            (json!({"dataSource": claim}), &none, both(&claim)),
            (json!({"dataSource": snapshot}), &none, both(&snapshot)),
            (json!({"dataSourceRef": other}), &none, both(&other)),
            (json!({"dataSource": other}), &none, none.clone()),
            (json!({"dataSource": other}), &both(&other), both(&other)),
            (json!({"dataSourceRef": far}), &none, none.clone()),
            (
                json!({"dataSourceRef": far}),
                &json!({"spec": {"dataSourceRef": far}}),
                json!({"spec": {"dataSourceRef": far}}),
            ),
            (json!({}), &none, none.clone()),
        ] {
            let mut object = json!({ "spec": spec });
            keep_alike(&mut object, old);
            assert_eq!(object, expected, "{spec}");
        }
    }
}

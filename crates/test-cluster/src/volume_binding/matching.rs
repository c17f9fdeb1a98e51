//! Finds the volume for a claim: the smallest one that suffices, or the one that is kept for it.
//!
//! Source of the semantics: `FindMatchingVolume` of `k8s.io/component-helpers` and
//! `pkg/controller/volume/persistentvolume` 1.36.

use ringwatch::meta::LabelSelector;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::quantity::Quantity;
use ringwatch_apimachinery::{path, selector_text};
use serde_json::Value;

/// The annotation that names a class as in old versions.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Returns the name of the class of a claim or a volume; empty without one.
pub(super) fn class(object: &Value) -> &str {
    let old = object["metadata"]["annotations"][OLD_CLASS].as_str();
    old.unwrap_or_else(|| path::text(object, "spec.storageClassName"))
}

/// Returns true if a volume is kept for a claim, or bound to it.
pub(super) fn is_of(volume: &Value, claim: &Value) -> bool {
    let reference = &volume["spec"]["claimRef"];
    let uid = path::text(reference, "uid");
    reference.is_object()
        && reference["name"] == claim["metadata"]["name"]
        && reference["namespace"] == claim["metadata"]["namespace"]
        && (uid.is_empty() || uid == accessor::text(claim, "uid"))
}

/// Returns true if a volume that a claim names is one that it asks for.
pub(super) fn suffices(volume: &Value, claim: &Value) -> bool {
    class(volume) == class(claim) && is_possible(volume, claim)
}

/// Returns the volume that a claim is to have, the one first that is kept for it; `None` if there is none. With `waits`
/// one that is not kept for it is out of the question yet.
pub(super) fn find<'a>(claim: &Value, volumes: &'a [Value], waits: bool) -> Option<&'a Value> {
    let selector = &claim["spec"]["selector"];
    let selector = LabelSelector::parse(&selector_text::label_selector(selector)).ok()?;
    let is_candidate = |volume: &&Value| {
        is_possible(volume, claim)
            && (is_of(volume, claim)
                || (!waits
                    && volume["spec"]["claimRef"].is_null()
                    && path::text(volume, "status.phase") == "Available"
                    && class(volume) == class(claim)
                    && selector.matches(accessor::labels(volume).as_labels())))
    };
    let rank = |volume: &&Value| {
        // The fewest ways of access that suffice come first.
        let modes = path::list(volume, "spec.accessModes").len();
        let name = accessor::text(volume, "name").to_owned();
        (modes, !is_of(volume, claim), size(volume), name)
    };
    volumes.iter().filter(is_candidate).min_by_key(rank)
}

/// Returns true if a volume is large enough and of the kind that a claim asks for.
fn is_possible(volume: &Value, claim: &Value) -> bool {
    let text = |object: &Value, path: &str| path::text(object, path).to_owned();
    let mode = |object: &Value| match text(object, "spec.volumeMode") {
        mode if mode.is_empty() => "Filesystem".to_owned(),
        mode => mode,
    };
    let attributes = |object: &Value| text(object, "spec.volumeAttributesClassName");
    let modes = path::list(volume, "spec.accessModes");
    let mut wanted = path::list(claim, "spec.accessModes").iter();
    let requested = path::text(claim, "spec.resources.requests.storage").parse();
    !is_terminating(volume)
        && size(volume) >= requested.unwrap_or_default()
        && mode(volume) == mode(claim)
        && attributes(volume) == attributes(claim)
        && wanted.all(|it| modes.contains(it))
}

fn size(volume: &Value) -> Quantity {
    let size = path::text(volume, "spec.capacity.storage").parse();
    size.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn volume(name: &str, size: &str, modes: &[&str]) -> Value {
        json!({
            "metadata": {"name": name, "labels": {"name": name}},
            "spec": {"capacity": {"storage": size}, "accessModes": modes, "storageClassName": "c"},
            "status": {"phase": "Available"},
        })
    }

    fn claim() -> Value {
        json!({
            "metadata": {"name": "claim", "namespace": "n", "uid": "u"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "c",
                "resources": {"requests": {"storage": "2Gi"}},
            },
        })
    }

    fn found(claim: &Value, volumes: &[Value], waits: bool) -> String {
        let found = find(claim, volumes, waits);
        found.map_or_else(String::new, |it| accessor::text(it, "name").to_owned())
    }

    fn volumes() -> Vec<Value> {
        let once = ["ReadWriteOnce"];
        vec![
            volume("small", "1Gi", &once),
            volume("large", "10Gi", &once),
            volume("fits", "3000Mi", &once),
            volume("many", "2Gi", &["ReadOnlyMany", "ReadWriteOnce"]),
        ]
    }

    #[test]
    fn the_smallest_volume_that_suffices_is_found() {
        let volumes = volumes();
        assert_eq!(found(&claim(), &volumes, false), "fits");
        assert_eq!(found(&claim(), &volumes, true), "", "it waits");
        let mut wanting = claim();
        wanting["spec"]["accessModes"] = json!(["ReadWriteOnce", "ReadOnlyMany"]);
        assert_eq!(found(&wanting, &volumes, false), "many");
        wanting["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        assert_eq!(found(&wanting, &volumes, false), "");
        let mut selecting = claim();
        selecting["spec"]["selector"] = json!({"matchLabels": {"name": "large"}});
        assert_eq!(found(&selecting, &volumes, false), "large");
    }

    #[test]
    fn volumes_of_other_kinds_are_not_found() {
        for (path, value) in [
            ("spec.storageClassName", json!("d")),
            ("spec.volumeMode", json!("Block")),
            ("spec.volumeAttributesClassName", json!("a")),
            ("status.phase", json!("Released")),
            ("metadata.deletionTimestamp", json!("2026-01-02T03:04:05Z")),
            ("spec.claimRef", json!({"name": "other", "namespace": "n"})),
        ] {
            let mut volume = volume("v", "2Gi", &["ReadWriteOnce"]);
            assert_eq!(found(&claim(), &[volume.clone()], false), "v");
            path::set(&mut volume, path, value);
            assert_eq!(found(&claim(), &[volume], false), "", "{path}");
        }
        let mut old = volume("v", "2Gi", &["ReadWriteOnce"]);
        old["metadata"]["annotations"] = json!({ OLD_CLASS: "d" });
        assert!(!suffices(&old, &claim()));
    }

    #[test]
    fn a_volume_that_is_kept_for_a_claim_is_found_even_if_it_waits() {
        let mut volumes = volumes();
        volumes[1]["spec"]["claimRef"] = json!({"name": "claim", "namespace": "n"});
        assert_eq!(found(&claim(), &volumes, true), "large");
        volumes[1]["spec"]["claimRef"]["uid"] = "other".into();
        assert_eq!(found(&claim(), &volumes, true), "");
        assert_eq!(found(&claim(), &volumes, false), "fits");
    }
}

//! The keys by which strategic merge patches merge the lists of the built-in kinds.
//!
//! A list is identified by its name and that of the list or member around it; a few kinds have exceptions. A list
//! without an entry here is replaced as a whole.

/// The way in which a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListMerge {
    /// Objects with the same value of this member are one.
    ByKey(&'static str),
    /// A set of scalars.
    Set,
    /// The list of the patch replaces the object's.
    Replace,
}

/// Lists that are merged by the same key wherever they are.
const BY_KEY: &[(&str, &str)] = &[
    ("allocatedResourcesStatus", "name"),
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("hostIPs", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("matchConditions", "name"),
    ("ownerReferences", "uid"),
    ("podIPs", "ip"),
    ("resourceClaimStatuses", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("secrets", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
    ("webhooks", "name"),
];

/// Lists that are sets.
const SETS: &[&str] = &["finalizers", "podCIDRs"];

/// Exceptions: lists of certain kinds, below a member, that merge differently from others of their name.
const BY_KIND: &[(&str, &str, &str, ListMerge)] = &[
    ("CSINode", "spec", "drivers", ListMerge::ByKey("name")),
    (
        "CertificateSigningRequest",
        "status",
        "conditions",
        ListMerge::Replace,
    ),
    (
        "CustomResourceDefinition",
        "status",
        "conditions",
        ListMerge::Replace,
    ),
    ("Namespace", "spec", "finalizers", ListMerge::Replace),
    ("ResourceClaim", "devices", "conditions", ListMerge::Replace),
    (
        "ResourceClaim",
        "status",
        "reservedFor",
        ListMerge::ByKey("uid"),
    ),
    ("ServiceAccount", "", "imagePullSecrets", ListMerge::Replace),
    ("StorageVersion", "status", "conditions", ListMerge::Replace),
    (
        "ValidatingAdmissionPolicy",
        "spec",
        "variables",
        ListMerge::ByKey("name"),
    ),
    (
        "ValidatingAdmissionPolicy",
        "status",
        "conditions",
        ListMerge::Replace,
    ),
];

/// Returns how the list `name` inside the member `parent` of a kind is merged.
pub(super) fn list_merge(kind: &str, parent: &str, name: &str) -> ListMerge {
    let own = BY_KIND.iter();
    let mut own = own.filter(|(of, below, list, _)| (*of, *below, *list) == (kind, parent, name));
    if let Some((.., merge)) = own.next() {
        return *merge;
    }
    if SETS.contains(&name) {
        return ListMerge::Set;
    }
    match (parent, name) {
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => {
            return ListMerge::ByKey("containerPort");
        }
        ("nodeAllocatableResourceClaimStatuses", "containers") => return ListMerge::Replace,
        ("spec", "ports") => return ListMerge::ByKey("port"),
        ("status", "addresses") => return ListMerge::ByKey("type"),
        _ => {}
    }
    BY_KEY
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(ListMerge::Replace, |(_, key)| ListMerge::ByKey(key))
}

/// Returns true if a map is replaced as a whole.
pub(super) fn replaces_map(kind: &str, parent: &str, name: &str) -> bool {
    (kind, parent, name) == ("PodDisruptionBudget", "spec", "selector")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Checks the lists of a type against its definition, and those below.
    struct Walk<'a> {
        definitions: &'a Value,
        kind: &'a str,
        seen: BTreeSet<(String, String)>,
        lists: usize,
    }

    impl Walk<'_> {
        fn walk(&mut self, definition: &str, parent: &str) {
            // Schemas of custom resources hold themselves; nobody patches them by their items.
            let known = (definition.to_owned(), parent.to_owned());
            if definition.ends_with("JSONSchemaProps") || !self.seen.insert(known) {
                return;
            }
            let properties = &self.definitions[definition]["properties"];
            for (name, property) in properties.as_object().into_iter().flatten() {
                if property["type"] == "array" {
                    let strategy = property["x-kubernetes-patch-strategy"].as_str();
                    let key = property["x-kubernetes-patch-merge-key"].as_str();
                    let merges = strategy.is_some_and(|it| it.split(',').any(|it| it == "merge"));
                    let found = match list_merge(self.kind, parent, name) {
                        ListMerge::ByKey(key) => (true, Some(key)),
                        ListMerge::Set => (true, None),
                        ListMerge::Replace => (false, None),
                    };
                    let expected = (merges, key.filter(|_| merges));
                    assert_eq!(found, expected, "{} {parent}.{name}", self.kind);
                    self.lists += 1;
                }
                for place in [
                    "/$ref",
                    "/items/$ref",
                    "/additionalProperties/$ref",
                    "/allOf/0/$ref",
                ] {
                    let reference = property.pointer(place);
                    let reference = reference.and_then(Value::as_str).unwrap_or_default();
                    if let Some(definition) = reference.strip_prefix("#/definitions/") {
                        self.walk(definition, name);
                    }
                }
            }
        }
    }

    #[test]
    fn lists_are_merged_as_their_definitions_say() {
        let Some(file) = ringwatch_testing::recorded::open_api("merge keys as published") else {
            return;
        };
        let text = std::fs::read(file).expect("the definitions");
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        let definitions = &document["definitions"];
        let mut lists = 0;
        for (name, definition) in definitions.as_object().expect("definitions") {
            let kinds = definition["x-kubernetes-group-version-kind"].as_array();
            let kind = kinds
                .filter(|kinds| kinds.len() == 1)
                .map(|kinds| &kinds[0]["kind"]);
            let Some(kind) = kind.and_then(Value::as_str) else {
                continue;
            };
            if kind.ends_with("List") || definition["properties"]["metadata"].is_null() {
                continue;
            }
            let mut walk = Walk {
                definitions,
                kind,
                seen: BTreeSet::new(),
                lists: 0,
            };
            walk.walk(name, "");
            lists += walk.lists;
        }
        assert!(lists > 1000, "{lists}");
    }
}

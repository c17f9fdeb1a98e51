//! By which key strategic merge patches merge the lists of the built-in kinds.
//!
//! Lists are told apart by their own name and that of the list or member around them, which is
//! enough for the kinds that people patch. A list that is not here is replaced as a whole.

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListMerge {
    /// Objects with the same value of this member are one.
    ByKey(&'static str),
    /// A set of scalars.
    Set,
    /// Not at all.
    Replace,
}

/// Lists that are merged by the same key wherever they are.
const BY_KEY: &[(&str, &str)] = &[
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
    ("volumesAttached", "name"),
    ("webhooks", "name"),
];

/// Lists that are sets.
const SETS: &[&str] = &["finalizers", "podCIDRs"];

/// How the list `name` inside the member `parent` is merged.
pub(super) fn list_merge(parent: &str, name: &str) -> ListMerge {
    if SETS.contains(&name) {
        return ListMerge::Set;
    }
    match (parent, name) {
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => {
            return ListMerge::ByKey("containerPort");
        }
        ("spec", "ports") => return ListMerge::ByKey("port"),
        ("status", "addresses") => return ListMerge::ByKey("type"),
        _ => {}
    }
    BY_KEY
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(ListMerge::Replace, |(_, key)| ListMerge::ByKey(key))
}

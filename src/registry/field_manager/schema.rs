//! How the fields of a type merge: which lists are sets or have keys, what is one whole.
//!
//! What is not in the tables is a struct if it is an object and one whole if it is a list. The
//! tables hold for the built-in types; of custom resources only the metadata is known. A rule
//! names the end of a path, without the items of lists on the way; one that begins with a dot
//! names the whole path, one that ends with `[]` the items of a list.

use serde_json::{Map, Value, json};

use super::path::PathElement;

/// What is known of the fields of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'a> {
    api_version: &'a str,
    kind: &'a str,
    built_in: bool,
}

/// How a value merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As one whole.
    Leaf,
    /// Member by member.
    Object,
    /// Item by item, each its own key.
    Set,
    /// Item by item, told apart by these members.
    Keyed(Keys),
}

/// The members that tell items apart, with their values where an item lacks them.
type Keys = &'static [(&'static str, Option<&'static str>)];

impl<'a> Schema<'a> {
    /// What is known of a type.
    pub(super) fn of(api_version: &'a str, kind: &'a str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self {
            api_version,
            kind,
            built_in: BUILT_IN_GROUPS.contains(&group),
        }
    }

    /// How a value at a path merges.
    pub(super) fn shape(&self, path: &[PathElement], value: &Value) -> Shape {
        match value {
            Value::Object(_) if self.is_whole(path) => Shape::Leaf,
            Value::Object(_) => Shape::Object,
            Value::Array(items) => self.list_shape(path, items),
            _ => Shape::Leaf,
        }
    }

    fn list_shape(&self, path: &[PathElement], items: &[Value]) -> Shape {
        let own = if self.built_in { LISTS } else { &[] };
        let found = METADATA_LISTS
            .iter()
            .chain(own)
            .find(|(rule, _)| applies(rule, path));
        let Some((_, shape)) = found else {
            return Shape::Leaf;
        };
        let excepted = |(kind, rule): &(&str, &str)| *kind == self.kind && applies(rule, path);
        if EXCEPTIONS.iter().any(excepted) {
            return Shape::Leaf;
        }
        let fits = match shape {
            Shape::Keyed(keys) => items.iter().all(|item| item_key(keys, item).is_some()),
            _ => items
                .iter()
                .all(|item| !item.is_object() && !item.is_array()),
        };
        if fits { *shape } else { Shape::Leaf }
    }

    fn is_whole(&self, path: &[PathElement]) -> bool {
        if applies("metadata.ownerReferences[]", path) {
            return true;
        }
        let scale_target = self.api_version == "autoscaling/v1";
        self.built_in
            && (WHOLE.iter().any(|rule| applies(rule, path))
                || (scale_target && applies(".spec.scaleTargetRef", path)))
    }

    /// Whether the members of an object at a path have names of the type's, not of the client's.
    pub(super) fn is_struct(&self, path: &[PathElement]) -> bool {
        let own = if self.built_in { MAPS } else { &[] };
        !METADATA_MAPS
            .iter()
            .chain(own)
            .any(|rule| applies(rule, path))
    }

    /// The fields that a write of the status does not reach.
    pub(super) fn fields_beside_status(&self) -> &'static [&'static str] {
        match (self.built_in, self.kind) {
            (false, _) => &["metadata", "spec"],
            (_, "Deployment") => &["metadata.labels", "spec"],
            (_, "Pod") => &[
                "metadata.deletionTimestamp",
                "metadata.ownerReferences",
                "spec",
            ],
            _ => &["spec"],
        }
    }

    /// Puts in what objects of the type always have, be it empty, so that it is never the work
    /// of a client.
    pub(super) fn complete(&self, object: &mut Value) {
        if !self.built_in {
            return;
        }
        for name in ["metadata", "spec", "status"] {
            put(object, name);
        }
        let own = PRESENT.iter().filter(|(kind, _)| *kind == self.kind);
        for path in own.flat_map(|(_, paths)| *paths) {
            put(object, path);
        }
    }
}

/// The step to an item of a keyed list; `None` if it has none of the keys.
pub(super) fn item_key(keys: Keys, item: &Value) -> Option<PathElement> {
    let item = item.as_object()?;
    let mut found = Map::new();
    for (name, default) in keys {
        let value = item.get(*name).filter(|value| !value.is_null());
        if let Some(value) = value.cloned().or_else(|| default.map(Value::from)) {
            found.insert((*name).to_owned(), value);
        }
    }
    (!found.is_empty()).then(|| PathElement::key(found))
}

/// Whether a rule names a path.
fn applies(rule: &str, path: &[PathElement]) -> bool {
    let (rule, of_items) = rule
        .strip_suffix("[]")
        .map_or((rule, false), |rule| (rule, true));
    let ends_at_item = !matches!(path.last(), Some(PathElement::Field(_)));
    if ends_at_item != of_items {
        return false;
    }
    let (rule, whole) = rule
        .strip_prefix('.')
        .map_or((rule, false), |rule| (rule, true));
    let mut names = path.iter().rev().filter_map(|element| match element {
        PathElement::Field(name) => Some(name.as_str()),
        _ => None,
    });
    rule.rsplit('.').all(|wanted| names.next() == Some(wanted))
        && !(whole && names.next().is_some())
}

/// Puts an empty object at a path, or null if the path ends with `?`, where there is nothing.
fn put(object: &mut Value, path: &str) {
    let (path, filler) = match path.strip_suffix('?') {
        Some(path) => (path, Value::Null),
        None => (path, json!({})),
    };
    let mut node = object;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        let Value::Object(members) = node else {
            return;
        };
        let missing = if names.peek().is_some() {
            json!({})
        } else {
            filler.clone()
        };
        node = members.entry(name).or_insert(missing);
    }
}

const BUILT_IN_GROUPS: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

const METADATA_LISTS: &[(&str, Shape)] = &[
    ("metadata.finalizers", Shape::Set),
    ("metadata.ownerReferences", Shape::Keyed(UID)),
];

const NAME: Keys = &[("name", None)];
const TYPE: Keys = &[("type", None)];
const UID: Keys = &[("uid", None)];
const IP: Keys = &[("ip", None)];
const MOUNT_PATH: Keys = &[("mountPath", None)];
const DEVICE_PATH: Keys = &[("devicePath", None)];
const CONTAINER_PORT: Keys = &[("containerPort", None), ("protocol", Some("TCP"))];
const SERVICE_PORT: Keys = &[("port", None), ("protocol", Some("TCP"))];
const TOPOLOGY: Keys = &[("topologyKey", None), ("whenUnsatisfiable", None)];
const DEVICE: Keys = &[
    ("driver", None),
    ("device", None),
    ("pool", None),
    ("shareID", None),
];

/// Lists that are not one whole.
const LISTS: &[(&str, Shape)] = &[
    (".conditions", Shape::Keyed(TYPE)),
    (".secrets", Shape::Keyed(NAME)),
    (".webhooks", Shape::Keyed(NAME)),
    ("containers.env", Shape::Keyed(NAME)),
    ("containers.ports", Shape::Keyed(CONTAINER_PORT)),
    ("containers.volumeDevices", Shape::Keyed(DEVICE_PATH)),
    ("containers.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    ("devices.conditions", Shape::Keyed(TYPE)),
    ("ephemeralContainers.env", Shape::Keyed(NAME)),
    ("ephemeralContainers.ports", Shape::Keyed(CONTAINER_PORT)),
    (
        "ephemeralContainers.volumeDevices",
        Shape::Keyed(DEVICE_PATH),
    ),
    ("ephemeralContainers.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    ("initContainers.env", Shape::Keyed(NAME)),
    ("initContainers.ports", Shape::Keyed(CONTAINER_PORT)),
    ("initContainers.volumeDevices", Shape::Keyed(DEVICE_PATH)),
    ("initContainers.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    ("podGroupTemplates.resourceClaims", Shape::Keyed(NAME)),
    ("resources.claims", Shape::Keyed(NAME)),
    ("spec.containers", Shape::Keyed(NAME)),
    ("spec.drivers", Shape::Keyed(NAME)),
    ("spec.ephemeralContainers", Shape::Keyed(NAME)),
    ("spec.hostAliases", Shape::Keyed(IP)),
    ("spec.imagePullSecrets", Shape::Keyed(NAME)),
    ("spec.initContainers", Shape::Keyed(NAME)),
    ("spec.matchConditions", Shape::Keyed(NAME)),
    ("spec.podCIDRs", Shape::Set),
    ("spec.podGroupTemplates", Shape::Keyed(NAME)),
    ("spec.ports", Shape::Keyed(SERVICE_PORT)),
    ("spec.resourceClaims", Shape::Keyed(NAME)),
    ("spec.schedulingGates", Shape::Keyed(NAME)),
    ("spec.topologySpreadConstraints", Shape::Keyed(TOPOLOGY)),
    ("spec.validationActions", Shape::Set),
    ("spec.variables", Shape::Keyed(NAME)),
    ("spec.volumeLifecycleModes", Shape::Set),
    ("spec.volumes", Shape::Keyed(NAME)),
    ("status.addresses", Shape::Keyed(TYPE)),
    ("status.conditions", Shape::Keyed(TYPE)),
    ("status.devices", Shape::Keyed(DEVICE)),
    ("status.podIPs", Shape::Keyed(IP)),
    ("status.reservedFor", Shape::Keyed(UID)),
    ("status.resourceClaimStatuses", Shape::Keyed(NAME)),
    (
        "status.storageVersions",
        Shape::Keyed(&[("apiServerID", None)]),
    ),
    ("storageVersions.decodableVersions", Shape::Set),
    ("storageVersions.servedVersions", Shape::Set),
    ("uncountedTerminatedPods.failed", Shape::Set),
    ("uncountedTerminatedPods.succeeded", Shape::Set),
    ("webhooks.matchConditions", Shape::Keyed(NAME)),
];

/// Lists of these kinds that are one whole all the same.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("Job", ".status.conditions"),
    ("MutatingAdmissionPolicy", ".spec.variables"),
];

/// Objects that are one whole.
const WHOLE: &[&str] = &[
    ".involvedObject",
    ".nodeTopology",
    ".regarding",
    ".related",
    ".roleRef",
    ".scheduling.nodeSelector",
    ".secrets[]",
    ".target",
    "allocation.nodeSelector",
    "cephfs.secretRef",
    "cinder.secretRef",
    "csi.controllerExpandSecretRef",
    "csi.controllerPublishSecretRef",
    "csi.nodeExpandSecretRef",
    "csi.nodePublishSecretRef",
    "csi.nodeStageSecretRef",
    "defaultBackend.resource",
    "flexVolume.secretRef",
    "iscsi.secretRef",
    "nodeAffinity.required",
    "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "rbd.secretRef",
    "scaleIO.secretRef",
    "service.port",
    "spec.dataSource",
    "spec.imagePullSecrets[]",
    "spec.matchConstraints",
    "spec.matchResources",
    "spec.nodeSelector",
    "spec.paramKind",
    "spec.paramRef",
    "spec.podSelector",
    "spec.scopeSelector",
    "spec.selector",
    "spec.variables[]",
    "storageos.secretRef",
    "topologySpreadConstraints.labelSelector",
    "valueFrom.configMapKeyRef",
    "valueFrom.fieldRef",
    "valueFrom.fileKeyRef",
    "valueFrom.resourceFieldRef",
    "valueFrom.secretKeyRef",
    "webhooks.namespaceSelector",
    "webhooks.objectSelector",
];

const METADATA_MAPS: &[&str] = &["metadata.annotations", "metadata.labels"];

/// Objects whose members are named by clients.
const MAPS: &[&str] = &[
    ".binaryData",
    ".data",
    ".parameters",
    ".stringData",
    "csi.volumeAttributes",
    "flexVolume.options",
    "inlineVolumeSpec.capacity",
    "overhead.podFixed",
    "resources.limits",
    "resources.requests",
    "spec.capacity",
    "spec.extra",
    "spec.hard",
    "spec.overhead",
    "spec.unverifiedUserAnnotations",
    "status.allocatable",
    "status.allocatedResourceStatuses",
    "status.allocatedResources",
    "status.attachmentMetadata",
    "status.capacity",
    "status.disruptedPods",
    "status.hard",
    "status.used",
    "user.extra",
    "userInfo.extra",
];

/// What objects always have in kube-apiserver because its types cannot leave it out.
const PRESENT: &[(&str, &[&str])] = &[
    (
        "CronJob",
        &[
            "spec.jobTemplate.metadata",
            "spec.jobTemplate.spec.template.metadata",
            "spec.jobTemplate.spec.template.spec.containers?",
        ],
    ),
    (
        "CustomResourceDefinition",
        &["spec.names", "status.acceptedNames", "status.conditions?"],
    ),
    (
        "DaemonSet",
        &[
            "spec.template.metadata",
            "spec.template.spec.containers?",
            "spec.updateStrategy",
        ],
    ),
    (
        "Deployment",
        &[
            "spec.strategy",
            "spec.template.metadata",
            "spec.template.spec.containers?",
        ],
    ),
    ("Event", &["deprecatedSource", "source"]),
    ("FlowSchema", &["spec.priorityLevelConfiguration"]),
    ("HorizontalPodAutoscaler", &["spec.scaleTargetRef"]),
    ("Ingress", &["status.loadBalancer"]),
    (
        "Job",
        &["spec.template.metadata", "spec.template.spec.containers?"],
    ),
    ("NetworkPolicy", &["spec.podSelector"]),
    (
        "Node",
        &["status.daemonEndpoints.kubeletEndpoint", "status.nodeInfo"],
    ),
    ("PersistentVolumeClaim", &["spec.resources"]),
    ("Pod", &["spec.containers?"]),
    (
        "PodTemplate",
        &["template.metadata", "template.spec.containers?"],
    ),
    (
        "ReplicaSet",
        &["spec.template.metadata", "spec.template.spec.containers?"],
    ),
    ("ResourceClaim", &["spec.devices"]),
    (
        "ResourceClaimTemplate",
        &["spec.metadata", "spec.spec.devices"],
    ),
    ("ResourceSlice", &["spec.pool"]),
    ("Service", &["status.loadBalancer"]),
    (
        "StatefulSet",
        &[
            "spec.template.metadata",
            "spec.template.spec.containers?",
            "spec.updateStrategy",
        ],
    ),
    ("VolumeAttachment", &["spec.source"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<PathElement> {
        let element = |part: &str| match part {
            "[]" => PathElement::Key("{}".to_owned()),
            name => PathElement::field(name),
        };
        text.split('.').map(element).collect()
    }

    #[test]
    fn rules_name_the_ends_of_paths() {
        for (rule, text, named) in [
            ("spec.containers", "spec.containers", true),
            ("spec.containers", "spec.template.spec.containers", true),
            ("spec.containers", "status.containers", false),
            ("containers.ports", "spec.containers.[].ports", true),
            ("spec.containers", "spec.containers.[]", false),
            ("spec.variables[]", "spec.variables.[]", true),
            ("spec.variables[]", "spec.variables", false),
            (".data", "data", true),
            (".data", "spec.data", false),
        ] {
            assert_eq!(applies(rule, &path(text)), named, "{rule} {text}");
        }
    }

    #[test]
    fn tables_hold_for_built_in_types_only() {
        let list = json!([{"name": "c"}]);
        let containers = path("spec.containers");
        let pod = Schema::of("v1", "Pod");
        assert_eq!(pod.shape(&containers, &list), Shape::Keyed(NAME));
        assert_eq!(
            pod.shape(&containers, &json!([{"image": "x"}])),
            Shape::Leaf
        );
        let widget = Schema::of("example.com/v1", "Widget");
        assert_eq!(widget.shape(&containers, &list), Shape::Leaf);
        let finalizers = path("metadata.finalizers");
        assert_eq!(widget.shape(&finalizers, &json!(["a"])), Shape::Set);
        let conditions = path("status.conditions");
        let list = json!([{"type": "a"}]);
        assert_eq!(
            Schema::of("batch/v1", "Job").shape(&conditions, &list),
            Shape::Leaf
        );
        assert_eq!(pod.shape(&conditions, &list), Shape::Keyed(TYPE));
    }

    #[test]
    fn keys_that_an_item_lacks_have_defaults() {
        let key = item_key(CONTAINER_PORT, &json!({"containerPort": 80})).expect("a key");
        assert_eq!(key.encode(), r#"k:{"containerPort":80,"protocol":"TCP"}"#);
        assert_eq!(item_key(NAME, &json!({"image": "x"})), None);
    }

    #[test]
    fn what_is_always_there_is_put_in() {
        let mut object = json!({"spec": {"strategy": {"type": "Recreate"}}});
        Schema::of("apps/v1", "Deployment").complete(&mut object);
        let expected = json!({
            "metadata": {},
            "spec": {
                "strategy": {"type": "Recreate"},
                "template": {"metadata": {}, "spec": {"containers": null}},
            },
            "status": {},
        });
        assert_eq!(object, expected);
    }
}

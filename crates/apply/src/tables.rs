//! The tables of merge rules of built-in types, where these differ from the defaults of structs and lists.
//!
//! A rule names the end of a path, without the items of lists on the way; one that begins with a dot
//! names the whole path, one that ends with `[]` the items of a list.

use super::shape::{KeyDefault, Keys, Shape};

pub(super) const BUILT_IN_GROUPS: &[&str] = &[
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

pub(super) const METADATA_LISTS: &[(&str, Shape<'static>)] = &[
    ("metadata.finalizers", Shape::Set),
    ("metadata.ownerReferences", Shape::Keyed(UID)),
];

/// The default of a text that an item always has in Go.
const EMPTY: Option<KeyDefault> = Some(KeyDefault::Text(""));
const ZERO: Option<KeyDefault> = Some(KeyDefault::Number(0));
const TCP: Option<KeyDefault> = Some(KeyDefault::Text("TCP"));

pub(super) const NAME: Keys<'static> = Keys::Known(&[("name", EMPTY)]);
pub(super) const TYPE: Keys<'static> = Keys::Known(&[("type", EMPTY)]);
/// The key of conditions of flow control, whose type is optional and has no default.
pub(super) const TYPE_IF_ANY: Keys<'static> = Keys::Known(&[("type", None)]);
const UID: Keys<'static> = Keys::Known(&[("uid", EMPTY)]);
const IP: Keys<'static> = Keys::Known(&[("ip", EMPTY)]);
const RESOURCE_ID: Keys<'static> = Keys::Known(&[("resourceID", EMPTY)]);
const RULE: Keys<'static> = Keys::Known(&[("rule", EMPTY)]);
const MOUNT_PATH: Keys<'static> = Keys::Known(&[("mountPath", EMPTY)]);
const DEVICE_PATH: Keys<'static> = Keys::Known(&[("devicePath", EMPTY)]);
pub(super) const CONTAINER_PORT: Keys<'static> =
    Keys::Known(&[("containerPort", ZERO), ("protocol", TCP)]);
const SERVICE_PORT: Keys<'static> = Keys::Known(&[("port", ZERO), ("protocol", TCP)]);
const TOPOLOGY: Keys<'static> =
    Keys::Known(&[("topologyKey", EMPTY), ("whenUnsatisfiable", EMPTY)]);
const DEVICE: Keys<'static> = Keys::Known(&[
    ("driver", EMPTY),
    ("device", EMPTY),
    ("pool", EMPTY),
    ("shareID", None),
]);
/// The names of references, which need have none.
const REFERENCE_NAME: Keys<'static> = Keys::Known(&[("name", None)]);

/// Lists that are sets or have items with keys. Those within a list or an object that is one whole do not merge, but
/// may not have two items alike either.
pub(super) const LISTS: &[(&str, Shape<'static>)] = &[
    (".conditions", Shape::Keyed(TYPE)),
    (".secrets", Shape::Keyed(REFERENCE_NAME)),
    (".webhooks", Shape::Keyed(NAME)),
    (
        "allocatedResourcesStatus.resources",
        Shape::Keyed(RESOURCE_ID),
    ),
    (
        "containerStatuses.allocatedResourcesStatus",
        Shape::Keyed(NAME),
    ),
    ("containerStatuses.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    ("containers.env", Shape::Keyed(NAME)),
    ("containers.ports", Shape::Keyed(CONTAINER_PORT)),
    ("containers.volumeDevices", Shape::Keyed(DEVICE_PATH)),
    ("containers.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    ("devices.conditions", Shape::Keyed(TYPE)),
    ("endpoints.addresses", Shape::Set),
    (
        "ephemeralContainerStatuses.allocatedResourcesStatus",
        Shape::Keyed(NAME),
    ),
    (
        "ephemeralContainerStatuses.volumeMounts",
        Shape::Keyed(MOUNT_PATH),
    ),
    ("ephemeralContainers.env", Shape::Keyed(NAME)),
    ("ephemeralContainers.ports", Shape::Keyed(CONTAINER_PORT)),
    (
        "ephemeralContainers.volumeDevices",
        Shape::Keyed(DEVICE_PATH),
    ),
    ("ephemeralContainers.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    ("exitCodes.values", Shape::Set),
    (
        "initContainerStatuses.allocatedResourcesStatus",
        Shape::Keyed(NAME),
    ),
    (
        "initContainerStatuses.volumeMounts",
        Shape::Keyed(MOUNT_PATH),
    ),
    ("initContainers.env", Shape::Keyed(NAME)),
    ("initContainers.ports", Shape::Keyed(CONTAINER_PORT)),
    ("initContainers.volumeDevices", Shape::Keyed(DEVICE_PATH)),
    ("initContainers.volumeMounts", Shape::Keyed(MOUNT_PATH)),
    (
        "nodeAllocatableResourceClaimStatuses.containers",
        Shape::Set,
    ),
    ("onExitCodes.values", Shape::Set),
    ("podGroupTemplates.resourceClaims", Shape::Keyed(NAME)),
    ("resources.claims", Shape::Keyed(NAME)),
    ("rules.nonResourceRules.nonResourceURLs", Shape::Set),
    ("rules.nonResourceRules.verbs", Shape::Set),
    ("rules.resourceRules.apiGroups", Shape::Set),
    ("rules.resourceRules.namespaces", Shape::Set),
    ("rules.resourceRules.resources", Shape::Set),
    ("rules.resourceRules.verbs", Shape::Set),
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
        Shape::Keyed(Keys::Known(&[("apiServerID", None)])),
    ),
    ("storageVersions.decodableVersions", Shape::Set),
    ("storageVersions.servedVersions", Shape::Set),
    ("uncountedTerminatedPods.failed", Shape::Set),
    ("uncountedTerminatedPods.succeeded", Shape::Set),
    ("webhooks.matchConditions", Shape::Keyed(NAME)),
    ("x-kubernetes-validations", Shape::Keyed(RULE)),
];

/// Lists of these kinds that are one whole all the same.
pub(super) const EXCEPTIONS: &[(&str, &str)] = &[
    ("Job", ".status.conditions"),
    ("MutatingAdmissionPolicy", ".spec.variables"),
];

/// Objects that are one whole.
pub(super) const WHOLE: &[&str] = &[
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
    "devices.data",
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

pub(super) const METADATA_MAPS: &[&str] = &["metadata.annotations", "metadata.labels"];

/// Objects whose members are named by clients.
pub(super) const MAPS: &[&str] = &[
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

#[cfg(test)]
mod tests;

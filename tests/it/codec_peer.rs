//! What the codec writes, read by a decoder that knows nothing of it: k8s-pb, whose types are compiled
//! from Kubernetes' definitions. Each of Kubernetes' test objects is written by the codec, read and
//! written again by that decoder, which drops what it does not know, and must then be the same.
//!
//! Without those objects the test is named as skipped.

use std::fs;

use k8s_pb::apimachinery::pkg::runtime::Unknown;
use prost::{DecodeError, Message};
use ringwatch::codec;
use serde_json::Value;

use crate::support::{recorded, tell_kinds_of_claims};

/// Reads a message and writes it again.
type Reader = fn(&[u8]) -> Result<Vec<u8>, DecodeError>;

/// How many objects there are at least.
const OBJECTS_MIN: usize = 139;

fn again<M: Message + Default>(raw: &[u8]) -> Result<Vec<u8>, DecodeError> {
    Ok(M::decode(raw)?.encode_to_vec())
}

/// A table of readers by the names of the objects' files: group and version, then kind.
macro_rules! readers {
    ($($name:literal $($module:ident)::+ { $($kind:ident)* })*) => {
        /// The readers of each version of a group.
        const READERS: &[&[(&str, &str, Reader)]] = &[$({
            use k8s_pb::$($module)::+::{$($kind),*};
            &[$(($name, stringify!($kind), again::<$kind>)),*]
        }),*];
    };
}

readers! {
    "admission.k8s.io.v1beta1" api::admission::v1beta1 {
        AdmissionReview
    }
    "admissionregistration.k8s.io.v1" api::admissionregistration::v1 {
        MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingWebhookConfiguration
    }
    "admissionregistration.k8s.io.v1alpha1" api::admissionregistration::v1alpha1 {
        MutatingAdmissionPolicy
    }
    "admissionregistration.k8s.io.v1beta1" api::admissionregistration::v1beta1 {
        MutatingAdmissionPolicy MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
    }
    "apidiscovery.k8s.io.v2" api::apidiscovery::v2 {
        APIGroupDiscovery
    }
    "apps.v1" api::apps::v1 {
        DaemonSet Deployment ReplicaSet StatefulSet
    }
    "apps.v1beta1" api::apps::v1beta1 {
        ControllerRevision Deployment DeploymentRollback Scale StatefulSet
    }
    "apps.v1beta2" api::apps::v1beta2 {
        ControllerRevision DaemonSet Deployment ReplicaSet Scale
    }
    "authentication.k8s.io.v1" api::authentication::v1 {
        SelfSubjectReview TokenRequest TokenReview
    }
    "authentication.k8s.io.v1beta1" api::authentication::v1beta1 {
        TokenReview
    }
    "authorization.k8s.io.v1" api::authorization::v1 {
        LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
    }
    "authorization.k8s.io.v1beta1" api::authorization::v1beta1 {
        LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
    }
    "autoscaling.v1" api::autoscaling::v1 {
        HorizontalPodAutoscaler Scale
    }
    "autoscaling.v2beta1" api::autoscaling::v2beta1 {
        HorizontalPodAutoscaler
    }
    "autoscaling.v2beta2" api::autoscaling::v2beta2 {
        HorizontalPodAutoscaler
    }
    "batch.v1" api::batch::v1 {
        CronJob Job
    }
    "batch.v1beta1" api::batch::v1beta1 {
        CronJob
    }
    "certificates.k8s.io.v1" api::certificates::v1 {
        CertificateSigningRequest
    }
    "certificates.k8s.io.v1alpha1" api::certificates::v1alpha1 {
        ClusterTrustBundle
    }
    "certificates.k8s.io.v1beta1" api::certificates::v1beta1 {
        CertificateSigningRequest PodCertificateRequest
    }
    "coordination.k8s.io.v1" api::coordination::v1 {
        Lease
    }
    "coordination.k8s.io.v1alpha2" api::coordination::v1alpha2 {
        LeaseCandidate
    }
    "coordination.k8s.io.v1beta1" api::coordination::v1beta1 {
        LeaseCandidate
    }
    "core.v1" api::core::v1 {
        ComponentStatus ConfigMap Event Namespace Node NodeProxyOptions PersistentVolume PersistentVolumeClaim Pod PodAttachOptions PodExecOptions PodLogOptions PodStatusResult PodTemplate RangeAllocation ReplicationController ResourceQuota Secret SerializedReference Service ServiceAccount
    }
    "discovery.k8s.io.v1" api::discovery::v1 {
        EndpointSlice
    }
    "events.k8s.io.v1" api::events::v1 {
        Event
    }
    "events.k8s.io.v1beta1" api::events::v1beta1 {
        Event
    }
    "extensions.v1beta1" api::extensions::v1beta1 {
        DaemonSet Deployment DeploymentRollback ReplicaSet
    }
    "flowcontrol.apiserver.k8s.io.v1" api::flowcontrol::v1 {
        FlowSchema
    }
    "flowcontrol.apiserver.k8s.io.v1beta1" api::flowcontrol::v1beta1 {
        PriorityLevelConfiguration
    }
    "flowcontrol.apiserver.k8s.io.v1beta2" api::flowcontrol::v1beta2 {
        FlowSchema PriorityLevelConfiguration
    }
    "flowcontrol.apiserver.k8s.io.v1beta3" api::flowcontrol::v1beta3 {
        FlowSchema PriorityLevelConfiguration
    }
    "internal.apiserver.k8s.io.v1alpha1" api::apiserverinternal::v1alpha1 {
        StorageVersion
    }
    "networking.k8s.io.v1" api::networking::v1 {
        IPAddress Ingress IngressClass ServiceCIDR
    }
    "networking.k8s.io.v1beta1" api::networking::v1beta1 {
        Ingress IngressClass
    }
    "node.k8s.io.v1" api::node::v1 {
        RuntimeClass
    }
    "node.k8s.io.v1alpha1" api::node::v1alpha1 {
        RuntimeClass
    }
    "node.k8s.io.v1beta1" api::node::v1beta1 {
        RuntimeClass
    }
    "policy.v1" api::policy::v1 {
        Eviction PodDisruptionBudget
    }
    "policy.v1beta1" api::policy::v1beta1 {
        Eviction PodDisruptionBudget
    }
    "rbac.authorization.k8s.io.v1" api::rbac::v1 {
        ClusterRole ClusterRoleBinding Role RoleBinding
    }
    "rbac.authorization.k8s.io.v1alpha1" api::rbac::v1alpha1 {
        ClusterRole ClusterRoleBinding
    }
    "rbac.authorization.k8s.io.v1beta1" api::rbac::v1beta1 {
        ClusterRole Role
    }
    "resource.k8s.io.v1" api::resource::v1 {
        DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
    }
    "resource.k8s.io.v1alpha3" api::resource::v1alpha3 {
        DeviceTaintRule
    }
    "resource.k8s.io.v1beta1" api::resource::v1beta1 {
        DeviceClass ResourceClaim ResourceSlice
    }
    "resource.k8s.io.v1beta2" api::resource::v1beta2 {
        DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
    }
    "scheduling.k8s.io.v1alpha1" api::scheduling::v1alpha1 {
        Workload
    }
    "scheduling.k8s.io.v1beta1" api::scheduling::v1beta1 {
        PriorityClass
    }
    "storage.k8s.io.v1" api::storage::v1 {
        CSINode VolumeAttachment VolumeAttributesClass
    }
    "storage.k8s.io.v1alpha1" api::storage::v1alpha1 {
        CSIStorageCapacity VolumeAttachment VolumeAttributesClass
    }
    "storage.k8s.io.v1beta1" api::storage::v1beta1 {
        CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
    }
    "core.v1" apimachinery::pkg::apis::meta::v1 {
        APIGroup CreateOptions DeleteOptions GetOptions ListOptions PatchOptions Status UpdateOptions
    }
}

#[test]
fn another_decoder_reads_what_is_written() {
    let Some(folder) = recorded::testdata("another decoder") else {
        return;
    };
    let (mut read, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy();
        let (version, kind) = name.rsplit_once('.').expect("a kind");
        // It is never in an envelope of its own.
        if kind == "WatchEvent" {
            continue;
        }
        let Some(reader) = reader(version, kind) else {
            wrong.push(format!("{name}: no reader"));
            continue;
        };
        let mut expected: Value =
            serde_json::from_slice(&fs::read(&path).expect("JSON")).expect("JSON");
        tell_kinds_of_claims(&mut expected);
        match through(&expected, reader) {
            Ok(found) if found == expected => read += 1,
            Ok(found) => wrong.push(format!("{name}: {found} instead of {expected}")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read >= OBJECTS_MIN, "{read} objects");
}

/// The reader of a kind in a version of its group; `core.v1` is that of pods.
fn reader(version: &str, kind: &str) -> Option<Reader> {
    let known = |it: &&(&str, &str, Reader)| it.0 == version && it.1.eq_ignore_ascii_case(kind);
    let mut readers = READERS.iter().copied().flatten();
    readers.find(known).map(|(_, _, reader)| *reader)
}

/// The object after it was written here, read and written there, and read here.
fn through(object: &Value, reader: Reader) -> Result<Value, Box<dyn std::error::Error>> {
    let written = codec::encode_value(object).ok_or("a kind without a message")?;
    read_there(&written, reader)
}

/// An object as another encoder writes it, and as it is read here.
pub(crate) fn written(
    object: &Value,
    version: &str,
    kind: &str,
) -> Result<(Vec<u8>, Value), Box<dyn std::error::Error>> {
    let reader = reader(version, kind).ok_or("a kind without a reader")?;
    let ours = codec::encode_value(object).ok_or("a kind without a message")?;
    let theirs = again_there(&ours, reader)?;
    let read = codec::decode(&theirs, ("", ""))?;
    Ok((theirs, read))
}

/// What another decoder understands of an object that this codec has written.
pub(crate) fn understood(
    written: &[u8],
    version: &str,
    kind: &str,
) -> Result<Value, Box<dyn std::error::Error>> {
    let reader = reader(version, kind).ok_or("a kind without a reader")?;
    read_there(written, reader)
}

/// An object after it was read and written there, and read here.
fn read_there(written: &[u8], reader: Reader) -> Result<Value, Box<dyn std::error::Error>> {
    let bytes = again_there(written, reader)?;
    Ok(codec::decode(&bytes, ("", ""))?)
}

/// An object after it was read and written there.
fn again_there(written: &[u8], reader: Reader) -> Result<Vec<u8>, DecodeError> {
    let mut envelope = Unknown::decode(&written[codec::MAGIC.len()..])?;
    let raw = envelope.raw.take().unwrap_or_default();
    envelope.raw = Some(reader(&raw)?);
    Ok([&codec::MAGIC[..], &envelope.encode_to_vec()].concat())
}

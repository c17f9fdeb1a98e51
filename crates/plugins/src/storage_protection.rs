//! Adds finalizers to volumes and claims, which controllers remove once these are no longer in use. Kubernetes'
//! StorageObjectInUseProtection plugin.

use async_trait::async_trait;
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

/// Group, plural and finalizer of the protected types.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "kubernetes.io/vac-protection",
    ),
];

/// The plugin that adds the protecting finalizers to new PersistentVolumes, PersistentVolumeClaims and
/// VolumeAttributesClasses.
#[derive(Debug)]
pub struct StorageProtection;

#[async_trait]
impl Plugin for StorageProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        let kind = PROTECTED
            .iter()
            .find(|(group, plural, _)| request.is_of(group, plural));
        let Some((_, _, finalizer)) = kind.filter(|_| request.operation == Operation::Create)
        else {
            return Ok(());
        };
        let finalizers = accessor::finalizers(object);
        if !finalizers.contains(finalizer) {
            let all = finalizers
                .iter()
                .chain([finalizer])
                .map(|it| (*it).to_owned());
            let all = all.collect();
            accessor::set_finalizers(object, all);
        }
        Ok(())
    }
}

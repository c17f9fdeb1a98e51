//! Refuses to grow PersistentVolumeClaims unless they are bound and their StorageClass allows it. Kubernetes'
//! PersistentVolumeClaimResize plugin.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::storage::{GetOptions, Interface};
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, text};
use ringwatch_registry::{Operation, Request};
use ringwatch_resources::ResourceList;
use serde_json::Value;

/// The annotation that named a class before the field did.
const ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The plugin, with the storage of StorageClasses.
#[derive(Debug)]
pub struct ClaimResize {
    classes: Arc<dyn Interface>,
}

impl ClaimResize {
    /// Creates the plugin, which looks StorageClasses up in this storage.
    #[must_use]
    pub fn new(classes: Arc<dyn Interface>) -> Self {
        Self { classes }
    }

    async fn may_grow(&self, claim: &Value, old: &Value) -> Result<bool, Error> {
        let name = class(claim);
        if name.is_empty() || name != class(old) {
            return Ok(false);
        }
        let key = format!("/storageclasses/{name}");
        match self.classes.get(&key, GetOptions::default()).await {
            Ok(class) => {
                let class = codec::tree(&class)?;
                Ok(get(&class, "allowVolumeExpansion") == Some(&Value::Bool(true)))
            }
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(Error::Storage(error)),
        }
    }
}

#[async_trait]
impl Plugin for ClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    async fn validate(&self, request: &Request<'_>, claim: &Value) -> Result<(), Error> {
        let Some(old) = request.old.filter(|_| {
            request.operation == Operation::Update && request.is_of("", "persistentvolumeclaims")
        }) else {
            return Ok(());
        };
        if !grows(claim, old) {
            return Ok(());
        }
        if !self.may_grow(claim, old).await? {
            let message = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
            return Err(request.forbid(claim, message));
        }
        Ok(())
    }
}

fn class(claim: &Value) -> &str {
    let annotated = claim["metadata"]["annotations"][ANNOTATION].as_str();
    annotated.unwrap_or_else(|| text(claim, "spec.storageClassName"))
}

fn grows(claim: &Value, old: &Value) -> bool {
    let [now, before] = [claim, old].map(|claim| {
        let requests = get(claim, "spec.resources.requests").map(ResourceList::read);
        let storage = requests.unwrap_or_default().get("storage");
        storage.map(|amount| amount.quantity)
    });
    now > before
}

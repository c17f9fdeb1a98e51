//! Sets the default class of PersistentVolumeClaims and Ingresses that name none. Kubernetes' DefaultStorageClass and
//! DefaultIngressClass plugins.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::{Interface, ListOptions};
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::path::{get, set};
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_registry::Request;
use serde_json::{Value, json};

/// A type whose objects get a default class, and where the class is written.
#[derive(Debug)]
struct DefaultedType {
    name: &'static str,
    /// The group and plural of the objects that get a class.
    of: (&'static str, &'static str),
    /// The field with the class of an object, and the older annotation.
    class: (&'static str, &'static str),
    /// The annotations that mark a class as the default.
    defaults: &'static [&'static str],
    /// The prefix of the keys of classes in the storage.
    keys: &'static str,
}

const STORAGE: DefaultedType = DefaultedType {
    name: "DefaultStorageClass",
    of: ("", "persistentvolumeclaims"),
    class: (
        "spec.storageClassName",
        "volume.beta.kubernetes.io/storage-class",
    ),
    defaults: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
    keys: "/storageclasses/",
};

const INGRESS: DefaultedType = DefaultedType {
    name: "DefaultIngressClass",
    of: ("networking.k8s.io", "ingresses"),
    class: ("spec.ingressClassName", "kubernetes.io/ingress.class"),
    defaults: &["ingressclass.kubernetes.io/is-default-class"],
    keys: "/ingressclasses/",
};

/// The plugin, with the storage of the classes.
#[derive(Debug)]
pub struct DefaultClass {
    classes: Arc<dyn Interface>,
    form: &'static DefaultedType,
}

impl DefaultClass {
    /// Creates the plugin for StorageClasses, which are looked up in this storage.
    #[must_use]
    pub fn of_storage(classes: Arc<dyn Interface>) -> Self {
        let form = &STORAGE;
        Self { classes, form }
    }

    /// Creates the plugin for IngressClasses, which are looked up in this storage.
    #[must_use]
    pub fn of_ingresses(classes: Arc<dyn Interface>) -> Self {
        let form = &INGRESS;
        Self { classes, form }
    }

    /// Returns the name of the default class: of several the newest, and of those made in the same second the first.
    async fn default(&self) -> Result<Option<String>, Error> {
        let cached = ListOptions {
            resource_version: Some(ResourceVersion(0)),
            recursive: true,
            ..ListOptions::default()
        };
        let found = self.classes.get_list(self.form.keys, cached).await;
        let mut defaults = Vec::new();
        for object in found.map_err(Error::Storage)?.items {
            let class = codec::tree(&object)?;
            let annotations = &class["metadata"]["annotations"];
            if self
                .form
                .defaults
                .iter()
                .any(|name| annotations[name] == "true")
            {
                let made = accessor::text(&class, "creationTimestamp").to_owned();
                defaults.push((Reverse(made), object.name().to_owned()));
            }
        }
        Ok(defaults.into_iter().min().map(|(_, name)| name))
    }
}

#[async_trait]
impl Plugin for DefaultClass {
    fn name(&self) -> &'static str {
        self.form.name
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        let (group, plural) = self.form.of;
        let (path, annotation) = self.form.class;
        let named = get(object, path).is_some_and(|class| !class.is_null())
            || object["metadata"]["annotations"].get(annotation).is_some();
        if !request.creates(group, plural) || named {
            return Ok(());
        }
        if let Some(class) = self.default().await? {
            set(object, path, json!(class));
        }
        Ok(())
    }
}

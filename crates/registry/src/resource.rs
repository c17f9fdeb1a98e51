//! A type of object as served under one group and version.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch::meta::FieldSchema;
use ringwatch_apimachinery::GroupVersion;
use sha2::{Digest, Sha256};

use super::PrinterColumns;
use super::Strategy;

/// A verb that discovery lists for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are Kubernetes'")]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

/// A type of object as served under one group and version, with all that the store and the endpoints need to know of
/// it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The group and version under which the resource is served.
    pub group_version: GroupVersion,
    /// The name in request paths, such as `pods`.
    pub plural: String,
    /// The name of one object in discovery, such as `pod`.
    pub singular: String,
    /// The kind of an object in the served version, such as `Pod`.
    pub kind: String,
    /// The kind of a list, such as `PodList`.
    pub list_kind: String,
    /// Abbreviations that clients accept for the resource, such as `po`.
    pub short_names: Vec<String>,
    /// The groups of resources in which clients include this one, such as `all` in `kubectl get all`.
    pub categories: Vec<String>,
    /// True if the objects are namespaced rather than cluster-scoped.
    pub namespaced: bool,
    /// The verbs that discovery lists for the resource.
    pub verbs: Vec<Verb>,
    /// The subresources of the objects, such as `status` and `scale`.
    pub subresources: Vec<Subresource>,
    /// The path segments between the store's prefix and the object's namespace in a key, without slashes at the ends:
    /// mostly the plural, as kube-apiserver lays keys out.
    pub storage_prefix: String,
    /// The version in which it is stored.
    pub storage_version: GroupVersion,
    /// The kind as which objects are stored. It can differ from `kind` in custom resources alone.
    pub storage_kind: String,
    /// The part of the server that answers requests to the resource.
    pub served: ServedBy,
    /// The selectable fields, as the storage version names them.
    pub schema: FieldSchema,
    /// The served and the stored names of selectable fields, where a served version has its own;
    /// clients may then use no other.
    pub field_aliases: &'static [(&'static str, &'static str)],
    /// The paths of the fields that the `scale` subresource reads and writes; `None` if there is no such subresource.
    pub scale: Option<ScalePaths>,
    /// The columns of the objects' tables, as a CustomResourceDefinition gives them; `None` for built-in kinds, which
    /// have their own.
    pub printer_columns: Option<Arc<PrinterColumns>>,
    /// The deprecation warning that answers to every request carry, if the definition deprecates the version.
    pub deprecated: Option<String>,
    /// The rules by which objects are defaulted, validated and changed when they are written.
    pub strategy: Arc<dyn Strategy>,
}

/// The part of the server that answers requests to a resource or subresource that discovery lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The generic store, which keeps the objects in storage.
    Store,
    /// A handler of its own in the endpoints; it stores nothing under its own name.
    Handler,
    /// A store that keeps nothing: its objects are made when they are read.
    Computed,
}

/// The dotted paths in an object of the fields that an `autoscaling/v1` Scale is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The path of the desired number of replicas, such as `spec.replicas`.
    pub spec_replicas: String,
    /// The path of the desired number in each version that the kind has or had, by versions such as `apps/v1`; `None`
    /// for versions without a Scale.
    pub versions: BTreeMap<String, Option<String>>,
    /// The path of the observed number of replicas, such as `status.replicas`.
    pub status_replicas: String,
    /// The path of the selector of the pods, such as `spec.selector`; `None` if the Scale carries no selector.
    pub selector: Option<String>,
    /// The form of the selector at that path.
    pub selector_form: SelectorForm,
}

/// The form of a selector inside an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorForm {
    /// A LabelSelector: `matchLabels` and `matchExpressions`.
    LabelSelector,
    /// A plain map of labels.
    Map,
    /// Text, as a Scale carries it.
    Text,
}

/// A subresource of an object, such as `status` or `scale`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last segment of the subresource's path, such as `status`.
    pub name: String,
    /// The group and version of the subresource's kind; `None` if they are those of the resource.
    pub group_version: Option<GroupVersion>,
    /// The kind that is read and written, such as `Scale`.
    pub kind: String,
    /// The verbs that discovery lists for the subresource.
    pub verbs: Vec<Verb>,
    /// The part of the server that answers requests to the subresource.
    pub served: ServedBy,
}

impl Verb {
    /// Returns the verb's name in discovery.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// Groups of built-in kinds whose finalizers need no prefix.
const UNCHECKED_FINALIZERS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
];

impl Resource {
    /// Returns true if a CustomResourceDefinition defines the resource. kube-apiserver has only a schema for such
    /// kinds, not Go types, and encodes some things differently because of that.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.printer_columns.is_some()
    }

    /// Returns true if a finalizer without a prefix need not be one of Kubernetes' own: kube-apiserver's core
    /// validation does not check the metadata of such kinds.
    #[must_use]
    pub fn takes_any_finalizer(&self) -> bool {
        let group = self.group_version.group.as_str();
        let is_event = group.is_empty() && self.plural == "events";
        self.is_custom() || is_event || UNCHECKED_FINALIZERS.contains(&group)
    }

    /// Returns the deprecation warning for requests to the resource, or `None` if it is not deprecated.
    #[must_use]
    pub fn deprecation(&self) -> Option<&str> {
        match (self.group_version.group.as_str(), self.plural.as_str()) {
            ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
            ("", "endpoints") => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            }
            _ => self.deprecated.as_deref(),
        }
    }

    /// Returns the subresource of this name, if there is one.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Returns the plural with the group, such as `pods` or `deployments.apps`, as messages name resources.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        qualified(&self.plural, &self.group_version.group)
    }

    /// Returns the kind with the group, such as `Pod` or `Deployment.apps`, as messages name kinds.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group_version.group)
    }

    /// Returns the kind with the group as validation errors name it. kube-apiserver validates its internal types, and
    /// has one for the Events of both groups.
    #[must_use]
    pub fn validated_kind(&self) -> String {
        if self.group_version.group == "events.k8s.io" {
            return self.kind.clone();
        }
        self.qualified_kind()
    }

    /// Returns the name in the storage version of a field that field selectors may use, or `None` if they may not use
    /// it.
    #[must_use]
    pub fn selectable_field<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let has_fields = self.is_custom() || self.schema.names().next().is_some();
        let has_namespace = self.namespaced || !has_fields;
        if name == "metadata.name" || has_namespace && name == "metadata.namespace" {
            return Some(name);
        }
        if self.field_aliases.is_empty() {
            return self.schema.names().find(|known| *known == name);
        }
        self.field_aliases
            .iter()
            .find(|(served, _)| *served == name)
            .map(|(_, stored)| *stored)
    }

    /// Returns the `storageVersionHash` of discovery: the first 8 bytes of a SHA-256 of group, version and kind, in
    /// base64. `None` where nothing is stored.
    #[must_use]
    pub fn storage_version_hash(&self) -> Option<String> {
        if self.served != ServedBy::Store {
            return None;
        }
        let GroupVersion { group, version } = &self.storage_version;
        let name = format!("{group}/{version}/{}", self.storage_kind);
        Some(STANDARD.encode(&Sha256::digest(name)[..8]))
    }
}

/// Joins a name and its group with a dot; for the core group it is the name alone.
pub(super) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

//! A type of object as served under one group and version.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::Strategy;
use super::table::PrinterColumns;
use crate::meta::FieldSchema;

/// A group and a version; the group is empty for the core.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// Such as `apps`.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
}

/// What can be done to a resource, in discovery's words.
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

/// A type of object as served under one group and version.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Under which it is served.
    pub group_version: GroupVersion,
    /// Such as `pods`.
    pub plural: String,
    /// Such as `pod`.
    pub singular: String,
    /// Such as `Pod`.
    pub kind: String,
    /// Such as `PodList`.
    pub list_kind: String,
    /// Such as `po`.
    pub short_names: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done to it.
    pub verbs: Vec<Verb>,
    /// What hangs below its objects.
    pub subresources: Vec<Subresource>,
    /// Where it is stored below the store's prefix, without slashes at the ends: mostly the
    /// plural, as kube-apiserver lays keys out.
    pub storage_prefix: String,
    /// The version in which it is stored.
    pub storage_version: GroupVersion,
    /// The kind as which it is stored; differs from `kind` never but in custom resources.
    pub storage_kind: String,
    /// Who answers requests to it.
    pub served: Served,
    /// Its selectable fields, as the storage version calls them.
    pub schema: FieldSchema,
    /// The served and the stored names of selectable fields, where a served version has its own;
    /// clients may then use no other.
    pub field_aliases: &'static [(&'static str, &'static str)],
    /// Where the numbers of its `scale` subresource are.
    pub scale: Option<ScalePaths>,
    /// The columns as which its objects are shown, if they are not those of its kind.
    pub printer_columns: Option<Arc<PrinterColumns>>,
    /// What is said to everyone who uses it, if its definition says that nobody should any more.
    pub deprecated: Option<String>,
    /// How it is written.
    pub strategy: Arc<dyn Strategy>,
}

/// Who answers requests to what discovery lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The generic store.
    Store,
    /// A handler of its own in the endpoints; it stores nothing under its own name.
    Handler,
    /// A store that keeps nothing: its objects are made when they are read.
    Computed,
}

/// Where the numbers of an `autoscaling/v1` Scale are in an object: dotted paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted replicas, such as `spec.replicas`.
    pub spec_replicas: String,
    /// The observed replicas, such as `status.replicas`.
    pub status_replicas: String,
    /// What selects the pods, such as `spec.selector`; `None` if that is not told.
    pub selector: Option<String>,
    /// In which form the selector is.
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

/// Something below an object, such as `status` or `scale`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Such as `status`.
    pub name: String,
    /// The group and version of its kind; `None` if that of the resource.
    pub group_version: Option<GroupVersion>,
    /// The kind that is read and written, such as `Scale`.
    pub kind: String,
    /// What can be done to it.
    pub verbs: Vec<Verb>,
    /// Who answers requests to it.
    pub served: Served,
}

impl GroupVersion {
    /// A group version of these names.
    #[must_use]
    pub fn new(group: &str, version: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
        }
    }
}

/// `v1` or `apps/v1`, as in `apiVersion`.
impl fmt::Display for GroupVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            formatter.write_str(&self.version)
        } else {
            write!(formatter, "{}/{}", self.group, self.version)
        }
    }
}

impl Verb {
    /// Its name in discovery.
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
const UNCHECKED_FINALIZERS: [&str; 4] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
];

impl Resource {
    /// Whether it is defined by a client. kube-apiserver knows nothing of such kinds but their schema,
    /// and writes some things otherwise because of that.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.printer_columns.is_some()
    }

    /// Whether finalizers without a prefix need not be Kubernetes' own: its core does not check the metadata of such kinds.
    #[must_use]
    pub fn takes_any_finalizer(&self) -> bool {
        self.is_custom() || UNCHECKED_FINALIZERS.contains(&self.group_version.group.as_str())
    }

    /// What is said to everyone who uses what should not be used any more.
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

    /// The subresource of this name.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// `pods` or `deployments.apps`, as messages name resources.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        qualified(&self.plural, &self.group_version.group)
    }

    /// `Pod` or `Deployment.apps`, as messages name kinds.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group_version.group)
    }

    /// The stored name of a field that selectors may use; `None` if they may not.
    #[must_use]
    pub fn selectable_field<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if matches!(name, "metadata.name" | "metadata.namespace") {
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

    /// How discovery names the storage version; `None` where nothing is stored.
    #[must_use]
    pub fn storage_version_hash(&self) -> Option<String> {
        if self.served != Served::Store {
            return None;
        }
        let GroupVersion { group, version } = &self.storage_version;
        let name = format!("{group}/{version}/{}", self.storage_kind);
        Some(STANDARD.encode(&Sha256::digest(name)[..8]))
    }
}

/// A name with its group behind it, unless that is the core.
pub(super) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

//! The builder of rows of the table of built-in resources, with defaults for all that most kinds have in common.
//!
//! Kubernetes derives the singular (the kind in lower case), the kind of the list and the storage
//! prefix (the plural) from two words; a row states only where it differs.

use std::sync::Arc;

use ringwatch::meta::{FieldPath, FieldSchema};
use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{
    Resource, ScalePaths, SelectorForm, ServedBy, Strategy, Subresource, Verb,
};

use super::generic::Generic;

/// Verbs of a stored resource.
const ALL_VERBS: [Verb; 8] = [
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
/// The verbs of most subresources.
pub(crate) const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];
/// The verbs of `proxy` subresources.
pub(crate) const PROXY: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];

/// Makes a selectable field whose default is the empty string.
pub(crate) const fn field(name: &'static str) -> FieldPath {
    field_or(name, "")
}

/// Makes a selectable field whose value is `default` in objects that lack it.
pub(crate) const fn field_or(name: &'static str, default: &'static str) -> FieldPath {
    FieldPath {
        name: std::borrow::Cow::Borrowed(name),
        default,
        from: &[],
        indexed: false,
    }
}

/// Makes a selectable field of which the cache keeps an index, as kube-apiserver does. Its default is the empty string.
pub(crate) const fn indexed_field(name: &'static str) -> FieldPath {
    FieldPath {
        name: std::borrow::Cow::Borrowed(name),
        default: "",
        from: &[],
        indexed: true,
    }
}

/// A group and version, with methods that begin a row.
#[derive(Clone, Copy)]
pub(crate) struct RowGroup {
    name: &'static str,
    version: &'static str,
}

/// The builder of a [`Resource`].
pub(crate) struct RowBuilder(Resource);

impl RowGroup {
    /// The core group in its only version.
    pub(crate) const CORE_V1: Self = Self::new("", "v1");

    pub(crate) const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version }
    }

    pub(crate) fn group_version(self) -> GroupVersion {
        GroupVersion::new(self.name, self.version)
    }

    /// Begins the row of a namespaced kind.
    pub(crate) fn namespaced(self, plural: &str, kind: &str) -> RowBuilder {
        self.row(plural, kind, true)
    }

    /// Begins the row of a cluster-scoped kind.
    pub(crate) fn cluster(self, plural: &str, kind: &str) -> RowBuilder {
        self.row(plural, kind, false)
    }

    fn row(self, plural: &str, kind: &str, namespaced: bool) -> RowBuilder {
        let group_version = self.group_version();
        RowBuilder(Resource {
            storage_version: group_version.clone(),
            group_version,
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            verbs: ALL_VERBS.to_vec(),
            subresources: Vec::new(),
            storage_prefix: plural.to_owned(),
            storage_kind: kind.to_owned(),
            served: ServedBy::Store,
            schema: FieldSchema::default(),
            field_aliases: &[],
            scale: None,
            printer_columns: None,
            deprecated: None,
            strategy: Arc::new(Generic::new()),
        })
    }
}

impl RowBuilder {
    pub(crate) fn short(mut self, names: &[&str]) -> Self {
        self.0.short_names = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    pub(crate) fn category(mut self, name: &str) -> Self {
        self.0.categories.push(name.to_owned());
        self
    }

    pub(crate) fn verbs(mut self, verbs: &[Verb]) -> Self {
        self.0.verbs = verbs.to_vec();
        self
    }

    /// Removes a verb of the resource.
    pub(crate) fn without(mut self, verb: Verb) -> Self {
        self.0.verbs.retain(|&other| other != verb);
        self
    }

    /// Makes the row that of a resource that answers POST alone and stores nothing, such as a SubjectAccessReview.
    pub(crate) fn review(self, served: ServedBy) -> Self {
        self.verbs(&[Verb::Create]).served(served)
    }

    pub(crate) fn served(mut self, served: ServedBy) -> Self {
        self.0.served = served;
        self
    }

    /// Sets the prefix of keys, where it is not the plural.
    pub(crate) fn prefix(mut self, prefix: &str) -> Self {
        self.0.storage_prefix = prefix.to_owned();
        self
    }

    /// Sets the group and version in which objects are stored, where they are not those in which they are served.
    pub(crate) fn stored_in(mut self, group: RowGroup) -> Self {
        self.0.storage_version = group.group_version();
        self
    }

    pub(crate) fn fields(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Self {
        self.0.schema = FieldSchema::new(fields);
        self
    }

    pub(crate) fn field_aliases(
        mut self,
        aliases: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.0.field_aliases = aliases;
        self
    }

    pub(crate) fn strategy(mut self, strategy: impl Strategy + 'static) -> Self {
        self.0.strategy = Arc::new(strategy);
        self
    }

    /// Adds a subresource that is read and written as an object of the resource's own kind.
    pub(crate) fn part(self, name: &str) -> Self {
        let kind = self.0.kind.clone();
        self.subresource(name, None, &kind, READ_WRITE, ServedBy::Store)
    }

    pub(crate) fn status(self) -> Self {
        self.part("status")
    }

    /// Adds the `scale` subresource of a kind with `spec.replicas`, `status.replicas` and `spec.selector`, which
    /// Kubernetes has had in these versions.
    pub(crate) fn scale(mut self, selector_form: SelectorForm, versions: &[&str]) -> Self {
        let group = &self.0.group_version.group;
        let replicas = "spec.replicas".to_owned();
        let of_version = |version: &&str| {
            let version = GroupVersion::new(group, version).to_string();
            (version, Some(replicas.clone()))
        };
        self.0.scale = Some(ScalePaths {
            versions: versions.iter().map(of_version).collect(),
            spec_replicas: replicas,
            status_replicas: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
            selector_form,
        });
        let group = RowGroup::new("autoscaling", "v1");
        self.subresource("scale", Some(group), "Scale", READ_WRITE, ServedBy::Handler)
    }

    /// Adds a subresource with a kind of its own; `group` is given if it is not the resource's.
    pub(crate) fn subresource(
        mut self,
        name: &str,
        group: Option<RowGroup>,
        kind: &str,
        verbs: &[Verb],
        served: ServedBy,
    ) -> Self {
        self.0.subresources.push(Subresource {
            name: name.to_owned(),
            group_version: group.map(RowGroup::group_version),
            kind: kind.to_owned(),
            verbs: verbs.to_vec(),
            served,
        });
        self
    }

    pub(crate) fn done(self) -> Resource {
        self.0
    }
}

//! The strategy of most kinds, put together from switches, and that of their parts.
//!
//! On the object itself the status is the server's: reset on creation, kept on update. On a
//! subresource such as `status` everything but one member is kept. The generation counts changes
//! of what a kind declares as its desired state.

use serde_json::{Value, json};

use super::path::{get, keep, set};
use crate::registry::{GarbageCollection, NameRule, RequestContext, Strategy};

/// A strategy of switches. With none on, the object is stored as it comes.
#[derive(Clone, Debug)]
pub(super) struct Generic {
    /// What a new object's status is; `None` if the kind has none of its own.
    status: Option<Value>,
    /// The members whose changes count as generations; empty if the kind does not count.
    generation: &'static [&'static str],
    create_on_update: bool,
    unconditional_update: bool,
    name_rule: NameRule,
    garbage_collection: GarbageCollection,
    returns_deleted_object: bool,
    parts: Vec<(&'static str, Part)>,
}

/// What a write to a subresource may change in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartMetadata {
    /// Labels, annotations and the rest.
    Free,
    /// Everything but the labels.
    KeepsLabels,
    /// Nothing.
    KeepsAll,
}

/// The strategy of a subresource that owns one member of the object.
#[derive(Clone, Debug)]
struct Part {
    member: &'static str,
    metadata: PartMetadata,
}

impl Generic {
    pub(super) fn new() -> Self {
        Self {
            status: None,
            generation: &[],
            create_on_update: false,
            unconditional_update: true,
            name_rule: NameRule::DnsSubdomain,
            garbage_collection: GarbageCollection::DeleteDependents,
            returns_deleted_object: false,
            parts: Vec::new(),
        }
    }

    /// A kind with a status, which begins as `{}`, and a subresource for it.
    pub(super) fn with_status() -> Self {
        let mut this = Self::new();
        this.status = Some(json!({}));
        this.part("status", PartMetadata::Free)
    }

    /// Says what a new object's status is.
    pub(super) fn initial_status(mut self, status: Value) -> Self {
        self.status = Some(status);
        self
    }

    /// Says what the status subresource may change in the metadata.
    pub(super) fn status_metadata(self, metadata: PartMetadata) -> Self {
        self.part("status", metadata)
    }

    fn part(mut self, member: &'static str, metadata: PartMetadata) -> Self {
        self.parts.retain(|(name, _)| *name != member);
        self.parts.push((member, Part { member, metadata }));
        self
    }

    /// A subresource that owns a member of another name.
    pub(super) fn named_part(mut self, name: &'static str, member: &'static str) -> Self {
        let metadata = PartMetadata::Free;
        self.parts.push((name, Part { member, metadata }));
        self
    }

    /// Counts changes of these members (dotted paths) in `metadata.generation`.
    pub(super) fn generation(mut self, members: &'static [&'static str]) -> Self {
        self.generation = members;
        self
    }

    /// PUT creates what does not exist.
    pub(super) fn create_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    /// An update must say which version it replaces.
    pub(super) fn conditional_update(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    pub(super) fn name_rule(mut self, rule: NameRule) -> Self {
        self.name_rule = rule;
        self
    }

    pub(super) fn garbage_collection(mut self, policy: GarbageCollection) -> Self {
        self.garbage_collection = policy;
        self
    }

    pub(super) fn returns_deleted_object(mut self) -> Self {
        self.returns_deleted_object = true;
        self
    }
}

impl Strategy for Generic {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        if let Some(status) = &self.status {
            set(object, "status", status.clone());
        }
        if !self.generation.is_empty() {
            set(object, "metadata.generation", json!(1));
        }
    }

    fn name_rule(&self) -> NameRule {
        self.name_rule
    }

    fn default_garbage_collection(&self) -> GarbageCollection {
        self.garbage_collection
    }

    fn returns_deleted_object(&self) -> bool {
        self.returns_deleted_object
    }

    fn allow_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        if self.status.is_some() {
            keep(object, old, "status");
        }
        count_generation(object, old, self.generation);
    }

    fn subresource(&self, name: &str) -> Option<&dyn Strategy> {
        self.parts
            .iter()
            .find(|(part, _)| *part == name)
            .map(|(_, part)| part as &dyn Strategy)
    }
}

impl Strategy for Part {
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep_all_but(object, old, self.member);
        keep_metadata(object, old, self.metadata);
    }
}

/// One more than the old generation if one of the members changed, else the old one.
pub(super) fn count_generation(object: &mut Value, old: &Value, members: &[&str]) {
    if members.is_empty() {
        return;
    }
    keep(object, old, "metadata.generation");
    if members
        .iter()
        .any(|path| get(object, path) != get(old, path))
    {
        let generation = get(old, "metadata.generation").and_then(Value::as_i64);
        let next = generation.unwrap_or_default().saturating_add(1);
        set(object, "metadata.generation", json!(next));
    }
}

/// Keeps every member of the object but the named one, its metadata and its type.
pub(super) fn keep_all_but(object: &mut Value, old: &Value, member: &str) {
    let free = |name: &str| matches!(name, "metadata" | "kind" | "apiVersion") || name == member;
    if let (Some(members), Some(old)) = (object.as_object_mut(), old.as_object()) {
        members.retain(|name, _| free(name));
        for (name, value) in old {
            if !free(name) {
                members.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Keeps the metadata that a subresource may not change. Versions and managed fields are others'
/// concern.
fn keep_metadata(object: &mut Value, old: &Value, metadata: PartMetadata) {
    let kept: &[&str] = match metadata {
        PartMetadata::Free => &["metadata.generation"],
        PartMetadata::KeepsLabels => &["metadata.generation", "metadata.labels"],
        PartMetadata::KeepsAll => &[
            "metadata.generation",
            "metadata.labels",
            "metadata.annotations",
            "metadata.finalizers",
            "metadata.ownerReferences",
        ],
    };
    for path in kept {
        keep(object, old, path);
    }
}

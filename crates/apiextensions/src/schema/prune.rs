//! Prunes an object: removes the fields that its schema does not specify.
//!
//! In the metadata of the object and of embedded objects, the fields of Kubernetes' ObjectMeta are kept and all others
//! removed, whatever the schema specifies. Below `x-kubernetes-preserve-unknown-fields` unspecified fields are kept, and
//! the specified ones are still pruned by their own schemas.

use serde_json::{Map, Value};

use super::node::Node;
use super::path::Path;

/// Maximum number of bytes of removed paths that are reported; fields beyond it are removed without a report. An object
/// of 3 MB may have a key of 1 MB above 300,000 unknown fields, each of whose paths has that key.
const REMOVED_PATH_BYTES_MAX: usize = 256 << 10;

const METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The members that `metadata` may have. Others are removed.
const METADATA_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Removes the fields of an object that the schema does not specify. Returns their paths, sorted, those in metadata last.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut pruning = Pruning::default();
    match object {
        Value::Object(members) => pruning.members(members, root, true),
        other => pruning.value(other, Some(root)),
    }
    pruning.removed.sort();
    pruning.removed_metadata.sort();
    pruning.removed.append(&mut pruning.removed_metadata);
    pruning.removed
}

/// Returns true if the schema knows everything in a value that is not a whole object, such as a default.
pub(super) fn knows_all(node: &Node, value: &Value) -> bool {
    let mut pruning = Pruning::default();
    pruning.value(&mut value.clone(), Some(node));
    pruning.removed.is_empty() && pruning.removed_metadata.is_empty()
}

#[derive(Default)]
struct Pruning {
    /// The path that the walk has reached.
    path: Path,
    /// The paths of removed members.
    removed: Vec<String>,
    /// The paths of removed members of metadata.
    removed_metadata: Vec<String>,
    /// The bytes of the paths of both.
    removed_bytes: usize,
}

impl Pruning {
    fn value(&mut self, value: &mut Value, node: Option<&Node>) {
        match (value, node) {
            (Value::Object(members), Some(node)) => self.members(members, node, node.embedded),
            (Value::Object(members), None) => {
                for name in members.keys() {
                    self.tell(name);
                }
                members.clear();
            }
            (Value::Array(items), node) => self.items(items, node),
            _ => {}
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>, node: &Node, whole_object: bool) {
        members.retain(|name, value| {
            if whole_object && METADATA.contains(&name.as_str()) {
                if let ("metadata", Value::Object(members)) = (name.as_str(), value) {
                    self.metadata(members);
                }
                return true;
            }
            let known = node.properties.contains_key(name) || node.additional.is_some();
            if known {
                self.known(name, value, node.member(name));
            } else if !node.preserve_unknown {
                self.tell(name);
            }
            known || node.preserve_unknown
        });
    }

    fn metadata(&mut self, members: &mut Map<String, Value>) {
        let mark = self.path.member("metadata");
        members.retain(|name, _| {
            let known = METADATA_FIELDS.contains(&name.as_str());
            if !known && let Some(path) = self.path_to(name) {
                self.removed_metadata.push(path);
            }
            known
        });
        self.path.leave(mark);
    }

    fn known(&mut self, name: &str, value: &mut Value, node: Option<&Node>) {
        if is_compound(value) {
            let mark = self.path.member(name);
            self.value(value, node);
            self.path.leave(mark);
        }
    }

    fn items(&mut self, items: &mut [Value], node: Option<&Node>) {
        let inner = node.and_then(|node| node.items.as_deref());
        if inner.is_none() && node.is_some_and(|node| node.preserve_unknown) {
            return;
        }
        for (index, item) in items.iter_mut().enumerate() {
            if is_compound(item) {
                let mark = self.path.index(index);
                self.value(item, inner);
                self.path.leave(mark);
            }
        }
    }

    fn tell(&mut self, name: &str) {
        if let Some(path) = self.path_to(name) {
            self.removed.push(path);
        }
    }

    /// Returns the path of a member that is removed; `None` if so many were returned that it would not be shown.
    fn path_to(&mut self, name: &str) -> Option<String> {
        if self.removed_bytes >= REMOVED_PATH_BYTES_MAX {
            return None;
        }
        let mark = self.path.member(name);
        let path = self.path.as_str().to_owned();
        self.path.leave(mark);
        self.removed_bytes += path.len();
        Some(path)
    }
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

//! Prunes an object: removes the fields that its schema does not specify.
//!
//! In the metadata of the object and of embedded objects, the fields of Kubernetes' ObjectMeta are kept with their
//! types and all others removed, whatever the schema specifies. Below `x-kubernetes-preserve-unknown-fields`
//! unspecified fields are kept, and the specified ones are still pruned by their own schemas.

use ringwatch_apimachinery::accessor::{decode_members, type_name};
use ringwatch_apimachinery::{FieldError, FieldErrorKind, numbers};
use serde_json::{Map, Value};

use super::node::SchemaNode;
use super::path::Path;

/// Maximum number of bytes of removed paths that are reported; fields beyond it are removed without a report. An object
/// of 3 MB may have a key of 1 MB above 300,000 unknown fields, each of whose paths has that key.
const REMOVED_PATH_BYTES_MAX: usize = 256 << 10;

const METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields of an object that the schema does not specify, and what cannot be decoded of metadata. Returns
/// the paths of those that are not known: in its metadata, then others, then in the metadata of objects inside, each
/// sorted.
pub(super) fn prune(root: &SchemaNode, object: &mut Value) -> Vec<String> {
    pruned(root, object).into_removed()
}

/// Returns the paths that [`prune`] would.
///
/// # Errors
/// The text about metadata whose members have other types. Follows `schemaobjectmeta.CoerceWithOptions`.
pub(super) fn unknown(root: &SchemaNode, object: &Value) -> Result<Vec<String>, String> {
    let mut pruning = pruned(root, &mut object.clone());
    match pruning.wrong.take() {
        Some(wrong) if wrong.field.is_empty() => Err(wrong.detail),
        Some(wrong) => Err(format!("{}: {}", wrong.field, wrong.message())),
        None => Ok(pruning.into_removed()),
    }
}

fn pruned(root: &SchemaNode, object: &mut Value) -> Pruning {
    let mut pruning = Pruning::default();
    match object {
        Value::Object(members) => pruning.members(members, root, true),
        other => pruning.value(other, Some(root)),
    }
    pruning
}

/// A value that is not a whole object, such as a default, as an object that has it is read.
pub(super) struct PrunedPart {
    /// The value without what was removed.
    pub(super) value: Value,
    /// True if the schema knows everything in the value, the metadata of objects in it aside.
    pub(super) is_known: bool,
    /// The error about the first object in it whose type or metadata have other types.
    pub(super) wrong: Option<FieldError>,
}

/// Returns what is kept of a value that is at a path, and that is a whole object if `is_object` says so.
pub(super) fn pruned_part(
    node: &SchemaNode,
    value: &Value,
    is_object: bool,
    path: String,
) -> PrunedPart {
    let mut value = value.clone();
    let mut pruning = Pruning {
        path: Path::below(path),
        ..Pruning::default()
    };
    match &mut value {
        Value::Object(members) => pruning.members(members, node, is_object),
        other => pruning.value(other, Some(node)),
    }
    PrunedPart {
        value,
        is_known: pruning.removed.is_empty(),
        wrong: pruning.wrong,
    }
}

/// Removes what the schema does not know from a value that is not a whole object, such as a default.
pub(super) fn prune_part(node: &SchemaNode, value: &mut Value) {
    Pruning::default().value(value, Some(node));
}

#[derive(Default)]
struct Pruning {
    /// The path that the walk has reached.
    path: Path,
    /// The paths of removed members.
    removed: Vec<String>,
    /// The paths of removed members of the object's own metadata.
    removed_metadata: Vec<String>,
    /// The paths of removed members of the metadata of embedded objects.
    removed_embedded: Vec<String>,
    /// The error about the first metadata whose members have other types than those of ObjectMeta; it has no field if
    /// these are the metadata of the whole object.
    wrong: Option<FieldError>,
    /// The bytes of all these paths.
    removed_bytes: usize,
}

impl Pruning {
    fn into_removed(self) -> Vec<String> {
        let mut all = Vec::new();
        for mut removed in [self.removed_metadata, self.removed, self.removed_embedded] {
            removed.sort();
            all.append(&mut removed);
        }
        all
    }

    fn value(&mut self, value: &mut Value, node: Option<&SchemaNode>) {
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

    fn members(&mut self, members: &mut Map<String, Value>, node: &SchemaNode, whole_object: bool) {
        members.retain(|name, value| {
            if whole_object && METADATA.contains(&name.as_str()) {
                match name.as_str() {
                    "metadata" => self.metadata(value),
                    name => self.type_meta(name, value, node),
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

    /// Notes a kind or apiVersion of an embedded object that is no string. Those of the object itself are known by
    /// then, and a null that the schema refuses is none.
    fn type_meta(&mut self, name: &str, value: &Value, node: &SchemaNode) {
        let is_none = value.is_null() && node.member(name).is_some_and(|it| !it.nullable);
        if !value.is_string() && !is_none && !self.path.is_root() && self.wrong.is_none() {
            let mark = self.path.member(name);
            let why = "must be a string";
            self.wrong = Some(FieldError::invalid(self.path.field(), value, why));
            self.path.leave(mark);
        }
    }

    fn metadata(&mut self, metadata: &mut Value) {
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        let is_own = self.path.is_root();
        let mark = self.path.member("metadata");
        numbers::normalize(metadata);
        let shown = (!is_own && self.wrong.is_none()).then(|| metadata.clone());
        let wrong = match metadata {
            Value::Object(members) => match decode_members(members) {
                Ok(unknown) => {
                    self.tell_metadata(unknown, is_own);
                    None
                }
                Err(error) => {
                    keep_decodable(members);
                    Some(error.to_string())
                }
            },
            other => Some(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                type_name(other)
            )),
        };
        if let Some(why) = wrong.filter(|_| self.wrong.is_none()) {
            self.wrong = Some(match shown {
                None => FieldError::new(FieldErrorKind::Invalid, "", why),
                Some(shown) => FieldError::invalid(self.path.field(), &shown, why),
            });
        }
        self.path.leave(mark);
    }

    /// Notes members that were removed of the metadata that the walk has reached.
    fn tell_metadata(&mut self, unknown: Vec<String>, is_own: bool) {
        for path in unknown {
            if self.removed_bytes >= REMOVED_PATH_BYTES_MAX {
                return;
            }
            let path = format!("{}.{path}", self.path.as_str());
            self.removed_bytes += path.len();
            match is_own {
                true => self.removed_metadata.push(path),
                false => self.removed_embedded.push(path),
            }
        }
    }

    fn known(&mut self, name: &str, value: &mut Value, node: Option<&SchemaNode>) {
        if is_compound(value) {
            let mark = self.path.member(name);
            self.value(value, node);
            self.path.leave(mark);
        }
    }

    fn items(&mut self, items: &mut [Value], node: Option<&SchemaNode>) {
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

/// Keeps those members of metadata which alone can be decoded.
fn keep_decodable(members: &mut Map<String, Value>) {
    members.retain(|name, value| {
        let mut alone = Map::from_iter([(name.clone(), value.take())]);
        let is_right = decode_members(&mut alone).is_ok();
        let kept = alone.remove(name).filter(|_| is_right);
        let stays = kept.is_some();
        *value = kept.unwrap_or_default();
        stays
    });
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::StructuralSchema;

    fn schema() -> StructuralSchema {
        let inner = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"inner": inner}});
        StructuralSchema::read(&schema, false).expect("a schema")
    }

    #[test]
    fn unknown_members_of_metadata_are_told_beside_those_of_the_schema() {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "bogus": 1,
            "Controller": true, "controller": null});
        let metadata = json!({"name": "a", "colour": "red", "labels": {"a": null}, "annotations": {},
            "creationTimestamp": null, "ownerReferences": [owner]});
        let mut object = json!({"metadata": metadata, "other": 1, "inner": {"metadata": metadata}});
        let unknown = [
            "metadata.colour",
            "metadata.ownerReferences[0].Controller",
            "metadata.ownerReferences[0].bogus",
            "other",
            "inner.metadata.colour",
            "inner.metadata.ownerReferences[0].Controller",
            "inner.metadata.ownerReferences[0].bogus",
        ];
        assert_eq!(
            schema().unknown_fields(&object),
            Ok(unknown.map(str::to_owned).to_vec())
        );
        assert_eq!(schema().prune(&mut object), unknown);
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
        let kept = json!({"name": "a", "labels": {"a": ""}, "ownerReferences": [owner]});
        assert_eq!(
            object,
            json!({"metadata": kept, "inner": {"metadata": kept}})
        );
    }

    #[test]
    fn what_cannot_be_decoded_of_metadata_is_told_and_not_read() {
        for (metadata, kept, why) in [
            (
                json!({"name": "a", "labels": 5}),
                json!({"name": "a"}),
                "cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string",
            ),
            (
                json!({"name": "a", "ownerReferences": [{"name": "b", "controller": "yes"}]}),
                json!({"name": "a"}),
                "cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
            ),
            (
                json!({"name": "a", "managedFields": [{"manager": 5}]}),
                json!({"name": "a"}),
                "cannot unmarshal number into Go struct field ManagedFieldsEntry.managedFields.manager of type string",
            ),
            (
                json!([]),
                json!([]),
                "cannot unmarshal array into Go value of type v1.ObjectMeta",
            ),
        ] {
            let mut object = json!({"metadata": metadata});
            assert_eq!(
                schema().unknown_fields(&object),
                Err(format!("json: {why}"))
            );
            assert!(schema().prune(&mut object).is_empty());
            assert_eq!(object, json!({"metadata": kept}));
            let mut object = json!({"inner": {"metadata": metadata}});
            let wrong = schema().unknown_fields(&object).expect_err("it is wrong");
            assert!(
                wrong.starts_with("inner.metadata: Invalid value: "),
                "{wrong}"
            );
            assert!(wrong.ends_with(why), "{wrong}");
            schema().prune(&mut object);
            assert_eq!(object, json!({"inner": {"metadata": kept}}));
        }
    }
}

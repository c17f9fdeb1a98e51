//! The owners that an object names in its metadata.

use std::sync::Arc;

use serde_json::Value;

/// The uid of an object.
pub(super) type Uid = Arc<str>;

/// A reference to an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: Uid,
    /// True if the owner, when it is deleted in the foreground, waits for this object to be gone.
    pub(super) blocks: bool,
}

/// Returns the owners of an object.
pub(super) fn owners(object: &Value) -> Vec<Owner> {
    let references = object["metadata"]["ownerReferences"].as_array();
    let references = references.into_iter().flatten();
    references.map(owner).collect()
}

fn owner(reference: &Value) -> Owner {
    let text = |member: &str| reference[member].as_str().unwrap_or_default();
    Owner {
        api_version: text("apiVersion").to_owned(),
        kind: text("kind").to_owned(),
        name: text("name").to_owned(),
        uid: Uid::from(text("uid")),
        blocks: reference["blockOwnerDeletion"] == true,
    }
}

/// Removes an object's references to these owners.
pub(super) fn remove_owners(object: &mut Value, uids: &[Uid]) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return };
    let Some(references) = metadata.get_mut("ownerReferences") else {
        return;
    };
    let Some(references) = references.as_array_mut() else {
        return;
    };
    references.retain(|it| !uids.iter().any(|uid| it["uid"] == **uid));
    if references.is_empty() {
        metadata.remove("ownerReferences");
    }
}

/// Has none of an object's owners wait for it.
pub(super) fn unblock_owners(object: &mut Value) {
    let references = object.pointer_mut("/metadata/ownerReferences");
    for reference in references
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if reference["blockOwnerDeletion"] == true {
            reference["blockOwnerDeletion"] = false.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_read_removed_and_unblocked() {
        let reference = |uid: &str, blocks: bool| json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "blockOwnerDeletion": blocks});
        let mut object = json!({
            "metadata": {"ownerReferences": [reference("a", true), reference("b", false)]},
        });
        let found = owners(&object);
        let found: Vec<_> = found.iter().map(|it| (&*it.uid, it.blocks)).collect();
        assert_eq!(found, [("a", true), ("b", false)]);
        unblock_owners(&mut object);
        assert!(owners(&object).iter().all(|it| !it.blocks));
        remove_owners(&mut object, &[Uid::from("a"), Uid::from("c")]);
        assert_eq!(owners(&object).len(), 1);
        remove_owners(&mut object, &[Uid::from("b")]);
        assert_eq!(object, json!({"metadata": {}}));
        remove_owners(&mut object, &[Uid::from("b")]);
        assert!(owners(&object).is_empty());
    }
}

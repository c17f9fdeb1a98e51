//! Lists out of a snapshot of a type's state.

use std::sync::Arc;

use super::decide::{ListPlan, folder};
use super::snapshot::{Entry, SnapshotMap};
use crate::storage::{ContinueToken, List, SelectionPredicate, StorageError};

/// A list, and how many objects were read for it.
pub(super) struct SnapshotList {
    /// The list as the client gets it.
    pub(super) list: List,
    /// The number of objects that were read, selected or not.
    pub(super) objects_read: u64,
}

/// Lists the objects under a folder in a state of `revision`, as a plan and a predicate say.
///
/// # Errors
/// [`StorageError::InvalidContinue`] when the position cannot be encoded as a continue token.
pub(super) fn list_folder(
    state: &SnapshotMap,
    revision: u64,
    key: &str,
    plan: &ListPlan,
    predicate: &SelectionPredicate,
) -> Result<SnapshotList, StorageError> {
    let folder = folder(key);
    let start = plan.start.as_deref().unwrap_or_default();
    let mut entries = state.under(&folder, start);
    let mut list = List {
        revision,
        ..List::default()
    };
    let mut objects_read = 0;
    let everything = predicate.is_everything();
    for (key, entry) in entries.by_ref() {
        objects_read += 1;
        let Some(object) = entry.object() else {
            continue;
        };
        if !everything && !predicate.matches(object.attributes()) {
            continue;
        }
        list.items.push(Arc::clone(object));
        if plan.limit > 0 && list.items.len() as u64 >= plan.limit {
            let left = entries.count() as u64;
            if left > 0 {
                let token = ContinueToken {
                    start: format!("{key}\0"),
                    revision: Some(revision),
                };
                list.continue_token = Some(token.encode(&folder)?);
                list.remaining_item_count = everything.then_some(left);
            }
            break;
        }
    }
    Ok(SnapshotList { list, objects_read })
}

/// Lists a single key in a state of `revision`.
pub(super) fn list_key(
    state: &SnapshotMap,
    revision: u64,
    key: &str,
    predicate: &SelectionPredicate,
) -> SnapshotList {
    let found = state.get(key).and_then(Entry::object);
    let selected = found.filter(|object| predicate.matches(object.attributes()));
    let list = List {
        revision,
        items: selected.cloned().into_iter().collect(),
        ..List::default()
    };
    SnapshotList {
        list,
        objects_read: 1,
    }
}

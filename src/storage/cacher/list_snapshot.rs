//! Lists out of a snapshot of a type's state.

use std::ops::Bound;
use std::sync::Arc;

use super::decide::{ListPlan, folder};
use super::window::snapshot::{Entry, SnapshotMap};
use crate::storage::{ContinueToken, List, SelectionPredicate, StorageError};

/// A list, and how many objects were read for it.
pub(super) struct SnapshotList {
    /// The list as the client gets it.
    pub(super) list: List,
    /// The number of objects that were read, selected or not.
    pub(super) objects_read: u64,
    /// The field by whose index they were found, if by one.
    pub(super) indexed_field: Option<Arc<str>>,
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
    let page = PageRequest {
        state,
        revision,
        folder: &folder,
        limit: plan.limit,
        predicate,
    };
    match state.indexed(predicate, &folder, start) {
        None => page.list(state.under(&folder, start), None),
        Some(indexed) => {
            let from = Bound::Included(start.max(&folder));
            page.list(indexed.under(&folder, from), indexed.field())
        }
    }
}

/// A page of a list that is to be read.
struct PageRequest<'a> {
    state: &'a SnapshotMap,
    revision: u64,
    folder: &'a str,
    limit: u64,
    predicate: &'a SelectionPredicate,
}

impl PageRequest<'_> {
    /// Lists what the predicate selects of these entries, which the index of a field has found if there is one.
    fn list<'a>(
        &self,
        mut entries: impl Iterator<Item = (&'a Arc<str>, &'a Entry)>,
        indexed_field: Option<&Arc<str>>,
    ) -> Result<SnapshotList, StorageError> {
        let mut list = List {
            revision: self.revision,
            shard: self.predicate.shard.clone(),
            ..List::default()
        };
        let mut objects_read = 0;
        let everything = self.predicate.is_everything();
        for (key, entry) in entries.by_ref() {
            objects_read += 1;
            let Some(object) = entry.object() else {
                continue;
            };
            if !everything && !self.predicate.matches(object.attributes()) {
                continue;
            }
            list.items.push(Arc::clone(object));
            if self.limit > 0 && list.items.len() as u64 >= self.limit {
                // As in kube-apiserver, a page is the last one if none of the objects that are left would have been
                // looked at: there shards have no index, so any object counts.
                let is_last = match indexed_field {
                    None => self.state.after(self.folder, key).next().is_none(),
                    Some(_) => entries.by_ref().next().is_none(),
                };
                if !is_last {
                    let token = ContinueToken::after(key, self.revision);
                    list.continue_token = Some(token.encode(self.folder)?);
                    list.remaining_item_count = everything.then(|| entries.count() as u64);
                }
                break;
            }
        }
        Ok(SnapshotList {
            list,
            objects_read,
            indexed_field: indexed_field.cloned(),
        })
    }
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
        shard: predicate.shard.clone(),
        ..List::default()
    };
    SnapshotList {
        list,
        objects_read: 1,
        indexed_field: None,
    }
}

//! The history of a store, and the places of its clients in it.

use std::collections::BTreeMap;

use shuttle_tests::storage::{Change, ChangeKind};

/// The beginning of an encrypted value.
pub(super) const ENCRYPTED_PREFIX: &str = "encrypted:";

/// A pod's label, or none when there is no pod.
pub(crate) type Label = Option<&'static str>;

/// The changes up to a revision.
#[derive(Clone)]
pub(super) struct History {
    /// Every change, in order.
    pub(super) log: Vec<Entry>,
    pub(super) revision: u64,
}

/// The place of a client in the histories of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The number of the history.
    pub(super) history: usize,
    /// The revision that it has come to.
    pub(crate) revision: u64,
    /// The number of changes before the next one.
    pub(super) next: usize,
}

/// A change, and what was there before.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) revision: u64,
    pub(crate) key: String,
    pub(crate) before: Label,
    pub(crate) after: Label,
    /// False if it is never sent to the followers.
    pub(super) is_sent: bool,
}

impl History {
    pub(super) fn content(&self, revision: u64) -> BTreeMap<String, (u64, &'static str)> {
        let mut content = BTreeMap::new();
        for entry in self.log.iter().filter(|it| it.revision <= revision) {
            match entry.after {
                Some(label) => content.insert(entry.key.clone(), (entry.revision, label)),
                None => content.remove(&entry.key),
            };
        }
        content
    }

    /// Returns the changes that are sent to followers.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(|it| it.is_sent)
    }
}

impl Entry {
    pub(super) fn change(&self, encrypted: bool) -> Change {
        let created = self.before.is_none();
        let kind = match self.after {
            None => ChangeKind::Delete,
            Some(label) if encrypted => ChangeKind::Encrypted {
                value: format!("{ENCRYPTED_PREFIX}{}", pod(&self.key, label)).into(),
                created,
            },
            Some(label) => ChangeKind::Put {
                value: pod(&self.key, label).into(),
                created,
            },
        };
        Change {
            key: self.key.clone(),
            revision: self.revision,
            kind,
        }
    }
}

/// Returns a pod at `/<resource>/<namespace>/<name>`.
pub(super) fn pod(key: &str, app: &str) -> String {
    let mut parts = key.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let namespace = parts.next().unwrap_or_default();
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","labels":{{"app":"{app}"}}}}}}"#
    )
}

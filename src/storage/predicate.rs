//! What a list or watch selects.

use crate::meta::{Attributes, FieldSelector, LabelSelector};

/// Selectors and paging of a list or watch.
#[derive(Clone, Debug, Default)]
pub struct SelectionPredicate {
    /// By labels.
    pub label: LabelSelector,
    /// By fields.
    pub field: FieldSelector,
    /// At most how many; 0 for all.
    pub limit: u64,
    /// Where to go on; empty to begin.
    pub continue_token: String,
    /// Whether the watch wants bookmarks.
    pub allow_watch_bookmarks: bool,
}

impl SelectionPredicate {
    /// Whether the selectors select everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.label.is_empty() && self.field.is_empty()
    }
    /// Whether an object is selected.
    #[must_use]
    pub fn matches(&self, attributes: &Attributes) -> bool {
        let _ = attributes;
        true
    }
    /// The one name that can be selected, if the field selector says so.
    #[must_use]
    pub fn single_name(&self) -> Option<&str> {
        self.field.requires_exact("metadata.name")
    }
    /// The one namespace that can be selected, if the field selector says so.
    #[must_use]
    pub fn single_namespace(&self) -> Option<&str> {
        self.field.requires_exact("metadata.namespace")
    }
}

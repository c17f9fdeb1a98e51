//! What happens after a write succeeded.

use std::fmt::Debug;

use crate::meta::Object;

/// Hooks that run after writes of one resource, before they are answered. A dry run counts as a
/// write; `dry_run` tells it apart.
pub trait After: Send + Sync + Debug {
    /// An object was created.
    fn after_create(&self, object: &Object, dry_run: bool) {
        let _ = (object, dry_run);
    }

    /// An object was updated; not called when the update was the last step of its deletion.
    fn after_update(&self, object: &Object, dry_run: bool) {
        let _ = (object, dry_run);
    }

    /// An object was deleted.
    fn after_delete(&self, object: &Object, dry_run: bool) {
        let _ = (object, dry_run);
    }
}

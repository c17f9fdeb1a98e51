//! The finalizers that tell the garbage collector to delete or orphan dependents.

use ringwatch_apimachinery::accessor::finalizers;
use serde_json::Value;

use super::Store;
use crate::{DeleteOptions, GarbageCollection, PropagationPolicy};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Store {
    /// Returns the finalizers of an object once its deletion begins; `None` if they do not change, as without garbage
    /// collection.
    pub(super) fn deletion_finalizers(
        &self,
        object: &Value,
        options: &DeleteOptions,
    ) -> Option<Vec<String>> {
        if !self.deletion.garbage_collection {
            return None;
        }
        let default = self.strategy().default_garbage_collection();
        deletion_finalizers(object, options, default)
    }
}

fn deletion_finalizers(
    object: &Value,
    options: &DeleteOptions,
    default: GarbageCollection,
) -> Option<Vec<String>> {
    let found = finalizers(object);
    let wanted = wanted(&found, options, default);
    let held = |name: &str| found.contains(&name);
    if held(ORPHAN) == (wanted == Some(ORPHAN)) && held(FOREGROUND) == (wanted == Some(FOREGROUND))
    {
        return None;
    }
    let next = found
        .into_iter()
        .filter(|finalizer| !matches!(*finalizer, ORPHAN | FOREGROUND))
        .chain(wanted);
    Some(next.map(str::to_owned).collect())
}

/// Returns the finalizer for the dependents: the options decide before the object, and the object before its type.
fn wanted(
    found: &[&str],
    options: &DeleteOptions,
    default: GarbageCollection,
) -> Option<&'static str> {
    if default == GarbageCollection::Unsupported {
        return None;
    }
    if let Some(orphan) = options.orphan_dependents {
        return orphan.then_some(ORPHAN);
    }
    match options.propagation_policy {
        Some(PropagationPolicy::Orphan) => return Some(ORPHAN),
        Some(PropagationPolicy::Foreground) => return Some(FOREGROUND),
        Some(PropagationPolicy::Background) => return None,
        None => {}
    }
    for finalizer in found {
        match *finalizer {
            ORPHAN => return Some(ORPHAN),
            FOREGROUND => return Some(FOREGROUND),
            _ => {}
        }
    }
    (default == GarbageCollection::OrphanDependents).then_some(ORPHAN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn next(
        found: &[&str],
        options: &DeleteOptions,
        default: GarbageCollection,
    ) -> Option<Vec<String>> {
        deletion_finalizers(
            &json!({"metadata": {"finalizers": found}}),
            options,
            default,
        )
    }

    fn policy(policy: PropagationPolicy) -> DeleteOptions {
        DeleteOptions {
            propagation_policy: Some(policy),
            ..DeleteOptions::default()
        }
    }

    #[test]
    fn the_policy_sets_and_removes_finalizers() {
        let default = GarbageCollection::DeleteDependents;
        let orphan = policy(PropagationPolicy::Orphan);
        let foreground = policy(PropagationPolicy::Foreground);
        let background = policy(PropagationPolicy::Background);
        assert_eq!(
            next(&["x/y"], &orphan, default),
            Some(vec!["x/y".into(), "orphan".into()])
        );
        assert_eq!(next(&["orphan"], &orphan, default), None);
        assert_eq!(
            next(&["orphan"], &foreground, default),
            Some(vec!["foregroundDeletion".into()])
        );
        assert_eq!(
            next(&["orphan", "x/y"], &background, default),
            Some(vec!["x/y".into()])
        );
        assert_eq!(next(&[], &background, default), None);
    }

    #[test]
    fn the_old_option_comes_first() {
        let default = GarbageCollection::OrphanDependents;
        let mut options = DeleteOptions {
            orphan_dependents: Some(true),
            ..DeleteOptions::default()
        };
        assert_eq!(
            next(&["foregroundDeletion"], &options, default),
            Some(vec!["orphan".into()])
        );
        options.orphan_dependents = Some(false);
        assert_eq!(
            next(&["foregroundDeletion"], &options, default),
            Some(Vec::new())
        );
    }

    #[test]
    fn without_options_the_object_decides_and_then_its_type() {
        let options = DeleteOptions::default();
        assert_eq!(
            next(
                &["foregroundDeletion"],
                &options,
                GarbageCollection::OrphanDependents
            ),
            None
        );
        assert_eq!(
            next(&["orphan"], &options, GarbageCollection::DeleteDependents),
            None
        );
        assert_eq!(
            next(&[], &options, GarbageCollection::OrphanDependents),
            Some(vec!["orphan".into()])
        );
        assert_eq!(
            next(&[], &options, GarbageCollection::DeleteDependents),
            None
        );
    }

    #[test]
    fn a_type_without_dependents_gets_no_finalizer() {
        let unsupported = GarbageCollection::Unsupported;
        assert_eq!(
            next(&[], &policy(PropagationPolicy::Orphan), unsupported),
            None
        );
        let both = next(&["orphan"], &policy(PropagationPolicy::Orphan), unsupported);
        assert_eq!(both, Some(Vec::new()));
    }
}

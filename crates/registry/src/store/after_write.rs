//! Hooks that run after successful writes.

use std::fmt::Debug;

use ringwatch::meta::Object;

/// Hooks that run after writes of one resource, before they are answered. A dry run counts as a
/// write; `dry_run` tells it apart.
pub trait AfterWrite: Send + Sync + Debug {
    /// Called after an object was created.
    fn after_create(&self, object: &Object, dry_run: bool) {
        let _ = (object, dry_run);
    }

    /// Called after an object was updated, unless the update was the last step of its deletion.
    fn after_update(&self, object: &Object, dry_run: bool) {
        let _ = (object, dry_run);
    }

    /// Called after an object was deleted.
    fn after_delete(&self, object: &Object, dry_run: bool) {
        let _ = (object, dry_run);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::testing::{Fixture, TestStrategy, config_map, patch};

    /// Hooks that record their calls.
    #[derive(Debug, Default)]
    struct Notes(Mutex<Vec<(&'static str, u64, bool)>>);

    impl AfterWrite for Notes {
        fn after_create(&self, object: &Object, dry_run: bool) {
            self.0
                .lock()
                .expect("sound")
                .push(("create", object.revision(), dry_run));
        }

        fn after_update(&self, object: &Object, dry_run: bool) {
            self.0
                .lock()
                .expect("sound")
                .push(("update", object.revision(), dry_run));
        }

        fn after_delete(&self, object: &Object, dry_run: bool) {
            self.0
                .lock()
                .expect("sound")
                .push(("delete", object.revision(), dry_run));
        }
    }

    #[tokio::test]
    async fn hooks_run_after_writes_that_succeeded() {
        let mut fixture = Fixture::new(TestStrategy::default());
        let notes = Arc::new(Notes::default());
        fixture.store = fixture.store.with_after(Arc::clone(&notes) as _);
        let (store, context) = (&fixture.store, &fixture.context);
        fixture
            .create(json!({"name": "a", "finalizers": ["x/y"]}))
            .await;
        let again = config_map(json!({"name": "a"}));
        store
            .create(context, "ns", again, &Default::default())
            .await
            .expect_err("exists");
        store
            .delete(context, "ns", "a", Default::default())
            .await
            .expect("it begins");
        let mut relabel = patch(|object| object["metadata"]["labels"] = json!({"a": "b"}));
        store
            .update(context, "ns", "a", &mut relabel, &Default::default())
            .await
            .expect("updated");
        let mut finish = patch(|object| object["metadata"]["finalizers"] = json!([]));
        store
            .update(context, "ns", "a", &mut finish, &Default::default())
            .await
            .expect("deleted");
        let dry = crate::CreateOptions { dry_run: true };
        let object = config_map(json!({"name": "b"}));
        store
            .create(context, "ns", object, &dry)
            .await
            .expect("it could be");
        let noted = notes.0.lock().expect("sound").clone();
        let expected = [
            ("create", 2, false),
            ("update", 4, false),
            ("delete", 4, false),
            ("create", 0, true),
        ];
        assert_eq!(noted, expected);
    }
}

//! Writes whose caller is gone: at each place where one can be dropped, it has happened or it has not, and the store
//! goes on.

use async_trait::async_trait;
use ringwatch_testing::dropped::{at_each_wait, dropped_after};

use super::etcd::Etcd;
use super::*;
use crate::meta::Object;
use crate::storage::etcd3::Store;
use crate::storage::{
    DeleteOptions, GetOptions, Interface, NextContent, NoCheck, Rejection, StorageError, TryUpdate,
    UpdateOptions,
};

const KEY: &str = "/configmaps/d/a";

/// An update to one content, of an object that may not be there.
struct Become(&'static str);

#[async_trait]
impl TryUpdate for Become {
    async fn try_update(&mut self, _: Option<&Object>) -> Result<NextContent, Rejection> {
        Ok(NextContent {
            object: config_map("a", self.0),
            ttl: Some(100),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Create,
    Update,
    Delete,
}

impl Write {
    async fn run(self, store: &Store) -> Result<(), StorageError> {
        let options = UpdateOptions::default();
        match self {
            Self::Create => store
                .create(KEY, &config_map("a", "new"), Some(100))
                .await
                .map(drop),
            Self::Update => store
                .guaranteed_update(KEY, options, &mut Become("new"))
                .await
                .map(drop),
            Self::Delete => store
                .delete(KEY, DeleteOptions::default(), &mut NoCheck)
                .await
                .map(drop),
        }
    }
}

/// Returns the label of the object; `None` if there is none.
async fn label(store: &Store) -> Option<String> {
    match store.get(KEY, GetOptions::default()).await {
        Ok(object) => object.attributes().labels().get("app").map(str::to_owned),
        Err(error) if error.is_not_found() => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_dropped_has_happened_or_not_and_holds_up_no_other() {
    for write in [Write::Create, Write::Update, Write::Delete] {
        let before = (write != Write::Create).then(|| "old".to_owned());
        let after = (write != Write::Delete).then(|| "new".to_owned());
        let ended = at_each_wait(async |waits| {
            let etcd = Etcd::new();
            let store = Store::new(Arc::clone(&etcd) as _, config());
            if before.is_some() {
                let created = store.create(KEY, &config_map("a", "old"), None).await;
                created.expect("created");
            }
            let outcome = dropped_after(waits, write.run(&store)).await;
            let left = label(&store).await;
            assert!(left == before || left == after, "{write:?}: {left:?}");
            assert!(outcome.is_none() || left == after, "{write:?}");
            let options = UpdateOptions {
                ignore_not_found: true,
                ..UpdateOptions::default()
            };
            let mut next = Become("next");
            let next = store.guaranteed_update(KEY, options, &mut next).await;
            next.expect("another writer goes on");
            assert_eq!(label(&store).await.as_deref(), Some("next"));
            outcome
        });
        ended.await.expect("it can be written");
    }
}

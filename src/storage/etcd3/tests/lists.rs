//! Lists with much that cannot be read.

use super::*;
use crate::storage::etcd3::Store;
use crate::storage::{CORRUPT_KEYS_MAX, Interface, ListOptions, StorageError};

#[tokio::test]
async fn a_list_skips_what_it_cannot_read_however_much_that_is() {
    let backend = backend();
    let store = Store::new(Arc::clone(&backend) as _, config());
    for number in 0..CORRUPT_KEYS_MAX + 50 {
        let key = format!("/registry/configmaps/d/b{number:03}");
        write(&backend, &key, "nonsense").await;
    }
    store
        .create("/configmaps/d/c", &config_map("c", "x"), None)
        .await
        .expect("created");
    let options = |skip_corrupt| ListOptions {
        recursive: true,
        skip_corrupt,
        ..ListOptions::default()
    };
    let list = store.get_list("/configmaps/", options(true)).await;
    let list = list.expect("what can be read");
    assert_eq!(list.items.len(), 1);
    // One more than an error names tells that there are more.
    assert_eq!(list.corrupt.len(), CORRUPT_KEYS_MAX + 1);
    let refused = store.get_list("/configmaps/", options(false)).await;
    let Err(StorageError::Corrupt { keys }) = refused.map(drop) else {
        panic!("a list that leaves something out");
    };
    assert_eq!(keys.len(), CORRUPT_KEYS_MAX + 1);
}

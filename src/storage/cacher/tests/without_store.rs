//! Reads of a cache that has no store behind it: from memory, or not at all.

use super::*;
use crate::meta::VersionMatch;
use crate::storage::GetOptions;

fn exact(revision: u64) -> ListOptions {
    ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..since(revision)
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_as_new_as_the_source() {
    let world = World::new(WindowLimits::default()).await;
    let pods = &world.pods;
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let release = async {
        world.settle().await;
        world.script.release();
    };
    let (object, ()) = tokio::join!(pods.get("/pods/d/a", GetOptions::default()), release);
    let object = object.expect("fresh");
    assert_eq!((object.name(), object.revision()), ("a", 2));
    let list = pods.get_list("/pods/", newest()).await.expect("fresh");
    assert_eq!(listed(&list), "2: a");
    let mut watch = pods.watch("/pods/", since(1)).await.expect("ready");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    let missing = pods.get("/pods/d/b", GetOptions::default()).await;
    assert!(missing.expect_err("there is none").is_not_found());
    assert_eq!(*world.store.lists.lock().expect("sound"), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_that_lead_elsewhere_are_refused() {
    let world = World::new(WindowLimits::default()).await;
    let list = world.pods.get_list("/pods/../secrets/", newest()).await;
    let watch = world.pods.watch("/pods/../secrets/", newest()).await;
    for refused in [list.map(drop), watch.map(drop)] {
        let error = refused.expect_err("a way out");
        assert!(matches!(error, StorageError::InvalidKey(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_a_store_can_answer_fails() {
    let limits = WindowLimits {
        events_max: 100,
        ..WindowLimits::default()
    };
    let world = World::new(limits).await;
    let pods = &world.pods;
    for number in 0..200 {
        world.script.put(&format!("/pods/d/{number:03}"), "x");
    }
    world.settle().await;
    let list = pods.get_list("/pods/", exact(150)).await;
    assert_eq!(list.expect("in the window").items.len(), 149);
    let error = pods.get_list("/pods/", exact(95)).await;
    let error = error.expect_err("not in the window any more");
    assert!(matches!(error, StorageError::ListExpired), "{error}");
    let one = ListOptions {
        recursive: false,
        ..exact(150)
    };
    pods.get_list("/pods/d/000", one)
        .await
        .expect_err("exact, of one key");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_lags_says_so() {
    let world = World::new(WindowLimits::default()).await;
    let pods = &world.pods;
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let list = pods.get_list("/pods/", newest()).await.map(drop);
    let get = pods.get("/pods/d/a", GetOptions::default()).await.map(drop);
    for outcome in [list, get] {
        let error = outcome.expect_err("it lags");
        let StorageError::TooLargeResourceVersion { requested: 2, .. } = error else {
            panic!("{error}");
        };
    }
    world.script.state().trusted = false;
    let list = pods.get_list("/pods/", newest()).await.map(drop);
    let get = pods.get("/pods/d/a", GetOptions::default()).await.map(drop);
    for outcome in [list, get] {
        let error = outcome.expect_err("nobody knows").to_string();
        assert!(error.contains("progress notices"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_no_object_is_named() {
    let world = World::new(WindowLimits::default()).await;
    let pods = &world.pods;
    world.script.put_raw("/pods/d/a", "no object".into());
    world.script.put("/pods/d/b", "x");
    let get = |key| pods.get(key, GetOptions::default());
    let error = get("/pods/d/a").await.expect_err("no object");
    assert!(error.to_string().contains("/pods/d/a"), "{error}");
    assert_eq!(get("/pods/d/b").await.expect("an object").name(), "b");
    let error = pods.get_list("/pods/", newest()).await;
    let error = error.expect_err("a part of them").to_string();
    assert!(error.contains("cannot be decrypted or decoded"), "{error}");
}

//! The cached content with which writes are tried first: a transaction compares its revision with the store's, so it
//! must be of the store's present history and of a type that is followed.

use async_trait::async_trait;

use super::scripted::Decryption;
use super::*;
use crate::meta::Object;
use crate::storage::{DeleteOptions, NextContent, NoCheck, Rejection, TryUpdate, UpdateOptions};

/// An update that is never called, since the store only counts.
struct Nothing;

#[async_trait]
impl TryUpdate for Nothing {
    async fn try_update(&mut self, _: Option<&Object>) -> Result<NextContent, Rejection> {
        Err("the store calls no update".into())
    }
}

impl World {
    /// Returns the revision of the content with which a deletion and an update of an object are tried.
    async fn suggested(&self) -> Option<u64> {
        let (key, store) = ("/pods/d/a", &self.delegator);
        let taken = || self.store.suggested.lock().expect("sound").take();
        let (mut check, mut update) = (NoCheck, Nothing);
        let deleted = store.delete(key, DeleteOptions::default(), &mut check);
        deleted.await.expect_err("the store only counts");
        let deleted = taken().map(|it| it.revision());
        let updated = store.guaranteed_update(key, UpdateOptions::default(), &mut update);
        updated.await.expect_err("the store only counts");
        assert_eq!(taken().map(|it| it.revision()), deleted);
        deleted
    }
}

/// Returns a world with an object of revision 2.
async fn world() -> World {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    assert_eq!(world.suggested().await, Some(2));
    world
}

#[tokio::test(start_paused = true)]
async fn what_is_there_no_more_or_cannot_be_read_is_not_suggested() {
    let world = world().await;
    world.script.put_raw("/pods/d/a", "nonsense".into());
    world.settle().await;
    assert_eq!(world.suggested().await, None);
    let written = world.script.put("/pods/d/a", "x");
    world.settle().await;
    assert_eq!(world.suggested().await, Some(written));
    world.script.delete("/pods/d/a");
    world.settle().await;
    assert_eq!(world.suggested().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_type_that_is_listed_again_suggests_nothing() {
    let world = world().await;
    world.script.state().hung = Some("/pods/".to_owned());
    world.script.lose_history();
    world.settle().await;
    world.pods.check_ready().expect_err("listed again");
    assert_eq!(world.suggested().await, None);
    world.script.state().hung = None;
    world.pods.ready().await.expect("listed");
    assert_eq!(world.suggested().await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_type_whose_changes_wait_suggests_nothing() {
    let world = world().await;
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/pods/d/b", "x");
    world.settle().await;
    world.pods.check_ready().expect_err("its changes wait");
    assert_eq!(world.suggested().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_has_stopped_suggests_nothing() {
    let mut world = world().await;
    drop(world.shutdown.take());
    world.settle().await;
    assert_eq!(world.suggested().await, None);
}

/// The cache still has the object when a reader finds that the store was put back; then it is filled anew.
#[tokio::test(start_paused = true)]
async fn a_store_that_was_put_back_gets_no_suggestion_of_its_former_history() {
    let world = world().await;
    world.script.fall_back(1);
    world.list(newest()).await.expect("the store's");
    assert_eq!(world.suggested().await, None);
    world.script.break_streams();
    world.clock.sleep(Duration::from_secs(1)).await;
    world.pods.check_ready().expect("filled anew");
    assert_eq!(world.suggested().await, None);
    // The same revision, but of another write.
    assert_eq!(world.script.put("/pods/d/a", "y"), 2);
    world.settle().await;
    assert_eq!(world.suggested().await, Some(2));
}

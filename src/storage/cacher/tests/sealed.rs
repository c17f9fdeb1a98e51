//! Values that cannot be read without waiting: their type waits, the others do not.

use super::scripted::Unsealing;
use super::*;

/// A feed with a second type, of which a watch has begun.
async fn worlds() -> (World, Arc<Cacher>, WatchStream) {
    let world = World::new(WindowLimits::default()).await;
    let secrets = of_type("secrets", "/secrets/", WindowLimits::default());
    let secrets = world.feed.add_type(secrets);
    secrets.ready().await.expect("listed");
    let watch = secrets.watch("/secrets/", bookmarked(Some(1))).await;
    (world, secrets, watch.expect("ready"))
}

fn refusal(cacher: &Cacher) -> String {
    cacher.check_ready().expect_err("not ready").to_string()
}

#[tokio::test(start_paused = true)]
async fn a_value_is_waited_for_by_its_type_alone() {
    let (world, secrets, mut watch) = worlds().await;
    let mut pods = world.watch(since(1)).await;
    world.script.state().unsealing = Unsealing::Hangs;
    world.script.put("/secrets/d/a", "x");
    world.script.put_sealed("/secrets/d/b", "x");
    world.script.put_sealed("/secrets/d/c", "x");
    world.script.put("/secrets/d/a", "y");
    world.script.put("/pods/d/p", "x");
    assert_eq!(next_item(&mut pods).await, "+p@6");
    let list = world.list(ListOptions {
        resource_version: None,
        ..since(0)
    });
    assert_eq!(listed(&list.await.expect("from memory")), "6: p");
    assert_eq!(item_now(&mut watch).await.as_deref(), Some("+a@2"));
    assert_eq!(item_now(&mut watch).await, None, "and no bookmark");
    assert_eq!(
        refusal(&secrets),
        "storage is (re)initializing: the value of /secrets/d/b cannot be decrypted yet"
    );
    // Short of the longest wait, also of what waits behind the first value.
    world.clock.sleep(Duration::from_secs(9)).await;
    world.script.put("/secrets/d/b", "y");
    world.script.state().unsealing = Unsealing::Answers;
    assert_eq!(next_items(&mut watch, 4).await, "+b@3 +c@4 ~a@5 ~b@7");
    secrets.ready().await.expect("the watch goes on");
    world.script.put("/secrets/d/d", "x");
    assert_eq!(next_item(&mut watch).await, "+d@8");
    let pages = world.script.state().pages;
    assert_eq!(pages, 2, "nothing was listed again");
}

#[tokio::test(start_paused = true)]
async fn a_type_that_cannot_be_read_is_listed_until_it_can_be() {
    for unsealing in [Unsealing::Fails, Unsealing::Hangs] {
        let (world, secrets, mut watch) = worlds().await;
        let mut pods = world.watch(since(1)).await;
        world.script.state().unsealing = unsealing;
        world.script.put_sealed("/secrets/d/a", "x");
        assert_eq!(next_item(&mut watch).await, "end");
        world.clock.sleep(Duration::from_secs(100)).await;
        assert_eq!(
            refusal(&secrets),
            "storage is (re)initializing: there is no key"
        );
        world.script.put("/pods/d/p", "x");
        world.script.put_sealed("/secrets/d/b", "x");
        assert_eq!(next_item(&mut pods).await, "+p@3");
        world.script.put("/secrets/d/c", "x");
        world.script.delete("/secrets/d/c");
        world.settle().await;
        world.script.state().unsealing = Unsealing::Answers;
        secrets.ready().await.expect("listed");
        let mut watch = secrets.watch("/secrets/", streamed(None)).await;
        let watch = watch.as_mut().expect("ready");
        assert_eq!(next_items(watch, 3).await, "+a@2 +b@4 =6!");
        world.script.put("/secrets/d/d", "x");
        assert_eq!(next_item(watch).await, "+d@7");
        assert_eq!(world.script.state().follows, 1);
    }
}

/// While a type is listed its changes are applied to the list, which has no place for what cannot be read.
#[tokio::test(start_paused = true)]
async fn a_list_begins_again_when_a_sealed_value_comes() {
    let (world, secrets, _watch) = worlds().await;
    world.script.put("/secrets/d/a", "x");
    world.script.state().page_time = Duration::from_secs(1);
    world.feed.relist(&secrets);
    world.settle().await;
    world.script.state().unsealing = Unsealing::Fails;
    world.script.put_sealed("/secrets/d/b", "x");
    world.clock.sleep(Duration::from_secs(5)).await;
    assert!(refusal(&secrets).ends_with("there is no key"));
    world.script.state().unsealing = Unsealing::Answers;
    secrets.ready().await.expect("listed");
    let mut watch = secrets.watch("/secrets/", streamed(Some(0))).await;
    let watch = watch.as_mut().expect("ready");
    assert_eq!(next_items(watch, 3).await, "+a@2 +b@3 =3!");
}

#[tokio::test(start_paused = true)]
async fn only_so_much_waits() {
    let (world, secrets, mut watch) = worlds().await;
    world.script.state().unsealing = Unsealing::Hangs;
    world.script.put_sealed("/secrets/d/a", "x");
    let large = "x".repeat(1 << 20);
    for _ in 0..8 {
        world.script.put("/secrets/d/b", &large);
    }
    assert_eq!(next_item(&mut watch).await, "end");
    world.script.state().unsealing = Unsealing::Answers;
    secrets.ready().await.expect("listed");
    assert_eq!(secrets.kept().0, 2);
}

/// A contradiction among the changes that waited is noticed as any other.
#[tokio::test(start_paused = true)]
async fn a_lost_change_is_noticed_after_a_wait() {
    let (world, secrets, mut watch) = worlds().await;
    world.script.put("/secrets/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    world.script.state().unsealing = Unsealing::Hangs;
    world.script.put_sealed("/secrets/d/b", "x");
    world.script.delete_unsent("/secrets/d/a");
    world.script.put("/secrets/d/a", "y");
    world.settle().await;
    world.script.state().unsealing = Unsealing::Answers;
    assert_eq!(next_item(&mut watch).await, "end");
    secrets.ready().await.expect("listed");
    assert_eq!(secrets.kept().0, 2);
}

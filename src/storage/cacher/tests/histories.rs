//! Watches and reads when the store's history is lost, is slow, or is another one.

use super::*;

/// F11: etcd was restored from an older backup under a running server. Its revision has fallen, and
/// the same numbers will mean something else. A reader that requests the newest revision notices it:
/// nothing is served from what was cached, all watches end with "too old", and all types are listed
/// again, at the lower revision.
#[tokio::test(start_paused = true)]
async fn f11_a_store_that_was_put_back_is_noticed_by_a_reader() {
    let world = World::new(WindowLimits::default()).await;
    let widgets = of_type("widgets", "/widgets/", WindowLimits::default());
    let widgets = world.feed.add_type(widgets);
    widgets.ready().await.expect("listed");
    world.put_pods(&["a", "b", "c", "d"]);
    let mut watch = world.watch(bookmarked(Some(1))).await;
    let mut other = widgets.watch("/widgets/", since(1)).await.expect("ready");
    assert_eq!(next_items(&mut watch, 4).await, "+a@2 +b@3 +c@4 +d@5");
    let waiting = world.list(since(9));
    let noticed = async {
        world.settle().await;
        // The stream stays open: only the reader can notice.
        world.script.fall_back(3);
        let list = world.list(newest()).await;
        list.map(|list| listed(&list))
    };
    let (waited, noticed) = tokio::join!(waiting, noticed);
    // A consistent list that cannot be had from memory is the store's.
    assert_eq!(
        noticed.expect("from the store"),
        format!("{}: ", scripted::STORE_REVISION)
    );
    let error = waited.expect_err("it will not come so far").to_string();
    assert!(error.ends_with("restored from an older state"), "{error}");
    let too_old = "The resourceVersion for the provided watch is too old.";
    assert_eq!(next_items(&mut watch, 2).await, format!("{too_old} end"));
    assert_eq!(next_items(&mut other, 2).await, format!("{too_old} end"));
    world.pods.ready().await.expect("listed");
    widgets.ready().await.expect("listed");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "3: a b");
    // A client that missed all this comes with a version of the lost history.
    let mut lost = world.watch(since(5)).await;
    assert_eq!(next_items(&mut lost, 2).await, format!("{too_old} end"));
    // What is written now under the old numbers is new to all clients.
    let mut watch = world.watch(since(3)).await;
    world.script.put("/pods/d/e", "x");
    world.script.put("/pods/d/f", "x");
    assert_eq!(next_items(&mut watch, 2).await, "+e@4 +f@5");
    let list = world.list(newest()).await.expect("from memory");
    assert_eq!(listed(&list), "5: a b e f");
}

/// F11, without a reader: the stream breaks when the store is replaced, and the reflector checks
/// the revision before it continues.
#[tokio::test(start_paused = true)]
async fn f11_a_store_that_was_put_back_is_noticed_when_the_stream_is_opened() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c", "d"]);
    let mut watch = world.watch(since(4)).await;
    assert_eq!(next_item(&mut watch).await, "+d@5");
    world.script.roll_back(3);
    let too_old = "The resourceVersion for the provided watch is too old.";
    assert_eq!(next_items(&mut watch, 2).await, format!("{too_old} end"));
    world.pods.ready().await.expect("listed");
    let list = world.list(newest()).await.expect("from memory");
    assert_eq!(listed(&list), "3: a b");
}

/// F11, noticed late: by the time that the stream is open again, others have written so much that the
/// store's revision is higher than ever. The numbers do not show it; but what was last seen was never
/// written there.
#[tokio::test(start_paused = true)]
async fn f11_a_store_that_was_put_back_and_went_on_is_told_apart() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c", "d"]);
    let mut watch = world.watch(since(4)).await;
    assert_eq!(next_item(&mut watch).await, "+d@5");
    world.script.state().reachable = false;
    world.script.roll_back(3);
    world.put_pods(&["w", "x", "y", "z"]);
    world.script.state().reachable = true;
    let too_old = "The resourceVersion for the provided watch is too old.";
    assert_eq!(next_items(&mut watch, 2).await, format!("{too_old} end"));
    world.pods.ready().await.expect("listed");
    let list = world.list(newest()).await.expect("from memory");
    assert_eq!(listed(&list), "7: a b w x y z");
}

/// k#49684, k#65954, k#136950: a list that took longer than the store keeps history was refused, was
/// begun again, and was refused again: the server never became ready. Here a page takes twice as
/// long as history lasts.
#[tokio::test(start_paused = true)]
async fn k49684_a_list_that_is_slower_than_compaction_comes_to_its_end() {
    let script = Arc::new(Script::default());
    for number in 0..5_000 {
        script.put(&format!("/pods/d/{number:04}"), "x");
    }
    script.state().page_time = Duration::from_secs(10);
    let world = World::of(Arc::clone(&script), WindowLimits::default());
    let compactor = async {
        for number in 0_u32.. {
            world.clock.sleep(Duration::from_secs(5)).await;
            script.put(&format!("/pods/d/{:04}", number % 5_000), "y");
            script.compact();
        }
    };
    tokio::select! {
        ready = world.pods.ready() => ready.expect("listed"),
        () = compactor => {}
        () = world.clock.sleep(Duration::from_secs(120)) => panic!("still not ready"),
    }
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(list.items.len(), 5_000);
    assert_eq!(list.revision, script.state().revision);
}

/// k#59848: a client that was served by one server came to another whose cache was behind, and was
/// given an older state than it had: two pods of one name ran. A cache that is behind refuses a
/// version that it has not reached, and never takes its own state for the newest.
#[tokio::test(start_paused = true)]
async fn k59848_a_cache_that_lags_does_not_take_clients_back_in_time() {
    let world = World::new(WindowLimits::default()).await;
    let seen = world.script.put("/pods/d/a", "x");
    world.settle().await;
    world.script.hold();
    let ahead = world.script.put("/pods/d/b", "x");
    assert_eq!(
        listed(&world.list(since(seen)).await.expect("known")),
        "2: a"
    );
    let error = world.list(since(ahead)).await.expect_err("not reached");
    assert_eq!(
        error.to_string(),
        "Too large resource version: 3, current: 2"
    );
    let mut watch = world.watch(since(ahead)).await;
    world.script.release();
    world.script.put("/pods/d/c", "x");
    assert_eq!(
        next_item(&mut watch).await,
        "+c@4",
        "nothing that the client has"
    );
}

/// k#73845: events that had been buffered while the initial state was made were sent after it, though
/// they were in it. So a watch list begins under a stream of changes, and its versions only rise.
#[tokio::test(start_paused = true)]
async fn k73845_what_the_initial_state_holds_is_not_told_again() {
    let world = World::new(WindowLimits::default()).await;
    for number in 0..500 {
        world.script.put(&format!("/pods/d/{number:03}"), "x");
    }
    world.settle().await;
    let mut watch = world.watch(streamed(Some(0))).await;
    for number in 0..500 {
        world.script.put(&format!("/pods/d/{number:03}"), "y");
    }
    let state = next_items(&mut watch, 500).await;
    assert!(state.split(' ').all(|it| it.starts_with('+')), "{state}");
    assert_eq!(next_item(&mut watch).await, "=501!");
    for number in 0..500_u64 {
        let (name, revision) = (format!("{number:03}"), 502 + number);
        assert_eq!(next_item(&mut watch).await, format!("~{name}@{revision}"));
    }
}

/// etcd#15271, etcd#20221: after a partition etcd sent a watch events that it had sent before, and a
/// watch of a future revision events of the past. The cache skips events that it has applied.
#[tokio::test(start_paused = true)]
async fn etcd15271_a_stream_that_goes_back_takes_nobody_along() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(bookmarked(Some(1))).await;
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/a", "y");
    world.script.delete("/pods/d/a");
    world.script.put("/pods/d/b", "x");
    assert_eq!(next_items(&mut watch, 4).await, "+a@2 ~a@3 -a@4 +b@5");
    world.script.repeat_from(2);
    world.settle().await;
    world.script.put("/pods/d/c", "x");
    assert_eq!(next_item(&mut watch).await, "+c@6");
    assert_eq!(next_item(&mut watch).await, "=6");
    let list = world.list(newest()).await.expect("from memory");
    assert_eq!(listed(&list), "6: b c");
    assert_eq!(world.script.state().pages, 1, "nothing was listed again");
}

/// etcd#15220: before 3.4.31 and 3.5.13 a progress notice could overtake events, so that a list which
/// trusted it missed an acknowledged write. Without that trust no progress is requested, and the store
/// answers reads of the newest state.
#[tokio::test(start_paused = true)]
async fn etcd15220_progress_that_is_not_trusted_is_not_asked_for() {
    let script = Arc::new(Script::default());
    script.state().trusted = false;
    script.put("/pods/d/a", "x");
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    let widgets = of_type("widgets", "/widgets/", WindowLimits::default());
    let widgets = world.feed.add_type(widgets);
    widgets
        .ready()
        .await
        .expect("listed at the stream's revision");
    let list = world.list(newest()).await.expect("from the store");
    assert_eq!(list.revision, scripted::STORE_REVISION);
    assert_eq!(world.script.state().progress_requests, 0);
}

/// k#123448: watches without a version each opened a watch of their own in etcd, and starved the
/// cache's. A thousand of them cost the store a few requests, and the cache its one stream.
#[tokio::test(start_paused = true)]
async fn k123448_watches_without_a_version_do_not_reach_the_store() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    let watches = (0..1_000).map(|_| world.watch(streamed(None)));
    let mut watches = futures::future::join_all(watches).await;
    let probes = world.script.state().probes;
    world.script.put("/pods/d/b", "x");
    for watch in &mut watches {
        assert_eq!(next_items(watch, 3).await, "+a@2 =2! +b@3");
    }
    assert!(probes < 10, "{probes} questions");
    assert_eq!(world.script.state().follows, 1);
}

/// k#138494: when the cache fell behind, every consistent list of every client went to etcd at the same
/// time, and both broke down. A few go there, and the others get a retry delay; none waits
/// longer than a read may.
#[tokio::test(start_paused = true)]
async fn k138494_a_cache_that_lags_does_not_melt_the_store() {
    let world = World::new(WindowLimits::default()).await;
    *world.store.list_time.lock().expect("sound") = Duration::from_secs(1);
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let begun = world.clock.now();
    let lists = (0..1_000).map(|_| world.list(newest()));
    let (mut served, mut shed) = (0, 0);
    for list in futures::future::join_all(lists).await {
        match list {
            Ok(list) => {
                assert_eq!(list.revision, scripted::STORE_REVISION);
                served += 1;
            }
            Err(StorageError::NotReady {
                reason,
                retry_after_seconds,
            }) => {
                assert_eq!(
                    reason.as_deref(),
                    Some("the watch cache is behind the store")
                );
                assert!(retry_after_seconds > 0);
                shed += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((served, shed), (8, 992));
    assert_eq!(*world.store.lists.lock().expect("sound"), 8);
    assert!(world.clock.now() - begun < Duration::from_secs(5));
    world.script.release();
    let list = world.list(newest()).await.expect("from memory");
    assert_eq!(listed(&list), "2: a", "it recovers by itself");
}

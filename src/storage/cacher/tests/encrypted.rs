//! Values that cannot be read without waiting: their type waits, the others do not.

use super::scripted::Decryption;
use super::*;
use crate::budget::Account;
use crate::storage::cacher::Readiness;

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
    world.script.state().decryption = Decryption::Hangs;
    world.script.put("/secrets/d/a", "x");
    world.script.put_encrypted("/secrets/d/b", "x");
    world.script.put_encrypted("/secrets/d/c", "x");
    world.script.put("/secrets/d/a", "y");
    world.script.put("/pods/d/p", "x");
    assert_eq!(next_item(&mut pods).await, "+p@6");
    let list = world.list(newest());
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
    world.script.state().decryption = Decryption::Answers;
    assert_eq!(next_items(&mut watch, 4).await, "+b@3 +c@4 ~a@5 ~b@7");
    secrets.ready().await.expect("the watch goes on");
    world.script.put("/secrets/d/d", "x");
    assert_eq!(next_item(&mut watch).await, "+d@8");
    let pages = world.script.state().pages;
    assert_eq!(pages, 2, "nothing was listed again");
}

#[tokio::test(start_paused = true)]
async fn a_type_that_cannot_be_read_is_listed_until_it_can_be() {
    for decryption in [Decryption::Fails, Decryption::Hangs] {
        let (world, secrets, mut watch) = worlds().await;
        let mut pods = world.watch(since(1)).await;
        world.script.state().decryption = decryption;
        world.script.put_encrypted("/secrets/d/a", "x");
        assert_eq!(next_item(&mut watch).await, "end");
        world.clock.sleep(Duration::from_secs(100)).await;
        assert_eq!(
            refusal(&secrets),
            "storage is (re)initializing: there is no key"
        );
        world.script.put("/pods/d/p", "x");
        world.script.put_encrypted("/secrets/d/b", "x");
        assert_eq!(next_item(&mut pods).await, "+p@3");
        world.script.put("/secrets/d/c", "x");
        world.script.delete("/secrets/d/c");
        world.settle().await;
        world.script.state().decryption = Decryption::Answers;
        secrets.ready().await.expect("listed");
        let mut watch = secrets.watch("/secrets/", streamed(None)).await;
        let watch = watch.as_mut().expect("ready");
        assert_eq!(next_items(watch, 3).await, "+a@2 +b@4 =6!");
        world.script.put("/secrets/d/d", "x");
        assert_eq!(next_item(watch).await, "+d@7");
        assert_eq!(world.script.state().follows, 1);
    }
}

/// A peer writes with a key that is new here, faster than pages come.
#[tokio::test(start_paused = true)]
async fn a_list_gets_on_while_encrypted_values_come() {
    let (world, secrets, _watch) = worlds().await;
    world.script.put("/secrets/d/a", "x");
    world.script.state().page_time = Duration::from_secs(1);
    world.feed.relist(&secrets);
    world.settle().await;
    for number in 0..10 {
        let key = format!("/secrets/d/{}", ["b", "c"][number % 2]);
        world.script.put_encrypted(&key, "x");
        world.clock.sleep(Duration::from_millis(400)).await;
    }
    secrets.check_ready().expect("listed");
    let mut watch = secrets.watch("/secrets/", streamed(Some(0))).await;
    let watch = watch.as_mut().expect("ready");
    assert_eq!(next_items(watch, 4).await, "+a@2 +b@11 +c@12 =12!");
}

/// A value that comes after the page of its key is in no page.
#[tokio::test(start_paused = true)]
async fn a_list_waits_for_a_value_and_keeps_its_pages() {
    let (world, secrets, _watch) = worlds().await;
    for number in 0..2_001 {
        world.script.put(&format!("/secrets/d/{number:04}"), "x");
    }
    world.settle().await;
    let before = world.script.state().pages;
    world.script.state().page_time = Duration::from_secs(1);
    world.feed.relist(&secrets);
    world.clock.sleep(Duration::from_millis(1_500)).await;
    world.script.state().decryption = Decryption::Fails;
    for (key, is_left) in [("0000", true), ("0001", false), ("0002", false)] {
        let key = format!("/secrets/d/{key}");
        world.script.put_encrypted(&key, "y");
        if !is_left {
            world.script.delete(&key);
        }
    }
    world.script.put_encrypted("/secrets/d/0003", "y");
    world.script.put("/secrets/d/0003", "z");
    world.clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(
        refusal(&secrets),
        "storage is (re)initializing: there is no key"
    );
    world.script.state().decryption = Decryption::Answers;
    secrets.ready().await.expect("listed");
    assert_eq!(world.script.state().pages, before + 2);
    let of = |key: &str| secrets.cached(key).map(|it| it.revision());
    let keys = ["0000", "0001", "0002", "0003"].map(|key| of(&format!("/secrets/d/{key}")));
    assert_eq!(keys, [Some(2_003), None, None, Some(2_009)]);
    assert_eq!(secrets.kept().0, 1_999);
}

#[tokio::test(start_paused = true)]
async fn a_list_for_which_too_many_values_wait_begins_again() {
    let (world, secrets, _watch) = worlds().await;
    let counted = || world.ledger.spent(Account::Objects);
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    world.feed.relist(&secrets);
    world.settle().await;
    let large = "x".repeat(1 << 20);
    for number in 0..7 {
        world
            .script
            .put_encrypted(&format!("/secrets/d/b{number}"), &large);
    }
    world.settle().await;
    assert!(counted() > 7 << 20, "{}", counted());
    world.script.put_encrypted("/secrets/d/c", &large);
    world.settle().await;
    assert!(counted() < 1 << 20, "{}", counted());
    world.script.state().decryption = Decryption::Answers;
    secrets.ready().await.expect("listed");
    assert_eq!(secrets.kept().0, 9);
}

#[tokio::test(start_paused = true)]
async fn only_so_much_waits() {
    let (world, secrets, mut watch) = worlds().await;
    let counted = || world.ledger.spent(Account::Objects);
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    let large = "x".repeat(1 << 20);
    for _ in 0..7 {
        world.script.put("/secrets/d/b", &large);
    }
    world.settle().await;
    assert!(counted() > 7 << 20, "{}", counted());
    let pages = world.script.state().pages;
    world.script.put("/secrets/d/b", &large);
    assert_eq!(next_item(&mut watch).await, "end");
    world.settle().await;
    // The page with the encrypted value fails, but is not put off as after a lost change.
    assert_eq!(world.script.state().pages, pages + 1);
    assert!(counted() < 1 << 20, "{}", counted());
    world.script.state().decryption = Decryption::Answers;
    secrets.ready().await.expect("listed");
    assert_eq!(secrets.kept().0, 2);
}

#[tokio::test(start_paused = true)]
async fn changes_before_an_encrypted_one_do_not_wait() {
    let (world, secrets, mut watch) = worlds().await;
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    world.script.put("/secrets/d/b", "x");
    world.script.put_encrypted("/secrets/d/c", "x");
    world.script.put("/secrets/d/d", "x");
    assert_eq!(item_now(&mut watch).await, None);
    world.script.state().decryption = Decryption::AnswersOnce;
    assert_eq!(next_items(&mut watch, 2).await, "+a@2 +b@3");
    world.settle().await;
    assert_eq!(item_now(&mut watch).await, None);
    assert_eq!(
        refusal(&secrets),
        "storage is (re)initializing: the value of /secrets/d/c cannot be decrypted yet"
    );
    world.script.state().decryption = Decryption::Answers;
    assert_eq!(next_items(&mut watch, 2).await, "+c@4 +d@5");
    secrets.ready().await.expect("all has been read");
}

/// The time that a change waits includes that of the changes before it.
#[tokio::test(start_paused = true)]
async fn no_change_waits_longer_than_the_first() {
    let (world, secrets, mut watch) = worlds().await;
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    world.clock.sleep(Duration::from_secs(5)).await;
    world.script.put_encrypted("/secrets/d/b", "x");
    world.clock.sleep(Duration::from_secs(3)).await;
    world.script.state().decryption = Decryption::AnswersOnce;
    world.clock.sleep(Duration::from_millis(6_900)).await;
    assert_eq!(item_now(&mut watch).await.as_deref(), Some("+a@2"));
    assert_eq!(item_now(&mut watch).await, None, "after 14.9 s");
    world.clock.sleep(Duration::from_millis(200)).await;
    assert_eq!(item_now(&mut watch).await.as_deref(), Some("end"));
    assert!(secrets.has_been_ready() && secrets.check_ready().is_err());
}

/// Keys have come that may decrypt what could not be read, and what is about to be found unreadable.
#[tokio::test(start_paused = true)]
async fn new_keys_list_again_whatever_waits_or_is_listed() {
    let (world, secrets, mut watch) = worlds().await;
    let pages = || world.script.state().pages;
    let before = pages();
    world.feed.relist_unreadable();
    world.settle().await;
    assert_eq!(pages(), before, "all types can be read");
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    world.settle().await;
    world.script.state().page_time = Duration::from_secs(2);
    world.feed.relist_unreadable();
    assert_eq!(next_item(&mut watch).await, "end");
    world.clock.sleep(Duration::from_secs(1)).await;
    // The page under way may have been decrypted with the old keys.
    world.feed.relist_unreadable();
    world.script.state().decryption = Decryption::Answers;
    secrets.ready().await.expect("listed");
    assert_eq!(pages(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn no_request_outlives_the_history_of_its_value() {
    let (world, _secrets, mut watch) = worlds().await;
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    world.settle().await;
    assert_eq!(world.script.decryptions_now(), 1);
    world.script.roll_back(1);
    // The new history begins once the watches of the old one have ended.
    while watch.next().await.is_some() {}
    world.settle().await;
    assert_eq!(world.script.decryptions_now(), 0);
}

/// A contradiction among the changes that waited is noticed as any other.
#[tokio::test(start_paused = true)]
async fn a_lost_change_is_noticed_after_a_wait() {
    let (world, secrets, mut watch) = worlds().await;
    world.script.put("/secrets/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/b", "x");
    world.script.delete_unsent("/secrets/d/a");
    world.script.put("/secrets/d/a", "y");
    world.settle().await;
    world.script.state().decryption = Decryption::Answers;
    assert_eq!(next_item(&mut watch).await, "end");
    secrets.ready().await.expect("listed");
    assert_eq!(secrets.kept().0, 2);
}

/// A type with a value that is being decrypted is listed again, and another value is waited for when the first one
/// comes.
#[tokio::test(start_paused = true)]
async fn a_value_that_comes_late_is_not_taken_for_another() {
    for is_followed in [true, false] {
        let (world, secrets) = with_late_request(is_followed).await;
        world.script.state().decryption = Decryption::Answers;
        world.clock.sleep(Duration::from_secs(5)).await;
        secrets.check_ready().expect("all has been read");
        let object = secrets.cached("/secrets/d/b").expect("it is there");
        assert_eq!(object.name(), "b", "followed: {is_followed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_comes_late_does_not_matter() {
    for is_followed in [true, false] {
        let (world, secrets) = with_late_request(is_followed).await;
        let pages = world.script.state().pages;
        world.script.state().decryption = Decryption::Fails;
        // The first request fails, the other one goes on.
        world.clock.sleep(Duration::from_millis(30)).await;
        world.script.state().decryption = Decryption::Hangs;
        let complaint = secrets.complaint().expect("it waits");
        assert!(!complaint.contains("there is no key"), "{complaint}");
        world.script.state().decryption = Decryption::Answers;
        world.clock.sleep(Duration::from_secs(5)).await;
        secrets.check_ready().expect("all has been read");
        let more = world.script.state().pages - pages;
        assert_eq!(more, usize::from(!is_followed), "followed: {is_followed}");
    }
}

/// Returns a world in which the value of a key is waited for, 30 ms after an earlier request for that of another would
/// have been answered first. The type is followed, or a page of its list takes a second.
async fn with_late_request(is_followed: bool) -> (World, Arc<Cacher>) {
    let (world, secrets, _watch) = worlds().await;
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    // Both requests look every 100 ms whether they can be answered, this one first.
    world.settle().await;
    world.script.put("/secrets/d/a", "y");
    world.feed.relist(&secrets);
    world.settle().await;
    secrets.check_ready().expect("listed");
    world.clock.sleep(Duration::from_millis(50)).await;
    if !is_followed {
        world.script.state().page_time = Duration::from_secs(1);
        world.feed.relist(&secrets);
        world.settle().await;
    }
    world.script.put_encrypted("/secrets/d/b", "x");
    world.clock.sleep(Duration::from_millis(30)).await;
    (world, secrets)
}

/// Nothing else happens that would wake the reflector.
#[tokio::test(start_paused = true)]
async fn a_value_of_a_list_is_soon_tried_again() {
    let (world, secrets, _watch) = worlds().await;
    for number in 0..2_001 {
        world.script.put(&format!("/secrets/d/{number:04}"), "x");
    }
    world.settle().await;
    world.script.state().page_time = Duration::from_secs(1);
    world.feed.relist(&secrets);
    world.clock.sleep(Duration::from_millis(1_500)).await;
    world.script.state().decryption = Decryption::Fails;
    world.script.put_encrypted("/secrets/d/0000", "y");
    world.clock.sleep(Duration::from_millis(700)).await;
    assert!(secrets.check_ready().is_err(), "it cannot be read");
    world.script.state().decryption = Decryption::Answers;
    world.clock.sleep(Duration::from_secs(1)).await;
    secrets.check_ready().expect("listed");
}

#[tokio::test(start_paused = true)]
async fn new_keys_list_again_what_could_not_be_read() {
    let (world, secrets, mut watch) = worlds().await;
    let pages = || world.script.state().pages;
    world
        .script
        .put_raw("/secrets/d/a", bytes::Bytes::from_static(b"no object"));
    world.settle().await;
    let before = pages();
    world.feed.relist_unreadable();
    assert_eq!(next_item(&mut watch).await, "end");
    secrets.ready().await.expect("listed");
    assert_eq!(pages(), before + 1, "of that type alone");
}

/// A reader that took its view before a wait must not take it for one of a type that was served all the time.
#[tokio::test(start_paused = true)]
async fn each_time_that_a_type_becomes_complete_is_counted() {
    let (world, secrets, _watch) = worlds().await;
    let generation = || secrets.readiness();
    assert_eq!(generation(), Readiness::Ready { generation: 1 });
    world.script.state().decryption = Decryption::Hangs;
    world.script.put_encrypted("/secrets/d/a", "x");
    world.settle().await;
    world.script.state().decryption = Decryption::Answers;
    secrets.ready().await.expect("read");
    assert_eq!(generation(), Readiness::Ready { generation: 2 });
    world.feed.relist(&secrets);
    world.settle().await;
    secrets.ready().await.expect("listed");
    assert_eq!(generation(), Readiness::Ready { generation: 3 });
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_deleted_while_its_value_waits_is_not_listed() {
    let (world, secrets, mut watch) = worlds().await;
    world.script.state().decryption = Decryption::Fails;
    world.script.put_encrypted("/secrets/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "end");
    world.clock.sleep(Duration::from_secs(100)).await;
    world.script.put_encrypted("/secrets/d/b", "x");
    world.settle().await;
    world.script.delete("/secrets/d/b");
    world.settle().await;
    world.script.state().decryption = Decryption::Answers;
    secrets.ready().await.expect("listed");
    let mut watch = secrets.watch("/secrets/", streamed(None)).await;
    let watch = watch.as_mut().expect("ready");
    assert_eq!(next_items(watch, 2).await, "+a@2 =4!");
}

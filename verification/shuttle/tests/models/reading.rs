//! Gets and lists while the store is written.

use futures::FutureExt;
use ringwatch_explore::shuttle::{Seen, explore_future};
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::meta::{ResourceVersion, VersionMatch};
use shuttle_tests::storage::cacher::WindowLimits;
use shuttle_tests::storage::{GetOptions, Interface, List, ListOptions, StorageError};
use shuttle_tests::sync::Arc;

use crate::informer::{Selection, key_of};
use crate::store::Store;
use crate::watching::changes;
use crate::world::{Pace, World};

/// The most pages that a list has.
const PAGES_MAX: usize = 10;

/// The number of times that a type is listed again, and the most times that a client looks whether that has begun.
const RELISTS: usize = 6;
const LOOKS: usize = 10;

/// The number of times that a reader waits until a type is ready, and that the type is listed again meanwhile. With few
/// a schedule seldom lists it at the moment at which it became ready.
const WAITS: usize = 30;

/// The number of times that a client lists while something else goes on, and the number of writes to the store
/// meanwhile.
const LISTS: usize = 12;
const ENCRYPTED_WRITES: usize = 8;

/// The number of clients that read meanwhile.
const READERS: usize = 3;

/// The most times that a client lists while a type is listed again.
const LISTS_MAX: usize = 10_000;

/// A client that reads in every way.
struct Reader {
    world: Arc<World>,
    seen: Seen,
}

impl Reader {
    async fn read(&self, times: usize) {
        for _ in 0..times {
            // `gen_range` is shuttle's, so that the seed decides this as well.
            let way = thread_rng().gen_range(0..6);
            match way {
                0 => self.newest().await,
                1 => self.not_older().await,
                2 => self.exact().await,
                3 => self.any().await,
                4 => self.pages().await,
                _ => self.object().await,
            }
        }
    }

    /// A list of the newest state holds every write that was acknowledged before it began.
    async fn newest(&self) {
        let before = self.world.store.revision();
        let fallen_back = self.world.store.lists();
        let list = self.list(Selection::All.options(None)).await;
        let list = list.expect("the cache's or the store's");
        assert!(list.revision >= before, "{} < {before}", list.revision);
        self.compare(&list);
        if self.world.store.lists() == fallen_back {
            self.seen.note("newest from memory");
        }
    }

    async fn not_older(&self) {
        let revision = self.world.store.revision();
        let begun = self.world.clock.now();
        match self.list(Selection::All.options(Some(revision))).await {
            Ok(list) => {
                assert!(list.revision >= revision, "{} < {revision}", list.revision);
                self.compare(&list);
            }
            Err(StorageError::TooLargeResourceVersion { .. }) => {
                self.world.gave_up(begun);
                self.seen.note("gave up at the deadline");
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn exact(&self) {
        let newest = self.world.store.revision();
        let begun = self.world.clock.now();
        let revision = thread_rng().gen_range(1..=newest);
        let options = ListOptions {
            version_match: Some(VersionMatch::Exact),
            ..Selection::Labelled.options(Some(revision))
        };
        match self.list(options).await {
            Ok(list) => {
                assert_eq!(list.revision, revision);
                self.compare_selected(&list, Selection::Labelled);
            }
            Err(StorageError::TooLargeResourceVersion { .. }) => self.world.gave_up(begun),
            Err(error) => panic!("{error}"),
        }
    }

    async fn any(&self) {
        let list = self.list(Selection::All.options(Some(0))).await;
        self.compare(&list.expect("as it is"));
    }

    /// All pages of a list are of one revision.
    async fn pages(&self) {
        let before = self.world.store.revision();
        let mut options = Selection::All.options(None);
        options.predicate.limit = 2;
        let mut whole = List::default();
        for _ in 0..PAGES_MAX {
            let page = self.list(options.clone()).await.expect("a page");
            if whole.revision == 0 {
                assert!(page.revision >= before, "{} < {before}", page.revision);
                whole.revision = page.revision;
            }
            assert_eq!(page.revision, whole.revision, "pages of two revisions");
            whole.items.extend(page.items);
            let Some(token) = page.continue_token else {
                return self.compare(&whole);
            };
            self.seen.note("a list of several pages");
            options.predicate.continue_token = token;
            yield_now().await;
        }
        panic!("a list without end");
    }

    /// An object is not older than requested.
    async fn object(&self) {
        let revision = self.world.store.revision();
        let begun = self.world.clock.now();
        let options = GetOptions {
            resource_version: Some(ResourceVersion(revision)),
        };
        let stored = self
            .world
            .store
            .selected(revision, |_, label| label.is_some());
        let stored = stored.get("/pods/d/a").copied().unwrap_or_default();
        match self.world.pods.get("/pods/d/a", options).await {
            Ok(object) => assert!(object.revision() >= stored, "an older object"),
            Err(StorageError::KeyNotFound { revision: at, .. }) => assert!(at >= revision),
            Err(StorageError::TooLargeResourceVersion { .. }) => self.world.gave_up(begun),
            Err(error) => panic!("{error}"),
        }
    }

    /// An object that will be written at a revision.
    async fn at_least(&self, revision: u64) {
        let options = GetOptions {
            resource_version: Some(ResourceVersion(revision)),
        };
        match self.world.pods.get("/pods/d/a", options).await {
            Ok(object) => {
                assert!(object.revision() >= revision, "an older object");
                self.seen.note("got");
            }
            // The type was not ready, and the store has not come so far.
            Err(StorageError::TooLargeResourceVersion { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Lists, after it went away from the same list once, perhaps.
    async fn list(&self, options: ListOptions) -> Result<List, StorageError> {
        let list = || self.world.pods.get_list("/pods/", options.clone());
        if thread_rng().gen_bool(0.3) && list().now_or_never().is_none() {
            self.seen.note("went away");
        }
        list().await
    }

    fn compare(&self, list: &List) {
        self.compare_selected(list, Selection::All);
    }

    fn compare_selected(&self, list: &List, selection: Selection) {
        let listed: Vec<_> = list
            .items
            .iter()
            .map(|it| (key_of(it), it.revision()))
            .collect();
        let selects = |key: &str, label| selection.selects(key, label);
        let stored = self.world.store.selected(list.revision, selects);
        let stored: Vec<_> = stored.into_iter().collect();
        assert_eq!(listed, stored, "at {}", list.revision);
    }
}

/// Reads in every way while the store is written.
async fn read(seen: Seen, pace: Pace) {
    let store = Store::new();
    store.write(&changes());
    let (world, running) = World::ready(pace, store).await;
    let writer = Arc::clone(&world);
    let mut tasks = vec![spawn(async move {
        for _ in 0..10 {
            writer.store.write(&changes());
            yield_now().await;
        }
    })];
    for _ in 0..READERS {
        let (world, seen) = (Arc::clone(&world), seen.clone());
        tasks.push(spawn(async move { Reader { world, seen }.read(4).await }));
    }
    running.finish(tasks).await;
}

#[test]
fn reads_are_as_fresh_as_they_promise() {
    let outcomes = [
        "newest from memory",
        "gave up at the deadline",
        "a list of several pages",
        "went away",
    ];
    explore_future(1000, &outcomes, |seen| read(seen, Pace::Quick));
}

/// The feed reaches every revision long before a deadline, and whoever waits for it is woken.
#[test]
fn nobody_waits_in_vain() {
    let outcomes = ["newest from memory", "a list of several pages", "went away"];
    explore_future(600, &outcomes, |seen| read(seen, Pace::Slow));
}

/// The feed's revision goes on with the other types while one is listed again, and must not become that
/// of what the type held before.
#[test]
fn a_list_against_a_relist_has_what_its_version_says() {
    explore_future(4000, &["listed", "not ready"], |seen| async move {
        let (world, running) = World::ready(Pace::Quick, Store::of_a_pod()).await;
        let writer = Arc::clone(&world);
        let writing = spawn(async move {
            for _ in 0..3 {
                writer.feed.relist(writer.pods.cacher());
                writer.store.write(&[("/pods/d/a", Some("x"))]);
                yield_now().await;
            }
        });
        list_as_it_is(Reader { world, seen }, LISTS).await;
        writing.await.expect("a task ends");
        running.stop().await;
    });
}

/// While changes of a type wait for a value the feed's revision goes on, and must not become that of what the type held
/// before.
#[test]
fn a_list_against_a_value_that_is_waited_for_has_what_its_version_says() {
    explore_future(2000, &["listed", "not ready"], |seen| async move {
        let store = Store::encrypting();
        store.write(&[("/pods/d/a", Some("x"))]);
        let (world, running) = World::ready(Pace::Quick, store).await;
        let writer = Arc::clone(&world);
        let writing = spawn(async move {
            for _ in 0..ENCRYPTED_WRITES {
                writer.store.write(&[("/pods/d/a", Some("x"))]);
                yield_now().await;
            }
        });
        list_as_it_is(Reader { world, seen }, LISTS).await;
        writing.await.expect("a task ends");
        running.stop().await;
    });
}

/// Lists whatever there is, again and again.
async fn list_as_it_is(reader: Reader, times: usize) {
    for _ in 0..times {
        match reader.list(Selection::All.options(Some(0))).await {
            Ok(list) => {
                reader.compare(&list);
                reader.seen.note("listed");
            }
            Err(StorageError::NotReady { .. }) => reader.seen.note("not ready"),
            Err(error) => panic!("{error}"),
        }
        yield_now().await;
    }
}

/// While a type is listed again the feed's revision goes on, and what the type held before is not as new. A
/// get that has waited for the revision must not serve that because the new list has come a moment later.
#[test]
fn a_get_against_a_relist_is_as_new_as_it_promises() {
    explore_future(1000, &["got"], |seen| async move {
        let store = Store::of_a_pod();
        let limits = WindowLimits::default();
        let (world, running) = World::start_at(Pace::Still, store, limits);
        let cacher = world.pods.cacher();
        for _ in 0..RELISTS {
            cacher.ready().await.expect("listed");
            let next = world.store.revision() + 1;
            let readers = [(); READERS].map(|()| {
                let (world, seen) = (Arc::clone(&world), seen.clone());
                spawn(async move { Reader { world, seen }.at_least(next).await })
            });
            // Those that come before the relist wait for the revision.
            for _ in 0..READERS {
                yield_now().await;
            }
            world.feed.relist(cacher);
            for _ in 0..LOOKS {
                if !cacher.readiness().is_ready() {
                    break;
                }
                yield_now().await;
            }
            world.store.write(&[("/pods/d/a", Some("x"))]);
            for reader in readers {
                reader.await.expect("a reader ends");
            }
        }
        running.stop().await;
    });
}

/// A type may be listed again at the moment at which it became ready. Whoever waits for that is not refused.
#[test]
fn whoever_waits_until_a_type_is_ready_is_not_refused() {
    explore_future(1000, &["ready"], |seen| async move {
        let store = Store::of_a_pod();
        let (world, running) = World::start(store, WindowLimits::default());
        let ordering = Arc::clone(&world);
        let ordering = spawn(async move {
            for _ in 0..WAITS {
                ordering.feed.relist(ordering.pods.cacher());
                yield_now().await;
            }
        });
        for _ in 0..WAITS {
            world.pods.cacher().ready().await.expect("ready in the end");
            seen.note("ready");
            yield_now().await;
        }
        ordering.await.expect("a task ends");
        running.stop().await;
    });
}

/// After a stream has lost changes, the next one can contradict what is cached. A read that waits for that
/// change must not be given the cached objects under the change's revision.
#[test]
fn a_read_never_shows_what_a_change_contradicts() {
    explore_future(500, &["listed", "not ready"], |seen| async move {
        let (a, b) = ("/pods/d/a", "/pods/d/b");
        let store = Store::new();
        store.write(&[(a, Some("x")), (b, Some("x"))]);
        let (world, running) = World::ready(Pace::Slow, store).await;
        world.store.write_unsent(&[(a, None), (b, None)]);
        let created = world.store.write(&[(a, Some("y"))]);
        let reader = Reader { world, seen };
        for _ in 0..LISTS_MAX {
            match reader.list(Selection::All.options(Some(created))).await {
                Ok(list) => {
                    reader.compare(&list);
                    reader.seen.note("listed");
                    return running.stop().await;
                }
                Err(StorageError::NotReady { .. }) => reader.seen.note("not ready"),
                Err(error) => panic!("{error}"),
            }
            yield_now().await;
        }
        panic!("not listed again");
    });
}

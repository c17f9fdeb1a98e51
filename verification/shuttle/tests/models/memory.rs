//! Windows that give way when memory is short, while they are read.

use std::time::Duration;

use ringwatch_explore::shuttle::explore_future;
use shuttle::future::{JoinHandle, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::budget::{Account, Ledger, Share};
use shuttle_tests::storage::Interface;
use shuttle_tests::storage::cacher::WindowLimits;
use shuttle_tests::sync::Arc;

use crate::informer::{Informer, Selection};
use crate::store::Store;
use crate::watching::{Trouble, write};
use crate::world::{Pace, World};

/// The limit of the budget: the windows below and half of what connections take are within its relief mark.
const LIMIT_BYTES: u64 = 160 << 10;

/// The number of connections that take and give back memory, the number of times that each does, and the size in bytes
/// that each has in the end: together so much that windows must give way.
const CONNECTIONS: usize = 3;
const CHANGES: usize = 4;
const CONNECTION_BYTES: u64 = 20 << 10;

/// The number of events, and the least size of an event in bytes.
const EVENTS: usize = 30;
const EVENT_BYTES_MIN: u64 = 2_500;

/// The age from which events may be dropped.
const OLD: Duration = Duration::from_secs(6);

/// The most times that the model looks whether memory has been freed, and the time that passes between two looks:
/// together more than the second between two attempts, and far less than the time after which windows are looked at
/// anyway.
const LOOKS_MAX: usize = 1_000;
const TICK: Duration = Duration::from_millis(2);

/// The limit of a budget in bytes under which windows owe memory as soon as next to nothing is in use.
const TIGHT_BYTES: u64 = 40 << 10;

/// A window that is dropped in many small pieces.
fn fine_window() -> WindowLimits {
    WindowLimits {
        events_max: 64,
        ..WindowLimits::default()
    }
}

/// Shrinks windows whenever memory becomes short, as the server does.
fn relieve(world: &Arc<World>) -> JoinHandle<()> {
    let world = Arc::clone(world);
    spawn(async move {
        loop {
            world.ledger.pressed().await;
            world.feed.shrink_windows();
        }
    })
}

/// Takes memory and gives it back, and keeps some.
async fn connect(ledger: Ledger) -> Share {
    let mut share = ledger.share(Account::Connections);
    for _ in 0..CHANGES {
        share.set(thread_rng().gen_range(0..2 * CONNECTION_BYTES));
        yield_now().await;
    }
    share.set(CONNECTION_BYTES);
    share
}

/// No event comes, so the windows shrink only because it is told that memory is short.
#[test]
fn windows_shrink_as_soon_as_memory_is_short() {
    explore_future(300, &["relieved"], |seen| async move {
        let store = Store::new();
        let ledger = Ledger::new(LIMIT_BYTES);
        let (world, running) = World::start_within(ledger, Pace::Still, store, fine_window());
        world.pods.cacher().ready().await.expect("listed");
        for _ in 0..EVENTS {
            world.store.write(&[("/pods/d/a", Some("x"))]);
        }
        let all = Selection::All.options(Some(world.store.revision()));
        let list = world.pods.get_list("/pods/", all).await;
        list.expect("all is sent");
        let ledger = world.ledger.clone();
        // A reader sees events before their bytes are counted.
        let mut looks = 0;
        while ledger.spent(Account::Windows) < EVENTS as u64 * EVENT_BYTES_MIN {
            looks += 1;
            assert!(looks < LOOKS_MAX, "the events are counted");
            yield_now().await;
        }
        assert_eq!(ledger.owed_by_windows(), 0, "memory suffices");
        let full = ledger.spent(Account::Windows);
        world.clock.advance(OLD);
        let relief = relieve(&world);
        let connecting = [(); CONNECTIONS].map(|()| spawn(connect(ledger.clone())));
        let mut connections = Vec::new();
        for connection in connecting {
            connections.push(connection.await.expect("a task ends"));
        }
        let mut looks = 0;
        while ledger.owed_by_windows() > 0 {
            looks += 1;
            assert!(looks < LOOKS_MAX, "windows waited in vain");
            world.clock.advance(TICK);
            yield_now().await;
        }
        assert!(ledger.spent(Account::Windows) < full, "they gave way");
        seen.note("relieved");
        relief.abort();
        running.stop().await;
    });
}

/// Whoever is slow is told so, as ever, and who is not misses nothing. In the end all memory is given back.
#[test]
fn informers_of_windows_that_shrink_miss_nothing() {
    explore_future(400, &["too old", "bookmark"], |seen| async move {
        let store = Store::new();
        let ledger = Ledger::new(TIGHT_BYTES);
        let (world, running) =
            World::start_within(ledger.clone(), Pace::Quick, store, fine_window());
        let relief = relieve(&world);
        let mut tasks = vec![spawn(write(Arc::clone(&world), 14, Trouble::Breaks))];
        for (number, selection) in Selection::PODS.into_iter().enumerate() {
            let informer = Informer::new(&world, &seen, selection, number % 2 == 0);
            tasks.push(spawn(informer.run()));
        }
        let connecting = connect(ledger.clone());
        tasks.push(spawn(async move { drop(connecting.await) }));
        for task in tasks {
            task.await.expect("a task ends");
        }
        relief.abort();
        running.stop().await;
        let spent: u64 = Account::ALL.map(|it| ledger.spent(it)).iter().sum();
        assert_eq!(ledger.total(), spent, "the accounts add up");
        drop(world);
        assert_eq!(ledger.total(), 0, "memory is left");
    });
}

//! Watchers that come and go at any time, against the list of those that are there.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// A watcher comes.
    Enter,
    /// One of them goes.
    Leave(usize),
    /// The queue is applied, without an event.
    Apply,
    /// An object is written.
    Put,
    /// Bookmarks become due.
    Minute,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Enter),
        5 => any::<usize>().prop_map(Step::Leave),
        1 => Just(Step::Apply),
        2 => Just(Step::Put),
        1 => Just(Step::Minute),
    ];
    proptest::collection::vec(step, 1..30)
}

async fn run(steps: Vec<Step>) {
    let world = World::new(WindowLimits::default()).await;
    let mut newest = world.script.put("/pods/d/a", "x");
    world.settle().await;
    let mut watches = Vec::new();
    for step in steps {
        match step {
            Step::Enter => watches.push(world.watch(bookmarked(Some(newest))).await),
            Step::Leave(_) if watches.is_empty() => {}
            Step::Leave(which) => drop(watches.swap_remove(which % watches.len())),
            Step::Apply => assert_eq!(world.pods.watch_count(), watches.len()),
            Step::Put => {
                newest = world.script.put("/pods/d/a", "x");
                world.settle().await;
                for watch in &mut watches {
                    assert_eq!(item_now(watch).await, Some(format!("~a@{newest}")));
                }
            }
            Step::Minute => {
                for watch in &mut watches {
                    assert_eq!(item_now(watch).await, None);
                }
                world.clock.sleep(Duration::from_secs(61)).await;
                for watch in &mut watches {
                    let bookmark = format!("={newest}");
                    assert_eq!(item_now(watch).await.as_ref(), Some(&bookmark));
                    // One that came within the minute before may have had one then, and has another now.
                    while let Some(item) = item_now(watch).await {
                        assert_eq!(item, bookmark);
                    }
                }
            }
        }
    }
    assert_eq!(world.pods.watch_count(), watches.len());
    for watch in &mut watches {
        assert_eq!(item_now(watch).await, None);
    }
    watches.clear();
    assert_eq!(world.pods.watch_count(), 0);
}

proptest! {
    #[test]
    fn events_and_bookmarks_are_for_those_who_are_there(steps in steps()) {
        let runtime = paused_runtime();
        runtime.block_on(run(steps));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_before_the_dispatcher_knows_it_leaves_its_number_to_the_next() {
    use Step::{Enter, Leave, Minute, Put};
    run(vec![Enter, Leave(0)]).await;
    run(vec![Enter, Leave(0), Enter, Put, Minute]).await;
    run(vec![
        Enter,
        Enter,
        Leave(0),
        Enter,
        Leave(0),
        Enter,
        Put,
        Minute,
    ])
    .await;
}

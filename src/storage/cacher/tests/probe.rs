//! The probe of the store's newest revision against readers that come and go at any time.
//!
//! The store answers in tokio's time and the probe spaces its requests in that of a manual clock, so that either may be
//! first.

use futures::FutureExt;
use futures::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::storage::cacher::freshness::revision_probe::RevisionProbe;

/// The time that the store takes to answer, and that requests are apart at least.
const MOMENT: Duration = Duration::from_millis(1);

/// Far more than the requests that are in flight at a time.
const STEPS_MAX: usize = 80;

#[derive(Clone, Debug)]
enum Step {
    /// A reader comes.
    Come,
    /// One of the readers goes.
    Go(usize),
    /// Somebody writes.
    Write,
    /// The store answers what it was asked.
    Answer,
    /// The time passes that requests are apart.
    Space,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Come),
        2 => any::<usize>().prop_map(Step::Go),
        1 => Just(Step::Write),
        2 => Just(Step::Answer),
        2 => Just(Step::Space),
    ];
    proptest::collection::vec(step, 1..STEPS_MAX)
}

/// A reader, and the newest revision when it came.
struct Reader<'a> {
    came_at: u64,
    answer: BoxFuture<'a, Result<u64, StorageError>>,
}

/// Takes the steps, then lets the store answer what it was asked and what the readers that wait have it asked.
async fn run(steps: Vec<Step>) {
    let script = Script::default();
    script.state().probe_time = MOMENT;
    let probe = RevisionProbe::default();
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let deadline = clock.now() + Duration::from_secs(3);
    let mut serving = std::pin::pin!(probe.serve(&script, &clock));
    let mut readers: Vec<Reader<'_>> = Vec::new();
    for step in steps.into_iter().chain([Step::Answer, Step::Answer]) {
        match step {
            Step::Come => readers.push(Reader {
                came_at: script.state().revision,
                answer: probe.revision(&clock, deadline).boxed(),
            }),
            Step::Go(_) if readers.is_empty() => {}
            Step::Go(which) => drop(readers.swap_remove(which % readers.len())),
            Step::Write => script.state().revision += 1,
            Step::Answer => tokio::time::advance(MOMENT).await,
            Step::Space => clock.advance(MOMENT),
        }
        // A poll may end one branch of the probe's choice, and drop the others.
        for _ in 0..4 {
            let mut waiting = Vec::new();
            for mut reader in readers {
                match reader.answer.as_mut().now_or_never() {
                    None => waiting.push(reader),
                    Some(answer) => assert!(answer.expect("in time") >= reader.came_at),
                }
            }
            readers = waiting;
            assert!(futures::poll!(&mut serving).is_pending());
        }
    }
    assert!(readers.is_empty(), "{} are not answered", readers.len());
}

proptest! {
    #[test]
    fn readers_are_answered_whoever_comes_and_goes(steps in steps()) {
        let runtime = paused_runtime();
        runtime.block_on(run(steps));
    }
}

/// The second reader comes while the first one's request is in flight, and before another may be sent: the end of that
/// request must not lose it.
#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_during_a_request_is_not_forgotten() {
    use Step::{Answer, Come};
    run(vec![Come, Come, Answer]).await;
    run(vec![Come, Come]).await;
}

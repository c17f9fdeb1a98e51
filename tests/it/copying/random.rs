//! Copies of random content, in random passes, with failures between them.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ringwatch::storage::backend::LeaseId;
use ringwatch::storage::backend::copy::NumberedLeases;

use super::faulty::{Failure, Faulty};
use super::resumed::{copied, prepared};
use super::{assert_past, content, delete, put, revision};

/// The number of keys.
const KEYS: usize = 8;
/// Maximum number of steps of a case.
const STEPS_MAX: usize = 40;

#[derive(Clone, Debug)]
enum Step {
    Put {
        key: usize,
        value: u8,
        is_leased: bool,
    },
    Delete {
        key: usize,
    },
    EndLease {
        of_target: bool,
    },
    Prepare {
        fail_after: Option<u64>,
        is_done: bool,
    },
    Complete {
        fail_after: u64,
        is_done: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..KEYS, 0..3_u8, any::<bool>())
            .prop_map(|(key, value, is_leased)| Step::Put { key, value, is_leased }),
        2 => (0..KEYS).prop_map(|key| Step::Delete { key }),
        1 => any::<bool>().prop_map(|of_target| Step::EndLease { of_target }),
        2 => (prop::option::of(0..60_u64), any::<bool>())
            .prop_map(|(fail_after, is_done)| Step::Prepare { fail_after, is_done }),
        1 => (0..30_u64, any::<bool>())
            .prop_map(|(fail_after, is_done)| Step::Complete { fail_after, is_done }),
    ]
}

fn failure(is_done: bool) -> Failure {
    match is_done {
        true => Failure::After,
        false => Failure::Before,
    }
}

/// Runs a case.
async fn run(steps: Vec<Step>) {
    let (source, target) = (Arc::new(Faulty::new()), Arc::new(Faulty::new()));
    for step in steps {
        match step {
            Step::Put {
                key,
                value,
                is_leased,
            } => {
                let lease = is_leased.then_some(LeaseId(5));
                if let Some(lease) = lease {
                    source.grant_numbered(lease, 600).await.unwrap();
                }
                put(&*source, &format!("/{key}"), &value.to_string(), lease).await;
            }
            Step::Delete { key } => delete(&*source, &format!("/{key}")).await,
            Step::EndLease { of_target } => {
                let store = if of_target { &target } else { &source };
                store.end_lease(LeaseId(5)).await;
            }
            Step::Prepare {
                fail_after,
                is_done,
            } => {
                if let Some(after) = fail_after {
                    target.fail(after, failure(is_done));
                }
                let passed = prepared(&source, &target).await;
                assert_eq!(passed.is_err(), target.mend(), "{passed:?}");
            }
            Step::Complete {
                fail_after,
                is_done,
            } => {
                target.fail(fail_after, failure(is_done));
                let is_whole = copied(&source, &target).await.is_ok();
                let has_failed = target.mend();
                assert_eq!(is_whole, !has_failed);
                let newest = revision(&*source).await;
                let keys = super::keys(&*target).await;
                let marker = keys.iter().any(|kv| kv.key == "ringwatch/copy");
                if !keys.is_empty() && !marker || is_whole {
                    assert_eq!(content(&*target).await, content(&*source).await);
                    assert_past(&*target, newest).await;
                    return;
                }
            }
        }
    }
    copied(&source, &target).await.expect("a copy");
    assert_eq!(content(&*target).await, content(&*source).await);
    assert_past(&*target, revision(&*source).await).await;
}

#[test]
fn random_copies_end_equal() {
    let config = Config {
        source_file: Some(file!()),
        ..Config::default()
    };
    let steps = prop::collection::vec(step(), 0..STEPS_MAX);
    let ran = TestRunner::new(config).run(&steps, |steps| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(run(steps));
        Ok(())
    });
    ran.expect("copies that end equal");
}

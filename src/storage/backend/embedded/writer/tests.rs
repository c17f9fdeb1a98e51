//! The writer over logs that record, fail and recover.

use bytes::Bytes;
use tokio::sync::oneshot;

use super::execute::PUT_OVERHEAD_BYTES;
use super::*;
use crate::budget::Account;
use crate::clock::Clock;
use crate::storage::backend::embedded::log::{MemoryLog, RecordingLog, room};
use crate::storage::backend::embedded::request::Reply;
use crate::storage::backend::{Compare, LeaseId, Op, Txn, TxnResponse};
use crate::sync::Mutex;

/// Returns a request that writes a key, and the receiver of its outcome.
fn put() -> (
    WriterRequest,
    oneshot::Receiver<Result<TxnResponse, BackendError>>,
) {
    put_bytes(0)
}

/// Returns a request that writes so many bytes under a key, and the receiver of its outcome.
fn put_bytes(
    len: usize,
) -> (
    WriterRequest,
    oneshot::Receiver<Result<TxnResponse, BackendError>>,
) {
    let (reply, outcome) = oneshot::channel();
    let txn = Txn {
        compare: Compare::Version("/never".to_owned(), 0),
        then: Op::Put {
            key: "/a".to_owned(),
            value: vec![0; len].into(),
            lease: None,
        },
        otherwise: None,
    };
    (WriterRequest::Txn(txn, reply), outcome)
}

fn writer(log: &RecordingLog) -> Writer {
    let log = Box::new(log.clone());
    Writer::new(State::new(), LeaseBook::default(), log, Vec::new())
}

#[test]
fn nothing_is_shown_or_answered_before_it_is_durable() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let published = writer.published();
    let (request, mut outcome) = put();
    let (sender, revisions) = std::sync::mpsc::channel();
    let seen = Arc::clone(&published);
    log.0.lock().unwrap().during_commit = Some(Box::new(move || {
        sender.send(seen.borrow().state.revision()).unwrap();
    }));
    assert!(outcome.try_recv().is_err());
    writer.commit(vec![request]);
    assert_eq!(revisions.try_iter().collect::<Vec<_>>(), [1]);
    assert_eq!(published.borrow().state.revision(), 2);
    assert_eq!(outcome.try_recv().unwrap().unwrap().revision, 2);
}

type Outcome = Box<dyn FnMut() -> Option<Result<(), BackendError>> + Send>;

/// Returns a request, and what tells its outcome once it has one.
fn asked<T: Send + 'static>(
    request: impl FnOnce(Reply<T>) -> WriterRequest,
) -> (WriterRequest, Outcome) {
    let (reply, mut receiver) = oneshot::channel::<Result<T, BackendError>>();
    let outcome = move || receiver.try_recv().ok().map(|it| it.map(drop));
    (request(reply), Box::new(outcome))
}

/// Returns requests of every kind with their outcomes, of which some write nothing: the first one writes a key.
fn of_every_kind() -> (Vec<WriterRequest>, Vec<Outcome>) {
    let now = Clock::real().now();
    let key = || "/a".to_owned();
    let put = |lease| Op::Put {
        key: key(),
        value: Bytes::new(),
        lease,
    };
    let txn = |revision: u64, then: Op, otherwise: Option<Op>| {
        let compare = Compare::ModRevision(key(), revision);
        let txn = Txn {
            compare,
            then,
            otherwise,
        };
        asked(|reply| WriterRequest::Txn(txn, reply))
    };
    let get = || Op::Get { key: key() };
    let grant = |ttl_seconds| {
        asked(move |reply| WriterRequest::Grant {
            ttl_seconds,
            now,
            reply,
        })
    };
    let compact = |revision| asked(move |reply| WriterRequest::Compact { revision, reply });
    let requests = [
        txn(0, put(None), None),
        txn(0, put(None), None),
        txn(0, put(None), Some(get())),
        txn(2, get(), None),
        txn(2, put(Some(LeaseId(7))), None),
        txn(1, Op::Delete { key: key() }, None),
        txn(2, Op::Delete { key: key() }, None),
        txn(0, Op::Delete { key: key() }, None),
        grant(60),
        grant(i64::MAX),
        compact(2),
        compact(u64::MAX),
        asked(move |reply| WriterRequest::Expire { now, reply }),
    ];
    requests.into_iter().unzip()
}

/// A reader that was told of a write by the failed comparison of its own one would lose it in a crash.
#[test]
fn nothing_of_a_batch_is_answered_before_it_is_durable() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let (requests, outcomes) = of_every_kind();
    let count = outcomes.len();
    let outcomes = Arc::new(Mutex::new(outcomes));
    let (sender, answered) = std::sync::mpsc::channel();
    let during = Arc::clone(&outcomes);
    log.0.lock().unwrap().during_commit = Some(Box::new(move || {
        let mut outcomes = during.lock().unwrap();
        let early = outcomes.iter_mut().filter_map(|outcome| outcome()).count();
        sender.send(early).unwrap();
    }));
    writer.commit(requests);
    assert_eq!(answered.try_iter().collect::<Vec<_>>(), [0]);
    let mut outcomes = outcomes.lock().unwrap();
    let answered = outcomes.iter_mut().filter_map(|outcome| outcome());
    assert_eq!(answered.count(), count);
}

/// The writes that a request of the batch saw are not there, so even its refusal would be a lie.
#[test]
fn a_batch_that_fails_fails_as_a_whole() {
    let log = RecordingLog::default();
    log.0.lock().unwrap().broken = true;
    let mut writer = writer(&log);
    let (requests, mut outcomes) = of_every_kind();
    writer.commit(requests);
    let failed = Some(Err(BackendError::ReadOnly("the disk is full".to_owned())));
    for outcome in &mut outcomes {
        assert_eq!(outcome(), failed);
    }
}

#[test]
fn a_log_that_fails_refuses_all_writes_until_it_has_recovered() {
    let log = RecordingLog::default();
    log.0.lock().unwrap().broken = true;
    let mut writer = writer(&log);
    let refused = BackendError::ReadOnly("the disk is full".to_owned());
    let ((first, mut one), (second, mut two)) = (put(), put());
    writer.commit(vec![first, second]);
    log.0.lock().unwrap().broken = false;
    let (third, mut three) = put();
    writer.commit(vec![third]);
    for outcome in [&mut one, &mut two, &mut three] {
        assert_eq!(outcome.try_recv().unwrap().unwrap_err(), refused);
    }
    assert_eq!(log.0.lock().unwrap().batches, [vec![2, 3]]);
    let published = writer.published();
    assert_eq!(published.borrow().state.revision(), 1);
    assert_eq!(published.borrow().refusal, Some(refused));
    let (reply, mut recovered) = oneshot::channel();
    let now = Clock::real().now();
    let (fourth, mut four) = put();
    writer.commit(vec![fourth, WriterRequest::Recover { now, reply }]);
    assert_eq!(recovered.try_recv().unwrap(), Ok(()));
    assert_eq!(four.try_recv().unwrap().unwrap().revision, 2);
    assert_eq!(published.borrow().refusal, None);
    assert_eq!(published.borrow().state.revision(), 2);
}

#[test]
fn a_log_that_is_damaged_refuses_the_writes_that_come_with_its_verification() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    log.0.lock().unwrap().broken = true;
    let (reply, mut verified) = oneshot::channel();
    let (write, mut outcome) = put();
    writer.commit(vec![write, WriterRequest::Verify { reply }]);
    let refused = BackendError::ReadOnly("the disk is damaged".to_owned());
    assert_eq!(verified.try_recv().unwrap(), Err(refused.clone()));
    assert_eq!(outcome.try_recv().unwrap().unwrap_err(), refused);
    assert!(log.0.lock().unwrap().batches.is_empty());
    assert_eq!(writer.published().borrow().refusal, Some(refused));
    log.0.lock().unwrap().broken = false;
    recover(&mut writer).unwrap();
    let (reply, mut verified) = oneshot::channel();
    writer.commit(vec![WriterRequest::Verify { reply }]);
    assert_eq!(verified.try_recv().unwrap(), Ok(()));
}

#[test]
fn the_quota_refuses_puts_and_takes_deletions() {
    let mut writer = Writer::new(
        State::new(),
        LeaseBook::default(),
        Box::new(MemoryLog::default()),
        Vec::new(),
    );
    writer.set_limits(Some(1_000), &Ledger::unlimited());
    let published = writer.published();
    let mut taken = 0;
    let refused = loop {
        let (request, mut outcome) = put();
        writer.commit(vec![request]);
        match outcome.try_recv().unwrap() {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, BackendError::NoSpace);
    assert!(taken > 3, "{taken}");
    assert!(published.borrow().no_space);
    let (reply, mut deleted) = oneshot::channel();
    let revision = writer.state.revision();
    let txn = Txn {
        compare: Compare::ModRevision("/a".to_owned(), revision),
        then: Op::Delete {
            key: "/a".to_owned(),
        },
        otherwise: None,
    };
    writer.commit(vec![WriterRequest::Txn(txn, reply)]);
    let revision = deleted.try_recv().unwrap().unwrap().revision;
    let (reply, mut compacted) = oneshot::channel();
    writer.commit(vec![WriterRequest::Compact { revision, reply }]);
    assert_eq!(compacted.try_recv().unwrap(), Ok(()));
    while writer.has_removals() {
        writer.commit(Vec::new());
    }
    assert!(!published.borrow().no_space);
    assert!(published.borrow().used_bytes < 200);
    let (request, mut outcome) = put();
    writer.commit(vec![request]);
    assert!(outcome.try_recv().unwrap().is_ok());
}

#[test]
fn a_history_at_its_bound_is_compacted_by_the_batch_that_exceeds_it() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let ledger = Ledger::new(128 << 20);
    writer.set_limits(None, &ledger);
    let published = writer.published();
    let mut most = 0;
    for _ in 0..40 {
        writer.commit(vec![put_bytes(1 << 20).0]);
        let history_bytes = published.borrow().state.history_bytes();
        assert_eq!(ledger.spent(Account::History), history_bytes);
        most = most.max(history_bytes);
    }
    assert!((15 << 20..=16 << 20).contains(&most), "{most}");
    let compacted = published.borrow().state.compacted();
    assert!(
        (25..34).contains(&compacted),
        "half of it stays: {compacted}"
    );
    assert_eq!(log.0.lock().unwrap().compacted, compacted, "durably");
    let kept = published.borrow().state.revision() - compacted;
    assert!(kept >= 7, "{kept}");
    writer.commit(Vec::new());
    assert!(!writer.has_removals());
}

#[test]
fn a_batch_larger_than_the_bound_leaves_what_watches_have_to_read() {
    let mut writer = writer(&RecordingLog::default());
    writer.set_limits(None, &Ledger::new(128 << 20));
    writer.commit(vec![put_bytes(1).0]);
    let published = writer.published();
    let read = published.borrow().state.revision();
    writer.commit((0..20).map(|_| put_bytes(1 << 20).0).collect());
    assert_eq!(published.borrow().state.compacted(), read + 1);
    writer.commit(Vec::new());
    let state = published.borrow().state.clone();
    assert!(state.compacted() > read + 1);
    assert!(state.history_bytes() <= 8 << 20);
}

#[test]
fn a_compaction_at_the_bound_that_fails_is_done_after_recovery() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    writer.set_limits(None, &Ledger::new(128 << 20));
    for _ in 0..17 {
        writer.commit(vec![put_bytes(1 << 20).0]);
    }
    let state = |writer: &Writer| writer.published().borrow().state.clone();
    let before = state(&writer).compacted();
    log.0.lock().unwrap().broken = true;
    for _ in 0..20 {
        writer.commit(vec![put_bytes(1 << 20).0]);
    }
    assert_eq!(state(&writer).compacted(), before);
    log.0.lock().unwrap().broken = false;
    recover(&mut writer).unwrap();
    for _ in 0..17 {
        writer.commit(vec![put_bytes(1 << 20).0]);
    }
    assert!(state(&writer).compacted() > before);
    assert!(state(&writer).history_bytes() <= 16 << 20);
}

fn recover(writer: &mut Writer) -> Result<(), BackendError> {
    let (reply, mut recovered) = oneshot::channel();
    let now = Clock::real().now();
    writer.commit(vec![WriterRequest::Recover { now, reply }]);
    recovered.try_recv().unwrap()
}

/// Returns the outcomes of two puts in one batch under a quota.
fn put_twice(quota_bytes: u64) -> [bool; 2] {
    let log = Box::new(MemoryLog::default());
    let mut writer = Writer::new(State::new(), LeaseBook::default(), log, Vec::new());
    writer.set_limits(Some(quota_bytes), &Ledger::unlimited());
    let ((first, mut one), (second, mut two)) = (put(), put());
    writer.commit(vec![first, second]);
    [&mut one, &mut two].map(|it| it.try_recv().unwrap().is_ok())
}

#[test]
fn the_quota_is_exact_and_counts_the_batch_at_hand() {
    let one = room("/a".len() + PUT_OVERHEAD_BYTES);
    assert_eq!(put_twice(one - 1), [false, false]);
    assert_eq!(put_twice(one), [true, false]);
    assert_eq!(put_twice(2 * one - 1), [true, false]);
    assert_eq!(put_twice(2 * one), [true, true]);
}

#[test]
fn watchers_are_notified_of_news_alone() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let mut news = writer.published().subscribe();
    let mut is_news = || {
        let is_news = news.has_changed().unwrap();
        news.mark_unchanged();
        is_news
    };
    let is_refusing = writer.is_refusing();
    writer.commit(vec![put().0]);
    assert!(is_news());
    assert!(!is_refusing.has_changed().unwrap(), "recovery sleeps on");
    writer.commit(Vec::new());
    assert!(!is_news());
    log.0.lock().unwrap().broken = true;
    writer.commit(vec![put().0]);
    assert!(is_news(), "writes are refused");
    writer.commit(vec![put().0]);
    assert!(!is_news());
    log.0.lock().unwrap().broken = false;
    recover(&mut writer).unwrap();
    assert!(is_news(), "writes are taken again");
}

#[test]
fn the_next_expiry_is_told_when_it_changes() {
    let mut writer = writer(&RecordingLog::default());
    let mut expiry = writer.expiry();
    writer.commit(vec![put().0]);
    assert!(!expiry.has_changed().unwrap());
    let now = Clock::real().now();
    for (ttl_seconds, is_sooner) in [(60, true), (90, false), (30, true)] {
        let (reply, mut granted) = oneshot::channel();
        writer.commit(vec![WriterRequest::Grant {
            ttl_seconds,
            now,
            reply,
        }]);
        granted.try_recv().unwrap().unwrap();
        assert_eq!(expiry.has_changed().unwrap(), is_sooner, "{ttl_seconds} s");
        expiry.mark_unchanged();
    }
}

#[test]
fn a_compaction_that_was_written_after_all_is_found_on_recovery() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    for _ in 0..3 {
        writer.commit(vec![put().0]);
    }
    log.0.lock().unwrap().broken = true;
    let (reply, mut compacted) = oneshot::channel();
    writer.commit(vec![WriterRequest::Compact { revision: 3, reply }]);
    assert!(compacted.try_recv().unwrap().is_err());
    let state = |writer: &Writer| writer.published().borrow().state.clone();
    assert_eq!(state(&writer).compacted(), 0);
    let mut recording = log.0.lock().unwrap();
    (recording.broken, recording.compacted) = (false, 3);
    drop(recording);
    recover(&mut writer).unwrap();
    assert_eq!(state(&writer).compacted(), 3);
    assert_eq!(log.0.lock().unwrap().removed, [2], "nobody needs it");
}

/// Whatever of the batch was not written: the lease goes on, with its keys, and ends later.
#[test]
fn a_lease_whose_expiry_failed_expires_after_the_recovery() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let now = Clock::real().now();
    let after = |seconds| now + std::time::Duration::from_secs(seconds);
    let (reply, mut granted) = oneshot::channel();
    writer.commit(vec![WriterRequest::Grant {
        ttl_seconds: 60,
        now,
        reply,
    }]);
    let lease = granted.try_recv().unwrap().unwrap();
    let op = Op::Put {
        key: "/a".to_owned(),
        value: Bytes::new(),
        lease: Some(lease),
    };
    let compare = Compare::ModRevision("/a".to_owned(), 0);
    let (put, _) = asked(|reply| {
        let txn = Txn {
            compare,
            then: op,
            otherwise: None,
        };
        WriterRequest::Txn(txn, reply)
    });
    writer.commit(vec![put]);
    let expire = |writer: &mut Writer, now| {
        let (expire, mut expired) = asked(|reply| WriterRequest::Expire { now, reply });
        writer.commit(vec![expire]);
        expired().unwrap()
    };
    log.0.lock().unwrap().broken = true;
    expire(&mut writer, after(61)).unwrap_err();
    {
        let mut recording = log.0.lock().unwrap();
        recording.broken = false;
        recording.leases = vec![(lease, 60)];
    }
    recover(&mut writer).unwrap();
    let is_there = |writer: &Writer| writer.state.get("/a").is_some();
    assert!(is_there(&writer));
    assert!(writer.expiry().borrow().is_some(), "somebody waits for it");
    expire(&mut writer, after(3_600)).unwrap();
    assert!(!is_there(&writer));
}

#[test]
fn a_closed_store_does_not_recover() {
    let mut writer = writer(&RecordingLog::default());
    writer.close();
    recover(&mut writer).unwrap_err();
    let (request, mut outcome) = put();
    writer.commit(vec![request]);
    assert!(outcome.try_recv().unwrap().is_err());
}

#[test]
fn what_writes_nothing_costs_no_commit() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let (reply, mut outcome) = oneshot::channel();
    let delete = Op::Delete {
        key: "/a".to_owned(),
    };
    let txn = Txn {
        compare: Compare::ModRevision("/a".to_owned(), 0),
        then: delete,
        otherwise: None,
    };
    writer.commit(vec![WriterRequest::Txn(txn, reply)]);
    assert_eq!(outcome.try_recv().unwrap().unwrap().revision, 1);
    assert!(log.0.lock().unwrap().batches.is_empty());
}

#[test]
fn a_compaction_is_removed_from_the_log_in_parts() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    for _ in 0..REMOVALS_PER_BATCH_MAX + 2 {
        writer.commit(vec![put().0]);
    }
    let (reply, mut outcome) = oneshot::channel();
    let revision = writer.state.revision();
    writer.commit(vec![WriterRequest::Compact { revision, reply }]);
    assert_eq!(outcome.try_recv().unwrap(), Ok(()));
    assert_eq!(writer.obsolete.len(), REMOVALS_PER_BATCH_MAX + 1);
    writer.commit(Vec::new());
    assert_eq!(writer.obsolete.len(), 1);
    writer.commit(Vec::new());
    assert!(!writer.has_removals());
}

/// The recovery and the writes that waited for it may come together.
#[test]
fn a_batch_that_failed_takes_no_room() {
    let log = RecordingLog::default();
    let mut writer = writer(&log);
    let one = room("/a".len() + PUT_OVERHEAD_BYTES);
    writer.set_limits(Some(one), &Ledger::unlimited());
    log.0.lock().unwrap().broken = true;
    writer.commit(vec![put().0]);
    log.0.lock().unwrap().broken = false;
    let (reply, _recovered) = oneshot::channel();
    let now = Clock::real().now();
    let (request, mut outcome) = put();
    writer.commit(vec![WriterRequest::Recover { now, reply }, request]);
    outcome.try_recv().unwrap().expect("there is room");
}

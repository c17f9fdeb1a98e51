//! Models of `ring/log.rs`.
//!
//! The values are 1, 2, 3, ... in the order of appending, and the base is the last value before the
//! first that is kept, so that each model can check everything that a reader finds.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use ringwatch_explore::loom::{Seen, explore};

use crate::ring::log::{Log, Reader, Slot, Writer, log};

/// Appends values and publishes them at once.
fn publish<const N: usize>(writer: &mut Writer<u64, u64>, values: [u64; N]) {
    for value in values {
        writer.append(value);
    }
    writer.publish();
}

/// Evicts the oldest segment; the base is its last value.
fn evict(writer: &mut Writer<u64, u64>) {
    let base = *writer.last_of(1).expect("there is a segment");
    drop(writer.evict(1, base));
}

/// Reads a log that was never reset, checks that nothing is missing, and returns the newest value.
fn check(reader: &Reader<u64, u64>) -> u64 {
    let (first, end) = (reader.first(), reader.end());
    assert!(first <= end, "the base is later than the end");
    assert_eq!(*reader.base(), first, "the base belongs to another window");
    for number in first..end {
        assert_eq!(reader.slot(number), Slot::Value(&(number + 1)));
    }
    assert_eq!(reader.slot(end), Slot::Future);
    if let Some(gone) = first.checked_sub(1) {
        assert_eq!(reader.slot(gone), Slot::Gone);
    }
    let values: Vec<u64> = reader.values(0).copied().collect();
    assert_eq!(values, (first + 1..=end).collect::<Vec<_>>());
    assert_eq!(reader.last().copied(), values.last().copied());
    assert_eq!(reader.partition_point(|_| false), first);
    assert_eq!(reader.partition_point(|_| true), end);
    end
}

#[test]
fn a_reader_sees_what_was_written_before_the_publish() {
    explore(15, &["before", "after"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        let written = Arc::new(AtomicU64::new(0));
        let (noted, read) = (seen.clone(), Arc::clone(&written));
        let reader = thread::spawn(move || {
            if check(&log.read()) == 0 {
                noted.note("before");
            } else {
                assert_eq!(read.load(Ordering::Relaxed), 7, "published too early");
                noted.note("after");
            }
        });
        written.store(7, Ordering::Relaxed);
        publish(&mut writer, [1]);
        reader.join().expect("the reader ends");
    });
}

/// Publishes the two values after `before` in some way, beside a reader that sees both of them or none.
fn is_seen_whole(
    seen: &Seen,
    (mut writer, log): (Writer<u64, u64>, Log<u64, u64>),
    before: u64,
    publish: impl FnOnce(&mut Writer<u64, u64>),
) {
    let noted = seen.clone();
    let reader = thread::spawn(move || match check(&log.read()) {
        newest if newest == before => noted.note("before"),
        newest if newest == before + 2 => noted.note("after"),
        newest => panic!("a batch of two ends with {newest}"),
    });
    publish(&mut writer);
    reader.join().expect("the reader ends");
}

#[test]
fn a_batch_is_seen_whole_or_not_at_all() {
    explore(15, &["before", "after"], |seen: &Seen| {
        is_seen_whole(seen, log(0), 0, |writer| publish(writer, [1, 2]));
    });
}

/// The segment is listed already, so only the end shows the values.
#[test]
fn a_batch_in_a_listed_segment_is_seen_whole_or_not_at_all() {
    explore(5, &["before", "after"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        publish(&mut writer, [1]);
        is_seen_whole(seen, (writer, log), 1, |writer| publish(writer, [2, 3]));
    });
}

#[test]
fn a_batch_over_two_segments_is_seen_whole_or_not_at_all() {
    explore(15, &["before", "after"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        publish(&mut writer, [1]);
        is_seen_whole(seen, (writer, log), 1, |writer| {
            writer.append(2);
            writer.seal();
            publish(writer, [3]);
        });
    });
}

/// A thread reads twice: the window never goes back.
#[test]
fn a_later_read_is_never_older() {
    explore(100, &["0 0", "0 1", "0 2", "1 1", "1 2", "2 2"], |seen| {
        let (mut writer, log) = log(0);
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let first = log.read();
            let second = log.read();
            assert!(first.first() <= second.first(), "the window went back");
            noted.note(match (check(&first), check(&second)) {
                (0, 0) => "0 0",
                (0, 1) => "0 1",
                (0, 2) => "0 2",
                (1, 1) => "1 1",
                (1, 2) => "1 2",
                (2, 2) => "2 2",
                other => panic!("the end went back: {other:?}"),
            });
        });
        publish(&mut writer, [1]);
        publish(&mut writer, [2]);
        reader.join().expect("the reader ends");
    });
}

/// A thread that synchronises with what another has read, reads nothing older.
#[test]
fn a_read_is_not_older_than_one_it_was_told_of() {
    explore(3000, &["before", "after"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        let known = Arc::new(AtomicU64::new(0));
        let (reader, handle) = (Arc::clone(&known), log.clone());
        let first = thread::spawn(move || {
            reader.store(handle.read().end(), Ordering::Release);
        });
        let noted = seen.clone();
        let second = thread::spawn(move || {
            let at_least = known.load(Ordering::Acquire);
            let newest = check(&log.read());
            assert!(newest >= at_least, "older than what it synchronised with");
            noted.note(if at_least == 0 { "before" } else { "after" });
        });
        publish(&mut writer, [1]);
        first.join().expect("the first reader ends");
        second.join().expect("the second reader ends");
    });
}

/// The window slides while a reader keeps a position and what it read before.
#[test]
fn a_window_that_slides_takes_nothing_from_a_reader() {
    explore(40, &["kept", "gone"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        publish(&mut writer, [1, 2]);
        writer.seal();
        publish(&mut writer, [3]);
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let before = log.read();
            let position = before.first();
            check(&before);
            let after = log.read();
            let kept = match after.slot(position) {
                Slot::Value(value) => *value == position + 1,
                Slot::Gone => false,
                Slot::Future => panic!("a position that was read lies ahead"),
            };
            noted.note(if kept { "kept" } else { "gone" });
            check(&after);
            // What was read before is there for as long as its reader is.
            check(&before);
        });
        evict(&mut writer);
        publish(&mut writer, [4]);
        reader.join().expect("the reader ends");
    });
}

/// A value that was just published is evicted at once: a reader that looks between finds the one or the other, and
/// never a base without the values before it.
#[test]
fn a_window_that_is_emptied_has_a_base_for_its_end() {
    explore(40, &["before", "full", "empty"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let reader = log.read();
            let newest = check(&reader);
            noted.note(match (newest, reader.last()) {
                (0, None) => "before",
                (2, Some(2)) => "full",
                (2, None) => "empty",
                other => panic!("a window of {other:?}"),
            });
        });
        publish(&mut writer, [1, 2]);
        evict(&mut writer);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn a_search_finds_its_place_while_the_window_grows_and_slides() {
    explore(40, &["no value", "a value", "past it"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        publish(&mut writer, [1, 2]);
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let reader = log.read();
            check(&reader);
            let place = reader.partition_point(|value| *value <= 2);
            let expected = reader.values(0).filter(|value| **value <= 2).count() as u64;
            assert_eq!(place, reader.first() + expected);
            noted.note(match reader.slot(place) {
                Slot::Future => "no value",
                Slot::Value(_) if expected > 0 => "a value",
                Slot::Value(_) => "past it",
                Slot::Gone => panic!("a search left the window"),
            });
        });
        // Two segments that a reader may find listed and not yet published.
        writer.seal();
        writer.append(3);
        writer.seal();
        publish(&mut writer, [4]);
        evict(&mut writer);
        reader.join().expect("the reader ends");
    });
}

/// The content is listed anew: the old values go, and the number that somebody waits for is none of
/// the new ones.
#[test]
fn a_reset_leaves_out_the_number_that_was_waited_for() {
    const NEW_BASE: u64 = 100;
    explore(35, &["old", "empty", "new"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        publish(&mut writer, [1]);
        let awaited = log.read().end();
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let reader = log.read();
            if *reader.base() != NEW_BASE {
                assert_eq!(check(&reader), 1);
                assert_eq!(reader.slot(awaited), Slot::Future);
                return noted.note("old");
            }
            assert_eq!(reader.slot(awaited), Slot::Gone, "taken for another");
            let next = awaited + 1;
            assert_eq!(reader.first(), next);
            if reader.end() == next {
                assert_eq!(reader.last(), None);
                return noted.note("empty");
            }
            assert_eq!(reader.slot(next), Slot::Value(&101));
            assert_eq!(reader.end(), next + 1);
            noted.note("new");
        });
        drop(writer.reset(NEW_BASE));
        publish(&mut writer, [101]);
        reader.join().expect("the reader ends");
    });
}

/// A reader goes on from where it was, over a slide: each value once, in order, or it finds that
/// some are gone.
#[test]
fn a_position_that_is_read_on_from_misses_nothing() {
    explore(40, &["in two", "at once", "gone"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        publish(&mut writer, [1]);
        let handle = log.clone();
        let reader = thread::spawn(move || {
            let mut values = Vec::new();
            read_on(&handle, &mut values);
            values
        });
        writer.seal();
        publish(&mut writer, [2, 3]);
        evict(&mut writer);
        let mut values = reader.join().expect("the reader ends");
        let before = values.len();
        if read_on(&log, &mut values) {
            assert_eq!(before, 0, "a position in the window was lost");
            return seen.note("gone");
        }
        assert_eq!(values, [1, 2, 3]);
        seen.note(match before {
            1 => "in two",
            3 => "at once",
            other => panic!("a batch was split after {other}"),
        });
    });
}

/// Reads from the end of what was read; says whether some of what follows is gone.
fn read_on(log: &Log<u64, u64>, values: &mut Vec<u64>) -> bool {
    let reader = log.read();
    let from = values.len() as u64;
    if reader.first() > from {
        return true;
    }
    values.extend(reader.values(from));
    false
}

/// Attaching against publishing: a watcher registers, reads the window to its end, and from then on
/// goes by the numbers pushed to it, skipping those that it has. No gap, nothing twice.
#[test]
fn a_watcher_that_attaches_misses_nothing_and_gets_nothing_twice() {
    let outcomes = ["read", "pushed", "both, once"];
    explore(60, &outcomes, |seen: &Seen| {
        let (mut writer, log) = log(0);
        // The channel that the writer pushes to; none before the watcher registers.
        let pushed: Arc<Mutex<Option<Vec<u64>>>> = Arc::new(Mutex::new(None));
        let (registry, handle) = (Arc::clone(&pushed), log.clone());
        let watcher = thread::spawn(move || {
            *registry.lock().expect("no panic") = Some(Vec::new());
            let reader = handle.read();
            (reader.values(0).copied().collect::<Vec<_>>(), reader.end())
        });
        for value in [1, 2] {
            let number = writer.end();
            publish(&mut writer, [value]);
            if let Some(pushed) = &mut *pushed.lock().expect("no panic") {
                pushed.push(number);
            }
        }
        let (mut values, cursor) = watcher.join().expect("the watcher ends");
        let reader = log.read();
        let pushed = pushed.lock().expect("no panic").take().unwrap_or_default();
        let read = values.len();
        let both = pushed.iter().any(|number| *number < cursor);
        for number in pushed.into_iter().filter(|number| *number >= cursor) {
            match reader.slot(number) {
                Slot::Value(value) => values.push(*value),
                other => panic!("pushed {other:?}"),
            }
        }
        assert_eq!(values, [1, 2]);
        seen.note(match (read, both) {
            (_, true) => "both, once",
            (0, false) => "pushed",
            (_, false) => "read",
        });
    });
}

/// Segments fill up by themselves, and grow.
#[test]
fn a_log_of_many_segments_has_every_value() {
    explore(1, &["done"], |seen: &Seen| {
        let (mut writer, log) = log(0);
        let mut segments = 0;
        for value in 1..=100 {
            segments += u64::from(writer.append(value));
        }
        assert_eq!(check(&log.read()), 0, "nothing is published");
        writer.publish();
        assert_eq!((check(&log.read()), segments), (100, 3));
        evict(&mut writer);
        let reader = log.read();
        assert_eq!((check(&reader), reader.first()), (100, 16));
        assert_eq!(reader.partition_point(|value| *value <= 60), 60);
        assert!(reader.values(20).copied().eq(21..=100));
        seen.note("done");
    });
}

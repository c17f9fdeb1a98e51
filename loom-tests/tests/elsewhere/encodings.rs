//! Models of `meta/encodings.rs`.

use bytes::Bytes;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use loom_tests::encodings::{EncodedBytes, EncodingKey, Encodings};
use ringwatch_explore::loom::explore;

const KEY: EncodingKey = EncodingKey(1);
const OTHER: EncodingKey = EncodingKey(2);

/// Makes an encoding, and counts that.
fn make(made: &AtomicU64) -> Bytes {
    made.fetch_add(1, Ordering::Relaxed);
    Bytes::from_static(b"encoded")
}

#[test]
fn an_encoding_is_made_once_for_all_that_want_it() {
    explore(4, &["made here", "found"], |seen| {
        let encodings = Arc::new(Encodings::default());
        let (sum, made) = (EncodedBytes::default(), Arc::new(AtomicU64::new(0)));
        let threads = [(); 2].map(|()| {
            let (encodings, sum) = (Arc::clone(&encodings), sum.clone());
            let (seen, made) = (seen.clone(), Arc::clone(&made));
            thread::spawn(move || {
                let encoded = encodings.get_or_make(KEY, &sum, || make(&made));
                seen.note(if encoded.is_new { "made here" } else { "found" });
            })
        });
        for thread in threads {
            thread.join().expect("a thread ends");
        }
        assert_eq!(made.load(Ordering::Relaxed), 1, "made twice");
        encodings.forget(KEY);
        assert_eq!(sum.get(), 0);
    });
}

#[test]
fn one_that_is_forgotten_while_it_is_wanted_is_made_anew_and_takes_no_other_along() {
    explore(10, &["made twice", "made once"], |seen| {
        let encodings = Arc::new(Encodings::default());
        let (sum, made) = (EncodedBytes::default(), Arc::new(AtomicU64::new(0)));
        encodings.get_or_make(OTHER, &sum, || make(&made));
        let one = sum.get();
        encodings.get_or_make(KEY, &sum, || make(&made));
        let evicting = Arc::clone(&encodings);
        let evicting = thread::spawn(move || evicting.forget(KEY));
        let (wanting, total) = (Arc::clone(&encodings), sum.clone());
        let wanted = Arc::clone(&made);
        let wanting = thread::spawn(move || {
            let encoded = wanting.get_or_make(KEY, &total, || make(&wanted));
            assert_eq!(&*encoded.bytes, b"encoded");
        });
        evicting.join().expect("a thread ends");
        wanting.join().expect("a thread ends");
        let twice = made.load(Ordering::Relaxed) == 3;
        seen.note(if twice { "made twice" } else { "made once" });
        assert!(!encodings.get_or_make(OTHER, &sum, || make(&made)).is_new);
        encodings.forget(KEY);
        assert_eq!(sum.get(), one, "only the other is counted");
    });
}

#[test]
fn the_total_of_several_objects_adds_up() {
    explore(4, &["added up"], |seen| {
        let (sum, made) = (EncodedBytes::default(), Arc::new(AtomicU64::new(0)));
        let (total, other) = (sum.clone(), Arc::clone(&made));
        let object = thread::spawn(move || {
            let encodings = Encodings::default();
            encodings.get_or_make(KEY, &total, || make(&other));
        });
        let encodings = Encodings::default();
        encodings.get_or_make(KEY, &sum, || make(&made));
        object.join().expect("a thread ends");
        assert!(sum.get() > 0);
        encodings.forget(KEY);
        assert_eq!(sum.get(), 0, "both are gone");
        seen.note("added up");
    });
}

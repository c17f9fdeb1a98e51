//! The free list's model under loom: every interleaving, and the reorderings of its memory orders.

mod free_list;

use loom::thread;
use ringwatch_explore::loom::{explore, sync};
use sync::Arc;

use free_list::FreeList;

const SLOTS: usize = 2;

/// One thread takes all slots and gives the first back, while another takes one.
///
/// Both are spawned. Were the model's own thread the second, loom would try 14 executions instead of 299.
#[test]
fn no_slot_is_held_twice_and_none_is_lost() {
    let outcomes = ["found none", "took the first", "took the second"];
    explore(200, &outcomes, |seen| {
        let list = Arc::new(FreeList::<SLOTS>::new());
        let other = Arc::clone(&list);
        let other = thread::spawn(move || {
            let first = other.take();
            let second = other.take();
            if let Some(slot) = first {
                other.give(slot);
            }
            second
        });
        let one = Arc::clone(&list);
        let one = thread::spawn(move || one.take());
        let mine = one.join().expect("it does not panic");
        seen.note(match mine {
            None => "found none",
            Some(0) => "took the first",
            Some(_) => "took the second",
        });
        let theirs = other.join().expect("it does not panic");
        for slot in [mine, theirs].into_iter().flatten() {
            list.give(slot);
        }
        // One more than there are, so that a slot that is there twice shows.
        let mut all: Vec<usize> = (0..=SLOTS).map_while(|_| list.take()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1]);
    });
}

/// The next holder sees all that a holder wrote.
#[test]
fn a_slot_is_handed_over_with_what_its_holder_wrote() {
    explore(4, &["found none", "was handed over"], |seen| {
        let list = Arc::new(FreeList::<1>::new());
        let written = Arc::new(sync::AtomicU64::new(0));
        assert_eq!(list.take(), Some(0));
        let (next, read) = (Arc::clone(&list), Arc::clone(&written));
        let next = thread::spawn(move || {
            let slot = next.take()?;
            assert_eq!(read.load(sync::Ordering::Relaxed), 1, "slot {slot}");
            Some(slot)
        });
        written.store(1, sync::Ordering::Relaxed);
        list.give(0);
        seen.note(match next.join().expect("it does not panic") {
            None => "found none",
            Some(_) => "was handed over",
        });
    });
}

//! The free list's model under shuttle: thousands of random schedules of more threads than loom can try.

mod free_list;

use ringwatch_explore::shuttle::{explore, sync};
use shuttle::thread;
use sync::{Arc, Mutex};

use free_list::FreeList;

const SLOTS: usize = 3;
const THREADS: usize = 4;
const ROUNDS: usize = 5;

#[test]
fn no_slot_is_held_twice_and_none_is_lost() {
    explore(500, &["found none", "took one"], |seen| {
        let list = Arc::new(FreeList::<SLOTS>::new());
        let held = Arc::new(Mutex::new([false; SLOTS]));
        let threads = (0..THREADS).map(|_| {
            let (list, held, seen) = (Arc::clone(&list), Arc::clone(&held), seen.clone());
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    let Some(slot) = list.take() else {
                        seen.note("found none");
                        continue;
                    };
                    seen.note("took one");
                    let hold =
                        |holds| std::mem::replace(&mut held.lock().expect("sound")[slot], holds);
                    assert!(!hold(true), "two hold a slot");
                    assert!(hold(false), "somebody else gave it back");
                    list.give(slot);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        let mut free: Vec<usize> = (0..=SLOTS).map_while(|_| list.take()).collect();
        free.sort_unstable();
        assert_eq!(free, [0, 1, 2]);
    });
}

//! Models of `budget.rs`.

use loom::future::block_on;
use loom::thread;
use loom_tests::budget::{Account, Ledger};
use ringwatch_explore::loom::explore;

/// The limit, and the marks that follow from it: windows shrink above 6 of it, lists are refused above 7.
const LIMIT: u64 = 8;

#[test]
fn two_that_take_the_last_bytes_below_the_mark_wake_whoever_frees_some() {
    explore(200, &["slept", "at once"], |seen| {
        let ledger = Ledger::new(LIMIT);
        let takers = [Account::Connections, Account::Objects].map(|account| {
            let ledger = ledger.clone();
            thread::spawn(move || {
                let mut share = ledger.share(account);
                share.set(4);
                share
            })
        });
        seen.note(if ledger.total() == 8 {
            "at once"
        } else {
            "slept"
        });
        // Whoever is never told hangs, which loom reports.
        block_on(ledger.pressed());
        assert!(ledger.total() > 6, "it is told once it is counted");
        let shares = takers.map(|taker| taker.join().expect("a thread ends"));
        assert_eq!(ledger.owed_by_windows(), 2);
        drop(shares);
        assert_eq!(ledger.total(), 0);
    });
}

#[test]
fn requests_at_once_do_not_take_the_same_bytes() {
    let outcomes = ["both", "one"];
    explore(10, &outcomes, |seen| {
        let ledger = Ledger::new(LIMIT);
        let other = ledger.clone();
        let lists = thread::spawn(move || {
            let list = other.admit(4);
            assert!(other.total() <= 7, "more than is admitted");
            list.is_ok()
        });
        let list = ledger.admit(4);
        assert!(ledger.total() <= 7, "more than is admitted");
        let mine = list.is_ok();
        drop(list);
        let others = lists.join().expect("a thread ends");
        assert!(mine || others, "one of them finds room");
        seen.note(if mine && others { "both" } else { "one" });
        assert_eq!(ledger.total(), 0);
        assert_eq!(ledger.spent(Account::Requests), 0);
    });
}

#[test]
fn the_accounts_add_up_however_shares_change() {
    explore(20, &["added up"], |seen| {
        let ledger = Ledger::new(LIMIT);
        let other = ledger.clone();
        let growing = thread::spawn(move || {
            let mut share = other.share(Account::Windows);
            share.set(3);
            share.set(1);
            share
        });
        let mut share = ledger.share(Account::Windows);
        share.set(2);
        drop(share);
        let share = growing.join().expect("a thread ends");
        assert_eq!(ledger.spent(Account::Windows), share.bytes());
        assert_eq!(ledger.total(), share.bytes());
        seen.note("added up");
    });
}

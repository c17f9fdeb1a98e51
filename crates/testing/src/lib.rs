//! Helpers that the tests and benches of several crates share: programs and recorded material that are found or named
//! as missing, a real etcd, objects, the wait for a condition, futures that are dropped, and the count of instructions
//! with their budgets.
//!
//! A helper that knows the engine or the server does not belong here but into their own tests, so that this crate
//! depends on neither. Its own test, `tidy`, checks the sources of the whole checkout.
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "what tests share fails as tests do"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "the same"
)]

pub mod callgrind;
pub mod certificates;
pub mod dhat;
pub mod disk;
pub mod dropped;
pub mod etcd;
pub mod eventually;
pub mod instruction_budgets;
pub mod made;
pub mod pod;
pub mod recorded;
pub mod reserved_port;
pub mod tools;

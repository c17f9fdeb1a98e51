//! The watch cache's sources with the primitives that ship, without the server around them: what is
//! under load is built in release mode, and a whole release build would cost the gate minutes.
//!
//! Only time is not the real one: a test moves it faster, so that bookmarks fall due and history
//! grows old within seconds.

#![cfg(not(test))]
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "the included files are modules of another crate, and the tests use only some"
)]

#[path = "../../src/budget.rs"]
pub mod budget;
#[path = "../../shuttle-tests/src/clock.rs"]
pub mod clock;
#[path = "../../src/codec/mod.rs"]
pub mod codec;
#[path = "../../src/meta/mod.rs"]
pub mod meta;
#[path = "../../src/ring/mod.rs"]
mod ring;
#[path = "../../shuttle-tests/src/storage.rs"]
pub mod storage;
#[path = "../../src/sync.rs"]
mod sync;

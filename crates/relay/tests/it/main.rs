//! All integration tests of the relay in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the composition root of what it tests, and fails as tests do"
)]

mod caches;
mod conformance;
mod definitions;
mod discovery;
mod following;
mod front;
mod lies;
mod scripted;
mod support;

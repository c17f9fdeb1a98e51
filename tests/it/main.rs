//! All integration tests in one binary, which links once.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is the composition root of what it tests"
)]
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share fail as tests do; the lint exempts only #[test] functions"
)]

mod conformance;
mod copying;
mod embedded;
mod etcd_backend;
mod store;

/// Programs and material that tests of several crates share.
mod support {
    pub(crate) use ringwatch_testing::etcd;
}

//! All integration tests in one binary, which links once.

#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share fail as tests do; the lint exempts only #[test] functions"
)]

mod embedded;
mod endpoints;
mod etcd_backend;
mod serve_errors;
mod store;
mod support;
mod tidy;

//! All integration tests in one binary, which links once.

mod embedded;
mod endpoints;
mod etcd_backend;
mod serve_errors;
mod support;
mod tidy;

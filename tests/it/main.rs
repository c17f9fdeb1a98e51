//! All integration tests in one binary, which links once.

mod etcd_backend;
mod support;
mod tidy;

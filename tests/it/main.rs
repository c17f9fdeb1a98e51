//! All integration tests in one binary, which links once.

mod support;
mod tidy;

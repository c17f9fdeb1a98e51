//! Targets of coverage-guided fuzzing: every parser of what strangers send, with what must hold of it.
//!
//! A target is a function of bytes that panics if something is wrong, in a file of its own, which says what must hold.
//! Beside that, none may panic or take longer than ten seconds. `verification/fuzz/run TARGET MINUTES` runs one under
//! libFuzzer; the test `replay` runs all of them on the seeds, on the inputs with which one has failed before, and on
//! these with random damage.
//!
//! A parser that only the server's own operator feeds does not belong here, and neither do tests of a parser's results,
//! which are beside it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "what fails in a target fails the test, as it should"
)]

mod cel;
mod continue_token;
mod embedded_file;
mod http1;
mod json;
mod kubeconfig;
mod memory;
mod patch;
mod pattern;
mod protobuf;
mod selector;
mod yaml;

/// A parser, by the name of its folder in `verification/fuzz/seeds`.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, as `verification/fuzz/run` takes it.
    pub name: &'static str,
    /// Parses an input and panics if something is wrong. Returns true if it is accepted.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("cel", cel::run),
    target("continue_token", continue_token::run),
    target("embedded_file", embedded_file::run),
    target("http1", http1::run),
    target("json", json::run),
    target("kubeconfig", kubeconfig::run),
    target("patch", patch::run),
    target("pattern", pattern::run),
    target("protobuf", protobuf::run),
    target("selector", selector::run),
    target("yaml", yaml::run),
];

const fn target(name: &'static str, run: fn(&[u8]) -> bool) -> Target {
    Target { name, run }
}

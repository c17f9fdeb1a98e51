//! Patterns: regular expressions of Go, in schemas and expressions that clients wrote, run on texts that clients wrote.
//!
//! ```text
//!   text --go_syntax--> checked as Go does, and rewritten --program--> NFA --> lazy DFA, or simulated
//!                                                             |
//!                                                           kept, as many as fit
//! ```
//!
//! Both may be chosen to do harm. So a pattern has a largest size, the process keeps so many bytes of compiled ones,
//! and whoever runs one says how much work it may take.

mod cache;
mod go_syntax;
mod program;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

pub use program::{PROGRAM_BYTES_MAX, Program, TooMuchWork, Work};

use cache::{CACHE_BYTES_MAX, PatternCache};

static KEPT: LazyLock<PatternCache> = LazyLock::new(|| PatternCache::new(CACHE_BYTES_MAX));

/// A pattern is refused, in the words of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Go's parser refuses the pattern.
    #[error("error parsing regexp: {what}: `{text}`")]
    Syntax {
        /// The rule that it breaks, in the words of Go's parser.
        what: &'static str,
        /// The part of the pattern that breaks it.
        text: String,
    },
    /// The compiled pattern takes more memory than one may.
    #[error("error parsing regexp: expression too large")]
    TooLarge,
}

/// Checks a pattern without keeping it. Gives the bytes of its program.
///
/// # Errors
/// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
pub fn check(pattern: &str) -> Result<usize, PatternError> {
    program::size(pattern)
}

/// Returns the program of a pattern, out of the cache or compiled now.
///
/// # Errors
/// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
pub(crate) fn compiled(pattern: &str) -> Result<Arc<Program>, PatternError> {
    KEPT.get(pattern).map(|(program, _)| program)
}

/// Looks for a match of a pattern in a text. Compiling the pattern is paid for as well, if it is not kept.
///
/// # Errors
/// [`TooMuchWork`] as soon as the match has used up `work`.
pub fn is_match(pattern: &str, text: &str, work: &mut Work) -> Result<bool, TooMuchWork> {
    let Ok((program, is_new)) = KEPT.get(pattern) else {
        // It was checked when it was written.
        return Err(TooMuchWork);
    };
    if is_new {
        work.spend(program.compiling_steps())?;
    }
    program.is_match(text, work)
}

//! Patterns: regular expressions of Go, in schemas and expressions that clients wrote, run on texts that clients wrote.
//!
//! ```text
//!   text --go_syntax--> checked as Go does, and rewritten --alphabet--> over few symbols
//!        --program--> NFA --> lazy DFA, or simulated
//!             |
//!           kept, as many as fit
//! ```
//!
//! Clients choose both, so both are bounded: the size of a pattern, the bytes of compiled patterns that the process
//! keeps, and the work of each match, which the caller passes.

mod alphabet;
mod cache;
mod go_syntax;
mod program;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

pub(crate) use program::COMPILING_STEPS_MAX;
pub use program::{PROGRAM_BYTES_MAX, Program, StepBudget, TooMuchWork};

use cache::{CACHE_BYTES_MAX, PatternCache};

static KEPT: LazyLock<PatternCache> = LazyLock::new(|| PatternCache::new(CACHE_BYTES_MAX));

/// The reason why a pattern is refused, in the words of Go.
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
    /// The compiled pattern exceeds the maximum size.
    #[error("error parsing regexp: expression too large")]
    TooLarge,
}

/// Checks a pattern without caching it. Returns the bytes of its program.
///
/// # Errors
/// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
pub fn check(pattern: &str) -> Result<usize, PatternError> {
    program::size(pattern)
}

/// Returns the program of a pattern, from the cache or newly compiled.
///
/// # Errors
/// [`PatternError`] if Go's parser refuses the pattern, or it is too large.
pub(crate) fn compiled(pattern: &str) -> Result<Arc<Program>, PatternError> {
    KEPT.get(pattern).map(|(program, _)| program)
}

/// Looks for a match of a pattern in a text. Compiling the pattern is charged as well, unless it is cached.
///
/// # Errors
/// [`TooMuchWork`] as soon as the match has used up `work`.
pub fn is_match(pattern: &str, text: &str, work: &mut StepBudget) -> Result<bool, TooMuchWork> {
    let Ok((program, is_new)) = KEPT.get(pattern) else {
        // It was checked when it was written.
        return Err(TooMuchWork);
    };
    if is_new {
        work.spend(program.compiling_steps())?;
    }
    program.is_match(text, work)
}

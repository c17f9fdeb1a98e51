//! The patterns of a definition. They are checked when it is written, and compiled when an object is checked.

use std::collections::HashSet;
use std::sync::Arc;

use ringwatch_cel::pattern::{self, PROGRAM_BYTES_MAX, PatternError};

/// Bytes that the programs of all different patterns in a definition take at most. Checking one object may need all of
/// them.
const PATTERN_BYTES_MAX: usize = 8 << 20;

/// The patterns of a definition, all versions together.
#[derive(Debug, Default)]
pub struct Patterns {
    /// Generated schemas repeat patterns by the hundred, and versions repeat each other's.
    known: HashSet<Arc<str>>,
    /// The bytes of their programs.
    bytes: usize,
}

impl Patterns {
    /// Returns true if there is none so far.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Checks a pattern, and that there is room for it beside the others.
    ///
    /// # Errors
    /// The rule that the pattern breaks, as it is shown after "pattern: Invalid value".
    pub(super) fn check(&mut self, text: &str) -> Result<Arc<str>, String> {
        if let Some(known) = self.known.get(text) {
            return Ok(Arc::clone(known));
        }
        // Once there is no room any more, nothing else is compiled.
        let checked = match self.bytes {
            bytes if bytes > PATTERN_BYTES_MAX => Ok(0),
            _ => pattern::check(text),
        };
        let wrong =
            |why: PatternError| format!("must be a valid regular expression, but isn't: {why}");
        self.bytes += match &checked {
            Ok(bytes) => *bytes,
            Err(PatternError::TooLarge) => PROGRAM_BYTES_MAX,
            Err(PatternError::Syntax { .. }) => text.len(),
        };
        checked.map_err(wrong)?;
        if self.bytes > PATTERN_BYTES_MAX {
            let mib = PATTERN_BYTES_MAX >> 20;
            return Err(format!(
                "must not take more than {mib} MiB with the other patterns of the definition; simplify some"
            ));
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        Ok(text)
    }
}

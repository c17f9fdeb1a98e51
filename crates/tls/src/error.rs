//! The error that keeps the server from starting or going on, in one line that says what to do.

use std::fmt::Display;

/// A failure that ends the process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    /// Creates the failure of `what` (such as `listen on 127.0.0.1:6443`) because of `why`, with advice on what the
    /// operator can do about it.
    #[must_use]
    pub fn new(what: impl Display, why: impl Display, advice: impl Display) -> Self {
        Self::line(format!("cannot {what}: {why}; {advice}"))
    }

    /// Creates a failure that says all of this by itself. Line breaks become spaces.
    #[must_use]
    pub fn line(text: impl Display) -> Self {
        let text = text.to_string();
        Self(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let error = StartError::new("open x", "bad\n  news", "try y");
        assert_eq!(error.to_string(), "cannot open x: bad news; try y");
    }
}

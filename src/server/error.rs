//! Why the server cannot start or go on, in one line that says what to do.

/// A failure that ends the process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {what}: {why}; {advice}")]
pub struct StartError {
    /// What was tried, such as `listen on 127.0.0.1:6443`.
    pub what: String,
    /// What came in between.
    pub why: String,
    /// What the operator can do about it.
    pub advice: String,
}

impl StartError {
    /// A failure of `what` because of `why`, with advice. Line breaks become spaces, so that a
    /// failure is always one line.
    #[must_use]
    pub fn new(what: impl Into<String>, why: impl ToString, advice: impl Into<String>) -> Self {
        let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            what: what.into(),
            why: one_line(why.to_string()),
            advice: advice.into(),
        }
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

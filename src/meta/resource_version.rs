//! The resource version: a position in the history of a store, as clients see it.

use std::fmt;

/// A revision of etcd as clients see it: an opaque decimal string that rises with every write.
///
/// `0` is what clients send for "any version will do"; no object ever carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

/// The meaning of a read's resource version (`resourceVersionMatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state at exactly this version.
    Exact,
    /// Any state at or after this version.
    NotOlderThan,
}

/// An error about a text that is not a decimal number of 64 bits. The message is that of Go's `strconv`, which
/// kube-apiserver sends to clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strconv.ParseUint: parsing {text:?}: {why}")]
pub struct InvalidResourceVersion {
    text: String,
    why: &'static str,
}

impl InvalidResourceVersion {
    /// Returns the text that is no version.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl ResourceVersion {
    /// Parses a resource version of a request or an object; an empty text is `None`: no version was given.
    ///
    /// # Errors
    /// [`InvalidResourceVersion`] when the text is not a decimal number of 64 bits.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidResourceVersion> {
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(number) if digits => Ok(Some(Self(number))),
            _ => Err(InvalidResourceVersion {
                text: text.to_owned(),
                why: if digits {
                    "value out of range"
                } else {
                    "invalid syntax"
                },
            }),
        }
    }

    /// Returns true if any version will do (`0`).
    #[must_use]
    pub fn is_any(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_is_unset_and_zero_is_any() {
        assert_eq!(ResourceVersion::parse(""), Ok(None));
        assert_eq!(ResourceVersion::parse("0"), Ok(Some(ResourceVersion(0))));
        assert!(ResourceVersion(0).is_any());
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in ["abc", "-1", "+1", "1.0", " 1"] {
            let error = ResourceVersion::parse(text).expect_err(text);
            assert!(error.to_string().ends_with("invalid syntax"), "{error}");
        }
        let error = ResourceVersion::parse("99999999999999999999").expect_err("too large");
        assert!(error.to_string().ends_with("value out of range"), "{error}");
    }
}

//! The key that an unfinished copy has.

use super::error::CopyError;

/// The key of the marker, which is never copied.
pub const MARKER_KEY: &str = "ringwatch/copy";
/// The first line of a marker.
const HEAD: &str = "unfinished copy";

/// The content of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The name of the source.
    pub source: String,
    /// The newest revision of the source that a pass has begun to copy.
    pub revision: u64,
    /// The number of the run that wrote the marker last, by which it knows that no other has begun since; 0 in a target
    /// that one process alone can open.
    pub run: u64,
}

impl Marker {
    /// Returns the marker as text, line by line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self {
            source,
            revision,
            run,
        } = self;
        format!("{HEAD}\n{revision}\n{run}\n{source}")
    }

    /// Reads a marker; `None` if the value is not one.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let mut parts = text.splitn(4, '\n');
        if parts.next() != Some(HEAD) {
            return None;
        }
        let revision = parts.next()?.parse().ok()?;
        let run = parts.next()?.parse().ok()?;
        let source = parts.next()?.to_owned();
        Some(Self {
            source,
            revision,
            run,
        })
    }

    /// Returns the name of the source in the value of a marker, or that it cannot be read.
    pub(super) fn named(value: &[u8]) -> String {
        Self::read(value).map_or_else(|| "something unknown".to_owned(), |it| it.source)
    }

    /// Returns the marker of the next pass, whose target has the marker `found`.
    ///
    /// # Errors
    /// [`CopyError::OtherSource`], or [`CopyError::WentBack`] if the source is older than what was copied of it.
    pub fn next(self, found: &[u8]) -> Result<Self, CopyError> {
        match Self::read(found).filter(|it| it.source == self.source) {
            None => Err(CopyError::OtherSource {
                found: Self::named(found),
            }),
            Some(there) if there.revision > self.revision => Err(CopyError::WentBack {
                revision: self.revision,
                copied: there.revision,
            }),
            Some(_) => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let marker = Marker {
            source: "a\nb".to_owned(),
            revision: 7,
            run: 3,
        };
        assert_eq!(Marker::read(marker.to_text().as_bytes()), Some(marker));
        for other in [
            &b""[..],
            b"unfinished copy",
            b"unfinished copy\nx\n1\ny",
            b"unfinished copy\n1\nx\ny",
            b"\xff",
        ] {
            assert_eq!(Marker::read(other), None);
        }
    }

    #[test]
    fn a_copy_goes_on_with_its_own_source_alone() {
        let marker = |source: &str, revision| Marker {
            source: source.to_owned(),
            revision,
            run: 0,
        };
        let there = marker("a", 7).to_text();
        let next = |it: Marker| it.next(there.as_bytes());
        assert_eq!(next(marker("a", 7)).ok(), Some(marker("a", 7)));
        assert_eq!(next(marker("a", 9)).ok(), Some(marker("a", 9)));
        let other = next(marker("b", 9)).expect_err("another source");
        assert!(
            matches!(&other, CopyError::OtherSource { found } if found == "a"),
            "{other}"
        );
        let older = next(marker("a", 6)).expect_err("an older revision");
        assert!(
            matches!(
                older,
                CopyError::WentBack {
                    revision: 6,
                    copied: 7
                }
            ),
            "{older}"
        );
    }
}

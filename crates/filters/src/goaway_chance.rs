//! The chance that a request ends its HTTP/2 connection, so that clients spread over several servers again.
//!
//! Ported from Kubernetes 1.36, apiserver/pkg/server/filters/goaway.go `WithProbabilisticGoaway`.

use http::Version;

/// The largest chance.
const CHANCE_MAX: f64 = 0.02;

/// The chance that a request ends its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GoawayChance(f64);

impl GoawayChance {
    /// Reads a number between 0 and 0.02.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let chance: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
        if !(0.0..=CHANCE_MAX).contains(&chance) {
            return Err(format!(
                "it can not be less than 0 or greater than {CHANCE_MAX}"
            ));
        }
        Ok(Self(chance))
    }

    /// Returns true if the connection of a request of this version is to end. `draw` returns a random number between 0
    /// and 1.
    pub(super) fn hits(self, version: Version, draw: impl FnOnce() -> f64) -> bool {
        version == Version::HTTP_2 && self.0 > 0.0 && draw() < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http2_is_hit_and_only_by_chance() {
        let chance = GoawayChance::parse("0.02").expect("a chance");
        assert!(chance.hits(Version::HTTP_2, || 0.019));
        assert!(!chance.hits(Version::HTTP_2, || 0.02));
        assert!(!chance.hits(Version::HTTP_11, || 0.0));
        let none = GoawayChance::parse("0").expect("a chance");
        assert!(!none.hits(Version::HTTP_2, || 0.0));
    }
}

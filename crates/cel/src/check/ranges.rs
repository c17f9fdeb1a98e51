//! Ranges of costs and sizes, with arithmetic that saturates.

/// The cost of a walk through a string, for a character.
pub(super) const WALK_FACTOR: f64 = 0.1;

/// The factor of the cost of a pattern, for a character of it.
pub(super) const PATTERN_FACTOR: f64 = 0.25;

/// A range of sizes or costs. Arithmetic saturates at the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const NOTHING: Self = Self::exactly(0);
    pub(super) const ONE: Self = Self::exactly(1);
    pub(super) const ANY: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(super) const fn exactly(count: u64) -> Self {
        Self {
            min: count,
            max: count,
        }
    }

    pub(super) fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Returns the range multiplied by a factor, rounded up as cel-go rounds: in floating point.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub(super) fn scaled(self, factor: f64) -> Self {
        let part = |count: u64| (count as f64 * factor).ceil() as u64;
        Self {
            min: part(self.min),
            max: part(self.max),
        }
    }

    /// Returns the cost of a walk through a string of that length.
    pub(super) fn walk(self) -> Self {
        self.scaled(WALK_FACTOR)
    }

    /// Returns the cost of a search of a text of that length for a pattern.
    pub(super) fn search(self, pattern: Self) -> Self {
        let walk = self.plus(Self::ONE).walk();
        walk.times(pattern.scaled(PATTERN_FACTOR))
    }

    /// Returns the smallest range that holds both.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

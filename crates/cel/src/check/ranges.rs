//! Ranges of costs and sizes, with arithmetic that saturates.

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

    /// Returns a percentage of the range, rounded up.
    pub(super) fn hundredths(self, factor: u64) -> Self {
        let part = |count: u64| {
            let product = u128::from(count) * u128::from(factor);
            u64::try_from(product.div_ceil(100)).unwrap_or(u64::MAX)
        };
        // A saturated bound stays saturated.
        let max = if self.max == u64::MAX {
            u64::MAX / 100 * factor.min(100)
        } else {
            part(self.max)
        };
        Self {
            min: part(self.min),
            max,
        }
    }

    /// Returns the cost of a walk through a string of that length.
    pub(super) fn walk(self) -> Self {
        self.hundredths(10)
    }

    /// Returns the smallest range that holds both.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

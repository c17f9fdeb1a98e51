//! The combined requirements of a selector on one label or field, so that an object is checked once however long the
//! selector is.

/// Maximum number of terms of a selector, and of values of a term, that are checked one by one: up to it that is
/// cheaper than combined demands.
pub(super) const FEW: usize = 8;

/// The combined requirements on one value. The default requires nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// True if there must be a value.
    pub(super) present: bool,
    /// True if there must be no value.
    pub(super) absent: bool,
    /// The only values that are allowed, sorted; any if `None`.
    among: Option<Vec<String>>,
    /// The values that are not allowed; sorted once [`Demand::sort`] has been called.
    excluded: Vec<String>,
    /// A lower bound, exclusive.
    above: Option<i64>,
    /// An upper bound, exclusive.
    below: Option<i64>,
}

impl Demand {
    /// Requires one of these values, which are sorted.
    pub(super) fn be_among(&mut self, values: &[String]) {
        match &mut self.among {
            Some(among) => among.retain(|value| values.binary_search(value).is_ok()),
            None => self.among = Some(values.to_vec()),
        }
    }

    /// Requires none of these values.
    pub(super) fn be_none_of(&mut self, values: &[String]) {
        self.excluded.extend_from_slice(values);
    }

    /// Requires a number above this one.
    pub(super) fn be_above(&mut self, number: i64) {
        self.above = self.above.max(Some(number));
    }

    /// Requires a number below this one.
    pub(super) fn be_below(&mut self, number: i64) {
        self.below = Some(self.below.map_or(number, |below| below.min(number)));
    }

    /// Sorts the values that are not allowed, before the first check.
    pub(super) fn sort(&mut self) {
        self.excluded.sort_unstable();
        self.excluded.dedup();
    }

    /// Returns true if a value, or its absence, meets the requirements.
    pub(super) fn is_met(&self, value: Option<&str>) -> bool {
        let Some(value) = value else {
            return !self.present;
        };
        !self.absent
            && self.among.as_ref().is_none_or(|among| has(among, value))
            && !has(&self.excluded, value)
            && self.is_within(value)
    }

    fn is_within(&self, value: &str) -> bool {
        if self.above.is_none() && self.below.is_none() {
            return true;
        }
        let Ok(number) = value.parse::<i64>() else {
            return false;
        };
        self.above.is_none_or(|above| number > above)
            && self.below.is_none_or(|below| number < below)
    }
}

/// Returns true if a value is among sorted ones.
fn has(values: &[String], value: &str) -> bool {
    match values {
        [one] => one == value,
        many => many.binary_search_by(|it| it.as_str().cmp(value)).is_ok(),
    }
}

//! The demands that a selector makes of one label or field, joined, so that an object is looked at once however long the
//! selector is.

/// A selector of so few terms, of so few values each, is gone through term by term: that costs less than joined demands.
pub(super) const FEW: usize = 8;

/// All that is demanded of one value. The default demands nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// True if there has to be a value.
    pub(super) present: bool,
    /// True if there may be none.
    pub(super) absent: bool,
    /// The only values that it may have, in order; any if `None`.
    among: Option<Vec<String>>,
    /// The values that it may not have; in order once [`Demand::sort`] has been called.
    excluded: Vec<String>,
    /// The number that it has to be above.
    above: Option<i64>,
    /// The number that it has to be below.
    below: Option<i64>,
}

impl Demand {
    /// It is one of these values, which are in order.
    pub(super) fn be_among(&mut self, values: &[String]) {
        match &mut self.among {
            Some(among) => among.retain(|value| values.binary_search(value).is_ok()),
            None => self.among = Some(values.to_vec()),
        }
    }

    /// It is none of these values.
    pub(super) fn be_none_of(&mut self, values: &[String]) {
        self.excluded.extend_from_slice(values);
    }

    /// It is a number above this one.
    pub(super) fn be_above(&mut self, number: i64) {
        self.above = self.above.max(Some(number));
    }

    /// It is a number below this one.
    pub(super) fn be_below(&mut self, number: i64) {
        self.below = Some(self.below.map_or(number, |below| below.min(number)));
    }

    /// Brings what was gathered into order, before the first value is looked at.
    pub(super) fn sort(&mut self) {
        self.excluded.sort_unstable();
        self.excluded.dedup();
    }

    /// Says whether a value, or its absence, is as demanded.
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

/// Looks a value up among values in order.
fn has(values: &[String], value: &str) -> bool {
    match values {
        [one] => one == value,
        many => many.binary_search_by(|it| it.as_str().cmp(value)).is_ok(),
    }
}

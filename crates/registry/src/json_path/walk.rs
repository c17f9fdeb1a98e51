//! The walk along a path, which looks at a limited number of values.

use std::iter::once;

use serde_json::Value;

use super::{JsonPathStep, Operator};

/// A walk along a path, which looks at a limited number of values.
pub(super) struct PathWalk {
    /// The number of values that it may still look at; 0 once there were too many.
    pub(super) values_left: usize,
}

impl PathWalk {
    /// Starts a walk that looks at so many values at most.
    pub(super) fn new(values_max: usize) -> Self {
        Self {
            values_left: values_max,
        }
    }

    /// Returns the values to which steps lead from these; `None` if a step does not fit, or there are too many values.
    pub(super) fn steps<'a>(
        &mut self,
        steps: &'a [JsonPathStep],
        from: Vec<&'a Value>,
    ) -> Option<Vec<&'a Value>> {
        steps
            .iter()
            .try_fold(from, |from, step| self.step(step, &from))
    }

    fn step<'a>(&mut self, step: &'a JsonPathStep, from: &[&'a Value]) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        match step {
            JsonPathStep::Literal(value) => found.push(value),
            JsonPathStep::Union(paths) => {
                for path in paths {
                    // Each path looks at all of them, whatever it finds.
                    self.look_at(from.len())?;
                    let found_there = self.steps(path, from.to_vec())?;
                    self.collect(found_there.into_iter(), &mut found)?;
                }
            }
            JsonPathStep::Member(name) => {
                found.extend(from.iter().filter_map(|value| value.get(name)))
            }
            JsonPathStep::All => self.collect(from.iter().copied().flat_map(parts), &mut found)?,
            JsonPathStep::Below => {
                for value in from {
                    self.below(value, &mut found)?;
                }
            }
            JsonPathStep::Items(range) => {
                for value in from.iter().filter(|value| !value.is_null()) {
                    self.collect(range.of(value.as_array()?)?, &mut found)?;
                }
            }
            JsonPathStep::Filter { left, comparison } => {
                for value in from {
                    for item in value.as_array()? {
                        if self.is_chosen(item, left, comparison.as_ref())? {
                            self.collect(once(item), &mut found)?;
                        }
                    }
                }
            }
        }
        self.look_at(found.len())?;
        Some(found)
    }

    /// Counts values; `None` if there are too many.
    fn look_at(&mut self, values: usize) -> Option<()> {
        let left = self.values_left.checked_sub(values);
        self.values_left = left.unwrap_or(0);
        left.map(drop)
    }

    /// Adds values to those that a step has found; `None` as soon as there are too many.
    fn collect<'a>(
        &mut self,
        values: impl Iterator<Item = &'a Value>,
        found: &mut Vec<&'a Value>,
    ) -> Option<()> {
        // The step counts what it has found once it is done.
        let room = self.values_left.saturating_sub(found.len());
        let before = found.len();
        found.extend(values.take(room + 1));
        let is_within = found.len() - before <= room;
        if !is_within {
            self.values_left = 0;
        }
        is_within.then_some(())
    }

    fn is_chosen<'a>(
        &mut self,
        item: &'a Value,
        left: &'a [JsonPathStep],
        comparison: Option<&'a (Operator, Vec<JsonPathStep>)>,
    ) -> Option<bool> {
        self.look_at(1)?;
        let Some((operator, right)) = comparison else {
            // Here alone a step that does not fit is as good as nothing there.
            return Some(
                self.steps(left, vec![item])
                    .is_some_and(|it| !it.is_empty()),
            );
        };
        let left = self.steps(left, vec![item])?;
        if left.is_empty() {
            return Some(false);
        }
        let right = self.steps(right, vec![item])?;
        match (left.as_slice(), right.as_slice()) {
            (_, []) => Some(false),
            ([left], [right]) => operator.compare(left, right),
            _ => None,
        }
    }

    /// Adds a value that has parts or is a text, and all such values in it.
    fn below<'a>(&mut self, value: &'a Value, found: &mut Vec<&'a Value>) -> Option<()> {
        self.look_at(1)?;
        let is_text = value.as_str().is_some_and(|text| !text.is_empty());
        let mut parts = parts(value).peekable();
        if is_text || parts.peek().is_some() {
            found.push(value);
        }
        parts.try_for_each(|part| self.below(part, found))
    }
}

/// Returns the items of a list, or the members of a map.
fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    let members = value.as_object().into_iter().flat_map(|it| it.values());
    items.chain(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_not_collected() {
        let many = Value::from(vec![0; 20]);
        let mut found = Vec::new();
        let collected = PathWalk::new(10).collect(parts(&many), &mut found);
        assert_eq!((collected, found.len()), (None, 11));
        found.clear();
        let collected = PathWalk::new(20).collect(parts(&many), &mut found);
        assert_eq!((collected, found.len()), (Some(()), 20));
    }

    #[test]
    fn what_unions_and_filters_find_is_bounded_while_they_look() {
        let many = Value::from(vec![0; 8]);
        let union = JsonPathStep::Union(vec![vec![JsonPathStep::All]; 4]);
        let filter = JsonPathStep::Filter {
            left: vec![JsonPathStep::Literal(Value::from(0))],
            comparison: None,
        };
        for (step, most) in [(&union, 4 * 8 + 4 + 4 * 8), (&filter, 8 + 8 + 8)] {
            let found = |values_max: usize| {
                let mut walk = PathWalk::new(values_max);
                let found = walk.step(step, &[&many]).map(|found| found.len());
                (found, walk.values_left)
            };
            assert!(found(most).0.is_some());
            assert!((0..most).all(|less| found(less) == (None, 0)));
        }
    }
}

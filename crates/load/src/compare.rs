//! Two outcomes of one scenario side by side.
//!
//! The hard part is not to claim too much: gaps that noise explains are ties, an outcome that failed
//! has no figure that is better, and whatever differs in the settings is said.

mod error;
mod file;
mod flags;
mod text;

use std::collections::BTreeSet;
use std::fmt;

use indexmap::IndexSet;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::error::SavedError;
pub(crate) use self::file::read;
pub(crate) use self::flags::{CompareFlags, ShowFlags};
pub(crate) use self::text::text;
use super::outcome::{Better, Figure, ScenarioReport};
use super::output::parameter;

/// Medians that lie closer together than this are a tie, however small their ranges.
const TIE_RATIO_MAX: f64 = 1.2;

/// An outcome and what it is called.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) outcome: ScenarioReport,
}

/// Two outcomes of one scenario side by side, figure by figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) left: Side,
    pub(crate) right: Side,
    pub(crate) rows: Vec<ComparedFigure>,
    /// The differences in the settings.
    pub(crate) differences: Vec<Difference>,
}

/// A figure of both outcomes, and which of them is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ComparedFigure {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) left: Option<Figure>,
    pub(crate) right: Option<Figure>,
    /// The right one's median over the left one's, where that means something.
    pub(crate) ratio: Option<f64>,
    pub(crate) standing: BetterSide,
}

/// The outcome that is better in a figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BetterSide {
    Left,
    Right,
    /// The gap is small or the ranges overlap.
    Tie,
    /// One of them has no such figure, both failed, or no value of it is better than another.
    Unknown,
}

/// A parameter that both do not share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) left: Option<Value>,
    pub(crate) right: Option<Value>,
}

impl Comparison {
    /// Puts two outcomes side by side.
    ///
    /// # Errors
    /// [`SavedError::Scenarios`]: they are not of the same scenario.
    pub(crate) fn new(left: Side, right: Side) -> Result<Self, SavedError> {
        if left.outcome.scenario != right.outcome.scenario {
            return Err(SavedError::Scenarios {
                left: left.name,
                left_scenario: left.outcome.scenario,
                right: right.name,
                right_scenario: right.outcome.scenario,
            });
        }
        let names: IndexSet<&String> = [&left, &right]
            .iter()
            .flat_map(|it| it.outcome.summary.keys())
            .collect();
        let rows = names
            .into_iter()
            .filter_map(|name| ComparedFigure::new(name, &left.outcome, &right.outcome))
            .collect();
        let differences = differences(&left.outcome, &right.outcome);
        Ok(Self {
            left,
            right,
            rows,
            differences,
        })
    }

    /// Returns true if both outcomes passed.
    pub(crate) fn have_both_passed(&self) -> bool {
        self.left.outcome.has_passed() && self.right.outcome.has_passed()
    }
}

impl ComparedFigure {
    fn new(name: &str, left: &ScenarioReport, right: &ScenarioReport) -> Option<Self> {
        let [a, b] = [left, right].map(|outcome| outcome.summary.get(name));
        let any = a.or(b)?;
        let comparable = a
            .zip(b)
            .filter(|(a, b)| a.unit == b.unit && a.better == b.better);
        let standing = match (left.has_passed(), right.has_passed(), comparable) {
            _ if any.better == Better::Neither => BetterSide::Unknown,
            (true, true, Some((a, b))) => standing(a, b),
            (true, false, _) if a.is_some() => BetterSide::Left,
            (false, true, _) if b.is_some() => BetterSide::Right,
            _ => BetterSide::Unknown,
        };
        let both_passed = left.has_passed() && right.has_passed();
        let ratio = comparable.filter(|(a, _)| both_passed && a.median != 0.0);
        let scored = |figure: Option<&Figure>, outcome: &ScenarioReport| {
            figure.map(|figure| {
                if outcome.has_passed() {
                    figure.clone()
                } else {
                    zero(figure)
                }
            })
        };
        Some(Self {
            name: name.to_owned(),
            unit: any.unit.clone(),
            better: any.better,
            left: scored(a, left),
            right: scored(b, right),
            ratio: ratio.map(|(a, b)| b.median / a.median),
            standing,
        })
    }

    /// Returns the ratio as it is shown.
    pub(crate) fn ratio_text(&self) -> String {
        self.ratio
            .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
    }
}

/// Returns the figure at zero. A failed outcome scores that, also for the runs of it that were whole.
fn zero(figure: &Figure) -> Figure {
    Figure {
        median: 0.0,
        min: 0.0,
        max: 0.0,
        ..figure.clone()
    }
}

fn standing(left: &Figure, right: &Figure) -> BetterSide {
    let overlap = left.min <= right.max && right.min <= left.max;
    let (low, high) = (left.median.min(right.median), left.median.max(right.median));
    if overlap || high <= low * TIE_RATIO_MAX {
        return BetterSide::Tie;
    }
    match (left.better, left.median < right.median) {
        (Better::Lower, true) | (Better::Higher, false) => BetterSide::Left,
        (Better::Lower, false) | (Better::Higher, true) => BetterSide::Right,
        (Better::Neither, _) => BetterSide::Unknown,
    }
}

fn differences(left: &ScenarioReport, right: &ScenarioReport) -> Vec<Difference> {
    let names: BTreeSet<&String> = left.setting.keys().chain(right.setting.keys()).collect();
    let of = |name: &String| Difference {
        name: name.clone(),
        left: left.setting.get(name).cloned(),
        right: right.setting.get(name).cloned(),
    };
    let all = names.into_iter().map(of);
    all.filter(|it| it.left != it.right).collect()
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| {
            let value = value.as_ref().unwrap_or(&Value::Null);
            parameter::value(&self.name, value)
        };
        let (left, right) = (shown(&self.left), shown(&self.right));
        let name = parameter::name(&self.name);
        write!(formatter, "{name}: {left} and {right}")
    }
}

#[cfg(test)]
mod tests;

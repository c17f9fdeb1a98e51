//! Scales, which give values a place on a chart, and the values that the axes name.

use crate::output::number::compact;

/// The number of values that an axis names, roughly.
const TICKS: f64 = 4.0;

/// Values that lie further apart than this are shown by their logarithms: else a curve would lie on
/// the axis with one peak.
const LINEAR_RATIO_MAX: f64 = 50.0;

/// A tick of an axis: a place with a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// From 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
}

/// The scale of a vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From zero to `top`, named every `step`.
    Linear { top: f64, step: f64 },
    /// From one power of ten to another.
    Logarithmic { low: i32, high: i32 },
}

impl Scale {
    /// Returns the scale from zero to a round number above all values.
    pub(super) fn linear(values: &[f64]) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        let step = round_step(if most > 0.0 { most } else { 1.0 } / TICKS);
        let top = (most / step).ceil().max(1.0) * step;
        Self::Linear { top, step }
    }

    /// Returns a linear scale, or a logarithmic one if the values lie too far apart for it.
    pub(super) fn fitting(values: &[f64]) -> Self {
        let mut positive: Vec<f64> = values.iter().copied().filter(|it| *it > 0.0).collect();
        positive.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (positive.first(), positive.last()) else {
            return Self::linear(values);
        };
        let middle = positive[positive.len() / 2];
        if most / middle <= LINEAR_RATIO_MAX {
            return Self::linear(values);
        }
        Self::Logarithmic {
            low: least.log10().floor() as i32,
            high: most.log10().ceil() as i32,
        }
    }

    /// Returns where a value lies, from 0 at the bottom to 1 at the top.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { top, .. } => value / top,
            Self::Logarithmic { .. } if value <= 0.0 => 0.0,
            Self::Logarithmic { low, high } => {
                (value.log10() - f64::from(low)) / f64::from(high - low)
            }
        };
        place.clamp(0.0, 1.0)
    }

    /// Returns the ticks: the places that the axis names.
    pub(super) fn ticks(self) -> Vec<Tick> {
        let values: Vec<f64> = match self {
            Self::Linear { top, step } => {
                let steps = (top / step).round() as u32;
                (0..=steps).map(|number| f64::from(number) * step).collect()
            }
            Self::Logarithmic { low, high } => {
                (low..=high).map(|power| 10_f64.powi(power)).collect()
            }
        };
        let tick = |value| Tick {
            at: self.place(value),
            label: compact(value),
        };
        values.into_iter().map(tick).collect()
    }
}

/// The horizontal axis of a distribution. Each nine has as much room as the one before, since the
/// last thousandth matters as much as the first half.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percentiles {
    /// The position of 100 %, in nines.
    end: f64,
}

impl Percentiles {
    /// Returns the axis for curves of these percentiles.
    pub(super) fn new(percentiles: impl Iterator<Item = f64>) -> Self {
        let nines = percentiles.filter(|it| *it < 100.0).map(nines);
        Self {
            end: nines.fold(1.0, f64::max) + 0.7,
        }
    }

    /// Returns where a percentile lies, from 0 to 1.
    pub(super) fn place(self, percentile: f64) -> f64 {
        if percentile >= 100.0 {
            return 1.0;
        }
        (nines(percentile) / self.end).clamp(0.0, 1.0)
    }

    pub(super) fn ticks(self) -> Vec<Tick> {
        const NAMED: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
        // The last must not stand in the most's way.
        let named = NAMED.into_iter().filter(|it| nines(*it) + 0.3 < self.end);
        let tick = |percentile: f64| Tick {
            at: self.place(percentile),
            label: percentile.to_string(),
        };
        let most = Tick {
            at: 1.0,
            label: "max".to_owned(),
        };
        named.map(tick).chain([most]).collect()
    }
}

/// Returns how many nines: 1 for 90 %, 2 for 99 %.
fn nines(percentile: f64) -> f64 {
    (100.0 / (100.0 - percentile)).log10()
}

/// Returns the next of 1, 2 and 5 times a power of ten.
pub(super) fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|factor| factor * power);
    steps
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn a_linear_scale_ends_at_a_round_number_above_all() {
        let scale = Scale::linear(&[3.0, 17.5, 9.0]);
        assert_eq!(
            scale,
            Scale::Linear {
                top: 20.0,
                step: 5.0
            }
        );
        assert_eq!(labels(scale.ticks()), ["0", "5", "10", "15", "20"]);
        assert_eq!(
            (scale.place(0.0), scale.place(5.0), scale.place(99.0)),
            (0.0, 0.25, 1.0)
        );
    }

    #[test]
    fn nothing_but_zeros_has_a_scale_too() {
        for values in [&[][..], &[0.0, 0.0]] {
            let scale = Scale::fitting(values);
            assert_eq!(scale.place(0.0), 0.0);
            assert!(scale.ticks().len() > 1);
        }
    }

    #[test]
    fn what_lies_far_apart_is_shown_by_its_logarithm() {
        let scale = Scale::fitting(&[0.5, 1.0, 2.0, 3.0, 800.0]);
        assert_eq!(scale, Scale::Logarithmic { low: -1, high: 3 });
        assert_eq!(labels(scale.ticks()), ["0.1", "1", "10", "100", "1,000"]);
        assert_eq!((scale.place(10.0), scale.place(0.0)), (0.5, 0.0));
        let near = Scale::fitting(&[1.0, 2.0, 3.0, 40.0]);
        assert!(matches!(near, Scale::Linear { .. }), "{near:?}");
    }

    #[test]
    fn each_nine_has_as_much_room() {
        let axis = Percentiles::new([0.0, 50.0, 90.0, 99.0, 99.9, 100.0].into_iter());
        let [ninety, two, three] = [90.0, 99.0, 99.9].map(|it| axis.place(it));
        assert!((two - ninety - ninety).abs() < 1e-9 && (three - two - ninety).abs() < 1e-9);
        assert_eq!((axis.place(0.0), axis.place(100.0)), (0.0, 1.0));
        assert_eq!(labels(axis.ticks()), ["0", "50", "90", "99", "99.9", "max"]);
    }

    #[test]
    fn no_percentile_stands_in_the_way_of_the_most() {
        let axis = Percentiles::new([0.0, 99.5, 100.0].into_iter());
        assert_eq!(labels(axis.ticks()), ["0", "50", "90", "99", "max"]);
    }

    #[test]
    fn steps_are_round() {
        for (least, step) in [
            (0.9, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (3.0, 5.0),
            (6.0, 10.0),
            (0.03, 0.05),
        ] {
            assert!((round_step(least) - step).abs() < 1e-9, "{least}");
        }
    }
}

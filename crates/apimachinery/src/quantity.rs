//! Quantities such as `100m`, `1Gi` and `12e6`: `resource.Quantity` in Go.

use std::fmt;
use std::str::FromStr;

use ringwatch::codec::{QuantityFamily, quantity_text};

/// The value of a quantity, exact to a billionth as in Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    billionths: i128,
}

/// The error of a text that is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)]
pub struct InvalidQuantity;

/// Number of billionths in a unit.
const BILLION: i128 = 1_000_000_000;
/// Suffixes, with base and exponent of the factor: units for base 2, billionths for base 10.
const SUFFIXES: [(&str, u32, u32); 16] = [
    ("Ki", 2, 10),
    ("Mi", 2, 20),
    ("Gi", 2, 30),
    ("Ti", 2, 40),
    ("Pi", 2, 50),
    ("Ei", 2, 60),
    ("n", 10, 0),
    ("u", 10, 3),
    ("m", 10, 6),
    ("", 10, 9),
    ("k", 10, 12),
    ("M", 10, 15),
    ("G", 10, 18),
    ("T", 10, 21),
    ("P", 10, 24),
    ("E", 10, 27),
];
/// Largest exponent after `e` or `E` that is accepted. Exponents below its negative count as that.
const EXPONENT_MAX: i32 = 18;

impl Quantity {
    /// Returns true if the quantity is more than zero.
    pub fn is_positive(self) -> bool {
        self.billionths > 0
    }

    /// Returns true if the quantity is less than zero.
    pub fn is_negative(self) -> bool {
        self.billionths < 0
    }

    /// Returns true if the quantity is an integer.
    pub fn is_whole(self) -> bool {
        self.billionths % BILLION == 0
    }

    /// Returns true if the quantity, rounded up to an integer, is a multiple of a unit that is a positive integer.
    pub fn is_multiple_of(self, unit: Self) -> bool {
        let whole = self.billionths.div_euclid(BILLION) + i128::from(!self.is_whole());
        unit.is_positive() && unit.is_whole() && whole % (unit.billionths / BILLION) == 0
    }

    /// Returns the quantity as an integer, rounded away from zero; the largest or least one if it is beyond that. It is
    /// `Quantity.Value` in Go.
    #[must_use]
    pub fn rounded_up(self) -> i64 {
        let more = if self.is_whole() {
            0
        } else {
            self.billionths.signum()
        };
        let whole = self.billionths / BILLION + more;
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the quantity divided by another one, as an approximation for messages and for comparison with given
    /// ratios.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a ratio is shown with six digits"
    )]
    pub fn ratio(self, other: Self) -> f64 {
        self.billionths as f64 / other.billionths as f64
    }
}

/// A quantity with the format in which it was written, so that it is shown in the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The quantity, without the family of suffixes in which it is shown.
    pub quantity: Quantity,
    family: QuantityFamily,
}

impl Amount {
    /// Makes the amount of a count, in decimal format.
    pub fn whole(number: usize) -> Self {
        let number = i128::try_from(number).unwrap_or(i128::MAX);
        Self {
            quantity: Quantity {
                billionths: number.saturating_mul(BILLION),
            },
            family: QuantityFamily::Decimal,
        }
    }

    /// Returns true if the quantity is zero.
    pub fn is_zero(self) -> bool {
        self.quantity == Quantity::default()
    }

    /// Rounds to thousandths, away from zero.
    pub fn in_thousandths(self) -> Self {
        const THOUSANDTH: i128 = BILLION / 1000;
        let billionths = self.quantity.billionths;
        let rest = billionths % THOUSANDTH;
        let more = if rest == 0 {
            0
        } else {
            billionths.signum() * THOUSANDTH
        };
        Self {
            quantity: Quantity {
                billionths: billionths - rest + more,
            },
            ..self
        }
    }

    /// Returns the sum in the format of this amount, or of the other one if this is zero.
    pub fn plus(self, other: Self) -> Self {
        let billionths = self
            .quantity
            .billionths
            .saturating_add(other.quantity.billionths);
        Self {
            quantity: Quantity { billionths },
            family: if self.is_zero() {
                other.family
            } else {
                self.family
            },
        }
    }

    /// Returns the difference in the format of this amount, or of the other one if this is zero.
    pub fn minus(self, other: Self) -> Self {
        let billionths = other.quantity.billionths.saturating_neg();
        self.plus(Self {
            quantity: Quantity { billionths },
            ..other
        })
    }
}

impl FromStr for Amount {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        Ok(Self {
            quantity: text.parse()?,
            family: QuantityFamily::of(text).ok_or(InvalidQuantity)?,
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&quantity_text(self.quantity.billionths, self.family))
    }
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(InvalidQuantity);
        }
        let (scale, dividing) = scale(suffix)?;
        let digits = |text: &str| match text {
            "" => Ok(0),
            text => text.parse::<i128>().map_err(|_| InvalidQuantity),
        };
        let whole = digits(whole)?.checked_mul(scale).ok_or(InvalidQuantity)?;
        // Digits after the 18th decimal place are dropped.
        let kept = fraction.get(..fraction.len().min(18)).unwrap_or_default();
        let tens = 10_i128.pow(u32::try_from(kept.len()).unwrap_or(0));
        let part = digits(kept)?.checked_mul(scale).ok_or(InvalidQuantity)? / tens;
        let sum = whole.checked_add(part).ok_or(InvalidQuantity)? / dividing;
        Ok(Self {
            billionths: if negative { -sum } else { sum },
        })
    }
}

/// Returns the factor and the divisor that convert a number with this suffix to billionths.
fn scale(suffix: &str) -> Result<(i128, i128), InvalidQuantity> {
    if let Some((_, base, power)) = SUFFIXES.iter().find(|(known, ..)| *known == suffix) {
        let factor = i128::from(*base).pow(*power);
        return Ok(if *base == 2 {
            (factor * BILLION, 1)
        } else {
            (factor, 1)
        });
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(InvalidQuantity)?;
    let exponent: i32 = exponent.parse().map_err(|_| InvalidQuantity)?;
    let tens = 10_i128.pow(exponent.unsigned_abs().min(EXPONENT_MAX.unsigned_abs()));
    match exponent {
        0..=EXPONENT_MAX => Ok((BILLION * tens, 1)),
        ..0 => Ok((BILLION, tens)),
        _ => Err(InvalidQuantity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn billionths(text: &str) -> Option<i128> {
        text.parse::<Quantity>().ok().map(|it| it.billionths)
    }

    #[test]
    fn integers_are_rounded_away_from_zero() {
        for (text, integer) in [("0", 0), ("2", 2), ("1500m", 2), ("-1n", -1), ("-2", -2)] {
            let quantity: Quantity = text.parse().expect("a quantity");
            assert_eq!(quantity.rounded_up(), integer, "{text}");
        }
    }

    #[test]
    fn equal_quantities_are_equal_however_they_are_written() {
        for (one, other) in [
            ("1", "1000m"),
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1.5Ki", "1536"),
            ("12e6", "12M"),
            ("1E3", "1k"),
            ("5e-1", "500m"),
            ("+1", "1"),
            (".5", "0.5"),
            ("1.", "1"),
        ] {
            assert!(billionths(one).is_some(), "{one}");
            assert_eq!(billionths(one), billionths(other), "{one} {other}");
        }
        assert_eq!(billionths("-1"), Some(-BILLION));
        assert_eq!(billionths("1E"), Some(10_i128.pow(27)));
    }

    #[test]
    fn amounts_are_rounded_up_to_thousandths() {
        for (text, rounded) in [
            ("100u", "1m"),
            ("1500u", "2m"),
            ("1n", "1m"),
            ("-1u", "-1m"),
            ("2m", "2m"),
            ("1", "1"),
            ("1Gi", "1Gi"),
            ("1e-6", "1e-3"),
        ] {
            let amount: Amount = text.parse().expect("an amount");
            assert_eq!(amount.in_thousandths().to_string(), rounded, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "",
            "-",
            "x",
            "1x",
            "1.2.3",
            "1 Gi",
            "1e",
            "1e99",
            "Gi",
            "1KiB",
            "--1",
            "99999999999999999999999999999999999999999",
        ] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }
}

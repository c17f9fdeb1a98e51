//! Quantities such as `100m`, `1Gi` and `12e6`.

use std::str::FromStr;

/// A quantity, exact down to the billionth as Kubernetes keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity {
    billionths: i128,
}

/// The text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)]
pub(super) struct InvalidQuantity;

/// How many billionths a unit has.
const BILLION: i128 = 1_000_000_000;
/// The suffixes and the powers they stand for.
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
/// The largest power of ten that an exponent may give, and the smallest that says anything.
const EXPONENT_MAX: i32 = 18;

impl Quantity {
    pub(super) fn is_positive(self) -> bool {
        self.billionths > 0
    }

    pub(super) fn is_negative(self) -> bool {
        self.billionths < 0
    }

    /// Whether nothing is left over a whole number.
    pub(super) fn is_whole(self) -> bool {
        self.billionths % BILLION == 0
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
        // Billionths of a billionth are rounded away.
        let kept = fraction.get(..fraction.len().min(18)).unwrap_or_default();
        let tens = 10_i128.pow(u32::try_from(kept.len()).unwrap_or(0));
        let part = digits(kept)?.checked_mul(scale).ok_or(InvalidQuantity)? / tens;
        let sum = whole.checked_add(part).ok_or(InvalidQuantity)? / dividing;
        Ok(Self {
            billionths: if negative { -sum } else { sum },
        })
    }
}

/// By what a number with this suffix is multiplied, and then divided, to give billionths.
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

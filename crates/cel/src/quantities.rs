//! The functions of quantities. Follows `library/quantity.go` of kube-apiserver, and `resource.Quantity`.
//!
//! A quantity of few digits is an integer and a power of ten there, and any other a decimal number of any length: what
//! is an integer, and how exact a double is, depends on that.

use std::cmp::Ordering;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Opaque;

use super::failure::{Failure, ValueResult};

/// The error of texts that have not the form of a quantity. Follows `resource.ErrFormatWrong`.
const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error of quantities with a suffix that there is not. Follows `resource.ErrSuffix`.
const NO_SUFFIX: &str = "unable to parse quantity's suffix";

/// The decimal suffixes with their exponents, beside `e` and `E` with a number.
const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// The binary suffixes with their exponents.
const BINARY_SUFFIXES: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// The smallest exponent of ten: smaller parts are rounded away from zero.
const NANO: i32 = -9;

/// Digits that an amount keeps; those behind them are dropped.
const DIGITS_MAX: usize = 37;

/// Digits that a number of the first kind may have.
const SHORT_DIGITS_MAX: i32 = 18;

/// The amount of a quantity: a whole number and a power of ten by which it is multiplied.
#[derive(Clone, Copy, Debug)]
struct Quantity {
    number: i128,
    exponent: i32,
    /// True for an amount of the first kind, whose number has 64 bits.
    is_short: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other).is_eq()
    }
}

impl Eq for Quantity {}

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Quantity"
    }
}

/// The parts of a quantity's text.
struct QuantityText<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

/// Splits the text of a quantity. Follows `parseQuantityString`, for which digits may be missing.
fn split(text: &str) -> Option<QuantityText<'_>> {
    let digits = |text: &str| {
        text.find(|it: char| !it.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|it: char| "eEinumkKMGTP".contains(it));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_whole = !text.is_empty() && digits(exponent) == exponent.len();
    is_whole.then_some(QuantityText {
        is_negative: text.starts_with('-'),
        whole: whole.trim_start_matches('0'),
        fraction,
        suffix,
    })
}

impl Quantity {
    /// Reads a quantity. Follows `ParseQuantity`.
    fn read(text: &str) -> Result<Self, &'static str> {
        let written = split(text).ok_or(NO_QUANTITY)?;
        if written.whole.is_empty() && written.fraction.is_empty() && written.suffix.is_empty() {
            return Ok(Self::of(0));
        }
        let read = match BINARY_SUFFIXES.iter().find(|(it, _)| *it == written.suffix) {
            Some((_, power)) => written.binary(*power),
            None => written.decimal(written.exponent().ok_or(NO_SUFFIX)?),
        };
        Ok(if written.is_negative {
            read.negated()
        } else {
            read
        })
    }

    fn of(number: i64) -> Self {
        Self {
            number: number.into(),
            exponent: 0,
            is_short: true,
        }
    }

    /// Returns an amount of the second kind.
    fn long(number: i128, exponent: i32) -> Self {
        Self {
            number,
            exponent,
            is_short: false,
        }
    }

    fn negated(self) -> Self {
        Self {
            number: -self.number,
            ..self
        }
    }

    /// Returns the number with a smaller exponent, if there is room for it.
    fn with_exponent(self, exponent: i32) -> Option<i128> {
        let tens = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        match self.number {
            0 => Some(0),
            number => number.checked_mul(10_i128.checked_pow(tens)?),
        }
    }

    /// Compares by the digits before the point first, since numbers may be far from each other.
    fn compare(self, other: Self) -> Ordering {
        let signs = self.number.signum().cmp(&other.number.signum());
        if signs.is_ne() || self.number == 0 {
            return signs;
        }
        let order = self.places().cmp(&other.places()).then_with(|| {
            let digits = |it: Self| it.number.unsigned_abs().to_string();
            let (one, two) = (digits(self), digits(other));
            let length = one.len().max(two.len());
            format!("{one:0<length$}").cmp(&format!("{two:0<length$}"))
        });
        if self.number < 0 {
            order.reverse()
        } else {
            order
        }
    }

    /// Returns how many digits there are before the point.
    fn places(self) -> i64 {
        let digits = self
            .number
            .unsigned_abs()
            .checked_ilog10()
            .unwrap_or_default();
        i64::from(digits) + i64::from(self.exponent)
    }

    /// Returns the sum. Follows `Quantity.Add`.
    fn plus(self, other: Self) -> Self {
        let is_short = self.is_short && other.is_short;
        if other.number == 0 && (is_short || !self.is_short) {
            return self;
        }
        if self.number == 0 && is_short {
            return other;
        }
        let exponent = self.exponent.min(other.exponent);
        let aligned = self
            .with_exponent(exponent)
            .zip(other.with_exponent(exponent));
        let sum = aligned.and_then(|(one, other)| one.checked_add(other));
        // The least integer has no opposite.
        let sum = sum.filter(|sum| *sum != i128::MIN);
        let Some(sum) = sum else {
            // What is smaller by as many digits as are kept makes no difference.
            let larger = if self.places() < other.places() {
                other
            } else {
                self
            };
            return Self::long(larger.number, larger.exponent);
        };
        let fits = |number: i128| i64::try_from(number).is_ok();
        let is_short = is_short && fits(sum) && aligned.is_some_and(|(a, b)| fits(a) && fits(b));
        Self {
            number: sum,
            exponent,
            is_short,
        }
    }

    /// Returns the amount as an integer. Follows `AsInt64`.
    fn integer(self) -> Option<i64> {
        if !self.is_short || self.exponent < 0 {
            return None;
        }
        i64::try_from(self.with_exponent(0)?).ok()
    }

    /// Returns the amount as a double. Follows `AsApproximateFloat64`.
    #[allow(clippy::cast_precision_loss, reason = "it is called approximate")]
    fn approximate(self) -> f64 {
        let number = self.number as f64;
        if self.exponent == 0 {
            number
        } else {
            number * 10_f64.powi(self.exponent)
        }
    }
}

impl QuantityText<'_> {
    /// Returns the exponent of a decimal suffix.
    fn exponent(&self) -> Option<i32> {
        let known = DECIMAL_SUFFIXES.iter().find(|(it, _)| *it == self.suffix);
        if let Some((_, exponent)) = known {
            return Some(*exponent);
        }
        let exponent: i64 = self.suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        // Beyond that no other amount comes near.
        let bounded = exponent.clamp(-1_000_000, 1_000_000);
        i32::try_from(bounded).ok()
    }

    /// Returns the digits as a number, and the exponent of ten that belongs to them.
    fn digits(&self) -> (i128, i32) {
        let digits = format!("{}{}", self.whole, self.fraction);
        let significant = digits.trim_start_matches('0');
        let kept = &significant[..significant.len().min(DIGITS_MAX)];
        let number = kept.parse().unwrap_or_default();
        let dropped = significant.len() - kept.len();
        let exponent = length(dropped) - length(self.fraction.len());
        (number, exponent)
    }

    /// Returns true if a number of so many digits has room in an amount of the first kind.
    fn is_short(&self, most: i32) -> bool {
        let whole = self.whole.len().max(1);
        length(whole + self.fraction.len()) <= most
    }

    fn decimal(&self, exponent: i32) -> Quantity {
        let (number, own) = self.digits();
        let amount = Quantity {
            number,
            exponent: own.saturating_add(exponent),
            is_short: true,
        };
        if self.is_short(SHORT_DIGITS_MAX) && amount.exponent >= NANO {
            return amount;
        }
        rounded(amount)
    }

    fn binary(&self, power: u32) -> Quantity {
        let (number, exponent) = self.digits();
        let factor = 1_i128 << power;
        // One 2^20 has about six decimal digits.
        let most = 14 - i32::try_from(power * 3 / 10).unwrap_or_default();
        if self.fraction.is_empty() && self.is_short(most) {
            return Quantity {
                number: number * factor,
                exponent,
                is_short: true,
            };
        }
        let largest = Quantity::long(i64::MAX.into(), 0);
        let amount = number.checked_mul(factor);
        let amount = amount.map_or(largest, |number| rounded(Quantity::long(number, exponent)));
        if amount.compare(largest).is_gt() {
            largest
        } else {
            amount
        }
    }
}

fn length(text: usize) -> i32 {
    i32::try_from(text).unwrap_or(i32::MAX)
}

/// Rounds an amount to billionths, away from zero. Amounts of this kind are of the second.
fn rounded(amount: Quantity) -> Quantity {
    if amount.number == 0 || amount.exponent >= NANO {
        return Quantity::long(amount.number, amount.exponent);
    }
    let tens = u32::try_from(NANO.saturating_sub(amount.exponent)).unwrap_or(u32::MAX);
    let number = match 10_i128.checked_pow(tens) {
        None => 1,
        Some(divisor) => amount.number / divisor + i128::from(amount.number % divisor != 0),
    };
    Quantity::long(number, NANO)
}

/// Calls a function of quantities; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    match (name, values) {
        ("quantity", [CelValue::String(text)]) => {
            let read = Quantity::read(text).map(value);
            return Some(read.map_err(|why| Failure::Other(why.into())));
        }
        ("isQuantity", [CelValue::String(text)]) => {
            return Some(Ok(CelValue::Bool(Quantity::read(text).is_ok())));
        }
        _ => {}
    }
    let (first, rest) = values.split_first()?;
    let first = of_value(first)?;
    Some(match (name, rest) {
        ("sign", []) => {
            let sign = first.number.signum();
            Ok(CelValue::Int(i64::try_from(sign).unwrap_or_default()))
        }
        ("isInteger", []) => Ok(CelValue::Bool(first.integer().is_some())),
        ("asInteger", []) => {
            let none = || Failure::Other("cannot convert value to integer".into());
            first.integer().map(CelValue::Int).ok_or_else(none)
        }
        ("asApproximateFloat", []) => Ok(CelValue::Float(first.approximate())),
        ("add", [CelValue::Int(other)]) => Ok(value(first.plus(Quantity::of(*other)))),
        ("sub", [CelValue::Int(other)]) => Ok(value(first.plus(Quantity::of(*other).negated()))),
        (_, [other]) => {
            let other = of_value(other)?;
            let order = first.compare(other);
            Ok(match name {
                "add" => value(first.plus(other)),
                "sub" => value(first.plus(other.negated())),
                "isLessThan" => CelValue::Bool(order.is_lt()),
                "isGreaterThan" => CelValue::Bool(order.is_gt()),
                "compareTo" => CelValue::Int(order as i64),
                _ => return None,
            })
        }
        _ => return None,
    })
}

fn value(quantity: Quantity) -> CelValue {
    CelValue::Opaque(Arc::new(quantity))
}

fn of_value(value: &CelValue) -> Option<Quantity> {
    match value {
        CelValue::Opaque(opaque) => opaque.downcast_ref::<Quantity>().copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Quantity {
        Quantity::read(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn amounts_are_compared_however_they_are_written() {
        for (one, other) in [
            ("1", "1000m"),
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1.5Ki", "1536"),
            ("12e6", "12M"),
            ("1E3", "1k"),
            ("+1.", "1"),
            ("m", "0"),
            ("-.k", "0"),
            ("0.1n", "1n"),
            ("9999999999999999999Ei", "9223372036854775807"),
            ("1e40", "10000000000000000000000000000000000000000"),
        ] {
            assert_eq!(read(one), read(other), "{one} {other}");
        }
        let order = [
            "-1e99999999",
            "-1",
            "-1n",
            "0",
            "1n",
            "999m",
            "1",
            "1e40",
            "1e41",
        ];
        for pair in order.windows(2) {
            assert!(read(pair[0]).compare(read(pair[1])).is_lt(), "{pair:?}");
        }
    }

    #[test]
    fn integers_are_those_of_few_digits() {
        for (text, integer) in [
            ("50k", Some(50_000)),
            ("1Ki", Some(1024)),
            ("9223372036854775807", None),
            ("1.0", None),
            ("500m", None),
            ("1000m", None),
            ("9E", Some(9_000_000_000_000_000_000)),
            ("10E", None),
        ] {
            assert_eq!(read(text).integer(), integer, "{text}");
        }
        let sum = read("1.5").plus(read("0.5"));
        assert_eq!((sum == read("2"), sum.integer()), (true, None));
        assert_eq!(read("50k").plus(Quantity::of(-50_000)).integer(), Some(0));
        assert_eq!(read("1e30").plus(read("1n")), read("1e30"));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for (text, why) in [
            ("", NO_QUANTITY),
            ("10Mo", NO_QUANTITY),
            (" 1", NO_QUANTITY),
            ("1.2.3", NO_QUANTITY),
            ("10Mm", NO_SUFFIX),
            ("1e", NO_SUFFIX),
            ("1e99999999999999999999", NO_SUFFIX),
        ] {
            assert_eq!(Quantity::read(text).err(), Some(why), "{text}");
        }
    }
}

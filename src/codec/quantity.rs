//! Quantities such as `100m`, `1Gi` and `12e6`, in the form in which Go writes them.
//!
//! A quantity remembers the family of its suffix: decimal, binary or an exponent. The canonical form is the smallest
//! whole number with a suffix of that family, whose powers go in steps of three, or of ten for powers of two. Go keeps
//! the text of most quantities that look canonical already, including some that are not quite.

use serde_json::Value;

/// The decimal suffixes and their powers of ten.
const DECIMAL: [(&str, i32); 10] = [
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

/// The binary suffixes, in powers of 1024 from the first on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The number of decimal digits that always fit into 64 bits.
const DIGITS_SURE: usize = 18;

/// The number of digits that always fit into 64 bits after a shift by a binary suffix.
const BINARY_DIGITS_SURE: usize = 14;

/// The smallest power of ten that is kept; smaller parts are rounded up.
const POWER_MIN: i32 = -9;

/// The family of a quantity's suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityFamily {
    /// Powers of ten, as a letter.
    Decimal,
    /// Powers of 1024, as two letters.
    Binary,
    /// Powers of ten, as an exponent.
    Exponent,
}

impl QuantityFamily {
    /// Returns the family of a quantity's suffix; `None` if the text is not a quantity.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        QuantityParts::read(text).map(|parts| parts.family)
    }
}

/// Formats a number of billionths as Go does, with a suffix of a family.
#[must_use]
pub fn quantity_text(billionths: i128, family: QuantityFamily) -> String {
    let sign = if billionths < 0 { "-" } else { "" };
    let written = match billionths.checked_abs() {
        Some(0) => None,
        amount => amount.and_then(|amount| write(amount, POWER_MIN, family)),
    };
    written.map_or_else(|| "0".to_owned(), |written| format!("{sign}{written}"))
}

/// Returns true if two texts are quantities of one value, whatever their suffixes.
pub(super) fn are_equal(one: &str, other: &str) -> bool {
    let value = |text: &str| {
        let parts = QuantityParts::read(text)?;
        match parts.amount()? {
            (0, _) => Some("0".to_owned()),
            (amount, power) => {
                let sign = if parts.negative { "-" } else { "" };
                let written = decimal(amount, power, QuantityFamily::Exponent)?;
                Some(format!("{sign}{written}"))
            }
        }
    };
    value(one).is_some_and(|one| value(other) == Some(one))
}

/// The parts of a quantity's text.
struct QuantityParts<'a> {
    negative: bool,
    /// The digits before the point without leading zeros, at least one.
    whole: &'a str,
    /// The digits after the point.
    fraction: &'a str,
    family: QuantityFamily,
    /// The power of ten or two of the suffix.
    power: i32,
}

/// Canonicalises a quantity. A text that is no quantity, or out of range, stays as it is.
pub(super) fn canonicalize(value: &mut Value) {
    let text = match &*value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return,
    };
    let text = canonical(&text).unwrap_or(text);
    if value.as_str() != Some(&text) {
        *value = Value::String(text);
    }
}

/// Returns the form of a quantity that Go writes; `None` if that is the text itself.
fn canonical(text: &str) -> Option<String> {
    let parts = QuantityParts::read(text)?;
    if text == "0" || parts.is_kept() {
        return None;
    }
    let (amount, power) = parts.amount()?;
    if amount == 0 {
        return Some("0".to_owned());
    }
    let sign = if parts.negative { "-" } else { "" };
    let written = write(amount, power, parts.family)?;
    Some(format!("{sign}{written}"))
}

/// Formats a positive amount, multiplied by a power of ten.
fn write(amount: i128, power: i32, family: QuantityFamily) -> Option<String> {
    let whole = whole(amount, power).filter(|_| family == QuantityFamily::Binary);
    match whole.filter(|whole| *whole >= 1024) {
        Some(whole) => Some(binary(whole.min(i64::MAX.into()))),
        None => decimal(amount, power, family),
    }
}

impl<'a> QuantityParts<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits = |text: &str| {
            let end = text.find(|it: char| !it.is_ascii_digit());
            end.unwrap_or(text.len())
        };
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        let (family, power) = family(suffix)?;
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        Some(Self {
            negative: text.starts_with('-'),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            family,
            power,
        })
    }

    /// Returns true if Go keeps the text as it is.
    fn is_kept(&self) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        if self.family == QuantityFamily::Binary {
            let taken = usize::try_from(self.power * 3 / 10).unwrap_or(usize::MAX);
            let value = self.whole.parse::<u64>();
            return self.fraction.is_empty()
                && self.whole.len() + taken <= BINARY_DIGITS_SURE
                && value.is_ok_and(|value| value % 8 != 0);
        }
        let power = self.power - self.fraction.len() as i32;
        let ends_in_zeros = match self.fraction.len() {
            0 => self.whole.ends_with("000"),
            1 | 2 => format!("{}{}", self.whole, self.fraction).ends_with("000"),
            _ => self.fraction.ends_with("000"),
        };
        digits <= DIGITS_SURE
            && power >= POWER_MIN
            && power % 3 == 0
            && !ends_in_zeros
            && !self.whole.starts_with('0')
    }

    /// Returns the number without its sign, as a whole number times a power of ten.
    fn amount(&self) -> Option<(i128, i32)> {
        let mut amount: i128 = format!("{}{}", self.whole, self.fraction).parse().ok()?;
        let mut power = -i32::try_from(self.fraction.len()).ok()?;
        if self.family == QuantityFamily::Binary {
            amount = amount.checked_mul(1_i128 << self.power)?;
        } else {
            power += self.power;
        }
        while power < POWER_MIN {
            amount = amount / 10 + i128::from(amount % 10 > 0);
            power += 1;
        }
        Some((amount, power))
    }
}

/// Parses a suffix.
fn family(suffix: &str) -> Option<(QuantityFamily, i32)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((QuantityFamily::Decimal, *power));
    }
    if let Some(at) = BINARY.iter().position(|known| *known == suffix) {
        return Some((QuantityFamily::Binary, 10 * (at as i32 + 1)));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    // A larger exponent is out of any useful range.
    let exponent = exponent.parse().ok().filter(|it| (-99..=99).contains(it))?;
    Some((QuantityFamily::Exponent, exponent))
}

/// Returns the number divided by a power of ten; `None` if it is not whole.
fn whole(amount: i128, power: i32) -> Option<i128> {
    let ten = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        amount.checked_mul(ten)
    } else {
        (amount % ten == 0).then(|| amount / ten)
    }
}

fn binary(mut whole: i128) -> String {
    let mut suffix = "";
    for larger in BINARY {
        if whole % 1024 != 0 {
            break;
        }
        whole /= 1024;
        suffix = larger;
    }
    format!("{whole}{suffix}")
}

fn decimal(mut amount: i128, mut power: i32, family: QuantityFamily) -> Option<String> {
    while amount % 10 == 0 {
        amount /= 10;
        power += 1;
    }
    let spare = power.rem_euclid(3);
    amount = amount.checked_mul(10_i128.pow(spare.unsigned_abs()))?;
    power -= spare;
    let suffix = DECIMAL.iter().find(|(_, known)| *known == power);
    Some(
        match suffix.filter(|_| family != QuantityFamily::Exponent) {
            Some((suffix, _)) => format!("{amount}{suffix}"),
            None if power == 0 => amount.to_string(),
            None => format!("{amount}e{power}"),
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonicalized(mut value: Value) -> Value {
        canonicalize(&mut value);
        value
    }

    #[test]
    fn quantities_have_one_form() {
        for (text, form) in [
            ("1000m", "1"),
            ("0.1", "100m"),
            (".5", "500m"),
            ("1.5", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("1024Mi", "1Gi"),
            ("1024Gi", "1Ti"),
            ("0.5Ki", "512"),
            ("0.0005Ki", "512m"),
            ("10000", "10k"),
            ("1000k", "1M"),
            ("1000e3", "1e6"),
            ("5e-1", "500e-3"),
            ("1.0", "1"),
            ("0.0", "0"),
            ("0Mi", "0"),
            ("-0.5", "-500m"),
            ("0.1n", "1n"),
            ("1000E", "1e21"),
            ("8Ei", "9223372036854775807"),
            ("1234567890123456789000", "1234567890123456789k"),
        ] {
            assert_eq!(canonicalized(json!(text)), json!(form), "{text}");
        }
        assert_eq!(canonicalized(json!(0.5)), json!("500m"));
        assert_eq!(canonicalized(json!(2)), json!("2"));
    }

    #[test]
    fn what_has_the_form_already_stays() {
        for text in [
            "0", "1", "100m", "1500m", "250m", "64Mi", "1Gi", "20Gi", "1025Mi", "12e6", "12E6",
            "1k", "1.500", "+1", "007", "-5", "nonsense", "1e1000", "",
        ] {
            assert_eq!(canonicalized(json!(text)), json!(text), "{text}");
        }
        assert_eq!(canonicalized(json!(true)), json!(true));
    }

    #[test]
    fn quantities_are_equal_by_their_values() {
        for (one, other, equal) in [
            ("1Gi", "1073741824", true),
            ("1000", "1e3", true),
            ("1k", "1000", true),
            ("1000m", "1", true),
            ("0", "0Gi", true),
            ("-1", "-1000m", true),
            ("-1", "1", false),
            ("1Gi", "1G", false),
            ("x", "x", false),
        ] {
            assert_eq!(are_equal(one, other), equal, "{one} {other}");
        }
    }
}

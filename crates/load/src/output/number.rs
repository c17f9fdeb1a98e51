//! Numbers as people read them, the same wherever an outcome is shown.

/// Writes the first three digits of a number: of large values all before the point, with commas between thousands; of
/// small ones none beyond the third behind it. Whole numbers, as counts are, have no point.
pub(crate) fn digits(value: f64) -> String {
    let behind = match value.abs() {
        size if value.fract() == 0.0 || size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    with_commas(&format!("{value:.behind$}"))
}

/// Writes a count, with commas between thousands.
pub(crate) fn count(value: u64) -> String {
    with_commas(&value.to_string())
}

/// Writes a number as [`digits`] does, without zeros at the end of the fraction.
pub(crate) fn short(value: f64) -> String {
    let text = digits(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Writes a number as [`short`] does, with thousands and millions as letters, for where there is little room.
pub(crate) fn compact(value: f64) -> String {
    match value.abs() {
        size if size >= 1e7 => format!("{}M", short(value / 1e6)),
        size if size >= 1e4 => format!("{}k", short(value / 1e3)),
        _ => short(value),
    }
}

/// Writes commas between the thousands of a number.
fn with_commas(text: &str) -> String {
    let (sign, number) = text.split_at(text.len() - text.trim_start_matches('-').len());
    let (number, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = sign.to_owned();
    for (place, digit) in number.chars().enumerate() {
        if place > 0 && (number.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (15.0, "15"),
            (0.0123, "0.012"),
            (0.5, "0.500"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (999.94, "1,000"),
            (12_345.6, "12,346"),
            (-1_234_567.0, "-1,234,567"),
        ] {
            assert_eq!(digits(value), text);
        }
        assert_eq!(short(0.5), "0.5");
        assert_eq!(short(20.0), "20");
        assert_eq!(short(1_200.0), "1,200");
        assert_eq!(compact(150_000.0), "150k");
        assert_eq!(compact(25_000_000.0), "25M");
        assert_eq!(compact(5_000.0), "5,000");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(100), "100");
    }
}

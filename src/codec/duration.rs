//! Durations in Go's syntax, such as `1h0m0.5s`; on the wire they are nanoseconds.

/// Go's units and their nanoseconds, the largest first.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// Formats nanoseconds as Go does.
pub(super) fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let all = nanos.unsigned_abs();
    let small = |unit: u64, name: &str| format!("{sign}{}{name}", fraction(all, unit));
    match all {
        0 => "0s".to_owned(),
        1..1_000 => small(1, "ns"),
        1_000..1_000_000 => small(1_000, "µs"),
        1_000_000..1_000_000_000 => small(1_000_000, "ms"),
        _ => {
            let (hours, rest) = (all / 3_600_000_000_000, all % 3_600_000_000_000);
            let (minutes, rest) = (rest / 60_000_000_000, rest % 60_000_000_000);
            let seconds = fraction(rest, 1_000_000_000);
            match (hours, minutes) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Formats a number of units, with as many decimal places as it needs.
fn fraction(all: u64, unit: u64) -> String {
    let places = unit.ilog10() as usize;
    let text = format!("{}.{:0places$}", all / unit, all % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses a duration into nanoseconds; `None` if the text is not a duration.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let (mut whole, mut parts) = (0i64, 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail
            .find(|it: char| it.is_ascii_digit() || it == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (int, places) = number.split_once('.').unwrap_or((number, ""));
        if int.is_empty() && places.is_empty() {
            return None;
        }
        let int: i64 = if int.is_empty() { 0 } else { int.parse().ok()? };
        whole = whole.checked_add(int.checked_mul(*nanos as i64)?)?;
        if !places.is_empty() {
            parts += format!("0.{places}").parse::<f64>().ok()? * nanos;
        }
        rest = tail;
    }
    let whole = if sign < 0.0 { -whole } else { whole };
    whole.checked_add((sign * parts).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_as_go_does() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (2_000_000, "2ms"),
            (1_000_000_000, "1s"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (5_400_500_000_000, "1h30m0.5s"),
            (-1_000_000_001, "-1.000000001s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(format(nanos), text);
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        assert_eq!(parse("1.5h"), Some(5_400_000_000_000));
        for text in ["", "1", "h", "1x", "--1s", "99999999999h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

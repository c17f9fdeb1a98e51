//! Durations as Go writes them: `5m`, `1m30s`, `1.5h`, `300ms`.

use std::time::Duration;

/// Reads a duration in Go's notation. Negative ones are refused, since no flag takes them.
///
/// # Errors
/// A sentence for the user when the text is not a duration, or one too long to count.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 30s, 5m or 1m30s");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_end);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let seconds = number * unit_seconds(unit).ok_or_else(wrong)?;
        let part = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("5m", 300_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("300ms", 300),
            ("1h2m3s4ms", 3_723_004),
            ("+2s", 2_000),
        ] {
            assert_eq!(
                parse(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "5",
            "-5m",
            "m",
            "1x",
            "1..5s",
            "5 m",
            "1e3s",
            "99999999999999999999h",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

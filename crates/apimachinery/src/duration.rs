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

/// Returns the error that Go's `time.ParseDuration` has for a text, in its words; `None` for a duration.
#[must_use]
pub fn go_error(text: &str) -> Option<String> {
    read_as_go(text).err()
}

fn read_as_go(text: &str) -> Result<(), String> {
    /// The greatest magnitude of a duration, in nanoseconds.
    const MOST: u128 = 1 << 63;
    const PART_DIGITS_MAX: usize = 18;
    let wrong = || format!("time: invalid duration {}", quoted(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let after_whole = rest.trim_start_matches(|it: char| it.is_ascii_digit());
        let whole = &rest[..rest.len() - after_whole.len()];
        let number: u128 = match whole {
            "" => 0,
            digits => digits.parse().map_err(|_| wrong())?,
        };
        if number > MOST {
            return Err(wrong());
        }
        let after_point = after_whole.strip_prefix('.').unwrap_or(after_whole);
        let tail = match after_whole.starts_with('.') {
            true => after_point.trim_start_matches(|it: char| it.is_ascii_digit()),
            false => after_whole,
        };
        let part = &after_point[..after_point.len() - tail.len()];
        if whole.is_empty() && part.is_empty() {
            return Err(wrong());
        }
        let is_end = |it: char| it == '.' || it.is_ascii_digit();
        let (unit, after) = tail.split_at(tail.find(is_end).unwrap_or(tail.len()));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted(text)));
        }
        let Some(nanos) = unit_nanos(unit) else {
            let unit = quoted(unit);
            return Err(format!(
                "time: unknown unit {unit} in duration {}",
                quoted(text)
            ));
        };
        // Further digits are less than a nanosecond.
        let part = &part[..part.len().min(PART_DIGITS_MAX)];
        let numerator: u128 = part.parse().unwrap_or(0);
        let denominator = part.bytes().fold(1, |power, _| power * 10);
        let fraction = numerator * nanos / denominator;
        let here = number.checked_mul(nanos).map(|it| it + fraction);
        total += here.filter(|it| *it <= MOST).ok_or_else(wrong)?;
        if total > MOST {
            return Err(wrong());
        }
        rest = after;
    }
    let most = if text.starts_with('-') {
        MOST
    } else {
        MOST - 1
    };
    if total > most { Err(wrong()) } else { Ok(()) }
}

/// Quotes a text as Go's package `time` does: bytes that are not printable ASCII are written in hexadecimal.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..0x80 => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
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

    #[test]
    fn errors_have_the_words_of_go() {
        for right in [
            "0",
            "-0",
            "1h30m",
            "+1.5h",
            ".5s",
            "5.s",
            "-9223372036854775808ns",
        ] {
            assert_eq!(go_error(right), None, "{right}");
        }
        for (text, why) in [
            ("", r#"time: invalid duration """#),
            ("-", r#"time: invalid duration "-""#),
            (".s", r#"time: invalid duration ".s""#),
            ("1h-2m", r#"time: unknown unit "h-" in duration "1h-2m""#),
            ("1", r#"time: missing unit in duration "1""#),
            ("1 h", r#"time: unknown unit " h" in duration "1 h""#),
            (
                "1é\"",
                r#"time: unknown unit "\xc3\xa9\"" in duration "1\xc3\xa9\"""#,
            ),
            (
                "9223372036854775808ns",
                r#"time: invalid duration "9223372036854775808ns""#,
            ),
            (
                "99999999999999999999",
                r#"time: invalid duration "99999999999999999999""#,
            ),
        ] {
            assert_eq!(go_error(text).as_deref(), Some(why), "{text}");
        }
    }
}

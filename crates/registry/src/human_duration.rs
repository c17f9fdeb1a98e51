//! Durations in the form that kubectl shows: `duration.HumanDuration` in Go.

use jiff::fmt::temporal::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Formats a duration as kubectl users know it, in at most two units: `95s`, `2m3s`, `3h10m`, `5d3h`, `2y10d`.
///
/// Negative durations of less than two seconds are `0s`, since clocks differ; longer ones are `<invalid>`, since an age
/// is not negative.
pub fn human(duration: SignedDuration) -> String {
    // Rounded toward zero, as Go converts: half a second in the future is 0.
    let seconds = duration.as_secs();
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, (MINUTE, 'm'), (1, 's')),
        600..10_800 => one(seconds, MINUTE, 'm'),
        10_800..28_800 => two(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => one(seconds, HOUR, 'h'),
        172_800..691_200 => two(seconds, (DAY, 'd'), (HOUR, 'h')),
        691_200..63_072_000 => one(seconds, DAY, 'd'),
        63_072_000..252_288_000 => two(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => one(seconds, YEAR, 'y'),
    }
}

fn one(seconds: i64, unit: i64, letter: char) -> String {
    format!("{}{letter}", seconds / unit)
}

/// Formats seconds in two units; the smaller one is left out if it is 0.
fn two(seconds: i64, large: (i64, char), small: (i64, char)) -> String {
    let rest = seconds % large.0 / small.0;
    let whole = one(seconds, large.0, large.1);
    if rest == 0 {
        whole
    } else {
        format!("{whole}{rest}{}", small.1)
    }
}

/// Reads a time as Kubernetes writes it; `None` if it is malformed.
pub fn time(text: &str) -> Option<Timestamp> {
    const RFC3339: DateTimeParser = DateTimeParser::new();
    RFC3339.parse_timestamp(text).ok()
}

/// Returns the time that has passed since the RFC 3339 time in a text, for people; `<invalid>` if it is none.
pub(super) fn since(text: &str, now: Timestamp) -> String {
    time(text).map_or_else(
        || "<invalid>".to_owned(),
        |then| human(now.duration_since(then)),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_read_as_kubectl_users_know_them() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (2 * MINUTE + 3, "2m3s"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 59, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 10 * MINUTE, "3h10m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (5 * DAY + 3 * HOUR, "5d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY + 23 * HOUR, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 10 * DAY, "2y10d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR + 364 * DAY, "8y"),
            (i64::MAX, "292471208677y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected);
        }
        // Half a second in the future is `0s`, and so is one and a half.
        assert_eq!(human(SignedDuration::from_millis(-500)), "0s");
        assert_eq!(human(SignedDuration::from_millis(-1500)), "0s");
        assert_eq!(human(SignedDuration::from_millis(119_999)), "119s");
    }

    proptest! {
        /// Read back, a text is the duration, less an eighth of it at most.
        #[test]
        fn a_text_is_the_duration_without_its_least_part(seconds in 0..20 * YEAR) {
            let text = human(SignedDuration::from_secs(seconds));
            let (mut read, mut digits) = (0, 0);
            for letter in text.chars() {
                if let Some(digit) = letter.to_digit(10) {
                    digits = digits * 10 + i64::from(digit);
                    continue;
                }
                read += digits * match letter {
                    's' => 1,
                    'm' => MINUTE,
                    'h' => HOUR,
                    'd' => DAY,
                    _ => YEAR,
                };
                digits = 0;
            }
            prop_assert!(read <= seconds && (seconds - read) * 8 <= seconds, "{} {}", seconds, text);
        }
    }
}

//! Times: on the wire seconds and nanoseconds since 1970, in JSON a string in UTC.

use jiff::Timestamp;
use serde_json::Value;

use super::error::WireError;

/// The years that RFC 3339 can write.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// The seconds of a day.
const DAY_SECONDS: i64 = 86_400;

/// The days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// The number of the day 1970-01-01, counted from the first of March of the year 0.
const EPOCH_DAYS: i64 = 719_468;

/// Go's zero time, which it writes as null.
const ZERO: &str = "0001-01-01T00:00:00Z";

/// The text of a time in whole seconds, such as `2006-01-02T15:04:05Z`.
pub(super) type Text = [u8; 20];

/// The bytes of the text of a time in microseconds, such as `2006-01-02T15:04:05.000000Z`.
const MICROS_BYTES: usize = size_of::<Text>() + 7;

/// Formats a time in whole seconds.
///
/// # Errors
/// [`WireError::TimeOutOfRange`] outside of the years 0 to 9999.
pub(super) fn seconds(seconds: i64) -> Result<Text, WireError> {
    let (year, month, day) = date(seconds.div_euclid(DAY_SECONDS));
    if !YEARS.contains(&year) {
        return Err(WireError::TimeOutOfRange);
    }
    let time = seconds.rem_euclid(DAY_SECONDS);
    let mut text = *b"0000-00-00T00:00:00Z";
    put(&mut text[0..2], year / 100);
    put(&mut text[2..4], year % 100);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], time / 3600);
    put(&mut text[14..16], time / 60 % 60);
    put(&mut text[17..19], time % 60);
    Ok(text)
}

/// Formats a time in microseconds.
///
/// # Errors
/// As [`seconds`].
pub(super) fn micros(seconds: i64, nanos: i32) -> Result<String, WireError> {
    let all = i64::from(nanos).div_euclid(1_000_000_000);
    let seconds = seconds.checked_add(all).ok_or(WireError::TimeOutOfRange)?;
    let micros = i64::from(nanos).rem_euclid(1_000_000_000) / 1000;
    let text = self::seconds(seconds)?;
    let text = String::from_utf8_lossy(&text[..text.len() - 1]);
    Ok(format!("{text}.{micros:06}Z"))
}

/// Writes a time as Go does, in UTC and without the parts of its last digit. Go's zero time is null, and what is no
/// time stays.
pub(super) fn canonicalize(value: &mut Value, with_micros: bool) {
    let Value::String(text) = value else {
        return;
    };
    let length = if with_micros {
        MICROS_BYTES
    } else {
        size_of::<Text>()
    };
    // Nearly all times are as this server has written them.
    if text.len() == length && text.ends_with('Z') && !text.starts_with(&ZERO[..ZERO.len() - 1]) {
        return;
    }
    let parsed = parse(text);
    if parsed == parse(ZERO) {
        *value = Value::Null;
        return;
    }
    let written = parsed.and_then(|(whole, nanos)| match with_micros {
        true => micros(whole, nanos).ok(),
        false => seconds(whole)
            .ok()
            .map(|text| String::from_utf8_lossy(&text).into_owned()),
    });
    if let Some(written) = written {
        *text = written;
    }
}

/// Writes a number of two digits.
fn put(digits: &mut [u8], number: i64) {
    digits.copy_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
}

/// Returns the year, month and day of a day counted from 1970.
///
/// A year is taken to begin in March, so that the day by which some are longer is their last, and
/// the months follow one rule: their days repeat every five months.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + i64::from(is_next_year), month, day)
}

/// Parses a time into seconds and nanoseconds; `None` if the text is not a time, or one that in UTC is outside of the
/// years 0 to 9999, which could be stored but not be written again.
pub(super) fn parse(text: &str) -> Option<(i64, i32)> {
    let Ok(time) = text.parse::<Timestamp>() else {
        return parse_late(text);
    };
    // Nanoseconds count forwards on the wire, towards 1970 in the library.
    let nanos = i128::from(time.subsec_nanosecond()) + i128::from(time.as_second()) * 1_000_000_000;
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    self::seconds(seconds).ok()?;
    Some((
        seconds,
        i32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?,
    ))
}

/// Parses a time of the last days of the year 9999, which the library does not have: by the time a year before, of
/// which the days are the same.
fn parse_late(text: &str) -> Option<(i64, i32)> {
    const YEAR_SECONDS: i64 = 365 * DAY_SECONDS;
    let rest = text.strip_prefix("9999-12-")?;
    let (seconds, nanos) = parse(&format!("9998-12-{rest}"))?;
    let seconds = seconds.checked_add(YEAR_SECONDS)?;
    self::seconds(seconds).ok()?;
    Some((seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        assert_eq!(&seconds(0).expect("a time"), b"1970-01-01T00:00:00Z");
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Some((0, 0)));
        let text = micros(-1, 5_000).expect("a time");
        assert_eq!(text, "1969-12-31T23:59:59.000005Z");
        assert_eq!(parse(&text), Some((-1, 5_000)));
        assert_eq!(parse("yesterday"), None);
        let last = 253_402_300_799;
        assert_eq!(parse("9999-12-31T23:59:59.5Z"), Some((last, 500_000_000)));
        assert_eq!(parse("9999-12-31T23:59:59+23:59"), Some((last - 86_340, 0)));
        assert_eq!(&seconds(last).expect("a time"), b"9999-12-31T23:59:59Z");
        for outside in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(parse(outside), None, "{outside}");
        }
        assert_eq!(seconds(i64::MAX), Err(WireError::TimeOutOfRange));
        assert_eq!(seconds(-100_000_000_000), Err(WireError::TimeOutOfRange));
        assert_eq!(seconds(i64::MIN), Err(WireError::TimeOutOfRange));
        assert_eq!(micros(i64::MAX, i32::MAX), Err(WireError::TimeOutOfRange));
    }

    #[test]
    fn times_have_one_form() {
        for (text, with_micros, expected) in [
            ("2020-01-01T01:00:00+01:00", false, "2020-01-01T00:00:00Z"),
            ("2020-01-01T00:00:00.999Z", false, "2020-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59.5Z", false, "1969-12-31T23:59:59Z"),
            ("2020-01-01T00:00:00Z", false, "2020-01-01T00:00:00Z"),
            (
                "2020-01-01T00:00:00.1234567Z",
                true,
                "2020-01-01T00:00:00.123456Z",
            ),
            (
                "2020-01-01T01:00:00.000000+01:00",
                true,
                "2020-01-01T00:00:00.000000Z",
            ),
            ("bogus", false, "bogus"),
        ] {
            let mut value = Value::from(text);
            canonicalize(&mut value, with_micros);
            assert_eq!(value, expected);
        }
    }

    #[test]
    fn every_day_is_that_of_the_calendar() {
        // From the year 0 to the year 9999, every 29th.
        for day in (-719_528..2_932_896).step_by(29) {
            let expected = Timestamp::from_second(day * DAY_SECONDS).expect("a time");
            let text = seconds(day * DAY_SECONDS).expect("a time");
            assert_eq!(String::from_utf8_lossy(&text), expected.to_string());
        }
    }
}

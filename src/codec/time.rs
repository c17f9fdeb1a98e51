//! Times: on the wire seconds and nanoseconds since 1970, in JSON a text in UTC.

use jiff::Timestamp;

use super::error::WireError;

/// The years that RFC 3339 can write.
const YEARS: std::ops::RangeInclusive<i16> = 0..=9999;

/// A time of whole seconds.
///
/// # Errors
/// [`WireError::TimeOutOfRange`] outside of the years 0 to 9999.
pub(super) fn seconds(seconds: i64) -> Result<String, WireError> {
    Ok(time(seconds, 0)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time of microseconds.
///
/// # Errors
/// As [`seconds`].
pub(super) fn micros(seconds: i64, nanos: i32) -> Result<String, WireError> {
    let time = time(seconds, nanos)?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

/// Seconds and nanoseconds of a text; `None` if it is not a time.
pub(super) fn parse(text: &str) -> Option<(i64, i32)> {
    let time: Timestamp = text.parse().ok()?;
    // Nanoseconds count forwards on the wire, towards 1970 in the library.
    let nanos = i128::from(time.subsec_nanosecond()) + i128::from(time.as_second()) * 1_000_000_000;
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    Some((
        seconds,
        i32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?,
    ))
}

fn time(seconds: i64, nanos: i32) -> Result<Timestamp, WireError> {
    Timestamp::new(seconds, 0)
        .and_then(|time| time.checked_add(jiff::SignedDuration::from_nanos(nanos.into())))
        .ok()
        .filter(|time| YEARS.contains(&time.to_zoned(jiff::tz::TimeZone::UTC).year()))
        .ok_or(WireError::TimeOutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        assert_eq!(seconds(0).expect("a time"), "1970-01-01T00:00:00Z");
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Some((0, 0)));
        let text = micros(-1, 5_000).expect("a time");
        assert_eq!(text, "1969-12-31T23:59:59.000005Z");
        assert_eq!(parse(&text), Some((-1, 5_000)));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(seconds(i64::MAX), Err(WireError::TimeOutOfRange));
        assert_eq!(seconds(-100_000_000_000), Err(WireError::TimeOutOfRange));
    }
}

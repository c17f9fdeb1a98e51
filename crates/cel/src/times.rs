//! Times and durations: their texts as Go reads and writes them, and their parts.

use std::sync::Arc;

use chrono::{DateTime, Datelike as _, FixedOffset, NaiveDate, TimeDelta, Timelike as _, Utc};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube_cel::cel::Value as CelValue;
use ringwatch_apimachinery::go_text::quoted;

use super::failure::{Failure, ValueResult};

/// The error of a text whose form is that of a time, but which is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoTime;

/// Reads a time. Follows `time.Parse` with the layout `time.RFC3339`, which takes an hour of one digit and a comma for
/// the point of seconds as well.
pub(super) fn read_time(text: &str) -> Result<DateTime<FixedOffset>, NoTime> {
    let mut reader = TimeReader { rest: text };
    let year = reader.number(4)?;
    reader.sign('-')?;
    let month = reader.number(2)?;
    reader.sign('-')?;
    let day = reader.number(2)?;
    reader.sign('T')?;
    let has_two = reader
        .rest
        .as_bytes()
        .get(1)
        .is_some_and(u8::is_ascii_digit);
    let hour = reader.number(if has_two { 2 } else { 1 })?;
    reader.sign(':')?;
    let minute = reader.number(2)?;
    reader.sign(':')?;
    let second = reader.number(2)?;
    let nanosecond = reader.fraction();
    let offset = reader.offset()?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).map_err(|_| NoTime)?, month, day);
    let local = date.and_then(|it| it.and_hms_nano_opt(hour, minute, second, nanosecond));
    let offset = FixedOffset::east_opt(offset).ok_or(NoTime)?;
    let local = local.filter(|_| second < 60).ok_or(NoTime)?;
    local.and_local_timezone(offset).single().ok_or(NoTime)
}

struct TimeReader<'t> {
    rest: &'t str,
}

impl TimeReader<'_> {
    /// Reads a number of so many digits.
    fn number(&mut self, digits: usize) -> Result<u32, NoTime> {
        let number = self.rest.get(..digits).ok_or(NoTime)?;
        if !number.bytes().all(|it| it.is_ascii_digit()) {
            return Err(NoTime);
        }
        self.rest = &self.rest[digits..];
        number.parse().map_err(|_| NoTime)
    }

    fn sign(&mut self, sign: char) -> Result<(), NoTime> {
        self.rest = self.rest.strip_prefix(sign).ok_or(NoTime)?;
        Ok(())
    }

    /// Reads a fraction of a second if there is one. Digits after the ninth are passed over.
    fn fraction(&mut self) -> u32 {
        let Some(after) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let end = after.find(|it: char| !it.is_ascii_digit());
        let end = end.unwrap_or(after.len());
        if end == 0 {
            return 0;
        }
        self.rest = &after[end..];
        let digits = &after[..end.min(9)];
        format!("{digits:0<9}").parse().unwrap_or_default()
    }

    /// Reads the offset from UTC, in seconds.
    fn offset(&mut self) -> Result<i32, NoTime> {
        if self.rest == "Z" {
            return Ok(0);
        }
        let is_west = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-']).ok_or(NoTime)?;
        let hours = self.number(2)?;
        self.sign(':')?;
        let minutes = self.number(2)?;
        if hours > 24 || minutes > 60 || !self.rest.is_empty() {
            return Err(NoTime);
        }
        let seconds = i32::try_from(hours * 3600 + minutes * 60).map_err(|_| NoTime)?;
        Ok(if is_west { -seconds } else { seconds })
    }
}

/// Writes a time. Follows `Time.Format` with the layout `time.RFC3339Nano`.
pub(super) fn write_time(time: DateTime<FixedOffset>) -> String {
    let nanoseconds = format!("{:09}", time.nanosecond());
    let nanoseconds = nanoseconds.trim_end_matches('0');
    let point = if nanoseconds.is_empty() { "" } else { "." };
    let minutes = time.offset().local_minus_utc() / 60;
    let offset = match minutes {
        0 => "Z".to_owned(),
        _ => format!(
            "{}{:02}:{:02}",
            if minutes < 0 { '-' } else { '+' },
            minutes.abs() / 60,
            minutes.abs() % 60
        ),
    };
    format!(
        "{}{point}{nanoseconds}{offset}",
        time.format("%Y-%m-%dT%H:%M:%S")
    )
}

/// Reads a duration. Follows `time.ParseDuration`.
pub(super) fn read_duration(text: &str) -> Option<TimeDelta> {
    const MOST: u64 = 1 << 63;
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(TimeDelta::zero());
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|it: char| it == '.' || it.is_ascii_digit());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        rest = after;
        let unit = nanoseconds(unit)?;
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        let part = whole.checked_mul(unit).filter(|it| *it <= MOST)?;
        let part = part
            .checked_add(part_of(fraction, unit))
            .filter(|it| *it <= MOST)?;
        sum = sum.checked_add(part).filter(|it| *it <= MOST)?;
    }
    let sum = if is_negative {
        0_i64.checked_sub_unsigned(sum)?
    } else {
        i64::try_from(sum).ok()?
    };
    Some(TimeDelta::nanoseconds(sum))
}

fn digits(text: &str) -> usize {
    let end = text.find(|it: char| !it.is_ascii_digit());
    end.unwrap_or(text.len())
}

fn nanoseconds(unit: &str) -> Option<u64> {
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

/// Returns the nanoseconds of a fraction of a unit, by a double as Go does.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction is rounded"
)]
fn part_of(fraction: &str, unit: u64) -> u64 {
    const ROOM: u64 = (1 << 63) - 1;
    let (mut value, mut scale): (u64, f64) = (0, 1.0);
    for digit in fraction.bytes().map(|it| u64::from(it - b'0')) {
        if value > ROOM / 10 || value * 10 + digit > 1 << 63 {
            break;
        }
        value = value * 10 + digit;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Writes a duration in seconds. Follows `Duration.ConvertToType` of cel-go.
#[allow(clippy::cast_precision_loss, reason = "Go rounds in the same way")]
pub(super) fn write_duration(duration: TimeDelta) -> String {
    const SECOND: i64 = 1_000_000_000;
    let nanoseconds = duration.num_nanoseconds().unwrap_or(i64::MAX);
    let seconds = (nanoseconds / SECOND) as f64 + (nanoseconds % SECOND) as f64 / SECOND as f64;
    format!("{seconds}s")
}

/// Calls a function of times and durations; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    match values {
        [CelValue::Duration(duration)] => of_duration(name, *duration).map(Ok),
        [CelValue::Timestamp(time)] => of_time(name, &time.to_utc()).map(Ok),
        [CelValue::Timestamp(time), CelValue::String(zone)] if name.starts_with("get") => {
            let local = offset(*time, zone).map(|seconds| {
                let local = time.timestamp().saturating_add(seconds);
                DateTime::<Utc>::from_timestamp(local, time.timestamp_subsec_nanos())
            });
            match local {
                Ok(local) => of_time(name, &local?).map(Ok),
                Err(why) => Some(Err(Failure::Other(why.into()))),
            }
        }
        _ => None,
    }
}

fn of_duration(name: &str, duration: TimeDelta) -> Option<CelValue> {
    Some(CelValue::Int(match name {
        "getHours" => duration.num_hours(),
        "getMinutes" => duration.num_minutes(),
        "getSeconds" => duration.num_seconds(),
        "getMilliseconds" => duration.num_milliseconds(),
        _ => return None,
    }))
}

fn of_time(name: &str, time: &DateTime<Utc>) -> Option<CelValue> {
    Some(CelValue::Int(match name {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month0()),
        "getDayOfYear" => i64::from(time.ordinal0()),
        "getDayOfMonth" => i64::from(time.day0()),
        "getDate" => i64::from(time.day()),
        "getDayOfWeek" => i64::from(time.weekday().num_days_from_sunday()),
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        "getMilliseconds" => i64::from(time.nanosecond() / 1_000_000),
        _ => return None,
    }))
}

/// Returns how many seconds a zone is ahead of UTC at a time. The zone is the name of a place, or hours and minutes.
/// Follows `timeZone` of cel-go.
fn offset(time: DateTime<FixedOffset>, zone: &Arc<String>) -> Result<i64, String> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return of_place(time, zone);
    };
    let (hours, minutes) = (integer(hours)?, integer(minutes)?);
    let whole = hours.saturating_mul(60);
    let minutes = if zone.starts_with('-') {
        whole.saturating_sub(minutes)
    } else {
        whole.saturating_add(minutes)
    };
    Ok(minutes.saturating_mul(60))
}

/// Follows `strconv.Atoi`.
fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        let why = if is_number {
            "value out of range"
        } else {
            "invalid syntax"
        };
        format!("strconv.Atoi: parsing {}: {why}", quoted(text))
    })
}

/// Follows `time.LoadLocation`.
fn of_place(time: DateTime<FixedOffset>, name: &str) -> Result<i64, String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(0);
    }
    let is_outside = name.contains("..") || name.starts_with(['/', '\\']);
    if is_outside {
        return Err("time: invalid location name".to_owned());
    }
    let unknown = || format!("unknown time zone {name}");
    let zone = TimeZone::get(name).map_err(|_| unknown())?;
    // Names are those of files, in which small letters are others than capital ones.
    let is_other = |known: &str| known != name && known.eq_ignore_ascii_case(name);
    if zone.iana_name().is_some_and(is_other) {
        return Err(unknown());
    }
    let at = Timestamp::from_second(time.timestamp()).map_err(|_| unknown())?;
    Ok(i64::from(zone.to_offset(at).seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_by_go() {
        for (text, written) in [
            ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
            ("2020-01-01T1:00:00.50+01:00", "2020-01-01T01:00:00.5+01:00"),
            (
                "2020-02-29T23:59:59,1234567891-00:30",
                "2020-02-29T23:59:59.123456789-00:30",
            ),
            ("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00Z"),
        ] {
            assert_eq!(read_time(text).map(write_time).as_deref(), Ok(written));
        }
        for text in [
            "2020-01-01t00:00:00Z",
            "2020-01-01 00:00:00Z",
            "2020-01-01T00:00:00z",
            "2020-01-01T00:00:60Z",
            "2020-02-30T00:00:00Z",
            "2020-1-01T00:00:00Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00+0100",
            "2020-01-01T00:00:00Z ",
            "20é",
        ] {
            assert_eq!(read_time(text), Err(NoTime), "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_by_go() {
        for (text, nanoseconds) in [
            ("1h2m3.5s", 3_723_500_000_000),
            ("-1.5ms", -1_500_000),
            (".3s", 300_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("0.9223372036854775807s", 922_337_203),
            ("1µs1us", 2_000),
        ] {
            let read = read_duration(text).and_then(|it| it.num_nanoseconds());
            assert_eq!(read, Some(nanoseconds), "{text}");
        }
        for text in [
            "9223372036854775808ns",
            "-",
            "1",
            ".s",
            "1d",
            "1 s",
            "1s-",
            "2562048h",
        ] {
            assert_eq!(read_duration(text), None, "{text}");
        }
        let written = |text: &str| read_duration(text).map(write_duration);
        assert_eq!(written("1h").as_deref(), Some("3600s"));
        assert_eq!(written("1.0005s").as_deref(), Some("1.0005s"));
        assert_eq!(written("-1ns").as_deref(), Some("-0.000000001s"));
    }
}

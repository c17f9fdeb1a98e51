//! Cron schedules: five fields, or a macro such as `@daily`.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use std::num::{IntErrorKind, ParseIntError};

use jiff::tz::TimeZone;
use ringwatch_apimachinery::{duration, go_text};

/// The words that stand for five fields.
const WORDS: &[&str] = &[
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];
const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A field of a schedule: its least and greatest number, and the names of numbers from there.
struct CronField {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const FIELDS: [CronField; 5] = [
    CronField {
        least: 0,
        most: 59,
        names: &[],
    },
    CronField {
        least: 0,
        most: 23,
        names: &[],
    },
    CronField {
        least: 1,
        most: 31,
        names: &[],
    },
    CronField {
        least: 1,
        most: 12,
        names: MONTHS,
    },
    CronField {
        least: 0,
        most: 6,
        names: DAYS,
    },
];

/// Returns the error in a cron schedule, in the words of the Go library that Kubernetes parses it with. Follows
/// `ParseCronScheduleWithPanicRecovery`.
pub(super) fn schedule(text: &str) -> Vec<String> {
    read(text).err().into_iter().collect()
}

fn read(text: &str) -> Result<(), String> {
    let text = without_zone(text)?;
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = format!("[{}]", fields.join(" "));
        return Err(format!(
            "expected exactly 5 fields, found {}: {found}",
            fields.len()
        ));
    }
    for (field, text) in FIELDS.iter().zip(fields) {
        let mut ranges = text.split(',').filter(|range| !range.is_empty());
        ranges.try_for_each(|range| field.range(range))?;
    }
    Ok(())
}

/// Returns a schedule without the time zone that it may begin with.
fn without_zone(text: &str) -> Result<&str, String> {
    let named = ["TZ=", "CRON_TZ="];
    let Some(rest) = named.iter().find_map(|name| text.strip_prefix(name)) else {
        return Ok(text);
    };
    let Some((zone, rest)) = rest.split_once(' ') else {
        // The library reads beyond the end of the text, which ends it.
        let why = "runtime error: slice bounds out of range [:-1]";
        return Err(format!("invalid schedule format: {why}"));
    };
    match location(zone) {
        Ok(()) => Ok(rest.trim()),
        Err(why) => Err(format!("provided bad location {zone}: {why}")),
    }
}

/// Reads the word that stands for a schedule, or a duration.
fn descriptor(text: &str) -> Result<(), String> {
    if WORDS.contains(&text) {
        return Ok(());
    }
    let Some(every) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    match duration::go_error(every) {
        None => Ok(()),
        Some(why) => Err(format!("failed to parse duration {text}: {why}")),
    }
}

impl CronField {
    /// Reads a range such as `*`, `5`, `1-5` or `*/2`.
    fn range(&self, text: &str) -> Result<(), String> {
        let parts: Vec<&str> = text.split('/').collect();
        let ends: Vec<&str> = parts[0].split('-').collect();
        let (start, mut end) = match ends[..] {
            ["*" | "?", ..] => (self.least, self.most),
            [only] => {
                let only = self.number(only)?;
                (only, only)
            }
            [first, last] => (self.number(first)?, self.number(last)?),
            [first, ..] => {
                self.number(first)?;
                return Err(format!("too many hyphens: {text}"));
            }
            [] => (self.least, self.most),
        };
        let step = match parts[..] {
            [_] => 1,
            [_, step] => integer(step)?,
            _ => return Err(format!("too many slashes: {text}")),
        };
        if parts.len() > 1 && ends.len() == 1 {
            end = self.most;
        }
        let (least, most) = (self.least, self.most);
        if start < least {
            return Err(format!(
                "beginning of range ({start}) below minimum ({least}): {text}"
            ));
        }
        if end > most {
            return Err(format!(
                "end of range ({end}) above maximum ({most}): {text}"
            ));
        }
        if start > end {
            return Err(format!(
                "beginning of range ({start}) beyond end of range ({end}): {text}"
            ));
        }
        if step == 0 {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<u64, String> {
        let lower = text.to_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        match named.and_then(|index| u64::try_from(index).ok()) {
            Some(index) => Ok(self.least + index),
            None => integer(text),
        }
    }
}

fn integer(text: &str) -> Result<u64, String> {
    let number: i64 = text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let quoted = go_text::quoted(text);
        format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}")
    })?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// Returns the errors in the name of a time zone. Follows `validateTimeZone`.
pub(super) fn time_zone(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["timeZone must be nil or non-empty string".into()];
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let part_is_right = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(allowed)
    };
    if !name.split('/').all(part_is_right) {
        return vec![format!("unknown time zone {name}")];
    }
    let mut wrong = Vec::new();
    if name.eq_ignore_ascii_case("local") {
        wrong.push(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .into(),
        );
    }
    wrong.extend(location(name).err());
    wrong
}

/// Looks for a time zone as Go's `time.LoadLocation` does, which tells upper from lower case.
fn location(name: &str) -> Result<(), String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(());
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    let found = TimeZone::get(name).ok();
    if found.is_some_and(|zone| zone.iana_name() == Some(name)) {
        return Ok(());
    }
    Err(format!("unknown time zone {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_kubernetes_reads_them() {
        for right in [
            "* * * * *",
            "*/5 0-6,22 1 jan-MAR sun",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * 1/2",
            "1,,2 , * * *",
            "*-x 0 1 1 0",
            "TZ=Europe/Berlin @daily",
            "@every -1.5h2\u{b5}s",
        ] {
            assert_eq!(schedule(right), [""; 0], "{right}");
        }
        for (wrong, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            ("@often", "unrecognized descriptor: @often"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("70/2/3 * * * *", "too many slashes: 70/2/3"),
            (
                "5000000000 * * * *",
                "end of range (5000000000) above maximum (59): 5000000000",
            ),
            (
                "99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            (
                "-1 * * * *",
                "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax",
            ),
            (
                "@every 1 hour",
                "failed to parse duration @every 1 hour: time: unknown unit \" hour\" in duration \"1 hour\"",
            ),
            (
                "TZ=0",
                "invalid schedule format: runtime error: slice bounds out of range [:-1]",
            ),
            (
                "CRON_TZ=europe/berlin @daily",
                "provided bad location europe/berlin: unknown time zone europe/berlin",
            ),
        ] {
            assert_eq!(schedule(wrong), [why], "{wrong}");
        }
    }

    #[test]
    fn time_zones_have_the_names_of_places() {
        assert_eq!(time_zone("Etc/UTC"), [""; 0]);
        assert_eq!(time_zone("Europe/Berlin"), [""; 0]);
        assert_eq!(
            time_zone("Nowhere/Land"),
            ["unknown time zone Nowhere/Land"]
        );
        assert_eq!(time_zone("a//b"), ["unknown time zone a//b"]);
        for wrong in ["europe/berlin", "Etc/Unknown", "utc"] {
            assert_eq!(time_zone(wrong), [format!("unknown time zone {wrong}")]);
        }
        assert_eq!(time_zone("Local").len(), 1);
        assert_eq!(time_zone("local").len(), 2);
        assert_eq!(time_zone(""), ["timeZone must be nil or non-empty string"]);
    }
}

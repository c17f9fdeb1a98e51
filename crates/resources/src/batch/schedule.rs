//! Cron schedules: five fields, or a macro such as `@daily`.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use jiff::tz::TimeZone;

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
    least: u32,
    most: u32,
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
/// `validateScheduleFormat`.
pub(super) fn schedule(text: &str) -> Vec<String> {
    let text = match text.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
            rest.trim()
        }
        _ => text,
    };
    if let Some(duration) = text.strip_prefix("@every ") {
        return match duration.parse::<jiff::SignedDuration>() {
            Ok(_) => Vec::new(),
            Err(_) => vec![format!(
                "failed to parse duration {text}: time: invalid duration {duration:?}"
            )],
        };
    }
    if text.starts_with('@') {
        if WORDS.contains(&text) {
            return Vec::new();
        }
        return vec![format!("unrecognized descriptor: {text}")];
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = format!("[{}]", fields.join(" "));
        return vec![format!(
            "expected exactly 5 fields, found {}: {found}",
            fields.len()
        )];
    }
    let mut pairs = FIELDS.iter().zip(fields);
    pairs
        .find_map(|(field, text)| text.split(',').find_map(|part| field.range(part).err()))
        .into_iter()
        .collect()
}

impl CronField {
    /// Reads a range such as `*`, `5`, `1-5` or `*/2`.
    fn range(&self, text: &str) -> Result<(), String> {
        let mut parts = text.split('/');
        let (range, step) = (parts.next().unwrap_or_default(), parts.next());
        if parts.next().is_some() {
            return Err(format!("too many slashes: {text}"));
        }
        let mut ends = range.split('-');
        let (first, last) = (ends.next().unwrap_or_default(), ends.next());
        let (start, end) = if matches!(first, "*" | "?") {
            (self.least, self.most)
        } else {
            let start = self.number(first)?;
            let end = match last {
                Some(last) => self.number(last)?,
                None if step.is_some() => self.most,
                None => start,
            };
            (start, end)
        };
        if ends.next().is_some() {
            return Err(format!("too many hyphens: {text}"));
        }
        let step = step.map_or(Ok(1), integer)?;
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

    fn number(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        match named.and_then(|index| u32::try_from(index).ok()) {
            Some(index) => Ok(self.least + index),
            None => integer(text),
        }
    }
}

fn integer(text: &str) -> Result<u32, String> {
    let number: i64 = text.parse().map_err(|_| {
        let why = "strconv.Atoi: parsing";
        format!("failed to parse int from {text}: {why} {text:?}: invalid syntax")
    })?;
    u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
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
    } else if TimeZone::get(name).is_err() {
        wrong.push(format!("unknown time zone {name}"));
    }
    wrong
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
        assert_eq!(time_zone("local").len(), 1);
        assert_eq!(time_zone(""), ["timeZone must be nil or non-empty string"]);
    }
}

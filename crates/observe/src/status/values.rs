//! Figures in few characters.

/// The units of sizes, each 1,024 of the one before.
const SIZES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// The sign for what is not known.
pub const UNKNOWN: &str = "-";

/// Returns a number, or the sign for one that is not known.
#[must_use]
pub fn number(value: Option<u64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |it| it.to_string())
}

/// Returns a size in bytes, such as `1.5 MiB`.
#[allow(
    clippy::cast_precision_loss,
    reason = "one digit after the point is shown"
)]
#[must_use]
pub fn bytes(value: Option<u64>) -> String {
    let Some(bytes) = value else {
        return UNKNOWN.to_owned();
    };
    let mut size = bytes as f64;
    let mut units = SIZES.iter();
    let mut unit = units.next().unwrap_or(&"B");
    for larger in units {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    match *unit {
        "B" => format!("{bytes} B"),
        unit => format!("{size:.1} {unit}"),
    }
}

/// Returns a duration, such as `1.25s`, `3m07s`, `2h05m` or `6d04h`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "durations are positive, and a cast of a float saturates"
)]
#[must_use]
pub fn seconds(value: Option<f64>) -> String {
    let Some(seconds) = value else {
        return UNKNOWN.to_owned();
    };
    if seconds < 60.0 {
        return format!("{seconds:.2}s");
    }
    let whole = seconds as u64;
    if whole < 3600 {
        return format!("{}m{:02}s", whole / 60, whole % 60);
    }
    if whole < 2 * 86_400 {
        return format!("{}h{:02}m", whole / 3600, whole / 60 % 60);
    }
    format!("{}d{:02}h", whole / 86_400, whole / 3600 % 24)
}

/// Returns how much a counter rises in a second; the sign for what is not known if there is no older value.
#[allow(
    clippy::cast_precision_loss,
    reason = "one digit after the point is shown"
)]
#[must_use]
pub fn rate(rise: Option<u64>, seconds: f64) -> String {
    match rise {
        Some(rise) if seconds > 0.0 => format!("{:.1}", rise as f64 / seconds),
        _ => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units() {
        let sizes = [0, 1023, 1536, 3 << 20, 5 << 40].map(|it| bytes(Some(it)));
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "3.0 MiB", "5.0 TiB"]);
        let times = [0.0, 59.5, 187.0, 7500.0, 532_800.0].map(|it| seconds(Some(it)));
        assert_eq!(times, ["0.00s", "59.50s", "3m07s", "2h05m", "6d04h"]);
        assert_eq!(rate(Some(5), 2.0), "2.5");
        assert_eq!((&*rate(None, 2.0), &*rate(Some(1), 0.0)), ("-", "-"));
        assert_eq!(
            (&*number(None), &*bytes(None), &*seconds(None)),
            ("-", "-", "-")
        );
    }
}

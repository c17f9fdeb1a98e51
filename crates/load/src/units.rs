//! The units in which figures are given.

use std::time::Duration;

const KIBIBYTE: f64 = 1_024.0;

/// Returns a duration in microseconds.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Returns a duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns so many bytes in KiB.
pub(crate) fn kibibytes(bytes: u64) -> f64 {
    bytes as f64 / KIBIBYTE
}

/// Returns so many bytes in MiB.
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    kibibytes(bytes) / KIBIBYTE
}

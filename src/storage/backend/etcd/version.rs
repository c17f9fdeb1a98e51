//! The etcd versions whose progress notices can be trusted.

/// Returns true if progress notices of this version never overtake events. Before 3.4.31 and 3.5.13 a requested one
/// could, and a read that relied on it missed a write.
pub(super) fn progress_is_trusted(version: &str) -> bool {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = numbers.split('.').map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
        return false;
    };
    match (major, minor) {
        (3, 4) => patch >= 31,
        (3, 5) => patch >= 13,
        version => version >= (3, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_releases_are_trusted() {
        for version in ["3.4.31", "3.5.13", "3.5.21", "3.6.0-rc.0", "3.7.1", "4.0.0"] {
            assert!(progress_is_trusted(version), "{version}");
        }
        for version in [
            "3.3.99", "3.4.23", "3.4.30", "3.5.1", "3.5.12", "", "3.5", "main",
        ] {
            assert!(!progress_is_trusted(version), "{version}");
        }
    }
}

//! How many seats a list takes, by what it reads.

/// So many bytes of objects make a seat, as in kube-apiserver.
const BYTES_PER_SEAT: u64 = 100_000;
/// No request takes more seats.
const WIDTH_MAX: u64 = 10;

/// The seats of a list of objects of so many bytes in all; with a limit, of at most so many of this many objects.
#[must_use]
pub(in crate::server::filters) fn width(bytes: u64, objects: u64, limit: u64) -> u32 {
    let read = if limit == 0 || limit >= objects {
        bytes
    } else {
        (bytes / objects).saturating_mul(limit)
    };
    let seats = read.div_ceil(BYTES_PER_SEAT).clamp(1, WIDTH_MAX);
    u32::try_from(seats).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_wide_and_pages_are_not() {
        assert_eq!(width(0, 0, 0), 1);
        assert_eq!(width(250_000, 100, 0), 3);
        assert_eq!(width(50_000_000, 10_000, 0), 10);
        assert_eq!(width(50_000_000, 10_000, 20), 1);
        assert_eq!(width(50_000_000, 10_000, 60), 3);
        assert_eq!(width(250_000, 100, 500), 3);
    }
}

//! The width of a list in seats, by the size of the objects that it reads.

use ringwatch_registry::object_counts::Size;

/// The bytes of objects for which a list takes one seat, as in kube-apiserver.
const BYTES_PER_SEAT: u64 = 100_000;
/// Maximum number of seats of a request.
const WIDTH_MAX: u32 = 10;
/// The size of an object that is assumed while none is known: the largest that etcd takes.
const OBJECT_BYTES_MAX: u64 = 1_500_000;

/// Returns the seats of a list that reads at most `objects_max` objects of a resource. Lists of resources that this
/// server does not count, such as those of an aggregated API, take one seat; those whose count is out of date take the
/// maximum.
#[must_use]
pub fn width(size: Size, objects_max: u64) -> u32 {
    let stats = match size {
        Size::Unknown => return 1,
        Size::Stale => return WIDTH_MAX,
        Size::Counted(stats) => stats,
    };
    let each = match stats.estimated_average_object_size_bytes {
        0 => OBJECT_BYTES_MAX,
        each => each,
    };
    let bytes = stats.object_count.min(objects_max).saturating_mul(each);
    let seats = u32::try_from(bytes.div_ceil(BYTES_PER_SEAT)).unwrap_or(WIDTH_MAX);
    seats.clamp(1, WIDTH_MAX)
}

#[cfg(test)]
mod tests {
    use ringwatch::storage::Stats;

    use super::*;

    fn counted(objects: u64, each: u64) -> Size {
        Size::Counted(Stats {
            object_count: objects,
            estimated_average_object_size_bytes: each,
        })
    }

    #[test]
    fn long_lists_are_wide_and_pages_are_not() {
        assert_eq!(width(counted(0, 0), u64::MAX), 1);
        assert_eq!(width(counted(100, 2_500), u64::MAX), 3);
        assert_eq!(width(counted(10_000, 5_000), u64::MAX), 10);
        assert_eq!(width(counted(10_000, 5_000), 20), 1);
        assert_eq!(width(counted(10_000, 5_000), 60), 3);
        assert_eq!(width(counted(100, 2_500), 500), 3);
        assert_eq!(width(counted(u64::MAX, u64::MAX), u64::MAX), 10);
    }

    #[test]
    fn objects_of_unknown_size_are_large() {
        assert_eq!(width(counted(1, 0), u64::MAX), 10);
    }

    #[test]
    fn what_is_counted_elsewhere_takes_a_seat_and_what_was_not_of_late_all() {
        assert_eq!(width(Size::Unknown, u64::MAX), 1);
        assert_eq!(width(Size::Stale, 1), 10);
    }
}

//! The memory that watchers took, as far as it can be told.
//!
//! A server reuses freed memory before it grows. So only one that had to grow beyond all that it ever had shows how
//! much watchers take; of any other the growth is too little, or nothing at all.

use crate::measure::Usage;
use crate::units::{kibibytes, mebibytes};

/// No server keeps a watcher in less.
const WATCHER_BYTES_MIN: u64 = 1_024;

/// The most memory that a server may have freed before, as a part of its growth, for that to change nothing.
const FREED_PART_MAX: f64 = 0.1;

/// The growth of resident memory, as far as it is to be believed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Growth {
    /// The server had never had more, so this is what was needed.
    Whole(u64),
    /// It had had more at some time, and may have used some of that again.
    AtLeast(u64, String),
    /// It had had as much before, so this says nothing.
    Unknown(String),
}

impl Growth {
    /// Returns the growth by so many watchers, who came between these two looks at the server.
    pub(super) fn between(before: Usage, after: Usage, watchers: u32) -> Self {
        let grown = after.rss.saturating_sub(before.rss);
        if grown < u64::from(watchers) * WATCHER_BYTES_MIN {
            return Self::Unknown(format!(
                "the server grew by {:.0} KiB, which is less than {watchers} watchers take, so it reused freed memory, \
                 and memory per watcher is unknown; restart the server first",
                kibibytes(grown)
            ));
        }
        let (Some(peak), Some(later)) = (before.rss_peak, after.rss_peak) else {
            let why =
                "memory per watcher is right for a server that was just started, and too little \
                       for one that had needed more before; --pid tells which it is"
                    .to_owned();
            return Self::AtLeast(grown, why);
        };
        let had = format!(
            "the server had {:.1} MiB before the watchers came and {:.1} MiB at its peak",
            mebibytes(before.rss),
            mebibytes(peak)
        );
        if later <= peak {
            return Self::Unknown(format!(
                "{had}, beyond which it did not grow, so memory per watcher is unknown; restart the server \
                 first, or open more watchers"
            ));
        }
        let freed = peak.saturating_sub(before.rss);
        if freed as f64 > grown as f64 * FREED_PART_MAX {
            let why = format!(
                "{had}, and may have reused freed memory, so memory per watcher may be more than the figure; \
                 restart the server first"
            );
            return Self::AtLeast(grown, why);
        }
        Self::Whole(grown)
    }

    /// Returns the growth, or its lower bound.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) | Self::AtLeast(bytes, _) => Some(*bytes),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the reason to doubt it.
    pub(super) fn doubt(&self) -> Option<&str> {
        match self {
            Self::Whole(_) => None,
            Self::AtLeast(_, why) | Self::Unknown(why) => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(rss: u64, peak: u64) -> Usage {
        Usage {
            rss: rss << 20,
            rss_peak: Some(peak << 20),
            ..Usage::default()
        }
    }

    #[test]
    fn a_fresh_server_shows_what_watchers_take() {
        let growth = Growth::between(usage(50, 51), usage(90, 90), 1_000);
        assert_eq!(growth, Growth::Whole(40 << 20));
    }

    #[test]
    fn what_was_freed_before_makes_it_the_least() {
        let growth = Growth::between(usage(50, 80), usage(90, 90), 1_000);
        let Growth::AtLeast(grown, why) = growth else {
            panic!("{growth:?}");
        };
        assert_eq!(grown, 40 << 20);
        assert!(why.contains("50.0 MiB before") && why.contains("80.0 MiB at its peak"));
    }

    #[test]
    fn a_server_that_did_not_grow_tells_nothing() {
        for after in [usage(90, 100), usage(100, 100)] {
            let growth = Growth::between(usage(50, 100), after, 1_000);
            assert!(matches!(growth, Growth::Unknown(_)), "{growth:?}");
        }
    }

    #[test]
    fn metrics_know_no_peak() {
        let unknown = Usage {
            rss_peak: None,
            ..usage(9, 0)
        };
        let growth = Growth::between(Usage::default(), unknown, 1_000);
        assert_eq!(growth.bytes(), Some(9 << 20));
        assert!(growth.doubt().is_some());
    }

    #[test]
    fn less_than_a_watcher_takes_tells_nothing() {
        let growth = Growth::between(usage(50, 50), usage(51, 51), 2_000);
        assert!(matches!(growth, Growth::Unknown(_)), "{growth:?}");
    }
}

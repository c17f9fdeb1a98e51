//! The flow-control windows of a connection on which two senders write DATA frames: the h2 crate and the watches.
//!
//! The client knows one window for the connection. h2 is told of a part of it only: what the client grants beyond
//! [`Windows::share_of_h2`] is withheld from h2 and belongs to the watches. So the sum of both parts never exceeds what
//! the client has granted, and neither sender needs to know what the other has sent.
//!
//! A client need not grant more before half of its window is used, or more, and h2's share alone may be less. So once
//! h2 has used half of its share, it gets from the watches' part what it lacks ([`Windows::refill`]).

use std::collections::VecDeque;
use std::io;

/// The window of a stream and of a connection before the client says otherwise.
const WINDOW_BYTES_DEFAULT: i64 = 65_535;
/// The largest window that is allowed.
pub(super) const WINDOW_BYTES_MAX: i64 = (1 << 31) - 1;
/// The least window of a connection on which watches are taken from h2. A client with a smaller one may grant more only
/// when all of it is used; a part that is idle, because its sender has nothing to send, would then stop the other.
const SHARED_WINDOW_BYTES_MIN: i64 = 1 << 20;
/// The part of the connection's window that h2 gets: an eighth, but at most so many bytes.
const H2_WINDOW_BYTES_MAX: i64 = 16 << 20;
/// Maximum number of SETTINGS frames that h2 has not acknowledged. It reads no further ones before it does, so that
/// more than one buffer of them means an error.
const SETTINGS_PENDING_MAX: usize = 64 << 10;

/// The fate of a WINDOW_UPDATE frame of the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Update {
    /// h2 gets it with this increment.
    Pass(u32),
    /// h2 does not get it.
    Withhold,
    /// The window would be larger than is allowed.
    Overflow,
}

/// The windows of a connection, in bytes that may be sent.
#[derive(Debug)]
pub(super) struct Windows {
    /// The window with which a stream begins, by what h2 has acknowledged.
    initial: i64,
    /// The same by the newest SETTINGS frame, which counts for what the client grants behind it.
    newest_initial: i64,
    /// The window of the connection, by what the client has granted and what was sent.
    connection: i64,
    /// The part of it that h2 knows of.
    h2: i64,
    /// The largest window that the connection has had.
    largest: i64,
    /// The initial windows of the SETTINGS frames that h2 has not acknowledged; `None` for one that sets none.
    settings: VecDeque<Option<u32>>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            initial: WINDOW_BYTES_DEFAULT,
            newest_initial: WINDOW_BYTES_DEFAULT,
            connection: WINDOW_BYTES_DEFAULT,
            h2: WINDOW_BYTES_DEFAULT,
            largest: WINDOW_BYTES_DEFAULT,
            settings: VecDeque::new(),
        }
    }
}

impl Windows {
    /// Returns the window with which a stream begins. A change of it moves the windows of all open streams.
    pub(super) fn initial(&self) -> i64 {
        self.initial
    }

    /// Returns the window with which a stream begins once h2 has acknowledged all that the client has set.
    pub(super) fn newest_initial(&self) -> i64 {
        self.newest_initial
    }

    /// Returns the number of bytes that watches may send on the connection.
    pub(super) fn of_watches(&self) -> i64 {
        self.connection - self.h2
    }

    /// Returns true if the window is large enough to be shared.
    fn is_shared(&self) -> bool {
        self.largest >= SHARED_WINDOW_BYTES_MIN
    }

    /// Returns true if watches have at least half of a window that is large enough. h2 never gives back what it got
    /// before the window was, and a client may grant more only when half of it is used.
    pub(super) fn has_room_for_watches(&self) -> bool {
        self.is_shared() && self.of_watches() >= self.largest / 2
    }

    /// Notes bytes of DATA frames that a watch has sent.
    pub(super) fn sent_by_watch(&mut self, bytes: i64) {
        self.connection -= bytes;
    }

    /// Notes bytes of DATA frames that h2 has sent.
    pub(super) fn sent_by_h2(&mut self, bytes: i64) {
        self.connection -= bytes;
        self.h2 -= bytes;
    }

    /// Takes an increment of the connection's window, which is not zero.
    pub(super) fn grant(&mut self, increment: u32) -> Update {
        let increment = i64::from(increment);
        if self.connection + increment > WINDOW_BYTES_MAX {
            return Update::Overflow;
        }
        self.connection += increment;
        self.largest = self.largest.max(self.connection);
        let lacking = (self.share_of_h2() - self.h2).max(0);
        let passed = increment.min(lacking);
        self.h2 += passed;
        match u32::try_from(passed) {
            Ok(passed) if passed > 0 => Update::Pass(passed),
            _ => Update::Withhold,
        }
    }

    /// Returns true if h2 is to get a part of the watches' window.
    pub(super) fn is_refill_due(&self) -> bool {
        self.h2 < self.share_of_h2() / 2 && self.of_watches() > 0
    }

    /// Moves what h2 lacks from the watches' part to its own. Returns the increment, of which h2 has to be told; `None`
    /// if none is due.
    pub(super) fn refill(&mut self) -> Option<u32> {
        if !self.is_refill_due() {
            return None;
        }
        let increment = (self.share_of_h2() - self.h2).min(self.of_watches());
        self.h2 += increment;
        u32::try_from(increment).ok()
    }

    /// Returns the part of the window that h2 may have.
    fn share_of_h2(&self) -> i64 {
        if self.is_shared() {
            (self.largest / 8).clamp(WINDOW_BYTES_DEFAULT, H2_WINDOW_BYTES_MAX)
        } else {
            WINDOW_BYTES_MAX
        }
    }

    /// Notes a SETTINGS frame of the client, with the initial window that it sets. It counts once h2 acknowledges it.
    ///
    /// # Errors
    /// There are too many that are not acknowledged.
    pub(super) fn set(&mut self, initial: Option<u32>) -> io::Result<()> {
        if self.settings.len() >= SETTINGS_PENDING_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.settings.push_back(initial);
        self.newest_initial = initial.map_or(self.newest_initial, i64::from);
        Ok(())
    }

    /// Notes that h2 acknowledges the oldest SETTINGS frame. Returns true if the streams' windows have grown.
    pub(super) fn acknowledged(&mut self) -> bool {
        let Some(initial) = self.settings.pop_front().flatten() else {
            return false;
        };
        let before = self.initial;
        self.initial = i64::from(initial);
        self.initial > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_together_are_what_the_client_grants() {
        let mut windows = Windows::default();
        assert_eq!(windows.grant(1 << 30), Update::Pass((16 << 20) - 65_535));
        assert!(windows.is_shared());
        assert_eq!(windows.of_watches(), (1 << 30) + 65_535 - (16 << 20));
        windows.sent_by_watch(1_000);
        windows.sent_by_h2(500);
        assert_eq!(windows.grant(1_500), Update::Pass(500));
        assert_eq!(windows.of_watches(), (1 << 30) + 65_535 - (16 << 20));
        assert_eq!(windows.grant(10), Update::Withhold);
    }

    #[test]
    fn a_small_window_is_all_of_h2() {
        let mut windows = Windows::default();
        assert_eq!(windows.grant(100_000), Update::Pass(100_000));
        assert_eq!((windows.of_watches(), windows.is_shared()), (0, false));
    }

    #[test]
    fn h2_gets_of_the_watches_what_it_lacks() {
        let mut windows = Windows::default();
        let _ = windows.grant((1 << 20) - 65_535);
        assert_eq!(windows.h2, 131_072);
        windows.sent_by_h2(65_536);
        assert_eq!(windows.refill(), None, "half is left");
        windows.sent_by_h2(1);
        assert_eq!(windows.refill(), Some(65_537));
        assert_eq!((windows.h2, windows.of_watches()), (131_072, 851_967));
        windows.sent_by_watch(851_966);
        windows.sent_by_h2(131_072);
        assert_eq!(windows.refill(), Some(1));
        assert_eq!(windows.refill(), None, "the client has to grant more");
    }

    #[test]
    fn an_overflow_is_an_error() {
        let mut windows = Windows::default();
        let _ = windows.grant(1 << 30);
        assert_eq!(windows.grant(1 << 30), Update::Overflow);
        // However small the part is that h2 knows of.
        windows.sent_by_h2(windows.h2);
        assert_eq!(windows.grant(i32::MAX as u32), Update::Overflow);
    }

    #[test]
    fn settings_count_once_they_are_acknowledged() {
        let mut windows = Windows::default();
        windows.set(None).expect("room");
        windows.set(Some(70_000)).expect("room");
        assert!(!windows.acknowledged());
        assert_eq!(windows.initial(), 65_535);
        assert!(windows.acknowledged());
        assert_eq!(windows.initial(), 70_000);
    }
}

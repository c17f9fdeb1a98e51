//! The process's memory budget: a ledger of bytes by account, which decides whether more memory may be used.
//!
//! ```text
//!   0                              6/8          7/8          limit
//!   |--------- no limits -----------|-- relief --|-- reserve --|
//!                                   |            +-- new lists and watches are refused
//!                                   +-- encodings are dropped, then windows shrink
//! ```
//!
//! An owner of long-lived memory holds a [`Share`] of an account and sets its size when that changes; dropping the
//! share gives the bytes back. Only new lists and watches must be admitted beforehand, since only they can be refused
//! ([`Ledger::admit`]), and large requests before they run concurrently ([`Ledger::admit_large`]). Objects come from
//! the store and cannot be refused, nor can writes; the reserve is for them and for bytes that are on their way to
//! clients.
//!
//! The hard part is that sizes change on every core at any moment. The owner of a share knows its size and adds only
//! differences to the total, in batches where it can, so nothing is summed up or locked. [`Ledger::admit`] checks and
//! adds in one atomic step, so that concurrent requests cannot take the same bytes.
//!
//! # The order in which accounts shrink
//!
//! Each rule uses the total without the accounts that shrink first, so the accounts need not notify each other:
//! encodings may have what all others leave below the relief mark ([`Ledger::allowed_to_encodings`]); windows must
//! shrink only when the total without encodings is above it ([`Ledger::owed_by_windows`]). History does not count
//! there: it has what windows drop until it is compacted, so that windows could not free what it takes.

use std::sync::Arc;

use crate::sync::{AtomicU64, Notify, Ordering};

/// The relief mark in eighths of the limit: above it encodings are dropped and windows shrink.
const RELIEF_EIGHTHS: u64 = 6;

/// The admission mark in eighths of the limit: above it no list and no watch begins.
const ADMISSION_EIGHTHS: u64 = 7;

/// The mark in sixteenths of the limit above which large requests take turns: half-way between the other two.
const LARGE_SIXTEENTHS: u64 = 13;

/// An account of the budget, to which bytes are attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[non_exhaustive]
pub enum Account {
    /// The newest state of all types: keys, objects, and the map's nodes.
    Objects,
    /// Events: the memory that they keep alive beside the newest state.
    Windows,
    /// History of the embedded store: its versions that are not current, but for what windows have of the same bytes.
    History,
    /// Encodings of objects that are cached for other clients.
    Encodings,
    /// Connections, and the bytes that their clients have not read.
    Connections,
    /// Lists and watches in progress.
    Requests,
}

impl Account {
    /// All accounts, in the order in which they are numbered.
    pub const ALL: [Self; 6] = [
        Self::Objects,
        Self::Windows,
        Self::History,
        Self::Encodings,
        Self::Connections,
        Self::Requests,
    ];

    /// Returns the account's name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Windows => "windows",
            Self::History => "history",
            Self::Encodings => "encodings",
            Self::Connections => "connections",
            Self::Requests => "requests",
        }
    }
}

/// The ledger of a process. Clones are the same ledger.
///
/// ```
/// use ringwatch::budget::{Account, Ledger};
///
/// let ledger = Ledger::new(8_000);
/// let mut objects = ledger.share(Account::Objects);
/// objects.set(6_500);
///
/// // New lists and watches may take up to seven eighths of the limit.
/// let list = ledger.admit(400)?;
/// assert_eq!(ledger.total(), 6_900);
/// assert!(ledger.admit(400).is_err());
///
/// drop(list);
/// assert_eq!(ledger.total(), 6_500);
/// # Ok::<(), ringwatch::budget::Exceeded>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Book>);

#[derive(Debug)]
struct Book {
    /// The limit of the total, in bytes.
    limit: u64,
    /// The sum of the accounts, in bytes.
    total: AtomicU64,
    /// The bytes of each account, by its number.
    accounts: [AtomicU64; Account::ALL.len()],
    /// Notified when the total rises above the relief mark, and when a request is refused.
    pressed: Notify,
}

/// An error of a list or watch that cannot begin now for want of memory. Retry later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the memory budget is spent: {total} of {limit} bytes are in use and {wanted} more are needed"
)]
pub struct Exceeded {
    /// The bytes that were requested.
    pub wanted: u64,
    /// The bytes in use.
    pub total: u64,
    /// The limit of the total, in bytes.
    pub limit: u64,
}

impl Ledger {
    /// Creates a ledger with a limit in bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Book {
            limit,
            total: AtomicU64::new(0),
            accounts: std::array::from_fn(|_| AtomicU64::new(0)),
            pressed: Notify::new(),
        }))
    }

    /// Creates a ledger that counts and refuses nothing.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Returns the limit of the total, in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Returns how many bytes are in use.
    #[must_use]
    pub fn total(&self) -> u64 {
        // Relaxed: a figure by itself, which orders nothing; so are all the others here.
        self.0.total.load(Ordering::Relaxed)
    }

    /// Returns how many bytes an account has.
    #[must_use]
    pub fn spent(&self, account: Account) -> u64 {
        // Relaxed: as in `total`.
        self.account(account).load(Ordering::Relaxed)
    }

    /// Creates a share of an account, with no bytes yet.
    #[must_use]
    pub fn share(&self, account: Account) -> Share {
        Share {
            ledger: self.clone(),
            account,
            bytes: 0,
        }
    }

    /// Admits a new list or watch whose memory is estimated in bytes, and counts the estimate for as long as the share
    /// is held.
    ///
    /// # Errors
    /// [`Exceeded`] when the total would rise above the admission mark.
    pub fn admit(&self, estimate: u64) -> Result<Share, Exceeded> {
        let mut share = self.share(Account::Requests);
        share.admit(estimate)?;
        Ok(share)
    }

    /// Admits a large request whose memory is estimated in bytes. The estimates are high, and the memory that the
    /// request really takes is counted as well where it is kept, so the mark is lower than that of [`Ledger::admit`].
    ///
    /// # Errors
    /// [`Exceeded`] when the total would rise above the mark of large requests.
    pub fn admit_large(&self, estimate: u64) -> Result<Share, Exceeded> {
        let mut share = self.share(Account::Requests);
        let most = self.0.limit / 16 * LARGE_SIXTEENTHS;
        self.try_add(share.account, estimate, most)?;
        share.bytes = estimate;
        Ok(share)
    }

    /// Returns how many bytes encodings may have now.
    #[must_use]
    pub fn allowed_to_encodings(&self) -> u64 {
        self.relief_mark().saturating_sub(self.without_encodings())
    }

    /// Returns how many bytes windows must free now.
    #[must_use]
    pub fn owed_by_windows(&self) -> u64 {
        let others = self.without_encodings();
        let others = others.saturating_sub(self.spent(Account::History));
        others.saturating_sub(self.relief_mark())
    }

    /// Completes when memory has become scarce: at once if it has since the last call. For one waiting task.
    pub async fn pressed(&self) {
        self.0.pressed.notified().await;
    }

    fn without_encodings(&self) -> u64 {
        // The two figures are read one after the other, so their difference may be off for a moment.
        self.total().saturating_sub(self.spent(Account::Encodings))
    }

    fn relief_mark(&self) -> u64 {
        self.0.limit / 8 * RELIEF_EIGHTHS
    }

    fn admission_mark(&self) -> u64 {
        self.0.limit / 8 * ADMISSION_EIGHTHS
    }

    fn account(&self, account: Account) -> &AtomicU64 {
        &self.0.accounts[account as usize]
    }

    fn add(&self, account: Account, bytes: u64) {
        // Relaxed: as in `total`.
        self.account(account).fetch_add(bytes, Ordering::Relaxed);
        let before = self.0.total.fetch_add(bytes, Ordering::Relaxed);
        self.tell_if_pressed(before, bytes);
    }

    fn subtract(&self, account: Account, bytes: u64) {
        // Relaxed: as in `total`. Only bytes that were added before are subtracted.
        self.account(account).fetch_sub(bytes, Ordering::Relaxed);
        self.0.total.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Adds bytes if the sum does not exceed `most`.
    fn try_add(&self, account: Account, bytes: u64, most: u64) -> Result<(), Exceeded> {
        let within = |total: u64| total.checked_add(bytes).filter(|sum| *sum <= most);
        // Relaxed: as in `total`. One step on one variable, so that no two callers take the same bytes.
        let spent = self
            .0
            .total
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        match spent {
            Ok(before) => {
                // Relaxed: as in `total`.
                self.account(account).fetch_add(bytes, Ordering::Relaxed);
                self.tell_if_pressed(before, bytes);
                Ok(())
            }
            Err(total) => {
                self.0.pressed.notify_one();
                Err(Exceeded {
                    wanted: bytes,
                    total,
                    limit: self.0.limit,
                })
            }
        }
    }

    fn tell_if_pressed(&self, before: u64, bytes: u64) {
        let mark = self.relief_mark();
        if before <= mark && before.saturating_add(bytes) > mark {
            self.0.pressed.notify_one();
        }
    }
}

/// A share of an account. Dropping it gives its bytes back.
#[derive(Debug)]
pub struct Share {
    /// The ledger in which it is counted.
    ledger: Ledger,
    /// The account of the bytes.
    account: Account,
    /// The number of its bytes.
    bytes: u64,
}

impl Share {
    /// Returns how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Creates another share of the same account, with no bytes yet.
    #[must_use]
    pub fn another(&self) -> Self {
        self.ledger.share(self.account)
    }

    /// Sets its bytes, which cannot be refused.
    pub fn set(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.ledger.add(self.account, bytes - self.bytes);
        } else if bytes < self.bytes {
            self.ledger.subtract(self.account, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Admits more bytes for a list or watch; none are always admitted. On error it keeps the bytes that it has.
    ///
    /// # Errors
    /// [`Exceeded`] when the total would rise above the admission mark.
    pub fn admit(&mut self, more: u64) -> Result<(), Exceeded> {
        if more == 0 {
            return Ok(());
        }
        let most = self.ledger.admission_mark();
        self.ledger.try_add(self.account, more, most)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn shares_add_up_and_are_given_back() {
        let ledger = Ledger::new(8_000);
        let mut objects = ledger.share(Account::Objects);
        let mut window = ledger.share(Account::Windows);
        objects.set(300);
        window.set(200);
        objects.set(100);
        let spent = |account| ledger.spent(account);
        assert_eq!(spent(Account::Objects), 100);
        assert_eq!(spent(Account::Windows), 200);
        assert_eq!(ledger.total(), 300);
        drop(objects);
        assert_eq!((spent(Account::Objects), ledger.total()), (0, 200));
        drop(window);
        assert_eq!(ledger.total(), 0);
    }

    #[test]
    fn large_requests_are_let_in_while_newcomers_would_be_as_well() {
        let ledger = Ledger::new(16_000);
        let mut objects = ledger.share(Account::Objects);
        objects.set(12_000);
        assert!(ledger.admit_large(1_001).is_err());
        let large = ledger.admit_large(1_000).expect("room");
        assert_eq!(ledger.total(), 13_000);
        assert!(ledger.admit(1_000).is_ok());
        drop(large);
        assert_eq!(ledger.total(), 12_000);
    }

    #[test]
    fn newcomers_are_refused_before_the_limit_and_let_in_again() {
        let ledger = Ledger::new(8_000);
        let mut first = ledger.admit(6_000).expect("room");
        let mut second = ledger.admit(1_000).expect("up to the reserve");
        let refused = ledger.admit(1).expect_err("no room");
        let expected = Exceeded {
            wanted: 1,
            total: 7_000,
            limit: 8_000,
        };
        assert_eq!(refused, expected);
        assert!(second.admit(1).is_err(), "nor may those inside grow");
        assert_eq!(second.bytes(), 1_000, "but they keep what they have");
        // Bytes that cannot be refused take the reserve.
        let mut objects = ledger.share(Account::Objects);
        objects.set(900);
        assert_eq!(ledger.total(), 7_900);
        assert!(second.admit(0).is_ok(), "who takes no more may stay");
        first.set(0);
        assert!(ledger.admit(1).is_ok());
        assert!(ledger.admit(u64::MAX).is_err(), "no estimate is admitted");
    }

    #[test]
    fn encodings_give_way_before_windows() {
        let ledger = Ledger::new(8_000);
        let mut objects = ledger.share(Account::Objects);
        let mut encodings = ledger.share(Account::Encodings);
        objects.set(5_000);
        encodings.set(2_000);
        assert_eq!(ledger.allowed_to_encodings(), 1_000);
        assert_eq!(ledger.owed_by_windows(), 0, "encodings go first");
        let mut window = ledger.share(Account::Windows);
        window.set(1_500);
        assert_eq!(ledger.allowed_to_encodings(), 0);
        assert_eq!(ledger.owed_by_windows(), 500);
        encodings.set(0);
        assert_eq!(ledger.owed_by_windows(), 500, "encodings do not count");
        window.set(1_000);
        assert_eq!(ledger.owed_by_windows(), 0);
        let mut history = ledger.share(Account::History);
        history.set(500);
        assert_eq!(ledger.owed_by_windows(), 0, "nor does history");
        window.set(1_300);
        assert_eq!(ledger.owed_by_windows(), 300);
    }

    #[test]
    fn scarcity_is_told_once_for_each_time_it_comes() {
        let ledger = Ledger::new(8_000);
        let notified = || ledger.pressed().now_or_never().is_some();
        let mut objects = ledger.share(Account::Objects);
        objects.set(6_000);
        assert!(!notified());
        objects.set(6_001);
        objects.set(6_002);
        assert!(notified());
        assert!(!notified());
        assert!(ledger.admit(2_000).is_err());
        assert!(notified(), "somebody was refused");
    }

    #[test]
    fn requests_at_once_cannot_take_the_same_bytes() {
        const THREADS: usize = 4;
        const EACH: usize = 10_000;
        let ledger = Ledger::new(8_000);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let permit = ledger.admit(3_000);
                        assert!(ledger.total() <= 7_000);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(ledger.total(), 0);
        assert_eq!(ledger.spent(Account::Requests), 0);
    }
}

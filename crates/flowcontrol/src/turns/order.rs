//! The order in which users take turns: fair queuing by the time that their turns take.
//!
//! A turn goes to the lane, and within it to the user, that has the fewest turns at the moment, and of those to the one
//! that has used the least time. Time is counted when a turn ends, since nobody knows before how long it takes. Whoever
//! comes back after a pause begins where the others are, so nobody saves time up; but whoever has used more than the
//! others is remembered until these have used as much, so nobody gets rid of that by going away for a moment.
//!
//! One of several turns is kept from all but administrators and kubelets: a turn cannot be interrupted, and these are
//! not to wait until one of a stranger ends.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::{Lane, Requester};

/// The time that every turn counts for at least. So a user whose turns take no time at all has no more of them than
/// others.
const USED_MIN: Duration = Duration::from_micros(1);

/// Maximum number of users of a lane that are remembered, those who have turns or wait aside.
const REMEMBERED_MAX: usize = 1_000;

/// The turns of all users, and those who wait for one. `W` wakes one that waits.
#[derive(Debug)]
pub(super) struct Order<W> {
    /// Maximum number of turns at a time.
    most: usize,
    /// The number of the next turn that is asked for.
    number: u64,
    /// The turns that have been given and have not ended.
    given: HashMap<u64, Requester>,
    lanes: BTreeMap<Lane, LaneQueues<W>>,
    /// The time used by the lane that had a turn last: one that comes begins there.
    clock: Duration,
}

/// The turns of a user or of a lane.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    turns: usize,
    used: Duration,
}

impl Account {
    /// Returns what decides who is next: the least.
    fn rank(self) -> (usize, Duration) {
        (self.turns, self.used)
    }

    fn end(&mut self, used: Duration) {
        self.turns -= 1;
        self.used += used.max(USED_MIN);
    }
}

/// The users of a lane.
#[derive(Debug)]
struct LaneQueues<W> {
    account: Account,
    users: HashMap<Arc<str>, UserQueue<W>>,
    /// The number of turns that all users of the lane wait for.
    waiting: usize,
    /// The time used by the user who had a turn last: one who comes begins there.
    clock: Duration,
}

/// The turns that a user waits for.
#[derive(Debug)]
struct UserQueue<W> {
    account: Account,
    waiting: VecDeque<(u64, W)>,
}

impl<W> Order<W> {
    /// Creates an order of so many turns at a time.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            number: 0,
            given: HashMap::new(),
            lanes: BTreeMap::new(),
            clock: Duration::ZERO,
        }
    }

    /// Returns how many turns are waited for.
    pub(super) fn waiting(&self) -> usize {
        self.lanes.values().map(|lane| lane.waiting).sum()
    }

    /// Adds a turn to wait for, and returns its number.
    pub(super) fn ask(&mut self, requester: &Requester, wake: W) -> u64 {
        let number = self.number;
        self.number += 1;
        let lane = self.lanes.entry(requester.lane).or_default();
        if lane.account.turns == 0 && lane.waiting == 0 {
            lane.account.used = lane.account.used.max(self.clock);
        }
        lane.ask(&requester.name, number, wake);
        number
    }

    /// Gives the next turn, if one is free for somebody who waits.
    pub(super) fn next(&mut self) -> Option<W> {
        if self.given.len() >= self.most {
            return None;
        }
        let of_others_max = of_others_max(self.most);
        let may = |lane: &Lane, turns| *lane != Lane::Others || turns < of_others_max;
        let waiting = self.lanes.iter_mut();
        let waiting = waiting.filter(|(lane, it)| it.waiting > 0 && may(lane, it.account.turns));
        let (lane, queues) = waiting.min_by_key(|(_, it)| it.account.rank())?;
        let (name, number, wake) = queues.next()?;
        self.clock = self.clock.max(queues.account.used);
        queues.account.turns += 1;
        self.given.insert(number, Requester { lane: *lane, name });
        Some(wake)
    }

    /// Ends a turn that took so long, or takes one away that is waited for.
    pub(super) fn leave(&mut self, requester: &Requester, number: u64, used: Duration) {
        let Some(lane) = self.lanes.get_mut(&requester.lane) else {
            return;
        };
        if self.given.remove(&number).is_some() {
            lane.end(&requester.name, used);
        } else {
            lane.give_up(&requester.name, number);
        }
        if self.given.is_empty() && self.waiting() == 0 {
            self.lanes.clear();
            self.clock = Duration::ZERO;
        }
    }
}

/// Returns how many of so many turns those may have who are neither administrators nor kubelets.
fn of_others_max(most: usize) -> usize {
    most.saturating_sub(1).max(1)
}

impl<W> LaneQueues<W> {
    fn ask(&mut self, name: &Arc<str>, number: u64, wake: W) {
        let clock = self.clock;
        let user = self.users.entry(Arc::clone(name)).or_default();
        if user.is_idle() {
            user.account.used = user.account.used.max(clock);
        }
        user.waiting.push_back((number, wake));
        self.waiting += 1;
    }

    fn next(&mut self) -> Option<(Arc<str>, u64, W)> {
        let waiting = self.users.iter_mut().filter_map(|(name, user)| {
            let (first, _) = user.waiting.front()?;
            Some(((user.account.rank(), *first), name, user))
        });
        let (_, name, user) = waiting.min_by_key(|(rank, _, _)| *rank)?;
        let (number, wake) = user.waiting.pop_front()?;
        user.account.turns += 1;
        let name = Arc::clone(name);
        self.clock = self.clock.max(user.account.used);
        self.waiting -= 1;
        self.forget();
        Some((name, number, wake))
    }

    fn end(&mut self, name: &Arc<str>, used: Duration) {
        self.account.end(used);
        if let Some(user) = self.users.get_mut(name) {
            user.account.end(used);
        }
        self.forget();
    }

    fn give_up(&mut self, name: &Arc<str>, number: u64) {
        if let Some(user) = self.users.get_mut(name) {
            user.waiting.retain(|(it, _)| *it != number);
        }
        self.waiting -= 1;
        self.forget();
    }

    /// Forgets the users who neither have turns nor wait, and begin where the others are when they come back.
    fn forget(&mut self) {
        let clock = self.clock;
        let is_new = |user: &UserQueue<W>| user.is_idle() && user.account.used <= clock;
        self.users.retain(|_, user| !is_new(user));
        let idle = self.users.iter().filter(|(_, user)| user.is_idle());
        if idle.clone().count() > REMEMBERED_MAX {
            let least = idle.min_by_key(|(_, user)| user.account.used);
            let least = least.map(|(name, _)| Arc::clone(name));
            least.and_then(|name| self.users.remove(&name));
        }
    }
}

impl<W> UserQueue<W> {
    fn is_idle(&self) -> bool {
        self.account.turns == 0 && self.waiting.is_empty()
    }
}

impl<W> Default for LaneQueues<W> {
    fn default() -> Self {
        Self {
            account: Account::default(),
            users: HashMap::new(),
            waiting: 0,
            clock: Duration::ZERO,
        }
    }
}

impl<W> Default for UserQueue<W> {
    fn default() -> Self {
        Self {
            account: Account::default(),
            waiting: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests;

//! The queue of requests with large work: how many may run or wait, and with how many bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringwatch_flowcontrol::{Lane, Requester};

/// Maximum number of requests of a lane that run or wait for a thread; further ones are answered with 429.
const REQUESTS_MAX: usize = 1_000;

/// Maximum number of these for one user who is no administrator.
const REQUESTS_OF_A_USER_MAX: usize = 50;

/// Maximum number of bytes of bodies that wait for a thread, of a lane; further requests are answered with 429.
const WAITING_BYTES_MAX: usize = 512 << 20;

/// Maximum number of these for one user who is no administrator.
const WAITING_BYTES_OF_A_USER_MAX: usize = 32 << 20;

/// The queue for the threads of one kind of work. Clones are the same queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Arc<Mutex<QueueCounts>>);

/// The requests in the queue and their bytes, for lanes and users that have any.
#[derive(Debug, Default)]
struct QueueCounts {
    lanes: HashMap<Lane, Amount>,
    users: HashMap<Requester, Amount>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    requests: usize,
    waiting_bytes: usize,
}

/// A permit to wait and run; returned when dropped.
#[derive(Debug)]
pub(super) struct QueuePermit {
    queue: Queue,
    requester: Requester,
    /// The bytes that wait.
    bytes: usize,
}

impl Amount {
    const OF_A_LANE_MAX: Self = Self {
        requests: REQUESTS_MAX,
        waiting_bytes: WAITING_BYTES_MAX,
    };
    const OF_A_USER_MAX: Self = Self {
        requests: REQUESTS_OF_A_USER_MAX,
        waiting_bytes: WAITING_BYTES_OF_A_USER_MAX,
    };

    fn has_room(self, bytes: usize, most: Self) -> bool {
        self.requests < most.requests && self.waiting_bytes + bytes <= most.waiting_bytes
    }
}

impl Queue {
    /// Admits a request with so many bytes; `None` if there is no room. Lanes take no room from each other, and one
    /// user only a small part of a lane, but for administrators, who are few.
    pub(super) fn enter(&self, requester: &Requester, bytes: usize) -> Option<QueuePermit> {
        let of_a_user_max = match requester.lane {
            Lane::Administrators => Amount::OF_A_LANE_MAX,
            Lane::Nodes | Lane::Others => Amount::OF_A_USER_MAX,
        };
        let mut counts = self.counts();
        let of_lane = counts.lanes.get(&requester.lane).copied();
        let of_user = counts.users.get(requester).copied();
        let has_room = of_lane
            .unwrap_or_default()
            .has_room(bytes, Amount::OF_A_LANE_MAX)
            && of_user.unwrap_or_default().has_room(bytes, of_a_user_max);
        if !has_room {
            return None;
        }
        counts.change(requester, |amount| {
            amount.requests += 1;
            amount.waiting_bytes += bytes;
        });
        Some(QueuePermit {
            queue: self.clone(),
            requester: requester.clone(),
            bytes,
        })
    }

    fn counts(&self) -> MutexGuard<'_, QueueCounts> {
        // No change leaves the counts inconsistent if it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if nobody has a permit.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let counts = self.counts();
        counts.lanes.is_empty() && counts.users.is_empty()
    }
}

impl QueueCounts {
    /// Changes what a user and their lane have.
    fn change(&mut self, requester: &Requester, change: impl Fn(&mut Amount)) {
        let lane = self.lanes.entry(requester.lane).or_default();
        change(lane);
        if lane.requests == 0 {
            self.lanes.remove(&requester.lane);
        }
        let user = self.users.entry(requester.clone()).or_default();
        change(user);
        if user.requests == 0 {
            self.users.remove(requester);
        }
    }
}

impl QueuePermit {
    /// Says that the request waits no more, and its bytes do not either.
    pub(super) fn begin(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut counts = self.queue.counts();
        counts.change(&self.requester, |amount| amount.waiting_bytes -= bytes);
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        let mut counts = self.queue.counts();
        counts.change(&self.requester, |amount| {
            amount.requests -= 1;
            amount.waiting_bytes -= self.bytes;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(lane: Lane, name: &str) -> Requester {
        Requester {
            lane,
            name: name.into(),
        }
    }

    /// Takes permits until there are none.
    fn take_all(queue: &Queue, requester: &Requester, bytes: usize) -> Vec<QueuePermit> {
        let more = || queue.enter(requester, bytes);
        std::iter::from_fn(more).collect()
    }

    #[test]
    fn a_user_gets_a_small_part_and_leaves_the_rest_to_others() {
        let queue = Queue::default();
        let ann = take_all(&queue, &user(Lane::Others, "ann"), 0);
        assert_eq!(ann.len(), REQUESTS_OF_A_USER_MAX);
        let mut all = ann;
        for number in 1..REQUESTS_MAX / REQUESTS_OF_A_USER_MAX {
            let more = take_all(&queue, &user(Lane::Others, &number.to_string()), 0);
            assert_eq!(more.len(), REQUESTS_OF_A_USER_MAX);
            all.extend(more);
        }
        assert!(queue.enter(&user(Lane::Others, "eve"), 0).is_none());
        // Kubelets and administrators have room of their own.
        let node = take_all(&queue, &user(Lane::Nodes, "node"), 0);
        assert_eq!(node.len(), REQUESTS_OF_A_USER_MAX);
        let admin = take_all(&queue, &user(Lane::Administrators, "admin"), 0);
        assert_eq!(admin.len(), REQUESTS_MAX);
        all.pop();
        assert!(queue.enter(&user(Lane::Others, "eve"), 0).is_some());
        drop((all, node, admin));
        assert!(queue.is_empty());
    }

    #[test]
    fn bytes_that_wait_are_bounded() {
        let queue = Queue::default();
        let half = WAITING_BYTES_OF_A_USER_MAX / 2;
        let ann = user(Lane::Others, "ann");
        let mut two = take_all(&queue, &ann, half);
        assert_eq!(two.len(), 2);
        two[0].begin();
        let third = queue.enter(&ann, half).expect("one waits no more");
        assert!(queue.enter(&ann, 1).is_none());
        let mut others = Vec::new();
        for number in 0..WAITING_BYTES_MAX / WAITING_BYTES_OF_A_USER_MAX - 1 {
            others.extend(take_all(
                &queue,
                &user(Lane::Others, &number.to_string()),
                half,
            ));
        }
        assert!(queue.enter(&user(Lane::Others, "eve"), 1).is_none());
        drop((two, third, others));
        assert!(queue.is_empty());
    }
}

//! The seats of requests in progress, and the queues of those that wait.
//!
//! The invariant: the sum over all levels of the larger of its seats in use and its guaranteed seats is at most the
//! total number of seats. So a level gets its guaranteed seats at once, and borrows those that other levels do not use.
//! Besides, every level and every flow may always have one request in progress, so that nothing waits for ever.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ringwatch::clock::Instant;
use ringwatch::sync::{Mutex, MutexGuard, oneshot};

use crate::{Level, Limits};

/// The divisor of the seats of a level that gives the maximum number of seats of one flow.
const FLOW_DIVISOR: u32 = 2;

/// The seats of all priority levels, and the queues of requests that wait for one.
#[derive(Debug)]
pub(super) struct Seats {
    state: Mutex<SeatState>,
    /// The time after which a taken seat may be given to another request.
    lapse: Duration,
}

#[derive(Debug)]
struct SeatState {
    total: u32,
    /// The number of the next request; later ones have larger numbers.
    number: u64,
    levels: BTreeMap<Arc<str>, LevelState>,
}

/// The executing and waiting requests of one priority level.
#[derive(Debug, Default)]
struct LevelState {
    guaranteed: u32,
    taken: u32,
    held: BTreeMap<u64, SeatRecord>,
    /// The flows that have or want seats.
    flows: HashMap<Arc<str>, FlowQueue>,
}

/// A request that has seats, as its level records it. [`Seat`] gives them back.
#[derive(Debug)]
struct SeatRecord {
    flow: Arc<str>,
    width: u32,
    since: Instant,
}

#[derive(Debug, Default)]
struct FlowQueue {
    taken: u32,
    waiting: VecDeque<WaitingRequest>,
}

#[derive(Debug)]
struct WaitingRequest {
    number: u64,
    width: u32,
    since: Instant,
    wake: oneshot::Sender<()>,
}

/// A request that has its seats, or waits for them. Dropping it gives them back.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    level: Arc<str>,
    flow: Arc<str>,
    number: u64,
    width: u32,
}

impl Seat {
    /// Returns how many seats the request has, or waits for.
    pub(super) fn width(&self) -> u32 {
        self.width
    }
}

/// A request that may have to wait for its seats.
#[derive(Debug)]
pub(super) struct SeatRequest {
    seat: Seat,
    /// The receiver of the seats; `None` if the request has them already.
    turn: Option<oneshot::Receiver<()>>,
}

impl Seats {
    /// Creates this number of seats. A seat that has been held for longer than `lapse` is given to another request.
    #[must_use]
    pub(super) fn new(total: u32, lapse: Duration) -> Self {
        let state = SeatState {
            total,
            number: 0,
            levels: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(state),
            lapse,
        }
    }

    /// Returns the nominal number of seats of each level.
    pub(super) fn nominal_limits(&self, levels: &[Arc<Level>]) -> Vec<(Arc<str>, u32)> {
        let shares = |level: &Level| level.limits.map_or(0, |limits| limits.shares);
        let all: u64 = levels.iter().map(|level| shares(level)).sum();
        let total = u64::from(self.lock().total);
        let nominal = levels.iter().map(|level| {
            let seats = (total * shares(level)).div_ceil(all.max(1));
            let seats = u32::try_from(seats).unwrap_or(u32::MAX);
            (Arc::clone(&level.name), seats)
        });
        nominal.collect()
    }

    /// Divides the seats among these levels. Requests in progress and in queues are kept.
    pub(super) fn set_levels(&self, levels: &[Arc<Level>]) {
        let limits = |level: &Arc<Level>| Some((Arc::clone(&level.name), level.limits?));
        let levels: BTreeMap<_, _> = levels.iter().filter_map(limits).collect();
        let all: u64 = levels.values().map(|limits| limits.shares).sum();
        let mut state = self.lock();
        let total = u64::from(state.total);
        state
            .levels
            .retain(|name, level| levels.contains_key(name) || !level.flows.is_empty());
        for level in state.levels.values_mut() {
            level.guaranteed = 0;
        }
        for (name, limits) in levels {
            let kept = limits.shares * (100 - limits.lendable_percent);
            let guaranteed = (total * kept).checked_div(all * 100).unwrap_or(0);
            let level = state.levels.entry(name).or_default();
            level.guaranteed = u32::try_from(guaranteed).unwrap_or(u32::MAX);
        }
        state.seat_all();
    }

    /// Requests `width` seats for a request of a flow; `None` if it may not wait, since the queue is full or the level
    /// has none.
    #[must_use]
    pub(super) fn ask(
        self: &Arc<Self>,
        level: &Arc<str>,
        limits: Limits,
        flow: (&str, &str),
        width: u32,
        now: Instant,
    ) -> Option<SeatRequest> {
        let flow: Arc<str> = format!("{}/{}", flow.0, flow.1).into();
        let mut state = self.lock();
        state.number += 1;
        let number = state.number;
        let width = width.min(state.flow_most(level));
        if !(state.flow_may(level, &flow, width) && state.level_can(level, width)) {
            state.lapse(level, now, self.lapse);
        }
        let queue = state
            .levels
            .entry(Arc::clone(level))
            .or_default()
            .flows
            .entry(Arc::clone(&flow));
        let (wake, turn) = oneshot::channel();
        queue.or_default().waiting.push_back(WaitingRequest {
            number,
            width,
            since: now,
            wake,
        });
        state.seat(level);
        let waits = state.waits(level, &flow);
        let seat = Seat {
            seats: Arc::clone(self),
            level: Arc::clone(level),
            flow,
            number,
            width,
        };
        let held = state
            .levels
            .get(level)
            .is_some_and(|it| it.held.contains_key(&number));
        drop(state);
        let refused = !held && waits > limits.queue_length;
        (!refused).then(|| SeatRequest {
            seat,
            turn: (!held).then_some(turn),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SeatState> {
        // No change leaves the seats inconsistent if it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeatRequest {
    /// Returns true if it has no seats yet.
    pub(super) fn waits(&self) -> bool {
        self.turn.is_some()
    }

    /// Waits for the seats; `None` when the level is gone.
    pub(super) async fn seated(self) -> Option<Seat> {
        if let Some(turn) = self.turn {
            turn.await.ok()?;
        }
        Some(self.seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.seats.lock();
        state.leave(&self.level, &self.flow, self.number);
        state.seat(&self.level);
        state.seat_all();
    }
}

impl SeatState {
    /// Returns the maximum number of seats of a level.
    fn most(&self, level: &str) -> u32 {
        let others = self.levels.iter().filter(|(name, _)| &***name != level);
        let guaranteed: u32 = others.map(|(_, it)| it.guaranteed).sum();
        self.total.saturating_sub(guaranteed).max(1)
    }

    /// Returns the maximum number of seats of a flow of the level.
    fn flow_most(&self, level: &str) -> u32 {
        (self.most(level) / FLOW_DIVISOR).max(1)
    }

    /// Returns true if a flow of the level may take this many more seats under its own limit. A flow without seats
    /// always may.
    fn flow_may(&self, level: &str, flow: &str, width: u32) -> bool {
        let of_flow = self.levels.get(level).and_then(|own| own.flows.get(flow));
        let of_flow = of_flow.map_or(0, |queue| queue.taken);
        of_flow == 0 || of_flow + width <= self.flow_most(level)
    }

    /// Returns true if this many more seats are free for a level, or it has none yet.
    fn level_can(&self, level: &str, width: u32) -> bool {
        let own = self.levels.get(level).map_or(0, |own| own.taken);
        let others = self.levels.iter().filter(|(name, _)| &***name != level);
        let others: u32 = others.map(|(_, it)| it.taken.max(it.guaranteed)).sum();
        own == 0 || own + width + others <= self.total
    }

    /// Returns true if a level may take this many more seats for a request: guaranteed ones, or borrowed ones for which
    /// no other level has waited longer. A level without seats always may.
    fn level_may(&self, level: &str, first: &WaitingRequest) -> bool {
        let own = self.levels.get(level);
        if own.is_none_or(|own| own.taken == 0 || own.taken + first.width <= own.guaranteed) {
            return true;
        }
        let others = self.levels.keys().filter(|name| &***name != level);
        let mut waiting = others.filter_map(|name| self.first(name));
        waiting.all(|(_, other)| first.number < other.number)
    }

    /// Gives free seats to the waiting requests of all levels. Levels are visited again after each success, since it
    /// may let others borrow.
    fn seat_all(&mut self) {
        let waits =
            |level: &LevelState| level.flows.values().any(|queue| !queue.waiting.is_empty());
        let levels = self.levels.iter().filter(|(_, level)| waits(level));
        let levels: Vec<Arc<str>> = levels.map(|(name, _)| Arc::clone(name)).collect();
        let mut seats = true;
        while seats {
            seats = false;
            for level in &levels {
                seats |= self.seat(level);
            }
        }
    }

    /// Gives free seats to the waiting requests of a level. Returns true if any got seats.
    fn seat(&mut self, level: &Arc<str>) -> bool {
        let mut seated = false;
        while let Some(flow) = self.next(level) {
            let Some(own) = self.levels.get_mut(level) else {
                return seated;
            };
            let Some(queue) = own.flows.get_mut(&flow) else {
                return seated;
            };
            let Some(first) = queue.waiting.pop_front() else {
                return seated;
            };
            // A request that has been dropped meanwhile gives them back.
            let _ = first.wake.send(());
            queue.taken += first.width;
            own.taken += first.width;
            own.held.insert(
                first.number,
                SeatRecord {
                    flow,
                    width: first.width,
                    since: first.since,
                },
            );
            seated = true;
        }
        seated
    }

    /// Returns the next flow, if enough seats are free for it. Until they are, no other flow is next: a wide request
    /// would never be served while narrow ones take each seat that becomes free.
    fn next(&self, level: &str) -> Option<Arc<str>> {
        let (flow, first) = self.first(level)?;
        let fits = self.level_can(level, first.width) && self.level_may(level, first);
        fits.then(|| Arc::clone(flow))
    }

    /// Returns, of the flows that wait and may have more, the one that has the fewest seats, and of those the one that
    /// has waited for longest.
    fn first(&self, level: &str) -> Option<(&Arc<str>, &WaitingRequest)> {
        let flows = self.levels.get(level)?.flows.iter();
        let waiting = flows.filter_map(|(flow, queue)| {
            let first = queue.waiting.front()?;
            let may = self.flow_may(level, flow, first.width);
            may.then_some((queue.taken, flow, first))
        });
        let first = waiting.min_by_key(|(taken, _, first)| (*taken, first.number));
        first.map(|(_, flow, first)| (flow, first))
    }

    fn waits(&self, level: &str, flow: &str) -> usize {
        let queue = self.levels.get(level).and_then(|it| it.flows.get(flow));
        queue.map_or(0, |queue| queue.waiting.len())
    }

    /// Takes the seats back that have been held for too long.
    fn lapse(&mut self, level: &str, now: Instant, lapse: Duration) {
        while let Some(own) = self.levels.get(level)
            && let Some((number, held)) = own.held.first_key_value()
            && now.saturating_duration_since(held.since) > lapse
        {
            let (number, flow) = (*number, Arc::clone(&held.flow));
            self.leave(level, &flow, number);
        }
    }

    /// Takes a request out, whether it has its seats or waits.
    fn leave(&mut self, level: &str, flow: &Arc<str>, number: u64) {
        let Some(own) = self.levels.get_mut(level) else {
            return;
        };
        let held = own.held.remove(&number);
        let Some(queue) = own.flows.get_mut(flow) else {
            return;
        };
        match held {
            Some(held) => {
                own.taken -= held.width;
                queue.taken -= held.width;
            }
            None => queue.waiting.retain(|waiting| waiting.number != number),
        }
        if queue.taken == 0 && queue.waiting.is_empty() {
            own.flows.remove(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use ringwatch::clock::Clock;

    use super::*;

    const LAPSE: Duration = Duration::from_secs(60);

    fn limits(shares: u64, lendable_percent: u64) -> Limits {
        Limits {
            shares,
            lendable_percent,
            queue_length: 3,
        }
    }

    fn seats(total: u32, levels: &[(&str, Limits)]) -> Arc<Seats> {
        let seats = Arc::new(Seats::new(total, LAPSE));
        let level = |(name, limits): &(&str, Limits)| {
            Arc::new(Level {
                name: (*name).into(),
                uid: String::new(),
                limits: Some(*limits),
            })
        };
        seats.set_levels(&levels.iter().map(level).collect::<Vec<_>>());
        seats
    }

    fn ask(seats: &Arc<Seats>, level: &str, flow: &str, width: u32) -> Option<SeatRequest> {
        seats.ask(
            &level.into(),
            limits(1, 0),
            ("s", flow),
            width,
            Clock::real().now(),
        )
    }

    fn seated(request: Option<SeatRequest>) -> Seat {
        let seat = request.expect("asked").seated().now_or_never();
        seat.expect("at once").expect("a seat")
    }

    #[test]
    fn a_flood_leaves_half_to_others_and_the_least_served_is_next() {
        let seats = seats(4, &[("a", limits(1, 0))]);
        let mut flood: Vec<Seat> = (0..2)
            .map(|_| seated(ask(&seats, "a", "flood", 1)))
            .collect();
        let mut queued: Vec<_> = (0..3)
            .map(|_| ask(&seats, "a", "flood", 1).expect("it waits"))
            .collect();
        assert!(ask(&seats, "a", "flood", 1).is_none(), "its queue is full");
        let others: Vec<Seat> = ["x", "y"]
            .iter()
            .map(|flow| seated(ask(&seats, "a", flow, 1)))
            .collect();
        let mut late = ask(&seats, "a", "z", 1).expect("it waits").seated().boxed();
        assert!((&mut late).now_or_never().is_none());
        flood.pop();
        let late = (&mut late).now_or_never().flatten();
        assert!(late.is_some(), "it has less than those who wait for longer");
        let mut next = queued.remove(0).seated().boxed();
        assert!((&mut next).now_or_never().is_none());
        drop(others);
        assert!((&mut next).now_or_never().is_some());
    }

    #[test]
    fn a_wide_request_gets_its_seats_under_a_steady_load_of_narrow_ones() {
        let seats = seats(4, &[("a", limits(1, 0))]);
        let mut held: VecDeque<Seat> = (0..4)
            .map(|it| seated(ask(&seats, "a", &format!("h{it}"), 1)))
            .collect();
        let mut wide = ask(&seats, "a", "wide", 2)
            .expect("it waits")
            .seated()
            .boxed();
        // Whenever a narrow one ends, another waits already.
        for step in 0..20 {
            let mut next = ask(&seats, "a", &format!("n{step}"), 1).map(|it| it.seated().boxed());
            held.pop_front();
            if let Some(Some(Some(seat))) = next.as_mut().map(|it| it.now_or_never()) {
                held.push_back(seat);
            }
            if (&mut wide).now_or_never().is_some() {
                assert!(step < 4, "it waits until enough of them have ended");
                return;
            }
        }
        panic!("it waits in vain");
    }

    #[test]
    fn what_a_level_lends_it_gets_back_for_a_wide_request() {
        let seats = seats(4, &[("a", limits(1, 100)), ("b", limits(1, 100))]);
        let first = seated(ask(&seats, "a", "first", 1));
        let mut held: VecDeque<Seat> = (0..3)
            .map(|it| seated(ask(&seats, "b", &format!("h{it}"), 1)))
            .collect();
        let mut wide = ask(&seats, "a", "wide", 2)
            .expect("it waits")
            .seated()
            .boxed();
        for step in 0..20 {
            let mut next = ask(&seats, "b", &format!("n{step}"), 1).map(|it| it.seated().boxed());
            held.pop_front();
            if let Some(Some(Some(seat))) = next.as_mut().map(|it| it.now_or_never()) {
                held.push_back(seat);
            }
            if (&mut wide).now_or_never().is_some() {
                drop(first);
                return;
            }
        }
        panic!("it waits in vain");
    }

    #[test]
    fn levels_have_what_they_are_guaranteed_and_borrow_the_rest() {
        let seats = seats(10, &[("a", limits(1, 0)), ("b", limits(1, 60))]);
        let flow = |number: u32| format!("f{number}");
        let a: Vec<Seat> = (0..8)
            .map(|it| seated(ask(&seats, "a", &flow(it), 1)))
            .collect();
        assert!(
            ask(&seats, "a", "more", 1)
                .expect("it waits")
                .seated()
                .now_or_never()
                .is_none()
        );
        let b: Vec<Seat> = (0..2)
            .map(|it| seated(ask(&seats, "b", &flow(it), 1)))
            .collect();
        let third = ask(&seats, "b", "third", 1).expect("it waits");
        assert!(
            third.seated().now_or_never().is_none(),
            "its seats are lent"
        );
        drop(a);
        let _third = seated(ask(&seats, "b", "third", 1));
        drop(b);
    }

    #[test]
    fn who_goes_gives_back_whatever_it_had() {
        let seats = seats(1, &[("a", limits(1, 0))]);
        let first = seated(ask(&seats, "a", "x", 5));
        let gone = ask(&seats, "a", "y", 1).expect("it waits");
        let second = ask(&seats, "a", "z", 1).expect("it waits");
        drop(gone);
        drop(first);
        let second = second
            .seated()
            .now_or_never()
            .expect("at once")
            .expect("a seat");
        // One that was given its seats but never took them.
        let third = ask(&seats, "a", "x", 1).expect("it waits");
        drop(second);
        drop(third);
        let state = seats.lock();
        let level = &state.levels["a"];
        assert!(
            level.flows.is_empty() && level.held.is_empty() && level.taken == 0,
            "{level:?}"
        );
    }

    #[test]
    fn seats_that_are_held_for_too_long_are_given_to_others() {
        let seats = seats(1, &[("a", limits(1, 0))]);
        let now = Clock::real().now();
        let ask = |flow, seconds| {
            seats.ask(
                &"a".into(),
                limits(1, 0),
                ("s", flow),
                1,
                now + Duration::from_secs(seconds),
            )
        };
        let stuck = seated(ask("x", 0));
        assert!(
            ask("y", 60)
                .expect("it waits")
                .seated()
                .now_or_never()
                .is_none()
        );
        let later = seated(ask("y", 61));
        drop(stuck);
        assert!(
            ask("z", 61)
                .expect("it waits")
                .seated()
                .now_or_never()
                .is_none()
        );
        drop(later);
    }
}

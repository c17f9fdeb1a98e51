//! The order of turns, beside a plain model and by cases.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn requester(lane: Lane, name: &str) -> Requester {
    Requester {
        lane,
        name: name.into(),
    }
}

fn other(name: &str) -> Requester {
    requester(Lane::Others, name)
}

/// Turns one at a time, each of which is told its requester.
struct OneAtATime(Order<(Requester, Duration)>);

impl OneAtATime {
    fn new() -> Self {
        Self(Order::new(1))
    }

    fn ask(&mut self, requester: &Requester, used: Duration) -> u64 {
        self.0.ask(requester, (requester.clone(), used))
    }

    /// Gives a turn, and ends it after its time; the lowest number that was given is the one that runs.
    fn step(&mut self) -> Option<Requester> {
        let (requester, used) = self.0.next()?;
        let number = *self.0.given.keys().next().expect("it is given");
        self.0.leave(&requester, number, used);
        Some(requester)
    }

    fn names(&mut self, count: usize) -> Vec<String> {
        let steps = (0..count).map(|_| self.step().expect("a turn").name.to_string());
        steps.collect()
    }
}

#[test]
fn a_user_with_little_work_passes_one_with_much() {
    let mut order = OneAtATime::new();
    for _ in 0..20 {
        order.ask(&other("mallory"), 2 * SECOND);
    }
    assert_eq!(order.names(1), ["mallory"]);
    order.ask(&other("ann"), SECOND / 100);
    order.ask(&other("ann"), SECOND / 100);
    assert_eq!(order.names(3), ["ann", "ann", "mallory"]);
}

#[test]
fn equal_users_alternate_by_the_time_of_their_turns() {
    let mut order = OneAtATime::new();
    for _ in 0..3 {
        order.ask(&other("ann"), 2 * SECOND);
    }
    for _ in 0..6 {
        order.ask(&other("bob"), SECOND);
    }
    let names = order.names(9).concat();
    assert_eq!(names, "annbobbobannbobbobannbobbob");
}

#[test]
fn many_users_of_one_lane_are_one_for_the_others() {
    let mut order = OneAtATime::new();
    let node = requester(Lane::Nodes, "node");
    let admin = requester(Lane::Administrators, "admin");
    for number in 0..100 {
        order.ask(&other(&format!("pod-{number}")), SECOND);
    }
    order.names(10);
    for _ in 0..4 {
        order.ask(&node, SECOND);
        order.ask(&admin, SECOND);
    }
    let lanes: Vec<_> = (0..8).map(|_| order.step().expect("a turn").lane).collect();
    let [admins, nodes, others] = [Lane::Administrators, Lane::Nodes, Lane::Others];
    assert_eq!(
        lanes,
        [admins, nodes, admins, nodes, others, admins, nodes, others]
    );
}

#[test]
fn one_turn_of_several_is_kept_for_administrators_and_kubelets() {
    let mut order = Order::new(3);
    for number in 0..5 {
        order.ask(&other("mallory"), number);
    }
    assert_eq!([order.next(), order.next()], [Some(0), Some(1)]);
    assert_eq!(order.next(), None);
    order.ask(&requester(Lane::Nodes, "node"), 9);
    order.ask(&requester(Lane::Nodes, "node"), 10);
    assert_eq!([order.next(), order.next()], [Some(9), None]);
    order.leave(&other("mallory"), 0, SECOND);
    assert_eq!([order.next(), order.next()], [Some(10), None]);
    order.leave(&requester(Lane::Nodes, "node"), 5, SECOND);
    assert_eq!([order.next(), order.next()], [Some(2), None]);
}

#[test]
fn a_pause_neither_saves_time_up_nor_forgives_what_was_used() {
    let mut order = OneAtATime::new();
    let (ann, bob) = (other("ann"), other("bob"));
    order.ask(&bob, SECOND);
    order.ask(&ann, 5 * SECOND);
    assert_eq!(order.names(2), ["bob", "ann"]);
    // Nobody waited: all begin anew.
    order.ask(&ann, 5 * SECOND);
    for _ in 0..7 {
        order.ask(&bob, SECOND);
    }
    assert_eq!(order.names(1), ["ann"]);
    // Nothing of hers waits any more, and then something does.
    assert_eq!(order.names(1), ["bob"]);
    order.ask(&ann, SECOND);
    assert_eq!(order.names(6).concat(), "bobbobbobbobbobann");
    // Eve begins where they are, though she has used nothing.
    order.ask(&other("eve"), SECOND);
    order.ask(&other("eve"), SECOND);
    assert_eq!(order.names(3), ["eve", "bob", "eve"]);
}

#[test]
fn those_who_are_remembered_are_bounded() {
    let mut order = Order::new(1);
    let bob = other("bob");
    let debtors = (0..REMEMBERED_MAX + 10).map(|it| other(&format!("{it}")));
    let debtors: Vec<_> = debtors.collect();
    for (used, debtor) in (1..).zip(&debtors) {
        let number = order.ask(debtor, ());
        // Somebody waits, so that nobody begins anew.
        order.ask(&bob, ());
        while order.next().is_some() {
            let (given, who) = order.given.iter().next().expect("one is given");
            let (given, who) = (*given, who.clone());
            let used = if given == number {
                used * SECOND
            } else {
                USED_MIN
            };
            order.leave(&who, given, used);
            if given == number {
                break;
            }
        }
    }
    let users = &order.lanes[&Lane::Others].users;
    assert!(users.len() <= REMEMBERED_MAX + 1, "{}", users.len());
    let most = debtors.last().expect("debtors");
    assert!(users.contains_key(&most.name), "who has used the most");
}

/// The same order over plain lists: it searches all for each turn, and forgets nobody until all begin anew.
#[derive(Default)]
struct Plain {
    most: usize,
    waiting: Vec<(u64, Requester)>,
    given: Vec<(u64, Requester)>,
    used: Vec<(Requester, Duration)>,
    used_by_lanes: Vec<(Lane, Duration)>,
    clock: Duration,
    clocks: Vec<(Lane, Duration)>,
}

fn of<K: PartialEq>(list: &[(K, Duration)], key: &K) -> Duration {
    let found = list.iter().find(|(it, _)| it == key);
    found.map_or(Duration::ZERO, |(_, used)| *used)
}

fn set<K: PartialEq>(list: &mut Vec<(K, Duration)>, key: K, used: Duration) {
    list.retain(|(it, _)| *it != key);
    list.push((key, used));
}

impl Plain {
    fn ask(&mut self, requester: &Requester, number: u64) {
        let lane = requester.lane;
        let present = self.waiting.iter().chain(&self.given).map(|(_, it)| it);
        let has_lane = present.clone().any(|it| it.lane == lane);
        let has_user = present.clone().any(|it| it == requester);
        if !has_lane {
            let used = of(&self.used_by_lanes, &lane).max(self.clock);
            set(&mut self.used_by_lanes, lane, used);
        }
        if !has_user {
            let used = of(&self.used, requester).max(of(&self.clocks, &lane));
            set(&mut self.used, requester.clone(), used);
        }
        self.waiting.push((number, requester.clone()));
    }

    fn next(&mut self) -> Option<u64> {
        if self.given.len() >= self.most {
            return None;
        }
        let turns = |is: &dyn Fn(&Requester) -> bool| {
            let given = self.given.iter().filter(|(_, it)| is(it));
            given.count()
        };
        let rank = |(number, it): &(u64, Requester)| {
            let lane = turns(&|given| given.lane == it.lane);
            let user = turns(&|given| given == it);
            let used = of(&self.used, it);
            let of_lane = of(&self.used_by_lanes, &it.lane);
            (lane, of_lane, it.lane, user, used, *number)
        };
        let others = turns(&|given| given.lane == Lane::Others);
        let may = |lane| lane != Lane::Others || others < of_others_max(self.most);
        let places = (0..self.waiting.len()).filter(|place| may(self.waiting[*place].1.lane));
        let place = places.min_by_key(|place| rank(&self.waiting[*place]))?;
        let (number, requester) = self.waiting.remove(place);
        let lane = requester.lane;
        self.clock = self.clock.max(of(&self.used_by_lanes, &lane));
        let clock = of(&self.clocks, &lane).max(of(&self.used, &requester));
        set(&mut self.clocks, lane, clock);
        self.given.push((number, requester));
        Some(number)
    }

    fn leave(&mut self, number: u64, used: Duration) {
        self.waiting.retain(|(it, _)| *it != number);
        if let Some(place) = self.given.iter().position(|(it, _)| *it == number) {
            let (_, requester) = self.given.remove(place);
            let lane = requester.lane;
            let used = used.max(USED_MIN);
            let of_lane = of(&self.used_by_lanes, &lane) + used;
            set(&mut self.used_by_lanes, lane, of_lane);
            let of_user = of(&self.used, &requester) + used;
            set(&mut self.used, requester, of_user);
        }
        if self.waiting.is_empty() && self.given.is_empty() {
            *self = Self {
                most: self.most,
                ..Self::default()
            };
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Lane, u8),
    Next,
    /// One of those who have turns or wait leaves after milliseconds.
    Leave(prop::sample::Index, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    const LANES: &[Lane] = &[Lane::Administrators, Lane::Nodes, Lane::Others];
    let step = prop_oneof![
        3 => (prop::sample::select(LANES), 0..4_u8).prop_map(|(lane, name)| Step::Ask(lane, name)),
        4 => Just(Step::Next),
        3 => (any::<prop::sample::Index>(), 0..2_000_u16).prop_map(|(who, used)| Step::Leave(who, used)),
    ];
    vec(step, 0..80)
}

proptest! {
    #[test]
    fn turns_are_given_as_plain_lists_give_them(most in 1..4_usize, steps in steps()) {
        let mut order = Order::new(most);
        let mut plain = Plain { most, ..Plain::default() };
        let mut present: Vec<(u64, Requester)> = Vec::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Ask(lane, name) => {
                    let requester = requester(lane, &name.to_string());
                    let number = order.ask(&requester, next);
                    prop_assert_eq!(number, next);
                    plain.ask(&requester, number);
                    present.push((number, requester));
                    next += 1;
                }
                Step::Next => {
                    prop_assert_eq!(order.next(), plain.next());
                }
                Step::Leave(_, _) if present.is_empty() => {}
                Step::Leave(who, used) => {
                    let (number, requester) = present.remove(who.index(present.len()));
                    let used = Duration::from_millis(used.into());
                    order.leave(&requester, number, used);
                    plain.leave(number, used);
                }
            }
            let users = order.lanes.values().flat_map(|lane| lane.users.values());
            let waiting: usize = users.clone().map(|user| user.waiting.len()).sum();
            let turns: usize = users.map(|user| user.account.turns).sum();
            prop_assert_eq!((waiting, turns), (plain.waiting.len(), plain.given.len()));
        }
        for (number, requester) in present {
            order.leave(&requester, number, Duration::ZERO);
        }
        prop_assert!(order.lanes.is_empty() && order.given.is_empty(), "nothing is kept");
    }

    /// However much the others have to do, one who comes has a turn after at most one of each of them.
    #[test]
    fn one_who_comes_waits_for_one_turn_of_each_other(
        others in vec((1..20_usize, 0..2_000_u64), 1..6),
        before in 0..40_usize,
    ) {
        let mut order = OneAtATime::new();
        for (place, (count, used)) in others.iter().enumerate() {
            for _ in 0..*count {
                order.ask(&other(&place.to_string()), Duration::from_millis(*used));
            }
        }
        for _ in 0..before {
            order.step();
        }
        let newcomer = other("newcomer");
        order.ask(&newcomer, Duration::ZERO);
        let mut passed = Vec::new();
        while let Some(who) = order.step().filter(|who| *who != newcomer) {
            prop_assert!(!passed.contains(&who), "{} had two turns", who.name);
            passed.push(who);
        }
    }
}

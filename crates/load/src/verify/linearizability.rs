//! Decides if the requests for one object can have happened one after the other, as their answers say: linearizability.
//!
//! Every operation takes effect at one moment between its call and its return. One that was never answered takes effect
//! at any moment after its call, or never.
//!
//! The algorithm is the search of Wing and Gong in the order of Lowe's *Testing for linearizability* (2017): calls and
//! returns are followed in the order of time, with the set of all configurations that they allow. A configuration is a
//! state of the object, and which of the open operations have taken effect. A write takes effect only when a return
//! cannot be explained without it. An observation changes nothing, so it takes the first moment at which it holds. Of
//! unanswered writes that nobody can tell apart one is tried, since each of them stays possible: those with the same
//! condition that delete, or whose content no answer names. Equal configurations are one, so a state is searched once,
//! whichever way led to it. Where no operation is open the configurations are just the possible states, so the memory
//! grows with what is open and not with the history.
//!
//! The first return that leaves no configuration ends the shortest part of the history that has no order.

use std::collections::{BTreeSet, HashSet};

use super::history::{Nanos, WriteId};

/// Maximum number of configurations that the search looks at to explain one return. That many need a dozen writes
/// without conditions at once, or as many without answers whose contents were seen.
const CONFIGURATIONS_MAX: usize = 4_096;

/// A state of an object: absent, or with the content of this write.
pub(super) type RegisterState = Option<WriteId>;

/// The states in which an operation can have been answered as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Absent,
    Present,
    Is(WriteId),
    IsNot(WriteId),
}

/// The effect of an operation on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterEffect {
    /// None: it was a read, or a write that was refused.
    Observed,
    Put(WriteId),
    Deleted,
}

/// A request for one object, and what its answer says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterOperation {
    pub(super) called: Nanos,
    /// The time at which it was answered; `None` if it never was.
    pub(super) returned: Option<Nanos>,
    pub(super) demand: Demand,
    pub(super) effect: RegisterEffect,
}

/// The verdict on the operations of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Linearizability {
    /// There is an order that explains all answers.
    Linearizable,
    /// There are more orders than are searched.
    Undecided,
    /// There is no order.
    Broken(Counterexample),
}

/// Operations that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counterexample {
    /// The states that the object can have had before them.
    pub(super) before: Vec<RegisterState>,
    /// The operations by their places, in the order of their calls.
    pub(super) operations: Vec<usize>,
}

/// Searches an order of the operations of one object, which was absent before them.
pub(super) fn linearizability(operations: &[RegisterOperation]) -> Linearizability {
    let moments = moments(operations);
    let mut search = Search::new(operations);
    let mut quiet = (0, search.clone());
    for (place, moment) in moments.iter().enumerate() {
        if search.is_quiet() {
            quiet = (place, search.clone());
        }
        match search.follow(*moment) {
            Ok(()) => {}
            Err(Stop::TooMany) => return Linearizability::Undecided,
            Err(Stop::NoOrder) => {
                let (from, before) = quiet;
                return Linearizability::Broken(shortest(&before, &moments[from..=place]));
            }
        }
    }
    Linearizability::Linearizable
}

/// A call or a return. At the same time calls are first, since operations that touch may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: Nanos,
    is_return: bool,
    operation: usize,
}

/// Returns all calls and returns in the order of time.
fn moments(operations: &[RegisterOperation]) -> Vec<Moment> {
    let mut moments = Vec::with_capacity(2 * operations.len());
    for (operation, it) in operations.iter().enumerate() {
        let moment = |at, is_return| Moment {
            at,
            is_return,
            operation,
        };
        moments.push(moment(it.called, false));
        moments.extend(it.returned.map(|at| moment(at, true)));
    }
    moments.sort_unstable();
    moments
}

/// A way in which everything can have happened so far.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Configuration {
    state: RegisterState,
    /// The open operations that have taken effect.
    done: BTreeSet<usize>,
}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    NoOrder,
    TooMany,
}

/// Unanswered writes that nobody can tell apart: their condition, and whether they delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alike {
    demand: Demand,
    deletes: bool,
}

#[derive(Clone, Debug)]
struct Search<'a> {
    operations: &'a [RegisterOperation],
    /// The writes that an answer names.
    named: HashSet<WriteId>,
    /// The operations that were called and have not returned.
    open: BTreeSet<usize>,
    configurations: BTreeSet<Configuration>,
}

impl<'a> Search<'a> {
    fn new(operations: &'a [RegisterOperation]) -> Self {
        let absent = Configuration {
            state: None,
            done: BTreeSet::new(),
        };
        Self {
            operations,
            named: operations
                .iter()
                .filter_map(|it| it.demand.named())
                .collect(),
            open: BTreeSet::new(),
            configurations: BTreeSet::from([absent]),
        }
    }

    /// Returns true if nothing is open but what was never answered.
    fn is_quiet(&self) -> bool {
        self.open.iter().all(|&it| self.is_unanswered(it))
    }

    fn is_unanswered(&self, operation: usize) -> bool {
        self.operations[operation].returned.is_none()
    }

    fn follow(&mut self, moment: Moment) -> Result<(), Stop> {
        if moment.is_return {
            return self.end(moment.operation);
        }
        self.open.insert(moment.operation);
        let configurations = std::mem::take(&mut self.configurations).into_iter();
        self.configurations = configurations.map(|it| self.observed(it)).collect();
        Ok(())
    }

    /// Keeps the configurations in which an operation has taken effect by its return.
    fn end(&mut self, operation: usize) -> Result<(), Stop> {
        let mut searched = std::mem::take(&mut self.configurations);
        let mut left: Vec<_> = searched.iter().cloned().collect();
        let mut explained = BTreeSet::new();
        while let Some(mut configuration) = left.pop() {
            if configuration.done.remove(&operation) {
                explained.insert(configuration);
                continue;
            }
            let mut tried: Vec<Alike> = Vec::new();
            for &next in self.open.difference(&configuration.done) {
                let alike = self.alike(next);
                if alike.is_some_and(|it| tried.contains(&it)) {
                    continue;
                }
                tried.extend(alike);
                let after = self.after(&configuration, next);
                left.extend(after.filter(|it| searched.insert(it.clone())));
            }
            if searched.len() > CONFIGURATIONS_MAX {
                return Err(Stop::TooMany);
            }
        }
        self.open.remove(&operation);
        self.configurations = self.widest(explained);
        if self.configurations.is_empty() {
            return Err(Stop::NoOrder);
        }
        Ok(())
    }

    /// Returns the others that an unanswered write is like, if there can be any.
    fn alike(&self, operation: usize) -> Option<Alike> {
        let it = &self.operations[operation];
        let deletes = match it.effect {
            RegisterEffect::Observed => return None,
            RegisterEffect::Put(write) if self.named.contains(&write) => return None,
            RegisterEffect::Put(_) => false,
            RegisterEffect::Deleted => true,
        };
        let demand = it.demand;
        self.is_unanswered(operation)
            .then_some(Alike { demand, deletes })
    }

    /// Returns the configuration after a write, if that can take effect in this one.
    fn after(&self, configuration: &Configuration, operation: usize) -> Option<Configuration> {
        let it = &self.operations[operation];
        let state = match it.effect {
            RegisterEffect::Observed => return None,
            RegisterEffect::Put(write) => Some(write),
            RegisterEffect::Deleted => None,
        };
        if !it.demand.holds(configuration.state) {
            return None;
        }
        let mut done = configuration.done.clone();
        done.insert(operation);
        Some(self.observed(Configuration { state, done }))
    }

    /// Has all open observations take effect that hold in a configuration.
    fn observed(&self, mut configuration: Configuration) -> Configuration {
        let holds = |it: &&usize| {
            let operation = &self.operations[**it];
            operation.effect == RegisterEffect::Observed
                && operation.demand.holds(configuration.state)
        };
        let observed: Vec<usize> = self.open.iter().filter(holds).copied().collect();
        configuration.done.extend(observed);
        configuration
    }

    /// Leaves out configurations in which more has happened than in another and nothing is gained by it: an unanswered
    /// operation that has not taken effect yet still may.
    fn widest(&self, configurations: BTreeSet<Configuration>) -> BTreeSet<Configuration> {
        if !self.open.iter().any(|&it| self.is_unanswered(it)) {
            return configurations;
        }
        let is_wider = |one: &Configuration, other: &Configuration| {
            one != other
                && one.state == other.state
                && one.done.is_subset(&other.done)
                && other
                    .done
                    .difference(&one.done)
                    .all(|it| self.is_unanswered(*it))
        };
        configurations
            .iter()
            .filter(|it| !configurations.iter().any(|other| is_wider(other, it)))
            .cloned()
            .collect()
    }
}

impl Demand {
    fn named(self) -> Option<WriteId> {
        match self {
            Self::Is(write) | Self::IsNot(write) => Some(write),
            Self::Absent | Self::Present => None,
        }
    }

    fn holds(self, state: RegisterState) -> bool {
        match self {
            Self::Absent => state.is_none(),
            Self::Present => state.is_some(),
            Self::Is(write) => state == Some(write),
            Self::IsNot(write) => state != Some(write),
        }
    }
}

/// Returns the counterexample of moments that end with a return that nothing explains, without the observations that do
/// not matter to it. A history without one of its writes may lack an order for that reason alone, so all of these stay,
/// but for those that were never answered and demand a state that is not among them.
fn shortest(before: &Search<'_>, moments: &[Moment]) -> Counterexample {
    let operations = before.operations;
    let called = moments.iter().filter(|it| !it.is_return);
    let may_happen = |it: &&usize| {
        let mut configurations = before.configurations.iter();
        configurations.any(|configuration| !configuration.done.contains(*it))
    };
    let mut kept: BTreeSet<usize> = before.open.iter().filter(may_happen).copied().collect();
    kept.extend(called.map(|it| it.operation));
    for moment in moments {
        let operation = moment.operation;
        if moment.is_return || operations[operation].effect != RegisterEffect::Observed {
            continue;
        }
        kept.remove(&operation);
        if !has_no_order(before, moments, &kept) {
            kept.insert(operation);
        }
    }
    let states: BTreeSet<RegisterState> = before.configurations.iter().map(|it| it.state).collect();
    let made = kept.iter().map(|&it| operations[it].effect);
    let made: BTreeSet<RegisterState> = made
        .filter_map(|effect| match effect {
            RegisterEffect::Put(write) => Some(Some(write)),
            RegisterEffect::Deleted | RegisterEffect::Observed => None,
        })
        .collect();
    kept.retain(|&it| match operations[it].demand {
        Demand::Is(write) if before.is_unanswered(it) => {
            states.contains(&Some(write)) || made.contains(&Some(write))
        }
        _ => true,
    });
    let mut kept: Vec<usize> = kept.into_iter().collect();
    kept.sort_by_key(|&it| operations[it].called);
    Counterexample {
        before: states.into_iter().collect(),
        operations: kept,
    }
}

/// Returns true if these operations alone have no order.
fn has_no_order(before: &Search<'_>, moments: &[Moment], kept: &BTreeSet<usize>) -> bool {
    let mut search = before.clone();
    let mut moments = moments.iter().filter(|it| kept.contains(&it.operation));
    moments.find_map(|it| search.follow(*it).err()) == Some(Stop::NoOrder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPERATIONS_MAX: usize = 7;

    fn demands() -> impl Strategy<Value = Demand> {
        let write = (0..3_u32).prop_map(WriteId);
        prop_oneof![
            Just(Demand::Absent),
            Just(Demand::Present),
            write.clone().prop_map(Demand::Is),
            write.prop_map(Demand::IsNot),
        ]
    }

    /// Draws few operations at few times, so that about half of the histories have an order.
    fn histories() -> impl Strategy<Value = Vec<RegisterOperation>> {
        let effect = prop_oneof![
            2 => Just(RegisterEffect::Observed),
            2 => (0..3_u32).prop_map(|write| RegisterEffect::Put(WriteId(write))),
            1 => Just(RegisterEffect::Deleted),
        ];
        let length = prop_oneof![4 => (0..8_u64).prop_map(Some), 1 => Just(None)];
        let operation = (0..12_u64, length, demands(), effect);
        let operation = operation.prop_map(|(called, length, demand, effect)| RegisterOperation {
            called,
            returned: length.map(|length| called + length),
            demand,
            effect,
        });
        prop::collection::vec(operation, 0..=OPERATIONS_MAX)
    }

    /// Tries every order of the operations that respects time, with and without each one that was never answered.
    fn has_order(
        operations: &[RegisterOperation],
        state: RegisterState,
        left: &BTreeSet<usize>,
    ) -> bool {
        if left.iter().all(|&it| operations[it].returned.is_none()) {
            return true;
        }
        left.iter().any(|&next| {
            let it = &operations[next];
            let must_be_later = |other: usize| {
                operations[other]
                    .returned
                    .is_some_and(|returned| returned < it.called)
            };
            if left.iter().any(|&other| must_be_later(other)) || !it.demand.holds(state) {
                return false;
            }
            let state = match it.effect {
                RegisterEffect::Observed => state,
                RegisterEffect::Put(write) => Some(write),
                RegisterEffect::Deleted => None,
            };
            let mut left = left.clone();
            left.remove(&next);
            has_order(operations, state, &left)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn the_search_agrees_with_all_orders(operations in histories()) {
            let found = linearizability(&operations);
            let all = (0..operations.len()).collect();
            prop_assert_eq!(found == Linearizability::Linearizable, has_order(&operations, None, &all));
            if let Linearizability::Broken(example) = found {
                // From no state before them the operations that are shown have an order. One that was never answered
                // may have made that state.
                let shown: Vec<RegisterOperation> =
                    example.operations.iter().map(|&it| operations[it]).collect();
                let are_answered = shown.iter().all(|it| it.returned.is_some());
                for state in example.before.into_iter().filter(|_| are_answered) {
                    prop_assert!(!has_order(&shown, state, &(0..shown.len()).collect()));
                }
            }
        }
    }

    #[test]
    fn what_takes_too_long_is_undecided() {
        let put = |write: u32| RegisterOperation {
            called: 0,
            returned: Some(5),
            demand: if write == 0 {
                Demand::Absent
            } else {
                Demand::Present
            },
            effect: RegisterEffect::Put(WriteId(write)),
        };
        let mut operations: Vec<_> = (0..20).map(put).collect();
        assert_eq!(linearizability(&operations), Linearizability::Undecided);
        operations.truncate(6);
        assert_eq!(linearizability(&operations), Linearizability::Linearizable);
    }

    #[test]
    fn unanswered_writes_that_nobody_can_tell_apart_are_one() {
        let unanswered = |called, demand, effect| RegisterOperation {
            called,
            returned: None,
            demand,
            effect,
        };
        let mut operations = Vec::new();
        for turn in 0..200_u32 {
            let at = u64::from(turn) * 10;
            let put = RegisterEffect::Put(WriteId(turn));
            operations.push(unanswered(at, Demand::Absent, put));
            operations.push(unanswered(at, Demand::Present, RegisterEffect::Deleted));
            // Each of the writes must have happened for one of the reads.
            for (called, demand) in [(at + 1, Demand::Present), (at + 5, Demand::Absent)] {
                let returned = Some(called + 2);
                let effect = RegisterEffect::Observed;
                operations.push(RegisterOperation {
                    called,
                    returned,
                    demand,
                    effect,
                });
            }
        }
        assert_eq!(linearizability(&operations), Linearizability::Linearizable);
        operations.retain(|it| it.called != 1_000 || it.effect != RegisterEffect::Deleted);
        let found = linearizability(&operations);
        assert!(matches!(found, Linearizability::Broken(_)), "{found:?}");
    }

    #[test]
    fn a_long_history_takes_no_more_memory_than_a_short_one() {
        let mut operations = Vec::new();
        for turn in 0..20_000_u32 {
            let write = WriteId(turn);
            let before = turn.checked_sub(1).map(WriteId);
            let called = u64::from(turn) * 10;
            operations.push(RegisterOperation {
                called,
                returned: Some(called + 5),
                demand: before.map_or(Demand::Absent, Demand::Is),
                effect: RegisterEffect::Put(write),
            });
            operations.push(RegisterOperation {
                called: called + 1,
                returned: Some(called + 9),
                demand: Demand::Is(write),
                effect: RegisterEffect::Observed,
            });
        }
        assert_eq!(linearizability(&operations), Linearizability::Linearizable);
        operations[30_001].demand = Demand::Is(WriteId(3));
        let Linearizability::Broken(example) = linearizability(&operations) else {
            panic!("an old state was read");
        };
        assert_eq!(example.before, [Some(WriteId(14_999))]);
        assert_eq!(example.operations, [30_000, 30_001]);
    }
}

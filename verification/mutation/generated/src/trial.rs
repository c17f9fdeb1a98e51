//! The mutants with their outcomes so far, and the tests that are run on those that have none.

use std::cell::RefCell;
use std::collections::BTreeSet;

use ringwatch_mutate::Ended;

use crate::MutantsError;
use crate::copy::Copy;
use crate::lanes;
use crate::layer::Layer;
use crate::list::Mutant;
use crate::report::Outcome;
use crate::switched::{LeftOut, Switched};
use crate::tests::Test;

/// The mutants with their outcomes so far.
pub(crate) struct Trial<'a> {
    copy: &'a Copy,
    mutants: &'a [Mutant],
    outcomes: RefCell<Vec<Outcome>>,
    /// Numbers of the mutants that need a build of their own.
    fixed: BTreeSet<u32>,
    /// The tests of each layer so far.
    layers: Vec<(&'a Layer, Vec<Test>)>,
    /// The tests that failed without a mutant, at first or after they had failed with one.
    flaky: RefCell<BTreeSet<String>>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(copy: &'a Copy, mutants: &'a [Mutant]) -> Self {
        let outcomes = vec![Outcome::Missed { tests: 0 }; mutants.len()];
        Self {
            copy,
            mutants,
            outcomes: RefCell::new(outcomes),
            fixed: BTreeSet::new(),
            layers: Vec::new(),
            flaky: RefCell::default(),
        }
    }

    /// Returns the outcomes, and the tests that cannot be relied on.
    pub(crate) fn end(self) -> (Vec<Outcome>, BTreeSet<String>) {
        (self.outcomes.into_inner(), self.flaky.into_inner())
    }

    /// Notes the mutants that a build leaves out.
    pub(crate) fn note(&mut self, left_out: &LeftOut) {
        for number in &left_out.unviable {
            self.set(*number, Outcome::Unviable);
        }
        self.fixed.extend(&left_out.fixed);
    }

    /// Notes tests that fail without a mutant, which fails the run.
    pub(crate) fn note_failed(&self, tests: Vec<String>) {
        for test in &tests {
            eprintln!("fails without a mutant: {test}");
        }
        self.flaky.borrow_mut().extend(tests);
    }

    fn set(&self, number: u32, outcome: Outcome) {
        self.outcomes.borrow_mut()[number as usize - 1] = outcome;
    }

    /// Returns the chosen mutants that no test has caught.
    fn missed(&self) -> BTreeSet<u32> {
        let outcomes = self.outcomes.borrow();
        let numbered = (1..).zip(outcomes.iter());
        let chosen = numbered.zip(self.mutants).filter(|(_, it)| it.is_chosen);
        let missed = chosen.filter(|((_, it), _)| matches!(it, Outcome::Missed { .. }));
        missed.map(|((number, _), _)| number).collect()
    }

    /// Runs the tests of a layer, which is built, on the missed mutants that it has switches for.
    pub(crate) async fn run_layer(
        &mut self,
        layer: &'a Layer,
        tests: Vec<Test>,
        without: &BTreeSet<u32>,
    ) -> Result<(), MutantsError> {
        let mut todo: Vec<u32> = self.missed().into_iter().collect();
        todo.retain(|it| !without.contains(it) && !self.fixed.contains(it));
        lanes::work_off(&todo, async |lane, number: &u32| {
            let reaching = tests.iter().filter(|it| it.reached.contains(number));
            self.attempt(*number, layer, reaching, Some(*number), lane)
                .await
        })
        .await?;
        self.layers.push((layer, tests));
        Ok(())
    }

    /// Runs tests until one catches the mutant. One that fails must pass again without the mutant, if that is a switch.
    async fn attempt(
        &self,
        number: u32,
        layer: &Layer,
        tests: impl Iterator<Item = &Test>,
        switch: Option<u32>,
        lane: usize,
    ) -> Result<(), MutantsError> {
        let mut passed = 0;
        for test in tests {
            let ended = test.run(switch, self.copy, lane).await?;
            passed += 1;
            if ended == Ended::Passed {
                continue;
            }
            if switch.is_some() && !test.is_reliable(self.copy, lane).await? {
                self.note_failed(vec![test.name.clone()]);
                continue;
            }
            let caught = Outcome::Caught {
                layer: layer.name.clone(),
                test: test.name.clone(),
                timed_out: ended == Ended::TimedOut,
            };
            self.set(number, caught);
            return Ok(());
        }
        if let Outcome::Missed { tests } = &mut self.outcomes.borrow_mut()[number as usize - 1] {
            *tests += passed;
        }
        let name = &self.mutants[number as usize - 1].name;
        eprintln!("{}: {passed} tests miss {name}", layer.name);
        Ok(())
    }

    /// Builds each mutant that has no switch, and runs the tests that reach anything in its file.
    pub(crate) async fn run_fixed(&self, switched: &Switched<'_>) -> Result<(), MutantsError> {
        for number in &self.fixed {
            let file = &self.mutants[*number as usize - 1].file;
            let is_in_file = |number: &u32| self.mutants[*number as usize - 1].file == *file;
            for (index, (layer, tests)) in self.layers.iter().enumerate() {
                let reaching = |it: &&Test| it.reached.iter().any(is_in_file);
                if !self.missed().contains(number) || !tests.iter().any(|it| reaching(&it)) {
                    continue;
                }
                if switched.build_fixed(layer, *number).await?.is_none() {
                    if index == 0 {
                        self.set(*number, Outcome::Unviable);
                    }
                    continue;
                }
                let reaching = tests.iter().filter(reaching);
                self.attempt(*number, layer, reaching, None, 0).await?;
            }
        }
        Ok(())
    }
}

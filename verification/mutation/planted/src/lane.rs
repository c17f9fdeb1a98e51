//! One copy of what is checked. There is one for each core, since cargo compiles a small crate on one.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, slice};

use ringwatch_mutate::Ended;

use crate::MutateError;
use crate::list::Mutation;
use crate::models;
use crate::subject::Subject;

/// A copy in which mutations are tried one after the other.
pub(crate) struct Lane<'a> {
    subject: &'a Subject,
    copy: PathBuf,
}

/// The outcomes of the mutations that a lane has tried.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Number of mutations that went unnoticed.
    pub(crate) survivors: usize,
    /// Names of the mutations under which the models did not end in time.
    pub(crate) timed_out: Vec<String>,
}

impl Tally {
    /// Adds the outcomes of another lane.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.survivors += other.survivors;
        self.timed_out.extend(other.timed_out);
        self
    }
}

impl<'a> Lane<'a> {
    /// Makes the copy anew: what was left of an earlier one may be mutated.
    pub(crate) fn new(subject: &'a Subject, number: usize) -> Result<Self, MutateError> {
        let copy = subject.root().join("target/mutants").join(subject.member());
        let copy = copy.join(number.to_string());
        subject.copy(&copy)?;
        Ok(Self { subject, copy })
    }

    /// Runs the given models unchanged, which must pass, and returns how long they took together.
    #[allow(clippy::disallowed_methods, reason = "the time that a run takes")]
    pub(crate) async fn unchanged(
        &self,
        models: &[Option<String>],
        limit: Duration,
    ) -> Result<Duration, MutateError> {
        let test = self.subject.test();
        models::build(&self.copy, test, "the copy").await?;
        let begun = Instant::now();
        for some in models {
            match models::run(&self.copy, test, some.as_deref(), limit).await? {
                Ended::Passed => {}
                Ended::Failed => return Err(MutateError::Unchanged),
                Ended::TimedOut => return Err(MutateError::UnchangedTooLong(limit)),
            }
        }
        Ok(begun.elapsed())
    }

    /// Tries mutations until none is left.
    pub(crate) async fn work_off(
        &self,
        todo: &Mutex<slice::Iter<'_, Mutation>>,
        limit: Duration,
    ) -> Result<Tally, MutateError> {
        let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).next();
        let mut tally = Tally::default();
        while let Some(mutation) = next() {
            match self.attempt(mutation, limit).await? {
                Ended::Failed => println!("refused    {}", mutation.name),
                Ended::TimedOut => {
                    tally.timed_out.push(mutation.name.clone());
                    println!("timed out  {}", mutation.name);
                }
                Ended::Passed => {
                    tally.survivors += 1;
                    println!("UNNOTICED  {}", mutation.name);
                }
            }
        }
        Ok(tally)
    }

    /// Runs the models with the mutation, which is undone afterwards.
    async fn attempt(&self, mutation: &Mutation, limit: Duration) -> Result<Ended, MutateError> {
        let path = self.copy.join(&mutation.file);
        let text = fs::read_to_string(self.subject.root().join(&mutation.file))?;
        fs::write(&path, mutation.apply(&text)?)?;
        let test = self.subject.test();
        models::build(&self.copy, test, &mutation.name).await?;
        // The likeliest models go first: they notice most faults, and soon.
        let first = mutation.model();
        let mut ended = models::run(&self.copy, test, first.as_deref(), limit).await?;
        if ended == Ended::Passed {
            ended = models::run(&self.copy, test, None, limit).await?;
        }
        fs::write(&path, text)?;
        Ok(ended)
    }
}

//! The functions of CEL that take regular expressions.
//!
//! A match has kube-apiserver's cost, by the lengths of pattern and text. That is far too little for some patterns,
//! such as those that repeat a part a thousand times. So the work is measured too, and charged where it exceeds that
//! cost.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;

use super::failure::{Failure, ValueResult};
use super::meter::{Meter, PARTS_MAX};
use crate::pattern::{self, COMPILING_STEPS_MAX, PatternError, Program, StepBudget, TooMuchWork};

/// Steps of a simulated NFA in a unit of cost: ten characters of a text against four of a pattern.
const STEPS_PER_UNIT: u64 = 40;

/// The cost of a pattern that Go's syntax does not have.
const WRONG_COST: u64 = 10_000;

/// The cost of a pattern that is too large, which is known only when much of it has been compiled.
const TOO_LARGE_COST: u64 = COMPILING_STEPS_MAX as u64 / STEPS_PER_UNIT;

/// Maximum number of bytes of compiled patterns that an evaluation keeps.
const HELD_BYTES_MAX: usize = 2 << 20;

/// The patterns of an evaluation, each compiled or with its error.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<PatternSlot>);

#[derive(Debug, Default)]
struct PatternSlot {
    programs: HashMap<Arc<String>, Result<Arc<Program>, String>>,
    bytes: usize,
}

impl Patterns {
    fn get(&self, meter: &mut Meter, pattern: &Arc<String>) -> Result<Arc<Program>, Failure> {
        let mut held = self.0.borrow_mut();
        if !held.programs.contains_key(pattern) {
            let program = pattern::compiled(pattern);
            let bytes = match &program {
                Ok(program) => {
                    meter.charge(program.compiling_steps() as u64 / STEPS_PER_UNIT)?;
                    program.bytes()
                }
                Err(why) => {
                    meter.charge(match why {
                        PatternError::Syntax { .. } => WRONG_COST,
                        PatternError::TooLarge => TOO_LARGE_COST,
                    })?;
                    0
                }
            };
            let program = program.map_err(|why| why.to_string());
            held.bytes += bytes + pattern.len();
            if held.bytes > HELD_BYTES_MAX {
                held.programs.clear();
                held.bytes = bytes + pattern.len();
            }
            held.programs.insert(Arc::clone(pattern), program);
        }
        let program = held.programs[pattern].clone();
        program.map_err(|why| Failure::Other(why.into()))
    }
}

/// Runs a pattern, and charges its work.
fn paid<T>(
    meter: &mut Meter,
    run: impl FnOnce(&mut StepBudget) -> Result<T, TooMuchWork>,
) -> Result<T, Failure> {
    let all = meter.left().saturating_mul(STEPS_PER_UNIT);
    let mut work = StepBudget::new(all);
    let made = run(&mut work);
    meter.charge((all - work.left()) / STEPS_PER_UNIT)?;
    made.map_err(|TooMuchWork| Failure::CallLimit)
}

/// Evaluates `matches`, `find` and `findAll`.
pub(super) fn call(
    patterns: &Patterns,
    meter: &mut Meter,
    name: &str,
    text: &str,
    pattern: &Arc<String>,
    limit: Option<&CelValue>,
) -> ValueResult {
    let walk = (text.len() as u64 + 1).div_ceil(10);
    meter.charge(walk.saturating_mul((pattern.len() as u64).div_ceil(4)))?;
    let program = patterns.get(meter, pattern)?;
    let made = |found: Range<usize>| CelValue::from(&text[found]);
    match (name, limit) {
        ("matches", _) => paid(meter, |work| program.is_match(text, work)).map(CelValue::Bool),
        ("find", _) => {
            let found = paid(meter, |work| program.find_all(text, 1, work))?;
            let found = found.into_iter().next();
            Ok(found.map_or_else(|| CelValue::from(""), made))
        }
        (_, limit) => {
            let limit = match limit {
                None => usize::MAX,
                // A negative limit is no limit.
                Some(CelValue::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
                Some(_) => return Err(Failure::NoOverload),
            };
            // An empty pattern matches everywhere.
            if text.len() as u64 >= PARTS_MAX {
                return Err(Failure::TooLarge);
            }
            let found = paid(meter, |work| program.find_all(text, limit, work))?;
            let found: Vec<CelValue> = found.into_iter().map(made).collect();
            let found = CelValue::List(found.into());
            meter.charge_value(&found)?;
            Ok(found)
        }
    }
}

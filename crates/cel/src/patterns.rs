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

use super::failure::{Failure, Outcome};
use super::meter::{Meter, PARTS_MAX};
use crate::pattern::{self, Program, TooMuchWork, Work};

/// Steps of a simulated NFA in a unit of cost: ten characters of a text against four of a pattern.
const STEPS_PER_UNIT: u64 = 40;

/// The cost of a pattern that cannot be compiled.
const WRONG_COST: u64 = 10_000;

/// Maximum number of bytes of compiled patterns that an evaluation keeps.
const HELD_BYTES_MAX: usize = 2 << 20;

/// The patterns of an evaluation, each compiled or with its error.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<Held>);

#[derive(Debug, Default)]
struct Held {
    programs: HashMap<Arc<String>, Result<Arc<Program>, String>>,
    bytes: usize,
}

impl Patterns {
    fn get(&self, meter: &mut Meter, pattern: &Arc<String>) -> Result<Arc<Program>, Failure> {
        let mut held = self.0.borrow_mut();
        if !held.programs.contains_key(pattern) {
            let program = pattern::compiled(pattern).map_err(|why| why.to_string());
            let bytes = match &program {
                Ok(program) => {
                    meter.charge(program.compiling_steps() as u64 / STEPS_PER_UNIT)?;
                    program.bytes()
                }
                Err(_) => {
                    meter.charge(WRONG_COST)?;
                    0
                }
            };
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
    run: impl FnOnce(&mut Work) -> Result<T, TooMuchWork>,
) -> Result<T, Failure> {
    let all = meter.left().saturating_mul(STEPS_PER_UNIT);
    let mut work = Work::new(all);
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
) -> Outcome {
    let walk = (text.len() as u64 + 1).div_ceil(10);
    meter.charge(walk.saturating_mul((pattern.len() as u64).div_ceil(4)))?;
    let program = patterns.get(meter, pattern)?;
    let made = |found: Range<usize>| CelValue::from(&text[found]);
    match (name, limit) {
        ("matches", _) => paid(meter, |work| program.is_match(text, work)).map(CelValue::Bool),
        ("find", _) => {
            let found = paid(meter, |work| program.find(text, 0, work))?;
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
            let found = paid(meter, |work| find_all(&program, text, limit, work))?;
            let found: Vec<CelValue> = found.into_iter().map(made).collect();
            let found = CelValue::List(found.into());
            meter.charge_value(&found)?;
            Ok(found)
        }
    }
}

/// Returns the matches in a text, one after the other. An empty one at the end of another does not count.
fn find_all(
    program: &Program,
    text: &str,
    limit: usize,
    work: &mut Work,
) -> Result<Vec<Range<usize>>, TooMuchWork> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while all.len() < limit {
        let Some(found) = program.find(text, from, work)? else {
            break;
        };
        let last = all.last().map(|it| it.end);
        from = found.end;
        if !found.is_empty() || last != Some(found.end) {
            all.push(found.clone());
        }
        if found.is_empty() {
            let Some(next) = text[from..].chars().next() else {
                break;
            };
            from += next.len_utf8();
        }
    }
    Ok(all)
}

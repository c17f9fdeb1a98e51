//! Regular expressions in expressions. Each is compiled once a run: that takes far longer than most texts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use regex::Regex;

use super::Failure;
use super::interpreter::Outcome;
use super::meter::Meter;
use super::scope::Scope;
use crate::registry::pattern;

/// Patterns that are kept.
const KEPT_MAX: usize = 64;

/// What compiling a pattern costs that was not among the first.
const COMPILING_COST: u64 = 10_000;

/// Patterns that were compiled, or why they could not be.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<HashMap<Arc<String>, Result<Regex, String>>>);

impl Patterns {
    fn get(&self, meter: &mut Meter, pattern: &Arc<String>) -> Result<Regex, Failure> {
        let mut kept = self.0.borrow_mut();
        if !kept.contains_key(pattern) {
            if kept.len() >= KEPT_MAX {
                meter.charge(COMPILING_COST)?;
                kept.clear();
            }
            kept.insert(pattern.clone(), pattern::compile(pattern));
        }
        match &kept[pattern] {
            Ok(compiled) => Ok(compiled.clone()),
            Err(why) => {
                let why = format!("error parsing regexp: {why}");
                Err(Failure::Other(why.into()))
            }
        }
    }
}

/// `matches`, `find` and `findAll`.
pub(super) fn call(
    scope: &Scope,
    meter: &mut Meter,
    name: &str,
    text: &str,
    pattern: &Arc<String>,
    limit: Option<&CelValue>,
) -> Outcome {
    let walk = (text.len() as u64 + 1).div_ceil(10);
    meter.charge(walk.saturating_mul((pattern.len() as u64).div_ceil(4)))?;
    let compiled = scope.patterns.get(meter, pattern)?;
    let made = |found: regex::Match<'_>| CelValue::from(found.as_str());
    match (name, limit) {
        ("matches", _) => Ok(CelValue::Bool(compiled.is_match(text))),
        ("find", _) => Ok(compiled.find(text).map_or_else(|| CelValue::from(""), made)),
        (_, limit) => {
            let limit = match limit {
                None => usize::MAX,
                // A negative one is none.
                Some(CelValue::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
                Some(_) => return Err(Failure::NoOverload),
            };
            // An empty pattern finds something everywhere.
            if text.len() as u64 >= super::meter::PARTS_MAX {
                return Err(Failure::TooLarge);
            }
            let found: Vec<CelValue> = compiled.find_iter(text).take(limit).map(made).collect();
            let found = CelValue::List(found.into());
            meter.charge_value(&found)?;
            Ok(found)
        }
    }
}

//! Comprehensions, to which macros expand.

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::ComprehensionExpr;

use super::Interpreter;
use crate::failure::{Failure, ValueResult};
use crate::merged_lists::list_items;
use crate::{optional, type_values};

impl<'r> Interpreter<'r> {
    /// Evaluates a comprehension.
    pub(super) fn loops(&mut self, loops: &'r ComprehensionExpr) -> ValueResult {
        let range = self.value(&loops.iter_range)?;
        let gathered = self.value(&loops.accu_init);
        let depth = self.locals.len();
        self.locals.push((&loops.accu_var, gathered));
        let outcome = self.each(loops, &range);
        self.locals.truncate(depth + 1);
        let outcome = outcome.and_then(|()| self.value(&loops.result));
        self.locals.truncate(depth);
        outcome
    }

    /// Runs a comprehension over a list or a map until its condition fails. Items behind that are not evaluated.
    fn each(&mut self, loops: &'r ComprehensionExpr, range: &CelValue) -> Result<(), Failure> {
        match (range, list_items(range)) {
            (_, Some(items)) => {
                for (place, item) in items.iter().enumerate() {
                    let place = CelValue::Int(i64::try_from(place).unwrap_or(i64::MAX));
                    let (first, second) = match &loops.iter_var2 {
                        Some(name) => (place, Some((name.as_str(), item))),
                        None => (item.clone(), None),
                    };
                    if !self.turn(loops, first, second)? {
                        break;
                    }
                }
            }
            (CelValue::Map(map), None) => {
                for (key, value) in map.map.iter() {
                    let second = loops.iter_var2.as_deref().map(|name| (name, value));
                    if !self.turn(loops, CelValue::from(key), second)? {
                        break;
                    }
                }
            }
            (other, None) => return Err(no_range(other, loops.iter_var2.is_some())),
        }
        Ok(())
    }

    /// Runs one step of a comprehension. Returns false if its condition fails before it.
    fn turn(
        &mut self,
        loops: &'r ComprehensionExpr,
        first: CelValue,
        second: Option<(&'r str, &CelValue)>,
    ) -> Result<bool, Failure> {
        let around = self.locals.len();
        self.locals.push((&loops.iter_var, Ok(first)));
        if let Some((name, second)) = second {
            self.locals.push((name, Ok(second.clone())));
        }
        if !self.truth(&loops.loop_cond)? {
            self.locals.truncate(around);
            return Ok(false);
        }
        let gathered = self.value(&loops.loop_step);
        self.locals.truncate(around);
        match gathered {
            Err(error) if error.is_final() => Err(error),
            gathered => {
                self.locals[around - 1].1 = gathered;
                Ok(true)
            }
        }
    }
}

/// Returns the failure of a value that no macro can go through.
fn no_range(value: &CelValue, has_two_variables: bool) -> Failure {
    let kind = match value {
        CelValue::Null => "types.Null",
        CelValue::Bool(_) => "types.Bool",
        CelValue::Int(_) => "types.Int",
        CelValue::UInt(_) => "types.Uint",
        CelValue::Float(_) => "types.Double",
        CelValue::String(_) => "types.String",
        CelValue::Bytes(_) => "types.Bytes",
        CelValue::Duration(_) => "types.Duration",
        CelValue::Timestamp(_) => "types.Timestamp",
        other if optional::is_optional(other) => "*types.Optional",
        other if type_values::name_in(other).is_some() => "*types.Type",
        _ => return Failure::NoOverload,
    };
    Failure::Other(if has_two_variables {
        format!("unsupported comprehension range type: {kind}").into()
    } else {
        format!("got '{kind}', expected iterable type").into()
    })
}

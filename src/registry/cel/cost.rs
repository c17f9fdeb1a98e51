//! How much work a rule is at most.
//!
//! The interpreter counts nothing while it runs, so what a rule may do is bounded before. Loops over loops are the
//! danger: with lists of at most `n` items, a step inside `d` loops runs at most `n` to the `d` times. A rule's
//! cost is how many steps it has at each depth; the object gives `n`. kube-apiserver does the same at the definition, with the
//! lengths that the schema allows, and once more while it runs; here the lengths that are there decide, so a
//! definition without `maxItems` may be used as long as its objects are small.

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};
use serde_json::Value;

/// Steps that compiling a regular expression takes. Rules do it anew each time.
const PATTERN_STEPS: u64 = 300;

/// Bytes of a string that are worked through in a step.
const STEP_BYTES: usize = 64;

/// The work of one rule.
#[derive(Debug, Default)]
pub(in crate::registry) struct Cost {
    /// The steps inside no loop, inside one, and so on.
    steps: Vec<u64>,
    /// The longest list that the rule itself makes.
    longest: u64,
    /// How many times longer lists get by adding them.
    sums: u64,
    /// Whether it makes lists of strings or of lists of lists, as long as these have parts.
    spreads: bool,
}

/// The work of an expression.
pub(in crate::registry) fn of(expression: &IdedExpr) -> Cost {
    let mut cost = Cost::default();
    cost.count(expression, 0);
    cost
}

impl Cost {
    /// Adds the work of another expression.
    pub(in crate::registry) fn add(&mut self, other: Self) {
        for (depth, steps) in other.steps.into_iter().enumerate() {
            self.step(depth, steps);
        }
        self.longest = self.longest.max(other.longest);
        self.sums += other.sums;
        self.spreads |= other.spreads;
    }

    /// How many steps it takes at most on a value of that measure.
    pub(in crate::registry) fn steps(&self, measure: Measure) -> u64 {
        let spread = if self.spreads { measure.size } else { 0 };
        let list = measure.longest.max(self.longest).max(spread);
        let list = list.max(1).saturating_mul(1 + self.sums);
        let steps = self.steps.iter().rev();
        steps.fold(0, |inner, steps| {
            inner.saturating_mul(list).saturating_add(*steps)
        })
    }

    fn step(&mut self, depth: usize, steps: u64) {
        if self.steps.len() <= depth {
            self.steps.resize(depth + 1, 0);
        }
        self.steps[depth] += steps;
    }

    fn count(&mut self, expression: &IdedExpr, depth: usize) {
        self.step(depth, 1);
        match &expression.expr {
            Expr::Call(call) => self.call(call, depth),
            Expr::Select(select) => self.count(&select.operand, depth),
            Expr::List(list) => {
                self.longest = self.longest.max(list.elements.len() as u64);
                list.elements
                    .iter()
                    .for_each(|part| self.count(part, depth));
            }
            Expr::Map(map) => {
                self.longest = self.longest.max(map.entries.len() as u64);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.count(&entry.key, depth);
                        self.count(&entry.value, depth);
                    }
                }
            }
            Expr::Comprehension(loops) => {
                self.count(&loops.iter_range, depth);
                self.count(&loops.accu_init, depth);
                self.count(&loops.result, depth);
                self.count(&loops.loop_cond, depth + 1);
                self.count(&loops.loop_step, depth + 1);
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
        }
    }

    fn call(&mut self, call: &CallExpr, depth: usize) {
        let parts = call.target.as_deref().into_iter().chain(&call.args);
        let open = parts
            .clone()
            .filter(|part| !matches!(part.expr, Expr::Literal(_)));
        let open = open.count();
        match call.func_name.as_str() {
            "matches" | "find" | "findAll" => {
                self.step(depth, PATTERN_STEPS);
                self.step(depth + 1, 1);
            }
            // What is put in for every part may be as long as the whole.
            "replace" | "join" if open > 1 => self.step(depth + 2, 1),
            "_+_" if open > 1 => self.sums += 1,
            "_&&_" | "_||_" | "!_" | "_?_:_" | "_[_]" | "@not_strictly_false" => {}
            _ if open > 1 => self.step(depth + 1, 1),
            _ => {}
        }
        self.spreads |= matches!(
            call.func_name.as_str(),
            "split" | "flatten" | "findAll" | "replace" | "join"
        );
        parts.for_each(|part| self.count(part, depth));
    }
}

/// How large a value is.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::registry) struct Measure {
    /// The most items or members that a list or an object in it has; long strings count by their length.
    pub(in crate::registry) longest: u64,
    /// All values in it, and the bytes of strings.
    pub(in crate::registry) size: u64,
}

impl Measure {
    /// Measures a value.
    pub(in crate::registry) fn of(value: &Value) -> Self {
        let mut measure = Self::default();
        measure.add(value);
        measure
    }

    /// Measures what an expression has made.
    pub(in crate::registry) fn of_made(value: &CelValue) -> Self {
        let mut measure = Self::default();
        measure.add_made(value);
        measure
    }

    fn add_made(&mut self, value: &CelValue) {
        self.size += 1;
        let length = match value {
            CelValue::String(text) => {
                self.size += text.len() as u64;
                text.len() / STEP_BYTES
            }
            CelValue::Bytes(bytes) => {
                self.size += bytes.len() as u64;
                bytes.len() / STEP_BYTES
            }
            CelValue::List(items) => {
                items.iter().for_each(|item| self.add_made(item));
                items.len()
            }
            CelValue::Map(map) => {
                map.map.values().for_each(|value| self.add_made(value));
                map.map.len()
            }
            _ => 0,
        };
        self.longest = self.longest.max(length as u64);
    }

    fn add(&mut self, value: &Value) {
        self.size += 1;
        let length = match value {
            Value::String(text) => {
                self.size += text.len() as u64;
                text.len() / STEP_BYTES
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.add(item));
                items.len()
            }
            Value::Object(members) => {
                members.values().for_each(|value| self.add(value));
                members.len()
            }
            _ => 0,
        };
        self.longest = self.longest.max(length as u64);
    }
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::Program;
    use serde_json::json;

    use super::*;

    fn steps(rule: &str, value: &Value) -> u64 {
        let program = Program::compile(rule).unwrap();
        of(program.expression()).steps(Measure::of(value))
    }

    #[test]
    fn loops_in_loops_cost_powers_of_the_length() {
        let hundred = json!(vec![1; 100]);
        let none = steps("self[0] == 1", &hundred);
        let one = steps("self.all(a, a > 0)", &hundred);
        let two = steps("self.all(a, self.all(b, a == b))", &hundred);
        let three = steps("self.all(a, self.all(b, self.all(c, a == b)))", &hundred);
        assert!(none < 10, "{none}");
        assert!((100..10_000).contains(&one), "{one}");
        assert!((10_000..10_000_000).contains(&two), "{two}");
        assert!(three > 1_000_000, "{three}");
    }

    #[test]
    fn lists_that_a_rule_makes_count_too() {
        let rule = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3].all(b, [1].all(c, a + b > c)))";
        assert!(steps(rule, &json!(1)) > 1_000);
        let long = json!("a,".repeat(10_000));
        assert!(steps("self.split(',').all(a, a != '')", &long) > 10_000);
        assert!(steps("self.replace('a', self) != ''", &long) > 1_000_000);
    }
}

//! `matchConditions`: expressions that all must hold.

use serde_json::Value;

use super::expression::{Expression, Variables, compile};

/// Conditions in their order. One that does not compile fails when it is asked.
#[derive(Debug, Default)]
pub(super) struct Conditions(Vec<(String, Expression)>);

impl Conditions {
    /// Reads `matchConditions`.
    pub(super) fn read(written: &Value) -> Self {
        let list = written.get("matchConditions").and_then(Value::as_array);
        let read = |condition: &Value| {
            let text = condition.get("expression").and_then(Value::as_str);
            let text = text.unwrap_or_default();
            (text.to_owned(), compile(text))
        };
        Self(list.into_iter().flatten().map(read).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if all conditions hold. One that does not hold outweighs one that fails.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub(super) fn hold(&self, variables: &mut Variables) -> Result<bool, String> {
        let mut failures = Vec::new();
        for (text, expression) in &self.0 {
            let decision = match expression {
                Ok(expression) => variables.decide(expression),
                Err(why) => Err(why.clone()),
            };
            match decision {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => failures.push(format!("expression '{text}' resulted in error: {why}")),
            }
        }
        match failures.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

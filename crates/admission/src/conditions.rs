//! The `matchConditions` of webhooks and policies: expressions that all must hold.

use serde_json::Value;

use super::expression::{PolicyExpression, Variables, compile};

/// Named conditions in their order. One that does not compile fails when it is evaluated.
#[derive(Debug, Default)]
pub(super) struct Conditions(Vec<(String, PolicyExpression)>);

impl Conditions {
    /// Reads and compiles the `matchConditions` of a webhook or a policy.
    pub(super) fn read(source: &Value) -> Self {
        let list = source.get("matchConditions").and_then(Value::as_array);
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
    /// A message about the condition that could not be evaluated.
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

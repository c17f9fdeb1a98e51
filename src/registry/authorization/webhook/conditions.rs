//! `matchConditions`: about which requests a webhook is asked.

use serde_json::Value;

use crate::registry::cel::{Expression, Variables};

/// Expressions over `request`, a SubjectAccessReviewSpec, that all must hold.
#[derive(Debug, Default)]
pub struct Conditions(Vec<(String, Expression)>);

impl Conditions {
    /// Reads expressions.
    ///
    /// # Errors
    /// The place of the first that is wrong, and what is wrong with it.
    pub fn read(texts: impl IntoIterator<Item = String>) -> Result<Self, (usize, String)> {
        let read = |(place, text): (usize, String)| match Expression::condition(&text, &["request"])
        {
            Ok(expression) => Ok((text, expression)),
            Err(why) => Err((place, why)),
        };
        let all: Result<_, _> = texts.into_iter().enumerate().map(read).collect();
        all.map(Self)
    }

    /// Whether all hold. One that does not hold outweighs one that fails.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub(super) fn hold(&self, spec: &Value) -> Result<bool, String> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let mut variables = Variables::new();
        variables.add("request", spec);
        let mut failures = Vec::new();
        for (text, expression) in &self.0 {
            match variables.decide(expression) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => failures.push(format!("expression '{text}' resulted in error: {why}")),
            }
        }
        if failures.is_empty() {
            return Ok(true);
        }
        Err(failures.join(", "))
    }
}

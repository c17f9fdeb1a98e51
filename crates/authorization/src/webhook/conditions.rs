//! `matchConditions`: the expressions that select the requests a webhook is asked about.

use ringwatch_cel::{Expression, Variables};

use super::review;
use crate::Attributes;

/// Expressions over `request`, a SubjectAccessReviewSpec, that all must hold.
#[derive(Debug, Default)]
pub struct Conditions(Vec<(String, Expression)>);

impl Conditions {
    /// Compiles the CEL expressions of `matchConditions`.
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

    /// Returns true if all conditions hold. One that does not hold outweighs one that fails.
    ///
    /// # Errors
    /// The error of an expression that cannot be evaluated.
    pub(super) fn hold(&self, attributes: &Attributes<'_>) -> Result<bool, String> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let mut variables = Variables::new();
        variables.add("request", &review::shown(attributes));
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

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::User;

    use super::*;

    #[test]
    fn what_is_empty_is_still_there() {
        let user = User {
            name: "ann".to_owned(),
            ..User::default()
        };
        let nodes = Attributes::of_resource(&user, "list", "", "nodes");
        let path = Attributes::of_path(&user, "get", "/metrics");
        for (text, of_nodes, of_path) in [
            ("has(request.resourceAttributes)", Ok(true), Ok(false)),
            (
                "request.?resourceAttributes.namespace == optional.of('')",
                Ok(true),
                Ok(false),
            ),
            ("'devs' in request.groups", Ok(false), Ok(false)),
            (
                "request.uid == '' && request.extra == {}",
                Ok(true),
                Ok(true),
            ),
            (
                "request.resourceAttributes.group + request.resourceAttributes.subresource == ''",
                Ok(true),
                Err(()),
            ),
            (
                "request.nonResourceAttributes.path == '/metrics'",
                Err(()),
                Ok(true),
            ),
        ] {
            let conditions = Conditions::read([text.to_owned()]).expect(text);
            for (attributes, holds) in [(&nodes, of_nodes), (&path, of_path)] {
                assert_eq!(conditions.hold(attributes).map_err(drop), holds, "{text}");
            }
        }
    }
}

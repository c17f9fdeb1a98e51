//! Decides which webhooks and policies are called again in the second round, because the object has changed after their
//! call.

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::Value;

/// The webhooks or policies that have seen a request's object, by their ids.
#[derive(Debug)]
pub(super) struct Reinvocations<Id> {
    /// The ids of those with `reinvocationPolicy: IfNeeded` that have seen the last change.
    current: HashSet<Id>,
    /// The ids of those with `reinvocationPolicy: IfNeeded` that have not seen the last change.
    outdated: HashSet<Id>,
    /// The object after the first round.
    left: Option<Value>,
}

impl<Id> Default for Reinvocations<Id> {
    fn default() -> Self {
        Self {
            current: HashSet::new(),
            outdated: HashSet::new(),
            left: None,
        }
    }
}

impl<Id: Eq + Hash> Reinvocations<Id> {
    /// Notes that the object has changed, so that those called before have not seen it.
    pub(super) fn outdate(&mut self) {
        self.outdated.extend(self.current.drain());
    }

    /// Begins the second round with this object. If it is not as the first round left it, none has seen it.
    pub(super) fn begin_again(&mut self, object: &Value) {
        if self.left.as_ref() != Some(object) {
            self.outdate();
        }
    }

    /// Returns true if this one is to be called again, and forgets that.
    pub(super) fn is_outdated(&mut self, id: &Id) -> bool {
        self.outdated.remove(id)
    }

    /// Notes that one with `reinvocationPolicy: IfNeeded` has seen the object.
    pub(super) fn has_seen(&mut self, id: Id) {
        self.current.insert(id);
    }

    /// Ends the first round with this object, which is kept only if there is one to be called again.
    pub(super) fn leave(&mut self, object: &Value) {
        self.left = (!self.current.is_empty()).then(|| object.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn those_that_have_seen_another_object_are_called_again() {
        let mut seen = Reinvocations::default();
        seen.has_seen("a");
        seen.leave(&json!({"k": 1}));
        seen.begin_again(&json!({"k": 1}));
        assert!(!seen.is_outdated(&"a"), "the object is as it was");
        seen.begin_again(&json!({"k": 2}));
        assert!(seen.is_outdated(&"a"));
    }

    #[test]
    fn no_object_is_kept_for_nobody() {
        let mut seen = Reinvocations::<&str>::default();
        seen.leave(&json!({"k": 1}));
        assert_eq!(seen.left, None);
        seen.begin_again(&json!({"k": 2}));
        assert!(!seen.is_outdated(&"a"));
    }
}

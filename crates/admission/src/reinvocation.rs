//! Decides which webhooks and policies are called again in the second round, because the object has changed after their
//! call.

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::Value;

/// Those who change objects, by what tells them apart.
#[derive(Debug)]
pub(super) struct Seen<Id> {
    /// Those that wish to see later changes, and have been asked since the last one.
    current: HashSet<Id>,
    /// Those that wish to see later changes, and have not seen them.
    outdated: HashSet<Id>,
    /// The object as they have left it.
    left: Option<Value>,
}

impl<Id> Default for Seen<Id> {
    fn default() -> Self {
        Self {
            current: HashSet::new(),
            outdated: HashSet::new(),
            left: None,
        }
    }
}

impl<Id: Eq + Hash> Seen<Id> {
    /// The object has changed after those who were asked.
    pub(super) fn outdate(&mut self) {
        self.outdated.extend(self.current.drain());
    }

    /// The second round begins with this object. Others may have changed it meanwhile.
    pub(super) fn begin_again(&mut self, object: &Value) {
        if self.left.as_ref() != Some(object) {
            self.outdate();
        }
    }

    /// Returns true if this one is to be called again, and forgets that.
    pub(super) fn is_outdated(&mut self, id: &Id) -> bool {
        self.outdated.remove(id)
    }

    /// Somebody who wishes to see later changes has been asked.
    pub(super) fn has_seen(&mut self, id: Id) {
        self.current.insert(id);
    }

    /// All have been asked.
    pub(super) fn leave(&mut self, object: &Value) {
        self.left = Some(object.clone());
    }
}

//! The variables of an expression, with those that are computed when they are first used.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;

use super::authorizer::{self, AuthorizerCheck, CheckAttributes};
use super::compile::Program;
use super::failure::ValueResult;
use super::patterns::Patterns;

/// The variables that an expression sees, with the patterns that it has compiled.
#[derive(Debug, Default)]
pub struct Scope {
    values: HashMap<String, CelValue>,
    computed: ComputedMembers,
    pub(super) patterns: Patterns,
    pub(super) authorizer: Option<Arc<dyn AuthorizerCheck>>,
}

/// Members of one variable that are computed when they are first used.
#[derive(Debug, Default)]
struct ComputedMembers {
    /// The name of the variable; empty if there is none.
    name: &'static str,
    members: Arc<Members>,
    /// The lazily computed variables whose values are known.
    known: RefCell<HashMap<usize, ValueResult>>,
}

/// Expressions with names, in order: each may use those before it.
#[derive(Debug, Default)]
pub struct Members {
    programs: Vec<(String, Result<Program, String>)>,
    places: HashMap<String, usize>,
}

impl FromIterator<(String, Result<Program, String>)> for Members {
    fn from_iter<I: IntoIterator<Item = (String, Result<Program, String>)>>(all: I) -> Self {
        let programs: Vec<_> = all.into_iter().collect();
        let mut places = HashMap::with_capacity(programs.len());
        for (place, (name, _)) in programs.iter().enumerate() {
            places.entry(name.clone()).or_insert(place);
        }
        Self { programs, places }
    }
}

impl Scope {
    /// Adds a variable, or replaces the one of this name.
    pub fn add(&mut self, name: &str, value: CelValue) {
        self.values.insert(name.to_owned(), value);
    }

    /// Adds `authorizer`, whose checks `check` decides, and `authorizer.requestResource`, the check that `request` is
    /// about.
    pub fn add_authorizer(&mut self, check: Arc<dyn AuthorizerCheck>, request: CheckAttributes) {
        self.add("authorizer", authorizer::authorizer());
        self.add(
            "authorizer.requestResource",
            authorizer::resource_check(request),
        );
        self.authorizer = Some(check);
    }

    /// Adds a variable of this name whose members are computed by expressions when they are first used.
    pub fn add_computed(&mut self, name: &'static str, members: &Arc<Members>) {
        self.computed = ComputedMembers {
            name,
            members: Arc::clone(members),
            known: RefCell::default(),
        };
    }

    /// Returns the value of a variable.
    pub(super) fn value(&self, name: &str) -> Option<CelValue> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.values.get(name).cloned()
    }

    /// Returns true if there is a variable of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the value of a name that has a point in it.
    pub(super) fn qualified(&self, first: &str, second: &str) -> Option<CelValue> {
        self.authorizer.as_ref()?;
        self.values.get(&format!("{first}.{second}")).cloned()
    }

    pub(super) fn is_computed(&self, name: &str) -> bool {
        !name.is_empty() && self.computed.name == name
    }

    pub(super) fn computed_count(&self) -> usize {
        self.computed.members.programs.len()
    }

    /// Returns where the member is among the first `count`.
    pub(super) fn computed_before(&self, name: &str, count: usize) -> Option<usize> {
        let place = self.computed.members.places.get(name).copied();
        place.filter(|place| *place < count)
    }

    /// Returns the name and the program of a computed member.
    pub(super) fn member(&self, position: usize) -> &(String, Result<Program, String>) {
        &self.computed.members.programs[position]
    }

    /// Returns the outcome of a computed member, if it was computed before.
    pub(super) fn known(&self, position: usize) -> Option<ValueResult> {
        self.computed.known.borrow().get(&position).cloned()
    }

    /// Remembers the outcome of a computed member.
    pub(super) fn remember(&self, position: usize, outcome: ValueResult) {
        let mut known = self.computed.known.borrow_mut();
        known.insert(position, outcome);
    }
}

//! A walk along an object that is checked: where it is, and how much work may still go into patterns.
//!
//! Patterns and the texts that they run on come from clients, and each text may meet many patterns. So all of them
//! share what one object may take. What cannot be decided with that is refused, whatever alternatives say.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use ringwatch_cel::pattern::{self, StepBudget};
use serde_json::Value;

use super::comparisons::{Comparisons, OlderItems};
use super::formats::Format;
use super::node::{Checks, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;

/// Steps that all patterns may take for one object. It is some half a second.
const PATTERN_STEPS_MAX: u64 = 50_000_000;

/// A walk along an object.
pub(super) struct ObjectWalk<'p, 'v> {
    path: &'p mut Path,
    work: StepBudget,
    /// The first match that could not be decided.
    undecided: Option<SchemaErrors>,
    comparisons: Comparisons<'v>,
    /// True if the value is a default.
    is_default: bool,
}

impl<'p, 'v> ObjectWalk<'p, 'v> {
    pub(super) fn new(path: &'p mut Path) -> Self {
        Self {
            path,
            work: StepBudget::new(PATTERN_STEPS_MAX),
            undecided: None,
            comparisons: Comparisons::default(),
            is_default: false,
        }
    }

    /// Begins a walk along a default of a schema. Kubernetes checks it before formats are left out of the schema that
    /// it does not know.
    pub(super) fn of_default(path: &'p mut Path) -> Self {
        Self {
            is_default: true,
            ..Self::new(path)
        }
    }

    /// Returns true if the value is a default.
    pub(super) fn is_default(&self) -> bool {
        self.is_default
    }

    /// Returns the name of the format by which the type of a value is judged.
    pub(super) fn format_name(&self, checks: &'v Checks) -> Option<&'v str> {
        let unknown = checks.unknown_format.as_deref();
        let known = checks.format.map(Format::name);
        known.or_else(|| unknown.filter(|_| self.is_default))
    }

    /// Returns true if a value has not changed since the older one.
    pub(super) fn is_unchanged(
        &mut self,
        node: &'v SchemaNode,
        value: &Value,
        old: &'v Value,
    ) -> bool {
        self.comparisons.is_unchanged(node, value, old)
    }

    /// Returns the items of an older list.
    pub(super) fn older_items(
        &mut self,
        node: &'v SchemaNode,
        items: &'v [Value],
    ) -> Rc<OlderItems<'v>> {
        self.comparisons.older_items(node, items)
    }

    /// Returns the format that a text is checked for, which in defaults may be one of another type.
    pub(super) fn text_format(&self, checks: &Checks) -> Option<Format> {
        let unknown = checks.unknown_format.as_deref();
        let unknown = unknown.filter(|_| self.is_default);
        let of_text = || Format::named(unknown?, None);
        checks.format.or_else(of_text)
    }

    /// Matches a text against a pattern. It is true where that is not known, which [`Self::end`] reports.
    pub(super) fn matches(&mut self, pattern: &str, text: &str) -> bool {
        if self.undecided.is_some() {
            return true;
        }
        pattern::is_match(pattern, text, &mut self.work).unwrap_or_else(|_| {
            let mut outcome = SchemaErrors::default();
            let why =
                format!("takes too long to match '{pattern}'; shorten it, or simplify the pattern");
            outcome.invalid(self.path, &Value::from(text), &why);
            self.undecided = Some(outcome);
            true
        })
    }

    /// Ends the walk: adds the match that could not be decided to the errors.
    pub(super) fn end(self, mut found: SchemaErrors) -> SchemaErrors {
        self.undecided.into_iter().for_each(|it| found.merge(it));
        found
    }
}

impl Deref for ObjectWalk<'_, '_> {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.path
    }
}

impl DerefMut for ObjectWalk<'_, '_> {
    fn deref_mut(&mut self) -> &mut Path {
        self.path
    }
}

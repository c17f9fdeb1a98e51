//! The errors that the check of a value finds, in kube-apiserver's words.

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::go_text::bad_value;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::path::{Path, ROOT};

/// The errors of a value.
#[derive(Debug, Default)]
pub(super) struct SchemaErrors {
    /// True if anything is wrong.
    is_wrong: bool,
    /// The errors, up to the bound of their bytes.
    errors: Vec<FieldError>,
    /// The bytes of the texts of `errors`.
    bytes: usize,
    /// The number of checks that applied, as kube-apiserver counts them (`MatchCount`): one for each kind of check that
    /// there is for a value, and one more for types that are right, and for numbers and lists, whatever is wrong with
    /// them. Of alternatives that all fail, the one with the most is closest to what was meant.
    pub(super) applied: usize,
}

impl SchemaErrors {
    /// Returns true if there are no errors.
    pub(super) fn is_valid(&self) -> bool {
        !self.is_wrong
    }

    /// Returns the fields of the errors.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|error| error.field.as_str())
    }

    /// Returns the errors, of which there is at least one if anything is wrong.
    pub(super) fn into_errors(mut self) -> Vec<FieldError> {
        if self.is_wrong && self.errors.is_empty() {
            let why = "null: more is wrong than can be told; correct what a part of the object has, and try again";
            let error = FieldError::new(FieldErrorKind::Invalid, ROOT, why);
            self.errors.push(error);
        }
        self.errors
    }

    /// Notes that something is wrong at a place, and the error if there is room for it.
    pub(super) fn push(&mut self, path: &Path, error: impl FnOnce() -> FieldError) {
        self.is_wrong = true;
        if let Some(error) = path.error(error) {
            self.tell(error);
        }
    }

    fn tell(&mut self, error: FieldError) {
        if self.bytes < ERROR_BYTES_MAX {
            self.bytes += error.field.len() + error.detail.len();
            self.errors.push(error);
        }
    }

    /// Adds what another check found.
    pub(super) fn merge(&mut self, other: Self) {
        self.applied += other.applied;
        self.is_wrong |= other.is_wrong;
        for error in other.errors {
            self.tell(error);
        }
    }

    /// Adds an error about an invalid value; `text` continues after the path.
    pub(super) fn invalid(&mut self, path: &Path, value: &Value, text: &str) {
        self.push(path, || {
            let detail = format!("{}: {} in body {text}", bad_value(value), path.as_str());
            FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
        });
    }

    /// Adds an error about a value of another type or format than `wanted`; `found` is its own.
    pub(super) fn invalid_type(&mut self, path: &Path, wanted: &str, found: &str) {
        self.push(path, || {
            let found = Value::from(found);
            let place = path.as_str();
            let detail = format!("{found}: {place} in body must be of type {wanted}: {found}");
            FieldError::new(FieldErrorKind::TypeInvalid, path.field(), detail)
        });
    }

    /// Alternatives that do not hold together: such an error has no field, but names it.
    pub(super) fn alternatives(&mut self, path: &Path, text: &str) {
        self.push(path, || {
            let place = Value::from(path.as_str());
            let detail = format!("\"\": {place} {text}");
            FieldError::new(FieldErrorKind::Invalid, path.base(), detail)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_nobody_is_told_are_not_made() {
        let mut path = Path::default();
        let mark = path.member(&"n".repeat(1 << 20));
        let mut made = 0;
        let mut outcome = SchemaErrors::default();
        for _ in 0..1_000 {
            // As each alternative and member of an object finds its own.
            let mut inner = SchemaErrors::default();
            inner.push(&path, || {
                made += 1;
                FieldError::required(path.field())
            });
            assert!(!inner.is_valid());
            outcome.merge(inner);
        }
        path.leave(mark);
        assert!(made < 20, "{made}");
        assert_eq!(outcome.into_errors().len(), 1);
        let mut late = SchemaErrors::default();
        late.push(&path, || FieldError::required("late"));
        assert!(!late.into_errors().is_empty());
    }
}

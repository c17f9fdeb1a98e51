//! A field of an object: its value, and the path by which errors name it.
//!
//! The path is put together only when there is something to say, so that checking what is right
//! costs no memory.

use std::collections::HashSet;

use ringwatch_apimachinery::go_text::{bad_value, quoted};
use ringwatch_apimachinery::path;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::difference::difference;
use super::internal_form::Shape;

/// The errors of a check, in the order in which they are found.
pub(crate) type Errors = Vec<FieldError>;

/// The value of a missing member.
static NOTHING: Value = Value::Null;

/// A field of an object: `field.Path` of apimachinery together with the value at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'v, 'p> {
    value: &'v Value,
    step: FieldStep<'p>,
    parent: Option<&'p Self>,
}

/// The step of a field's path from its parent.
#[derive(Clone, Copy, Debug)]
enum FieldStep<'p> {
    /// The steps along names joined by dots.
    Path(&'p str),
    /// The step to an element of the list at a path.
    Item(&'p str, usize),
    /// The step to a member, named by the client, of the map at a path.
    Member(&'p str, &'p str),
}

impl<'v, 'p> Field<'v, 'p> {
    /// Makes the field of a whole object, whose path is empty.
    pub(crate) fn root(value: &'v Value) -> Self {
        Self {
            value,
            step: FieldStep::Path(""),
            parent: None,
        }
    }

    /// Makes the field of a value that has no object around it, which errors name by `path`.
    pub(crate) fn named(value: &'v Value, path: &'p str) -> Self {
        Self {
            value,
            step: FieldStep::Path(path),
            parent: None,
        }
    }

    /// Returns the field at a path of names joined by dots, relative to this one.
    pub(crate) fn at<'s>(&'s self, path: &'s str) -> Field<'v, 's> {
        Field {
            value: path::get(self.value, path).unwrap_or(&NOTHING),
            step: FieldStep::Path(path),
            parent: Some(self),
        }
    }

    /// Returns the field at a path, which errors name otherwise.
    pub(crate) fn at_named<'s>(&'s self, path: &str, name: &'s str) -> Field<'v, 's> {
        Field {
            value: path::get(self.value, path).unwrap_or(&NOTHING),
            step: FieldStep::Path(name),
            parent: Some(self),
        }
    }

    /// Returns the elements of the list at a path; of this list itself if the path is empty.
    pub(crate) fn items<'s>(&'s self, path: &'s str) -> impl Iterator<Item = Field<'v, 's>> {
        let list = if path.is_empty() {
            self.value
        } else {
            path::get(self.value, path).unwrap_or(&NOTHING)
        };
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(index, value)| Field {
            value,
            step: FieldStep::Item(path, index),
            parent: Some(self),
        })
    }

    /// Returns the names and members of the map at a path.
    pub(crate) fn members<'s>(
        &'s self,
        path: &'s str,
    ) -> impl Iterator<Item = (&'v str, Field<'v, 's>)>
    where
        'v: 's,
    {
        let map = path::get(self.value, path).and_then(Value::as_object);
        map.into_iter().flatten().map(move |(name, value)| {
            let member = Field {
                value,
                step: FieldStep::Member(path, name),
                parent: Some(self),
            };
            (name.as_str(), member)
        })
    }

    /// Returns this member of a map under another name, such as a shortened one.
    pub(crate) fn called<'s>(&self, name: &'s str) -> Field<'v, 's>
    where
        'p: 's,
    {
        let mut other: Field<'v, 's> = *self;
        if let FieldStep::Member(path, _) = other.step {
            other.step = FieldStep::Member(path, name);
        }
        other
    }

    /// Returns the value; null if the field is absent.
    pub(crate) fn value(&self) -> &'v Value {
        self.value
    }

    /// Returns true if there is a value that is not null.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns true if there is no value, or an empty string, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the value as a text; empty if it is none.
    pub(crate) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the value as an integer; `None` if it is none.
    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Returns true if the value is `true`.
    pub(crate) fn is_true(&self) -> bool {
        *self.value == Value::Bool(true)
    }

    /// Returns how many elements the list here has.
    pub(crate) fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    /// Returns the path, as errors name it.
    pub(crate) fn field(&self) -> String {
        let mut field = self.parent.map(Self::field).unwrap_or_default();
        let (FieldStep::Path(path) | FieldStep::Item(path, _) | FieldStep::Member(path, _)) =
            self.step;
        if !field.is_empty() && !path.is_empty() {
            field.push('.');
        }
        field.push_str(path);
        match self.step {
            FieldStep::Path(_) => {}
            FieldStep::Item(_, index) => field.push_str(&format!("[{index}]")),
            FieldStep::Member(_, name) => field.push_str(&format!("[{name}]")),
        }
        field
    }
}

/// Errors about the field.
impl Field<'_, '_> {
    /// Returns the shape of the value in Kubernetes' internal type of the object, if the object tells its kind.
    fn shape(&self) -> Option<Shape> {
        let Some(parent) = self.parent else {
            return Shape::of(self.value);
        };
        let (FieldStep::Path(path) | FieldStep::Item(path, _) | FieldStep::Member(path, _)) =
            self.step;
        let names = path.split('.').filter(|name| !name.is_empty());
        let shape = names.fold(parent.shape(), |shape, name| shape?.at(name));
        match self.step {
            FieldStep::Path(_) => shape,
            FieldStep::Item(..) | FieldStep::Member(..) => shape?.element(),
        }
    }

    /// Writes a value of the field's type as errors show it.
    fn shown(&self, value: &Value) -> String {
        let is_composed = value.is_array() || value.is_object();
        let internal = self.shape().filter(|_| is_composed);
        let internal = internal.and_then(|shape| shape.write(value));
        internal.unwrap_or_else(|| bad_value(value))
    }

    /// Returns the difference of two values of the field, as the error of a forbidden change shows it.
    pub(crate) fn difference(&self, old: &Value, new: &Value) -> String {
        let shape = self.shape();
        shape.map_or_else(String::new, |shape| difference(shape, old, new))
    }

    fn error(&self, kind: FieldErrorKind, detail: impl Into<String>) -> FieldError {
        FieldError::new(kind, self.field(), detail)
    }

    /// Makes the error of a field that is required.
    pub(crate) fn required(&self, why: &str) -> FieldError {
        self.error(FieldErrorKind::Required, why)
    }

    /// Returns the error that the value is invalid. A missing value is shown as an empty string.
    pub(crate) fn invalid(&self, why: impl AsRef<str>) -> FieldError {
        if self.is_set() {
            let detail = format!("{}: {}", self.shown(self.value), why.as_ref());
            return self.error(FieldErrorKind::Invalid, detail);
        }
        self.invalid_value("", why)
    }

    /// Makes an error about the field that shows a value of another field's type.
    pub(crate) fn invalid_showing(
        &self,
        other: &Field<'_, '_>,
        value: &Value,
        why: &str,
    ) -> FieldError {
        let detail = format!("{}: {why}", other.shown(value));
        self.error(FieldErrorKind::Invalid, detail)
    }

    /// Makes an error about the field that shows another value.
    pub(crate) fn invalid_value(
        &self,
        value: impl Into<Value>,
        why: impl AsRef<str>,
    ) -> FieldError {
        FieldError::invalid(self.field(), &value.into(), why)
    }

    /// Makes the error that the text has more bytes than it may.
    pub(crate) fn too_long(&self, bytes_max: usize) -> FieldError {
        let why = format!("may not be more than {bytes_max} bytes");
        self.error(FieldErrorKind::TooLong, why)
    }

    /// Makes the error that there are more elements than there may be.
    pub(crate) fn too_many(&self, found: usize, most: usize) -> FieldError {
        let why = format!("{found}: must have at most {most} items");
        self.error(FieldErrorKind::TooMany, why)
    }

    /// Makes the error that nothing may be here, or nothing else.
    pub(crate) fn forbidden(&self, why: impl Into<String>) -> FieldError {
        self.error(FieldErrorKind::Forbidden, why)
    }

    /// Makes the error that the value is a duplicate.
    pub(crate) fn duplicate(&self) -> FieldError {
        self.error(FieldErrorKind::Duplicate, self.shown(self.value))
    }

    /// Makes the error that the value is a duplicate, and shows this text for it.
    pub(crate) fn duplicate_of(&self, text: &str) -> FieldError {
        self.error(FieldErrorKind::Duplicate, quoted(text))
    }

    /// Returns the error that the value does not refer to anything that exists.
    pub(crate) fn not_found(&self) -> FieldError {
        self.error(FieldErrorKind::NotFound, quoted(self.text()))
    }

    /// Returns the error that the value is none of these words.
    pub(crate) fn unsupported(&self, words: &[&str]) -> FieldError {
        let empty = json!("");
        let value = if self.is_set() { self.value } else { &empty };
        self.unsupported_value(value.clone(), words)
    }

    /// Makes an error about the field that another value is none of these words.
    pub(crate) fn unsupported_value(&self, value: impl Into<Value>, words: &[&str]) -> FieldError {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let value = bad_value(&value.into());
        let detail = format!("{value}: supported values: {}", words.join(", "));
        self.error(FieldErrorKind::NotSupported, detail)
    }
}

/// The checks that most kinds have in common.
impl Field<'_, '_> {
    /// Adds an error unless the field is set.
    pub(crate) fn must_be_set(&self, errors: &mut Errors) {
        if self.is_empty() {
            errors.push(self.required(""));
        }
    }

    /// Adds an error if the field is set.
    pub(crate) fn must_be_unset(&self, why: &str, errors: &mut Errors) {
        if self.is_set() {
            errors.push(self.forbidden(why));
        }
    }

    /// Adds an error unless the value is one of these words.
    pub(crate) fn must_be_one_of(&self, words: &[&str], errors: &mut Errors) {
        if self.is_empty() {
            errors.push(self.required(""));
        } else {
            self.may_be_one_of(words, errors);
        }
    }

    /// Adds an error unless the value is one of these words. An empty one is an error too, since the field is a pointer
    /// in Kubernetes.
    pub(crate) fn must_point_to_one_of(&self, words: &[&str], errors: &mut Errors) {
        if self.is_set() {
            self.may_be_one_of(words, errors);
        } else {
            errors.push(self.required(""));
        }
    }

    /// Adds an error if the field is set and its value is none of these words.
    pub(crate) fn may_be_one_of(&self, words: &[&str], errors: &mut Errors) {
        if self.is_set() && !words.contains(&self.text()) {
            errors.push(self.unsupported(words));
        }
    }

    /// Adds the errors of the text against a format.
    pub(crate) fn must_conform(&self, format: impl Fn(&str) -> Vec<String>, errors: &mut Errors) {
        let wrong = format(self.text());
        errors.extend(wrong.into_iter().map(|why| self.invalid(why)));
    }

    /// Adds the errors of the text against a format, if it is not empty.
    pub(crate) fn may_conform(&self, format: impl Fn(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.text().is_empty() {
            self.must_conform(format, errors);
        }
    }

    /// Adds the errors of a text that is not among the known ones, which the old object has: it may have been stored
    /// under earlier rules.
    pub(crate) fn must_conform_unless_known(
        &self,
        format: impl Fn(&str) -> Vec<String>,
        known: &HashSet<&str>,
        errors: &mut Errors,
    ) {
        if !known.contains(self.text()) {
            self.must_conform(format, errors);
        }
    }

    /// Adds an error if the text is empty, or its errors against a format.
    pub(crate) fn must_be_set_and_conform(
        &self,
        format: impl Fn(&str) -> Vec<String>,
        errors: &mut Errors,
    ) {
        if self.is_empty() {
            errors.push(self.required(""));
        } else {
            self.must_conform(format, errors);
        }
    }

    /// Adds an error if the text has more bytes than it may.
    pub(crate) fn must_have_at_most(&self, bytes_max: usize, errors: &mut Errors) {
        if self.text().len() > bytes_max {
            errors.push(self.too_long(bytes_max));
        }
    }

    /// Adds an error if the number is set and out of bounds.
    pub(crate) fn must_be_between(&self, least: i64, most: i64, errors: &mut Errors) {
        if self
            .number()
            .is_some_and(|it| !(least..=most).contains(&it))
        {
            let why = format!("must be between {least} and {most}, inclusive");
            errors.push(self.invalid(why));
        }
    }

    /// Adds an error if the number is set and negative.
    pub(crate) fn must_not_be_negative(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number < 0) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// Adds an error if the value differs from the old one.
    pub(crate) fn must_stay(&self, old: &Field<'_, '_>, errors: &mut Errors) {
        if self.value != old.value {
            let detail = format!("{}: field is immutable", self.shown(self.value));
            errors.push(self.error(FieldErrorKind::Invalid, detail));
        }
    }
}

impl Field<'_, '_> {
    /// Adds an error if the text differs from the old one. Unlike [`Self::must_stay`] it shows a missing one as empty,
    /// as Go does.
    pub(crate) fn must_stay_text(&self, old: &Field<'_, '_>, errors: &mut Errors) {
        if self.text() != old.text() {
            errors.push(self.invalid("field is immutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_as_errors_name_them() {
        let object =
            json!({"spec": {"limits": {"cpu": "1"}, "containers": [{"ports": [{"port": 80}]}]}});
        let root = Field::root(&object);
        let spec = root.at("spec");
        let containers: Vec<_> = spec.items("containers").collect();
        let port = containers[0].items("ports").next().expect("a port");
        assert_eq!(port.at("port").field(), "spec.containers[0].ports[0].port");
        assert_eq!(port.at("port").number(), Some(80));
        let (name, limit) = spec.members("limits").next().expect("a limit");
        assert_eq!((name, limit.field().as_str()), ("cpu", "spec.limits[cpu]"));
        assert_eq!(limit.called("c...").field(), "spec.limits[c...]");
        assert_eq!(root.at("spec.limits.cpu").text(), "1");
        assert!(!root.at("spec.nothing.here").is_set());
        let list = root.at("spec.containers");
        let first = list.items("").next().expect("a container");
        assert_eq!(first.field(), "spec.containers[0]");
    }

    #[test]
    fn a_pointer_to_an_empty_word_is_there() {
        let object = json!({"empty": ""});
        let root = Field::root(&object);
        let mut errors = Vec::new();
        root.at("empty").must_be_one_of(&["A"], &mut errors);
        root.at("empty").must_point_to_one_of(&["A"], &mut errors);
        root.at("none").must_point_to_one_of(&["A"], &mut errors);
        let messages: Vec<_> = errors.iter().map(FieldError::message).collect();
        assert_eq!(
            messages,
            [
                "Required value",
                "Unsupported value: \"\": supported values: \"A\"",
                "Required value"
            ]
        );
    }

    #[test]
    fn errors_have_kubernetes_words() {
        let object = json!({"kind": "Odd", "count": -1});
        let root = Field::root(&object);
        let mut errors = Vec::new();
        root.at("name").must_be_set(&mut errors);
        root.at("kind").must_be_one_of(&["B", "A"], &mut errors);
        root.at("count").must_not_be_negative(&mut errors);
        root.at("count").must_be_between(1, 3, &mut errors);
        let lines: Vec<_> = errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect();
        assert_eq!(
            lines,
            [
                "name: Required value",
                "kind: Unsupported value: \"Odd\": supported values: \"B\", \"A\"",
                "count: Invalid value: -1: must be greater than or equal to 0",
                "count: Invalid value: -1: must be between 1 and 3, inclusive",
            ]
        );
    }
}

//! The state of reading a schema: where the walk is, and the errors that it has found.

use ringwatch_apimachinery::go_text::bad_value;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

use super::outcome::SchemaErrors;
use super::path::Path;
use super::patterns::Patterns;
use super::wrong_places::WrongPlaces;

/// Levels of schemas in schemas. JSON is parsed to 127 levels, of which each schema takes two; what
/// comes in another way is bounded here, and with it everything that walks along a schema.
pub(super) const SCHEMA_LEVELS_MAX: usize = 128;

/// The place of a schema in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    /// The schema of the whole object.
    Root,
    /// The items of a list.
    Item,
    /// The schema of a member of an object.
    Field,
    /// Below `anyOf` and the like: it only checks.
    Nested(NestedExceptions),
}

/// The exceptions for nested schemas, by which int-or-string is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NestedExceptions {
    /// None: the schema has only value validations.
    Plain,
    /// It may name a type.
    Typed,
    /// It may have an `anyOf` that names types.
    TypedAnyOf,
}

/// The kinds of errors of a schema, of which later ones are told only if there are no earlier ones that forbid to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ErrorStage {
    /// An error after which nothing can be made of the schema. It is told beside all others.
    #[default]
    Limits,
    /// Parts that are not structural. They are told if all members can be read at all.
    Structure,
    /// Wrong defaults. They are told of structural schemas.
    Defaults,
    /// Wrong keywords. They are told beside all others.
    Keywords,
}

/// A walk over a schema.
#[derive(Default)]
pub(super) struct SchemaReader {
    /// The errors that were found so far, by their stage.
    pub(super) found: [SchemaErrors; 4],
    /// The stage of errors that are added now.
    pub(super) stage: ErrorStage,
    /// True if a schema has members without which there is no structure to look at.
    pub(super) unreadable: bool,
    /// True if a schema names its dialect by `$schema`, which is told if there is nothing else.
    pub(super) has_dialect: bool,
    /// The number of `additionalProperties` around the current schema. Defaults in these are not validated.
    pub(super) additional_level: usize,
    /// The path that the walk has reached.
    pub(super) path: Path,
    /// The number of schemas around the current one.
    pub(super) level: usize,
    /// The compiled patterns so far, and their bytes.
    pub(super) patterns: Patterns,
    /// The number of rules so far.
    pub(super) rules_read: usize,
    /// The bytes of the expressions of these rules.
    pub(super) rule_bytes: usize,
}

impl SchemaReader {
    /// Returns true if nothing forbids to look at defaults.
    pub(super) fn is_structural(&self) -> bool {
        !self.unreadable && self.found[ErrorStage::Structure as usize].is_valid()
    }

    /// Returns the places of wrong keywords if nothing else is wrong that forbids to look at rules.
    pub(super) fn wrong_keywords(&self) -> Option<WrongPlaces> {
        let [limits, structure, defaults, keywords] = &self.found;
        let earlier = [limits, structure, defaults];
        let may_look =
            !self.unreadable && !self.has_dialect && earlier.iter().all(|it| it.is_valid());
        may_look.then(|| WrongPlaces::of(keywords))
    }

    /// Returns the errors that are told. Follows `validateCustomResourceDefinitionValidation`.
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        let [limits, structure, defaults, keywords] = self.found;
        let mut told = limits.into_errors();
        if !self.unreadable {
            let mut structure = structure.into_errors();
            structure.sort_by_cached_key(sorted_by);
            told.extend(structure);
            told.extend(defaults.into_errors());
        }
        told.extend(keywords.into_errors());
        if told.is_empty() && self.has_dialect {
            let why = "OpenAPIV3Schema 'schema' is not supported";
            told.push(FieldError::invalid("", &Value::from(""), why));
        }
        told
    }

    /// Does something whose errors are of a stage.
    pub(super) fn in_stage<R>(
        &mut self,
        stage: ErrorStage,
        check: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = std::mem::replace(&mut self.stage, stage);
        let result = check(self);
        self.stage = before;
        result
    }

    pub(super) fn add(&mut self, found: SchemaErrors) {
        self.found[self.stage as usize].merge(found);
    }

    /// Does something below a member.
    pub(super) fn under<R>(&mut self, name: &str, walk: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.path.member(name);
        let result = walk(self);
        self.path.leave(mark);
        result
    }

    /// Adds an error about the value at the current path.
    pub(super) fn invalid(&mut self, value: &Value, why: &str) {
        self.invalid_shown(&bad_value(value), why);
    }

    /// Adds an error about the value at the current path, which is shown in this form.
    pub(super) fn invalid_shown(&mut self, shown: &str, why: &str) {
        let (path, found) = (&self.path, &mut self.found[self.stage as usize]);
        found.push(path, || {
            let detail = format!("{shown}: {why}");
            FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
        });
    }

    /// Adds an error if a member is set.
    pub(super) fn forbid(&mut self, name: &str, why: &str) {
        self.push(FieldErrorKind::Forbidden, name, why.to_owned());
    }

    /// Adds an error if a member is not set.
    pub(super) fn require(&mut self, name: &str, why: &str) {
        self.push(FieldErrorKind::Required, name, why.to_owned());
    }

    fn push(&mut self, kind: FieldErrorKind, name: &str, detail: String) {
        let mark = self.path.member(name);
        let (path, found) = (&self.path, &mut self.found[self.stage as usize]);
        found.push(path, || FieldError::new(kind, path.field(), detail));
        self.path.leave(mark);
    }
}

/// Returns what structural errors are sorted by: the text of the whole error, whose field goes on after that of the
/// schema.
fn sorted_by(error: &FieldError) -> String {
    let point = if error.field.is_empty() { "" } else { "." };
    format!("{point}{}: {}", error.field, error.message())
}

/// Returns a member that says something: null says nothing.
pub(super) fn present<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    schema.get(name).filter(|value| !value.is_null())
}

/// Returns the strings in a list.
pub(super) fn strings(schema: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = schema.get(name).and_then(Value::as_array);
    let strings = list.into_iter().flatten().filter_map(Value::as_str);
    strings.map(str::to_owned).collect()
}

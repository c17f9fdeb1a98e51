//! Structural schemas of custom resources: what a definition says about its objects, and what follows from it.
//!
//! ```text
//!   openAPIV3Schema --read--> Node --+-- prune      removes what no schema knows
//!                     |              +-- defaults   writes what is not said
//!                     |              +-- validate   types, values, alternatives
//!               refused unless       +-- lists      items that have to differ
//!               structural           +-- embedded   whole objects inside
//!                                    +-- evaluate   rules in CEL, within a budget
//! ```
//!
//! A schema is read once, when its definition comes, with its rules compiled and its patterns checked; then it is
//! followed for every write. The hard part is saying the same as kube-apiserver to the letter, odd words included,
//! since clients show and test what it says. Everything that a definition can make expensive is bounded: levels, the
//! size of patterns, the steps of rules, the bytes of messages.

mod cel_value;
mod comparisons;
mod completeness;
mod declare;
mod default_checks;
mod default_values;
mod defaults;
mod embedded;
mod evaluate;
mod formats;
mod keyword_checks;
mod kind;
#[cfg(test)]
mod list_rule_tests;
mod lists;
mod merge_keywords;
mod merging;
mod node;
mod number_checks;
mod older_values;
mod outcome;
mod path;
mod patterns;
mod prune;
mod read;
mod read_checks;
mod rule;
#[cfg(test)]
mod rule_check_tests;
mod rule_checks;
mod rule_keywords;
#[cfg(test)]
mod rule_tests;
mod rules;
mod schema_reader;
mod strictness;
mod structure;
#[cfg(test)]
mod tests;
mod validate;
mod walk;
mod wrong_places;

use serde_json::Value;

pub use self::completeness::DEFINED_IN;
pub use self::formats::unrecognized_formats;
pub use self::keyword_checks::{Strictness, has_defaults};
pub use self::patterns::Patterns;
pub use self::rule_checks::RuleCheck;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::Meter;

use self::defaults::Nulls;
use self::node::SchemaNode;
use self::outcome::SchemaErrors;
use self::path::Path;
use self::walk::ObjectWalk;

/// The structural schema of one version of a custom resource.
#[derive(Debug)]
pub struct StructuralSchema {
    /// The schema of the whole object.
    root: SchemaNode,
    /// True if its definition has patterns.
    has_patterns: bool,
}

/// A schema that cannot be used.
#[derive(Debug)]
pub struct UnusableSchema {
    /// The parts that are wrong, as [`StructuralSchema::read`] returns them.
    pub errors: Vec<FieldError>,
    /// The schema with those of its rules that are checked nevertheless, if there are any.
    pub with_rules: Option<Box<StructuralSchema>>,
}

/// A check of an object's metadata, whose errors are told elsewhere, but may make rules pointless.
pub type CheckMetadata = fn(&Value) -> Vec<FieldError>;

impl StructuralSchema {
    /// Reads `openAPIV3Schema`. With `preserve_unknown_fields` the object keeps members that the schema does not
    /// know, as old definitions ask for.
    ///
    /// # Errors
    ///
    /// The parts that are not structural or not supported; fields are relative to the schema, such as
    /// `properties[spec].type`.
    pub fn read(schema: &Value, preserve_unknown_fields: bool) -> Result<Self, Vec<FieldError>> {
        let mut patterns = Patterns::default();
        Self::read_beside(
            schema,
            preserve_unknown_fields,
            &mut patterns,
            Strictness::ALL,
        )
    }

    /// Reads a schema among others of a definition, which have these patterns, by the rules that it must follow.
    ///
    /// # Errors
    ///
    /// The same as those of [`Self::read`].
    pub fn read_beside(
        schema: &Value,
        preserve_unknown_fields: bool,
        patterns: &mut Patterns,
        strictness: Strictness,
    ) -> Result<Self, Vec<FieldError>> {
        let read = Self::read_to_check(schema, preserve_unknown_fields, patterns, strictness);
        read.map_err(|it| it.errors)
    }

    /// Reads a schema as [`Self::read_beside`] does, to check its rules as well.
    ///
    /// # Errors
    ///
    /// A schema that cannot be used, of which some rules may be checked.
    pub fn read_to_check(
        schema: &Value,
        preserve_unknown_fields: bool,
        patterns: &mut Patterns,
        strictness: Strictness,
    ) -> Result<Self, UnusableSchema> {
        let read = read::read(schema, patterns, strictness);
        let has_patterns = !patterns.is_empty();
        let whole = |mut root: SchemaNode| {
            root.preserve_unknown |= preserve_unknown_fields;
            Self { root, has_patterns }
        };
        match read {
            Ok(root) => Ok(whole(root)),
            Err(refused) => Err(UnusableSchema {
                errors: refused.errors,
                with_rules: refused
                    .node
                    .filter(|it| it.ruled)
                    .map(|it| Box::new(whole(*it))),
            }),
        }
    }

    /// Returns true if the size of an object does not tell what checking it costs: there are rules or patterns.
    #[must_use]
    pub fn is_costly(&self) -> bool {
        self.root.ruled || self.has_patterns
    }

    /// Returns the paths of the members that the schema does not know, as [`Self::prune`] does.
    ///
    /// # Errors
    /// The text about metadata whose members have other types than those of ObjectMeta.
    pub fn unknown_fields(&self, object: &Value) -> Result<Vec<String>, String> {
        prune::unknown(&self.root, object)
    }

    /// Removes members that the schema does not know, and those of metadata that have the wrong type. Gives the paths
    /// of the unknown ones, sorted, such as `spec.list[0].bogus`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Writes defaults, and removes nulls that the schema does not allow.
    pub fn default(&self, object: &mut Value) {
        defaults::fill(&self.root, object, Nulls::Removed);
    }

    /// Writes defaults, also where the schema does not allow a null; a null without a default stays.
    pub fn default_applied(&self, object: &mut Value) {
        defaults::fill(&self.root, object, Nulls::Kept);
    }

    /// Removes nulls that the schema does not allow and has no default for.
    pub fn drop_nulls(&self, object: &mut Value) {
        defaults::drop_nulls(&self.root, object);
    }

    /// Returns the errors in an object's values, in kube-apiserver's order: by the schema, in embedded objects, in
    /// lists. Errors that an older object has as well, in values that have not changed, are ignored.
    #[must_use]
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.validate_beside(object, old, Vec::new())
    }

    /// Returns the errors in an object's values, with those of its Scale after those by the schema.
    fn validate_beside(
        &self,
        object: &Value,
        old: Option<&Value>,
        scale: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let mut path = Path::default();
        let mut walk = ObjectWalk::new(&mut path);
        let found = validate::validate(&self.root, object, old, &mut walk);
        let mut errors = walk.end(found).into_errors();
        errors.extend(scale);
        let mut embedded = SchemaErrors::default();
        self.check_embedded(object, &mut path, &mut embedded);
        errors.extend(embedded.into_errors());
        errors.extend(self.new_wrong_lists(object, old).into_errors());
        errors
    }

    /// Returns what is wrong with the lists of an object, unless the older object had wrong ones as well.
    fn new_wrong_lists(&self, object: &Value, old: Option<&Value>) -> SchemaErrors {
        let lists = self.wrong_lists(object);
        let were_right = || old.is_none_or(|old| self.wrong_lists(old).is_valid());
        if lists.is_valid() || were_right() {
            lists
        } else {
            SchemaErrors::default()
        }
    }

    fn wrong_lists(&self, object: &Value) -> SchemaErrors {
        let mut outcome = SchemaErrors::default();
        if object.is_object() {
            lists::validate(&self.root, object, &mut Path::default(), &mut outcome);
        }
        outcome
    }

    /// Returns the violations of the schema's CEL rules. Transition rules run where there is an older value; all others
    /// where a value has changed. Not for objects that [`Self::validate`] refuses: see [`Self::check`].
    #[must_use]
    pub fn validate_rules(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let (mut path, mut meter) = (Path::default(), Meter::new());
        // What ends the run is among the errors.
        let (outcome, _) = evaluate::evaluate(&self.root, object, old, &mut path, &mut meter);
        outcome.into_errors()
    }

    /// Returns all errors of an object: of its values, of the fields of its Scale, which are given, and, unless these
    /// make them pointless, of the validation rules.
    #[must_use]
    pub fn check(
        &self,
        object: &Value,
        old: Option<&Value>,
        scale: Vec<FieldError>,
        metadata: CheckMetadata,
    ) -> Vec<FieldError> {
        let errors = self.validate_beside(object, old, scale);
        self.with_rules(errors, object, old, metadata)
    }

    /// Returns all errors of an object whose status alone is written. Of the schema, only the part about the status is
    /// followed, so that texts name what is in it by the path from there. Follows `ValidateStatusUpdate`.
    #[must_use]
    pub fn check_status(
        &self,
        object: &Value,
        old: &Value,
        scale: Vec<FieldError>,
        metadata: CheckMetadata,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let (Some(node), Some(status)) =
            (self.root.properties.get("status"), object.get("status"))
        {
            let mut path = Path::below("status".to_owned());
            let mut walk = ObjectWalk::new(&mut path);
            let found = validate::validate(node, status, old.get("status"), &mut walk);
            errors = walk.end(found).into_errors();
        }
        errors.extend(scale);
        errors.extend(self.new_wrong_lists(object, Some(old)).into_errors());
        self.with_rules(errors, object, Some(old), metadata)
    }

    /// Adds the errors of the validation rules, or one that tells why they were not evaluated.
    fn with_rules(
        &self,
        mut errors: Vec<FieldError>,
        object: &Value,
        old: Option<&Value>,
        metadata: CheckMetadata,
    ) -> Vec<FieldError> {
        if !self.root.ruled {
            return errors;
        }
        if errors.iter().any(blocks_rules) || metadata(object).iter().any(blocks_rules) {
            let why = "null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::new(FieldErrorKind::Invalid, path::ROOT, why));
        } else {
            errors.extend(self.validate_rules(object, old));
        }
        errors
    }

    /// Checks the embedded objects in an object. The metadata of the object itself is checked as that of any resource.
    fn check_embedded(&self, object: &Value, path: &mut Path, outcome: &mut SchemaErrors) {
        let Value::Object(members) = object else {
            return;
        };
        for (name, value) in members {
            if let Some(node) = self.root.member(name) {
                let mark = path.member(name);
                embedded::validate(node, value, path, outcome);
                path.leave(mark);
            }
        }
    }
}

/// Returns true if rules cannot be evaluated beside this error, since they rely on types and sizes.
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

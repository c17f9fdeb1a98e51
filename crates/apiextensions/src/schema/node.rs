//! A node of a parsed schema, in the form in which objects are compared with it.
//!
//! A node has two halves. Its own fields are the structure: they decide what is kept, filled in and
//! walked into. [`Checks`] only says whether a value is right, and most nodes of real schemas have
//! few, so they are boxed: a thousand definitions with hundreds of nodes each should stay small.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::formats::Format;
use super::kind::JsonType;
use super::rule::Rule;

/// A schema of the object or of a part of it.
#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// The type, none where any is allowed.
    pub(super) kind: Option<JsonType>,
    /// True if the value may be an integer or a string, whatever `kind` says.
    pub(super) int_or_string: bool,
    /// True if the value may be null.
    pub(super) nullable: bool,
    /// True if members that the schema does not know are kept.
    pub(super) preserve_unknown: bool,
    /// True if the value is a whole Kubernetes object, with kind, apiVersion and metadata.
    pub(super) embedded: bool,
    /// True if a string has a format other than bytes, known or not: server-side apply takes any scalar for it.
    pub(super) has_format: bool,
    /// True if server-side apply treats the value as atomic.
    pub(super) atomic: bool,
    /// The value for a member that is missing.
    pub(super) default: Option<Value>,
    /// The members that have a schema of their own.
    pub(super) properties: BTreeMap<String, Self>,
    /// The schema of all other members.
    pub(super) additional: Option<Additional>,
    /// The schema of the items of a list.
    pub(super) items: Option<Box<Self>>,
    /// `x-kubernetes-list-type`: how the items of a list differ.
    pub(super) list: ListType,
    /// Further conditions on the value.
    pub(super) checks: Option<Box<Checks>>,
    /// The CEL rules of the value.
    pub(super) rules: Vec<Rule>,
    /// True if this schema or one below it has rules.
    pub(super) ruled: bool,
}

/// The schema of members that are not named.
#[derive(Debug)]
pub(super) enum Additional {
    /// Anything of one level: objects below lose their members, since nothing knows them.
    Any,
    /// No other members are allowed. They are kept and refused.
    Nothing,
    /// Other members are allowed, and have this schema.
    Schema(Box<SchemaNode>),
}

impl Additional {
    /// Returns the schema, if there is one.
    pub(super) fn schema(&self) -> Option<&SchemaNode> {
        match self {
            Self::Any | Self::Nothing => None,
            Self::Schema(node) => Some(node),
        }
    }
}

/// `x-kubernetes-list-type`: how the items of a list differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum ListType {
    /// `atomic`: items have no keys.
    #[default]
    Atomic,
    /// `set`: no two items are equal.
    Set,
    /// `map`: no two items have the same values of these members.
    Map(Vec<String>),
}

/// The values that are allowed, any if there are none. A number is compared with each value as what Go converts it to:
/// `1.5` as an integer is 1, and 65 as a text is `A`. Follows `Enum` of kube-openapi.
#[derive(Debug, Default)]
pub(super) struct AllowedValues {
    values: Vec<Value>,
    integers: HashSet<i64>,
    /// The bits of the floats.
    floats: HashSet<u64>,
    others: HashSet<Value>,
}

impl AllowedValues {
    /// Makes an enum of these values.
    pub(super) fn new(values: Vec<Value>) -> Self {
        let mut made = Self::default();
        for value in &values {
            match value.as_f64() {
                Some(float) => match value.as_i64() {
                    Some(integer) => drop(made.integers.insert(integer)),
                    None => drop(made.floats.insert(bits(float))),
                },
                None => drop(made.others.insert(value.clone())),
            }
        }
        Self { values, ..made }
    }

    /// Returns the values in the order in which they were given.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Says whether a value is allowed.
    #[allow(clippy::cast_possible_truncation)] // that is how Go converts it
    pub(super) fn has(&self, value: &Value) -> bool {
        if self.values.is_empty() {
            return true;
        }
        let Some(float) = value.as_f64() else {
            return self.others.contains(value);
        };
        if self.floats.contains(&bits(float)) {
            return true;
        }
        match value.as_i64() {
            Some(integer) => self.integers.contains(&integer) || self.has_letter(integer),
            None => self.integers.contains(&(float as i64)),
        }
    }

    /// Returns true if the letter of this number is allowed.
    fn has_letter(&self, number: i64) -> bool {
        let letter = u32::try_from(number).ok().and_then(char::from_u32);
        // Go has this letter for a number that has none.
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        !self.others.is_empty() && self.others.contains(&Value::from(letter.to_string()))
    }
}

fn bits(float: f64) -> u64 {
    // The sum makes one of both zeros.
    (float + 0.0).to_bits()
}

/// Conditions on a value beside its type.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The members that have to be there.
    pub(super) required: Vec<String>,
    /// The values that are allowed, any if empty.
    pub(super) allowed: AllowedValues,
    /// The bound from above, `maximum`.
    pub(super) maximum: Option<NumberBound>,
    /// The bound from below, `minimum`.
    pub(super) minimum: Option<NumberBound>,
    /// The divisor of a number.
    pub(super) multiple_of: Option<f64>,
    /// The bounds of characters, items and members.
    pub(super) sizes: Sizes,
    /// The pattern that a string has to match. It is compiled when a string is checked.
    pub(super) pattern: Option<Arc<str>>,
    /// The format of a string or a number.
    pub(super) format: Option<Format>,
    /// The name of a format that values of the type do not have. Only defaults are judged by it.
    pub(super) unknown_format: Option<Box<str>>,
    /// The name of a type that there is not. Only defaults are judged by it: the definition is refused.
    pub(super) unknown_type: Option<Box<str>>,
    /// The schemas of `anyOf`, of which one must hold if there are any.
    pub(super) any_of: Vec<SchemaNode>,
    /// The schemas of `allOf`, which must all hold.
    pub(super) all_of: Vec<SchemaNode>,
    /// Exactly one of these holds, if there are any.
    pub(super) one_of: Vec<SchemaNode>,
    /// The schema of `not`, which must not hold.
    pub(super) not: Option<Box<SchemaNode>>,
}

/// An end of a range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberBound {
    /// The end of the range.
    pub(super) at: f64,
    /// True if the bound itself is excluded.
    pub(super) exclusive: bool,
}

/// The bounds of the characters of strings, the items of lists and the members of objects.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// The most characters of a string.
    pub(super) length_max: Option<i64>,
    /// The fewest characters of a string.
    pub(super) length_min: Option<i64>,
    /// The most items of a list.
    pub(super) items_max: Option<i64>,
    /// The fewest items of a list.
    pub(super) items_min: Option<i64>,
    /// The most members of an object.
    pub(super) properties_max: Option<i64>,
    /// The fewest members of an object.
    pub(super) properties_min: Option<i64>,
}

impl SchemaNode {
    /// Returns true if this schema or one below it has rules.
    pub(super) fn has_rules(&self) -> bool {
        let additional = self.additional.as_ref().and_then(Additional::schema);
        let below = self.properties.values().chain(additional);
        !self.rules.is_empty() || below.chain(self.items.as_deref()).any(|it| it.ruled)
    }

    /// Returns the schema of a member: its own, or that of all others.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let own = self.properties.get(name);
        own.or_else(|| self.additional.as_ref().and_then(Additional::schema))
    }
}

//! The merge rules of custom types in server-side apply: `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` of
//! their schemas.

use std::fmt::Debug;

use serde_json::Value;

/// The merge rules of the values of one custom type, from its schema.
pub trait MergeSchema: Debug + Sync {
    /// Returns how the value at this path merges, or `None` where the schema has no rule. A step is the name of
    /// a member, or `None` for an item of a list.
    fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>>;

    /// Returns the types of the values of an object; `None` if they may be anything.
    fn values(&self) -> Option<&dyn ValueSchema> {
        None
    }
}

/// The types of the values of one custom type, as OpenAPI has them.
pub trait ValueSchema: Debug + Sync {
    /// Returns the type of the value itself.
    fn takes(&self) -> Takes;

    /// Returns true if the value is a whole Kubernetes object, with kind, apiVersion and metadata.
    fn is_whole_object(&self) -> bool;

    /// Returns true if members that this schema or one below it does not name may be anything.
    fn preserves_unknown(&self) -> bool;

    /// Returns the schema of a member.
    fn member(&self, name: &str) -> MemberSchema<'_>;

    /// Returns the schema of the items of a list, if there is one.
    fn items(&self) -> Option<&dyn ValueSchema>;
}

/// The values that a schema takes, whose null is one of each type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Anything.
    Any,
    /// A text, a number or a boolean.
    AnyScalar,
    /// A text.
    Text,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// A list.
    List,
    /// An object.
    Members,
}

/// The schema of a member.
#[derive(Clone, Copy, Debug)]
pub enum MemberSchema<'a> {
    /// A schema of its own, or that of all others.
    Known(&'a dyn ValueSchema),
    /// It may be anything.
    Any,
    /// There is no such member.
    Undeclared,
}

/// The schema of the items of a list.
pub trait ItemSchema: Debug + Sync {
    /// Returns the value of a member in items that lack it.
    fn default_of(&self, member: &str) -> Option<&Value>;
}

/// The way in which a value of a custom resource merges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Merging<'a> {
    /// As one whole: whoever sets a part of it owns all.
    Whole,
    /// Member by member, whose names are the type's, not the client's, if `named`.
    Members {
        /// True if clients may not add members that the schema does not name.
        named: bool,
    },
    /// Item by item, each its own key.
    Set,
    /// Item by item, which differ in the values of these members.
    Keyed(ListKeys<'a>),
}

/// The members that tell the items of a list apart.
#[derive(Clone, Copy, Debug)]
pub struct ListKeys<'a> {
    /// The names of the members that make up the key.
    pub names: &'a [String],
    /// The schema of the items, if there is one.
    pub items: Option<&'a dyn ItemSchema>,
}

impl<'a> ListKeys<'a> {
    /// Iterates over the names of the keys, each with its default if it has one.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Option<&'a Value>)> {
        self.names.iter().map(move |name| {
            let default = self.items.and_then(|items| items.default_of(name));
            (name.as_str(), default)
        })
    }
}

impl PartialEq for ListKeys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

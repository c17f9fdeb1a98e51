//! The attributes by which an object is selected: its names, its labels, and the fields that its type declares.
//!
//! They are read out of an object once, when it is decoded, from whichever encoding it is stored in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The values by which an object is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// The values of the type's fields.
    pub fields: FieldValues,
}

/// An object's labels, by key. There are few of them and many objects, so that a map would be mostly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

/// The fields that a type's field selectors may name, without `metadata.name` and `metadata.namespace`, which all types
/// have.
#[derive(Clone, Debug, Default)]
pub struct FieldSchema {
    paths: Arc<[FieldPath]>,
}

/// A selectable field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// The name in selectors; mostly the path of the field in JSON, joined by dots.
    pub name: Cow<'static, str>,
    /// The value for objects that do not have the field.
    pub default: &'static str,
    /// The paths of the value, if not its name: the first that has a value counts.
    pub from: &'static [&'static str],
    /// True if the cache keeps an index of the field, by which a list of the objects that have one value looks at no others.
    pub indexed: bool,
}

/// The values of the fields of a [`FieldSchema`], in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues {
    /// The schema, which all objects of a type share.
    paths: Arc<[FieldPath]>,
    values: Box<[Box<str>]>,
}

impl Attributes {
    /// Returns the value of a selectable field; `None` if the type does not have it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            _ => {
                let index = self.fields.paths.iter().position(|it| it.name == name)?;
                self.fields.values.get(index).map(|value| &**value)
            }
        }
    }
}

impl Labels {
    /// Returns the value of a label, by a linear search.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        // Most keys differ in length already, so looking at each costs less than searching.
        let found = self.0.iter().find(|(known, _)| **known == *key);
        found.map(|(_, value)| &**value)
    }

    /// Returns the value of a label, by a binary search: faster when many are looked up.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        found.ok().map(|at| &*self.0[at].1)
    }

    /// Returns how many labels there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all labels, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl From<BTreeMap<Box<str>, Box<str>>> for Labels {
    fn from(labels: BTreeMap<Box<str>, Box<str>>) -> Self {
        Self(labels.into_iter().collect())
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        let labels = pairs.map(|(key, value)| (key.into(), value.into()));
        labels.collect::<BTreeMap<_, _>>().into()
    }
}

impl FieldSchema {
    /// Creates a schema of these fields.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        Self {
            paths: paths.into_iter().collect(),
        }
    }

    /// Returns the names that selectors may use, without `metadata.name` and `metadata.namespace`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|path| &*path.name)
    }

    /// Returns the names of the fields that are indexed.
    pub fn indexed(&self) -> impl Iterator<Item = &str> {
        let indexed = self.paths.iter().filter(|path| path.indexed);
        indexed.map(|path| &*path.name)
    }

    /// Returns the values of an object; `member` returns the scalar at a dotted path of it.
    pub fn values(&self, member: impl Fn(&str) -> Option<Box<str>>) -> FieldValues {
        let value = |path: &FieldPath| {
            let found = if path.from.is_empty() {
                member(&path.name)
            } else {
                let mut from = path.from.iter();
                from.find_map(|from| member(from).filter(|value| !value.is_empty()))
            };
            found.unwrap_or_else(|| path.default.into())
        };
        FieldValues {
            paths: Arc::clone(&self.paths),
            values: self.paths.iter().map(value).collect(),
        }
    }
}

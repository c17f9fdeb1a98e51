//! The attributes by which an object is selected: its names, its labels, and the fields that its type declares.
//!
//! They are read out of the object once, when it comes in, from whichever form it is stored in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fields by which objects are selected.
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

/// The fields that a type's field selectors may name, `metadata.name` and `metadata.namespace`
/// aside, which all types have.
#[derive(Clone, Debug, Default)]
pub struct FieldSchema {
    paths: Arc<[FieldPath]>,
}

/// A selectable field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// Its name in selectors; mostly the names of the members that lead to it, joined by dots.
    pub name: Cow<'static, str>,
    /// Its value where the object does not have it.
    pub default: &'static str,
    /// Where its value is, if not under its name: the first of these paths that has one.
    pub from: &'static [&'static str],
}

/// The values of a [`FieldSchema`], in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues {
    /// The schema's own: all objects of a type share it.
    paths: Arc<[FieldPath]>,
    values: Box<[Box<str>]>,
}

impl Attributes {
    /// The value of a selectable field; `None` if the type does not have it.
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
    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        // Most keys differ in length already, so looking at each costs less than searching.
        let found = self.0.iter().find(|(known, _)| **known == *key);
        found.map(|(_, value)| &**value)
    }

    /// The same for whoever looks for many labels.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        found.ok().map(|at| &*self.0[at].1)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All labels, by key.
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
    /// A schema of these fields.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        Self {
            paths: paths.into_iter().collect(),
        }
    }

    /// The names that selectors may use, `metadata.name` and `metadata.namespace` aside.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|path| &*path.name)
    }

    /// The values of an object whose scalar at a dotted path `member` finds.
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

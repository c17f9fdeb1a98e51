//! The attributes by which an object is selected: its names, its labels, and the fields that its type declares.
//!
//! They are found in an object once, when it is decoded. Names and labels stay where they are, in its stored form, and
//! only their places are kept: there are many objects, and a text of its own takes more than the text itself.
//!
//! ```text
//!   stored form    ... metadata ... "web-1" ... "default" ... "app" "web" ...
//!   places                          name        namespace     label
//! ```
//!
//! A text that is not there letter by letter, such as one with escapes in JSON, is kept beside it.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::offset;

/// The values by which an object is selected.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// The object's stored form.
    stored: &'a [u8],
    places: &'a AttributeSpans,
}

/// An object's labels, by key.
#[derive(Clone, Copy)]
pub struct Labels<'a>(Attributes<'a>);

/// The places of an object's attributes in its stored form.
#[derive(Clone, Debug, Default)]
pub struct AttributeSpans {
    namespace: TextSpan,
    name: TextSpan,
    uid: TextSpan,
    /// Labels and copied values; none for objects that have neither.
    more: Option<Arc<More>>,
}

/// The place of a text: an offset in the stored form, or after its end in [`CopiedAttributes::apart`].
#[derive(Clone, Copy, Debug, Default)]
struct TextSpan {
    at: u32,
    bytes: u32,
}

#[derive(Clone, Debug, Default)]
struct More {
    /// Keys and values, in the order of the keys.
    labels: Box<[(TextSpan, TextSpan)]>,
    /// Values that are copies; none for objects of most types.
    copied: Option<Box<CopiedAttributes>>,
}

/// Attributes that are not in the stored form as they are.
#[derive(Clone, Debug, Default)]
struct CopiedAttributes {
    /// The values of the type's fields.
    fields: FieldValues,
    /// Texts of other attributes.
    apart: Box<[u8]>,
}

/// Finds out the places of texts in a stored form.
#[derive(Debug)]
pub struct PlacesBuilder<'a> {
    stored: &'a [u8],
    places: AttributeSpans,
    labels: Vec<(TextSpan, TextSpan)>,
    apart: Vec<u8>,
}

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
    /// True if the cache keeps an index of the field, by which a list of the objects that have one value looks at no
    /// others.
    pub indexed: bool,
}

/// The values of the fields of a [`FieldSchema`], in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues {
    /// The schema, which all objects of a type share.
    paths: Arc<[FieldPath]>,
    values: Box<[Box<str>]>,
}

/// No attributes.
static NOWHERE: AttributeSpans = AttributeSpans {
    namespace: TextSpan { at: 0, bytes: 0 },
    name: TextSpan { at: 0, bytes: 0 },
    uid: TextSpan { at: 0, bytes: 0 },
    more: None,
};

impl TextSpan {
    /// Returns the text of the place, which is empty if there is no such place.
    fn in_either<'a>(self, stored: &'a [u8], apart: &'a [u8]) -> &'a [u8] {
        let at = self.at as usize;
        let (texts, at) = match at.checked_sub(stored.len()) {
            Some(at) => (apart, at),
            None => (stored, at),
        };
        texts.get(at..at + self.bytes as usize).unwrap_or_default()
    }
}

impl AttributeSpans {
    fn copied(&self) -> Option<&CopiedAttributes> {
        self.more.as_ref()?.copied.as_deref()
    }
}

impl Default for Attributes<'_> {
    /// Returns those of an object that has none.
    fn default() -> Self {
        Self::new(&[], &NOWHERE)
    }
}

impl<'a> Attributes<'a> {
    /// Returns the attributes at these places of a stored form.
    #[doc(hidden)]
    #[must_use]
    pub fn new(stored: &'a [u8], places: &'a AttributeSpans) -> Self {
        Self { stored, places }
    }

    /// Returns `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(self) -> &'a str {
        self.text(self.places.namespace)
    }

    /// Returns `metadata.name`.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.text(self.places.name)
    }

    /// Returns `metadata.uid`.
    #[must_use]
    pub fn uid(self) -> &'a str {
        self.text(self.places.uid)
    }

    /// Returns `metadata.labels`.
    #[must_use]
    pub fn labels(self) -> Labels<'a> {
        Labels(self)
    }

    /// Returns the value of a selectable field; `None` if the type does not have it.
    #[must_use]
    pub fn field(self, name: &str) -> Option<&'a str> {
        match name {
            "metadata.name" => Some(self.name()),
            "metadata.namespace" => Some(self.namespace()),
            _ => {
                let fields = &self.places.copied()?.fields;
                let index = fields.paths.iter().position(|it| it.name == name)?;
                fields.values.get(index).map(|value| &**value)
            }
        }
    }

    fn bytes(self, place: TextSpan) -> &'a [u8] {
        let apart = self.places.copied().map_or(&[][..], |it| &it.apart);
        place.in_either(self.stored, apart)
    }

    fn text(self, place: TextSpan) -> &'a str {
        // The builder has looked that it is text.
        std::str::from_utf8(self.bytes(place)).unwrap_or_default()
    }
}

impl PartialEq for Attributes<'_> {
    fn eq(&self, other: &Self) -> bool {
        let names = |it: &Self| [it.namespace(), it.name(), it.uid()].map(str::to_owned);
        let fields = |it: &Self| it.places.copied().map(|copied| copied.fields.clone());
        names(self) == names(other)
            && self.labels().iter().eq(other.labels().iter())
            && fields(self).unwrap_or_default() == fields(other).unwrap_or_default()
    }
}

impl Debug for Attributes<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let labels: Vec<_> = self.labels().iter().collect();
        formatter
            .debug_struct("Attributes")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("uid", &self.uid())
            .field("labels", &labels)
            .finish_non_exhaustive()
    }
}

impl<'a> Labels<'a> {
    /// Returns the value of a label, by a linear search.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a str> {
        // Most keys differ in length already, so looking at each costs less than searching.
        let is_it = |(known, _): &&(TextSpan, TextSpan)| {
            known.bytes as usize == key.len() && self.0.bytes(*known) == key.as_bytes()
        };
        let found = self.places().iter().find(is_it);
        found.map(|(_, value)| self.0.text(*value))
    }

    /// Returns the value of a label, by a binary search: faster when many are looked up.
    #[must_use]
    pub fn find(self, key: &str) -> Option<&'a str> {
        let places = self.places();
        let found = places.binary_search_by(|(known, _)| self.0.bytes(*known).cmp(key.as_bytes()));
        found.ok().map(|at| self.0.text(places[at].1))
    }

    /// Returns how many labels there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.places().len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.places().is_empty()
    }

    /// Returns all labels, in the order of their keys.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let places = self.places().iter();
        places.map(move |(key, value)| (self.0.text(*key), self.0.text(*value)))
    }

    fn places(self) -> &'a [(TextSpan, TextSpan)] {
        self.0.places.more.as_ref().map_or(&[], |more| &more.labels)
    }
}

impl Debug for Labels<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> PlacesBuilder<'a> {
    /// Begins with none, in a stored form.
    #[must_use]
    pub fn new(stored: &'a [u8]) -> Self {
        Self {
            stored,
            places: AttributeSpans::default(),
            labels: Vec::new(),
            apart: Vec::new(),
        }
    }

    /// Sets `metadata.namespace`.
    pub fn namespace(&mut self, text: &[u8]) {
        self.places.namespace = self.place(text);
    }

    /// Sets `metadata.name`.
    pub fn name(&mut self, text: &[u8]) {
        self.places.name = self.place(text);
    }

    /// Sets `metadata.uid`.
    pub fn uid(&mut self, text: &[u8]) {
        self.places.uid = self.place(text);
    }

    /// Adds a label, or gives one that was added before another value.
    pub fn label(&mut self, key: &[u8], value: &[u8]) {
        let places = (self.place(key), self.place(value));
        self.labels.push(places);
    }

    /// Returns the places, with the values of the type's fields.
    #[must_use]
    pub fn finish(self, fields: FieldValues) -> AttributeSpans {
        let Self {
            stored,
            mut places,
            mut labels,
            apart,
        } = self;
        if labels.is_empty() && apart.is_empty() && fields.values.is_empty() {
            return places;
        }
        // Of labels with the same key the last one counts.
        let key = |it: &(TextSpan, TextSpan)| it.0.in_either(stored, &apart);
        labels.reverse();
        labels.sort_by(|left, right| key(left).cmp(key(right)));
        labels.dedup_by(|left, right| key(left) == key(right));
        let is_copied = !apart.is_empty() || !fields.values.is_empty();
        let apart = apart.into();
        let copied = is_copied.then(|| Box::new(CopiedAttributes { fields, apart }));
        let labels = labels.into();
        places.more = Some(Arc::new(More { labels, copied }));
        places
    }

    /// Returns the place of a text, which is copied unless it is a part of the stored form.
    fn place(&mut self, text: &[u8]) -> TextSpan {
        let text = String::from_utf8_lossy(text);
        let bytes = offset(text.len());
        if text.is_empty() {
            return TextSpan::default();
        }
        let at = (text.as_ptr() as usize).wrapping_sub(self.stored.as_ptr() as usize);
        let is_within = self.stored.get(at..).and_then(|it| it.get(..text.len()));
        if is_within.is_some_and(|it| it == text.as_bytes()) {
            return TextSpan {
                at: offset(at),
                bytes,
            };
        }
        let at = offset(self.stored.len() + self.apart.len());
        self.apart.extend_from_slice(text.as_bytes());
        TextSpan { at, bytes }
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

/// Labels without an object.
///
/// ```
/// use ringwatch::meta::{LabelSelector, OwnedLabels};
///
/// let labels: OwnedLabels = [("app", "web")].into_iter().collect();
/// let selector = LabelSelector::parse("app=web")?;
/// assert!(selector.matches(labels.as_labels()));
/// # Ok::<(), ringwatch::meta::ParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OwnedLabels(AttributeSpans);

impl OwnedLabels {
    /// Returns the labels as those of an object.
    #[must_use]
    pub fn as_labels(&self) -> Labels<'_> {
        Attributes::new(&[], &self.0).labels()
    }
}

impl<'t> FromIterator<(&'t str, &'t str)> for OwnedLabels {
    fn from_iter<I: IntoIterator<Item = (&'t str, &'t str)>>(pairs: I) -> Self {
        let mut places = PlacesBuilder::new(&[]);
        for (key, value) in pairs {
            places.label(key.as_bytes(), value.as_bytes());
        }
        Self(places.finish(FieldValues::default()))
    }
}

/// Attributes without an object, for tests of what looks at them.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct OwnedAttributes(AttributeSpans);

#[cfg(test)]
impl OwnedAttributes {
    pub(crate) fn new<'t>(
        namespace: &str,
        name: &str,
        labels: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Self {
        let mut places = PlacesBuilder::new(&[]);
        places.namespace(namespace.as_bytes());
        places.name(name.as_bytes());
        for (key, value) in labels {
            places.label(key.as_bytes(), value.as_bytes());
        }
        Self(places.finish(FieldValues::default()))
    }

    pub(crate) fn get(&self) -> Attributes<'_> {
        Attributes::new(&[], &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &[u8] = b"name-1 ns uid-1 app web";

    #[test]
    fn texts_of_the_stored_form_are_not_copied() {
        let mut builder = PlacesBuilder::new(STORED);
        builder.name(&STORED[..6]);
        builder.namespace(&STORED[7..9]);
        builder.uid(&STORED[10..15]);
        builder.label(&STORED[16..19], &STORED[20..]);
        let places = builder.finish(FieldValues::default());
        assert!(places.copied().is_none());
        let found = Attributes::new(STORED, &places);
        assert_eq!(
            (found.name(), found.namespace(), found.uid()),
            ("name-1", "ns", "uid-1")
        );
        assert_eq!(found.name().as_ptr(), STORED.as_ptr());
        assert_eq!(found.labels().get("app"), Some("web"));
        assert_eq!(found.labels().find("app"), Some("web"));
    }

    #[test]
    fn other_texts_are_kept_apart_and_the_last_of_equal_labels_counts() {
        let mut builder = PlacesBuilder::new(STORED);
        builder.name(b"elsewhere");
        builder.uid(b"\xff");
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3"), ("", "")] {
            builder.label(key.as_bytes(), value.as_bytes());
        }
        let places = builder.finish(FieldValues::default());
        let found = Attributes::new(STORED, &places);
        assert_eq!((found.name(), found.namespace()), ("elsewhere", ""));
        assert_eq!(found.uid(), "\u{fffd}");
        let labels: Vec<_> = found.labels().iter().collect();
        assert_eq!(labels, [("", ""), ("a", "2"), ("b", "3")]);
        assert_eq!(
            (found.labels().len(), found.labels().is_empty()),
            (3, false)
        );
        assert_eq!(found.labels().get("c"), None);
    }

    /// There are millions of them.
    #[test]
    fn places_are_small() {
        assert_eq!(size_of::<AttributeSpans>(), 32);
        assert!(
            PlacesBuilder::new(STORED)
                .finish(FieldValues::default())
                .more
                .is_none()
        );
    }
}

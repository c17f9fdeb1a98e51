//! Field selectors: a conjunction of equalities and inequalities of fields.
//!
//! The hard part is the escapes: in values `\`, `,` and `=` stand after a `\`. The fields of a type are not known here;
//! a field that an object lacks counts as empty.

use std::collections::BTreeMap;
use std::fmt;

use super::ParseError;
use super::demand::{Demand, FEW};
use crate::meta::Attributes;

/// A field selector: all its terms must hold. The default selects everything.
///
/// ```
/// use ringwatch::meta::{FieldSelector, ParseError};
///
/// let selector = FieldSelector::parse(r"metadata.name=a,spec.nodeName!=node\,1")?;
/// assert_eq!(selector.requires_exact("metadata.name"), Some("a"));
/// assert_eq!(selector.requires_exact("spec.nodeName"), None);
/// assert_eq!(selector.to_string(), r"metadata.name=a,spec.nodeName!=node\,1");
/// # Ok::<(), ParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The terms, in the order of their canonical texts.
    terms: Vec<Term>,
    /// The combined requirements on each field.
    demands: Vec<(String, Demand)>,
}

/// A requirement on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// The name of the field, such as `metadata.name`.
    name: String,
    /// True if the value is required rather than excluded.
    equal: bool,
    /// The value, unescaped.
    value: String,
}

impl FieldSelector {
    /// Parses a selector. The empty text selects everything.
    ///
    /// # Errors
    /// [`ParseError`] with kube-apiserver's text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((name, equal, value)) = split_term(part) else {
                return Err(ParseError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            let term = Term {
                name: name.to_owned(),
                equal,
                value: unescape(value)?,
            };
            if !(term.name.is_empty() && term.value.is_empty()) {
                terms.push(term);
            }
        }
        Ok(Self::from_terms(terms))
    }

    /// Returns this selector with the further requirement that a field have a value.
    #[must_use]
    pub fn and_exact(self, name: &str, value: &str) -> Self {
        let mut terms = self.terms;
        terms.push(Term {
            name: name.to_owned(),
            equal: true,
            value: value.to_owned(),
        });
        Self::from_terms(terms)
    }

    /// Returns this selector with every field's name translated.
    ///
    /// # Errors
    /// The first name that has no translation.
    pub fn renamed<'a>(
        mut self,
        translate: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, String> {
        for term in &mut self.terms {
            match translate(&term.name) {
                Some(name) => name.clone_into(&mut term.name),
                None => return Err(std::mem::take(&mut term.name)),
            }
        }
        Ok(Self::from_terms(self.terms))
    }

    /// Returns this selector without the terms of all fields but these.
    #[must_use]
    pub fn of_fields(&self, names: &[&str]) -> Self {
        let terms = self.terms.iter();
        let terms = terms.filter(|term| names.contains(&&*term.name));
        Self::from_terms(terms.cloned().collect())
    }

    fn from_terms(mut terms: Vec<Term>) -> Self {
        terms.sort_by_cached_key(Term::to_string);
        let mut demands: BTreeMap<&str, Demand> = BTreeMap::new();
        for term in &terms {
            let demand = demands.entry(&term.name).or_default();
            let value = std::slice::from_ref(&term.value);
            if term.equal {
                demand.be_among(value);
            } else {
                demand.be_none_of(value);
            }
        }
        demands.values_mut().for_each(Demand::sort);
        let demands = demands.into_iter();
        let demands = demands.map(|(name, demand)| (name.to_owned(), demand));
        Self {
            demands: demands.collect(),
            terms,
        }
    }

    /// Returns true if it selects an object with these attributes.
    #[must_use]
    pub fn matches(&self, attributes: Attributes<'_>) -> bool {
        if self.terms.len() <= FEW {
            return self.terms.iter().all(|term| {
                let found = attributes.field(&term.name).unwrap_or_default();
                (found == term.value) == term.equal
            });
        }
        self.demands.iter().all(|(name, demand)| {
            let found = attributes.field(name).unwrap_or_default();
            demand.is_met(Some(found))
        })
    }

    /// Returns true if it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the value that it requires of a field; `None` if there is not exactly one.
    #[must_use]
    pub fn requires_exact(&self, name: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && term.name == name)
            .map(|term| term.value.as_str())
    }

    /// Returns its requirements: the field, true if the value must be equal, and the value.
    pub fn terms(&self) -> impl Iterator<Item = (&str, bool, &str)> {
        let terms = self.terms.iter();
        terms.map(|term| (term.name.as_str(), term.equal, term.value.as_str()))
    }

    /// Returns the names of all fields that it compares.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.terms.iter().map(|term| term.name.as_str()).collect()
    }
}

/// Splits a selector at the commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, char) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if char == '\\' {
            escaped = true;
        } else if char == ',' {
            terms.push(&text[start..index]);
            start = index + 1;
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits a term into the field, true if the value must be equal, and the escaped value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let operators = [("!=", false), ("==", true), ("=", true)];
    term.char_indices().find_map(|(index, _)| {
        let (name, rest) = term.split_at(index);
        operators.iter().find_map(|(operator, equal)| {
            let value = rest.strip_prefix(operator)?;
            Some((name, *equal, value))
        })
    })
}

fn unescape(text: &str) -> Result<String, ParseError> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let sequence: String = other.into_iter().collect();
                    return Err(ParseError(format!(
                        "invalid field selector: invalid escape sequence: \\{sequence}"
                    )));
                }
            },
            // kube-apiserver writes the character's number.
            ',' | '=' => {
                let number = u32::from(char);
                return Err(ParseError(format!(
                    "invalid field selector: unescaped character in value: {number}"
                )));
            }
            _ => value.push(char),
        }
    }
    Ok(value)
}

/// Writes a text from which the same selector is parsed.
impl fmt::Display for FieldSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            term.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        formatter.write_str(if self.equal { "=" } else { "!=" })?;
        for char in self.value.chars() {
            if matches!(char, '\\' | ',' | '=') {
                formatter.write_str("\\")?;
            }
            write!(formatter, "{char}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::meta::OwnedAttributes;

    fn attributes(name: &str) -> OwnedAttributes {
        OwnedAttributes::new("ns", name, [])
    }

    #[test]
    fn names_are_translated_or_refused() {
        let translate = |name: &str| (name == "a").then_some("b");
        let selector = FieldSelector::parse("a=1").expect("a selector");
        assert_eq!(
            selector.renamed(translate),
            Ok(FieldSelector::parse("b=1").expect("a selector"))
        );
        let selector = FieldSelector::parse("a=1,c!=2").expect("a selector");
        assert_eq!(selector.renamed(translate), Err("c".to_owned()));
    }

    #[test]
    fn terms_are_equalities_and_inequalities() {
        for (text, selects) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==a,metadata.namespace=ns", true),
            ("metadata.name!=a", false),
            ("metadata.name!=b", true),
            ("metadata.name=", false),
            ("spec.unknown=", true),
            ("spec.unknown!=", false),
            (",,metadata.name=a,", true),
        ] {
            let selector = FieldSelector::parse(text).expect(text);
            assert_eq!(selector.matches(attributes("a").get()), selects, "{text}");
        }
    }

    #[test]
    fn errors_are_in_kubernetes_words() {
        for (text, message) in [
            ("foo", "invalid selector: 'foo'; can't understand 'foo'"),
            (
                "a=b,foo",
                "invalid selector: 'a=b,foo'; can't understand 'foo'",
            ),
            (
                "a=b=c",
                "invalid field selector: unescaped character in value: 61",
            ),
            (
                "a=\\b",
                "invalid field selector: invalid escape sequence: \\b",
            ),
            (
                "a=b\\",
                "invalid field selector: invalid escape sequence: \\",
            ),
        ] {
            assert_eq!(
                FieldSelector::parse(text),
                Err(ParseError(message.to_owned()))
            );
        }
    }

    #[test]
    fn values_are_unescaped_for_comparison_and_escaped_in_text() {
        let selector = FieldSelector::parse(r"b==x\,y\=z\\,a!=1").expect("a selector");
        assert_eq!(selector.requires_exact("b"), Some(r"x,y=z\"));
        assert_eq!(selector.requires_exact("a"), None);
        assert_eq!(selector.names(), ["a", "b"]);
        assert_eq!(selector.to_string(), r"a!=1,b=x\,y\=z\\");
        let further = selector.and_exact("aa", "v");
        assert_eq!(further.to_string(), r"a!=1,aa=v,b=x\,y\=z\\");
    }

    proptest! {
        #[test]
        fn a_selector_is_read_back_from_its_text(
            terms in prop::collection::vec(("[a-c.]{1,4}", any::<bool>(), ".{0,6}"), 0..4),
        ) {
            let terms = terms
                .into_iter()
                .map(|(name, equal, value)| Term { name, equal, value })
                .collect();
            let selector = FieldSelector::from_terms(terms);
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }

        #[test]
        fn matching_agrees_with_a_plain_model(
            terms in prop::collection::vec((any::<bool>(), any::<bool>(), "[ab]"), 0..4),
            name in "[ab]",
        ) {
            let expected = terms.iter().all(|(known, equal, value)| {
                let found = if *known { name.as_str() } else { "" };
                (found == value) == *equal
            });
            let terms = terms.into_iter().map(|(known, equal, value)| Term {
                name: if known { "metadata.name" } else { "spec.none" }.to_owned(),
                equal,
                value,
            });
            let selector = FieldSelector::from_terms(terms.collect());
            prop_assert_eq!(selector.matches(attributes(&name).get()), expected);
        }
    }
}

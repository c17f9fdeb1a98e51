//! Label and field selectors with kube-apiserver's grammars.

use super::{Attributes, Labels};

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {}
/// A field selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {}
/// Not a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

impl LabelSelector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Err(ParseError(text.to_owned()))
    }
    /// Whether it selects these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        let _ = labels;
        true
    }
    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        true
    }
    /// The one value that it demands of a label, if it does.
    pub fn requires_exact(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }
}
impl FieldSelector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Err(ParseError(text.to_owned()))
    }
    /// Whether it selects an object with these attributes.
    pub fn matches(&self, attributes: &Attributes) -> bool {
        let _ = attributes;
        true
    }
    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        true
    }
    /// The one value that it demands of a field, if it does.
    pub fn requires_exact(&self, name: &str) -> Option<&str> {
        let _ = name;
        None
    }
    /// The names of all fields it looks at.
    pub fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

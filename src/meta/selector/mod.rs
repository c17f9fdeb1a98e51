//! Label and field selectors with Kubernetes' grammars.
//!
//! The two share no more than their purpose: labels have set operators and restricted names, fields have only equality,
//! and escapes. The texts of errors reach clients and are kube-apiserver's.

mod demand;
mod field;
mod label;
mod label_parser;
mod label_syntax;

pub use field::FieldSelector;
pub use label::{LabelSelector, Operator, Requirement};
pub use label_syntax::{label_key_errors, label_value_errors};

/// An error about a text that is not a selector: it names what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

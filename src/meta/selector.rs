//! Label, field and shard selectors with Kubernetes' grammars.
//!
//! They share no more than their purpose: labels have set operators and restricted names, fields have only equality and
//! escapes, shards are written in CEL. The texts of errors reach clients and are kube-apiserver's.

mod demand;
mod field;
mod label;
mod label_parser;
mod label_syntax;
mod shard;
mod shard_expression;
mod shard_parser;
mod shard_tokens;

pub use field::FieldSelector;
pub use label::{LabelSelector, Operator, Requirement};
pub use label_syntax::{label_key_errors, label_value_errors};
pub use shard::{ShardField, ShardRange, ShardSelector, shard_hash};

/// An error about a text that is not a selector: it names what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

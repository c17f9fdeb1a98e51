//! Custom resources: what a CustomResourceDefinition means, its schemas, defaults, pruning, rules and conversion.
//!
//! The task that follows definitions and serves what they define does not belong here, but to `ringwatch-controllers`;
//! the validation of definitions as objects is in `ringwatch-resources`.
//!
//! ```text
//!   CustomResourceDefinition --> Definition --next_status--> names, conditions --> its status
//!                                    |
//!                                    +--> a Resource for each served version, with its strategy
//! ```

pub mod approval;
mod completion;
pub mod conversion;
mod definition;
mod deprecation;
mod finalizer_warnings;
mod name_conflicts;
mod scale_validation;
pub mod schema;
mod strategy;

pub use completion::SchemaCompletion;
pub use definition::{CLEAN_UP, Definition, Unusable};
pub use name_conflicts::next_status;

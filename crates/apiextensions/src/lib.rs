//! Custom resources: types that clients define while the server runs.
//!
//! ```text
//!   CustomResourceDefinition --> Definition --accept--> names, conditions --> its status
//!                                    |
//!                                    +--> a Resource for each served version, with its strategy
//! ```
//!
//! Here is what a definition means. Who watches definitions and serves what they define is the
//! server's business.

mod completion;
pub mod conversion;
mod definition;
mod deprecation;
mod names;
pub mod schema;
mod strategy;

pub use completion::SchemaCompletion;
pub use definition::{CLEAN_UP, Definition, Unusable};
pub use names::accept;

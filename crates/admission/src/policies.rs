//! ValidatingAdmissionPolicies and MutatingAdmissionPolicies: rules in CEL that writes must follow and changes that are
//! made to them, as stored policies and their bindings say.
//!
//! ```text
//!   policy: which writes, and what must hold --+
//!                                              +--> params, variables, validations --> deny, warn
//!                                              |                        mutations --> the next object
//!   binding: where it holds, with which params +
//! ```

mod binding;
mod evaluate;
mod member;
mod mutating;
mod mutation;
mod params;
mod plugin;
mod policy;

pub use mutating::MutatingPolicies;
pub use plugin::{Policies, PolicyObject};

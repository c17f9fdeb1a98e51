//! ValidatingAdmissionPolicies: rules in CEL that writes must follow, as stored policies and their bindings say.
//!
//! ```text
//!   policy: which writes, and what must hold --+
//!                                              +--> params, variables, validations --> deny, warn
//!   binding: where it holds, with which params +
//! ```

mod binding;
mod evaluate;
mod params;
mod plugin;
mod policy;

pub use plugin::{Policies, PolicyObject};

//! Expressions in CEL that clients have written: rules of schemas, conditions of webhooks, policies.
//!
//! They are compiled once and run on values of any size, so both are bounded: the text and the depth of an
//! expression, and the steps that it takes on the values that are there ([`cost`]).

mod compile;
pub(in crate::registry) mod cost;
mod execute;
mod functions;
mod values;

pub(in crate::registry) use compile::{CompileError, compile};
pub(in crate::registry) use execute::{Failure, execute, on_large_stack};
pub(in crate::registry) use functions::FUNCTIONS;
pub(in crate::registry) use values::plain;

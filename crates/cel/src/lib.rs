//! Expressions in CEL and patterns that clients have written: rules of schemas, conditions of webhooks, policies.
//!
//! Where an expression stands in an object, and what follows from its value, does not belong here, but to
//! `ringwatch-apiextensions`, `ringwatch-admission` and the other users of this crate.
//!
//! ```text
//!   text --compile--> Program --execute (Scope, Meter)--> value
//! ```
//!
//! Expressions are compiled once and run on values of any size, so both steps are bounded: the length and depth of an
//! expression, and its cost while it runs (`meter`).

mod arithmetic;
mod authorizer;
mod calls;
pub mod check;
mod compile;
mod conversions;
mod equality;
pub mod execute;
mod expectation;
mod expression;
#[cfg(test)]
mod fact_tests;
mod failure;
mod formats;
mod formatting;
mod functions;
mod interpreter;
mod lists;
mod macros;
mod merged_lists;
mod meter;
mod names;
mod operators;
mod optional;
mod overloads;
mod part_error;
mod parts;
pub mod pattern;
mod patterns;
mod quantities;
mod quoted;
mod scope;
mod sets;
mod signatures;
mod source_errors;
mod spelling;
mod strings;
#[cfg(test)]
mod tests;
mod times;
mod type_values;
mod types;
mod urls;
mod values;
mod versions;
mod wrong_data;

pub use authorizer::{AuthorizerCheck, CheckAttributes};
pub use calls::convert;
pub use check::{Names, check, check_program};
pub use compile::{CompileError, Program, compile, compile_binding};
pub use execute::{execute, on_large_stack};
pub use expression::{Expression, Variables};
pub use failure::Failure;
pub use merged_lists::{keyed_list, list_items, set_list, text_list};
pub use meter::Meter;
pub use optional::{none as none_value, some as some_value};
pub use scope::{Members, Scope};
pub use types::{DeclaredType, Object, SizedType, Type};
pub use values::{plain, to_json};
pub use wrong_data::{no_member, untyped_float, wrong_data};

/// The reserved words of the language, which cannot be names.
pub const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The namespaces of functions: in `math.greatest`, the namespace and the name are one name.
const NAMESPACES: [&str; 11] = [
    "base64",
    "cel",
    "cidr",
    "format",
    "ip",
    "jsonpatch",
    "lists",
    "math",
    "optional",
    "sets",
    "strings",
];

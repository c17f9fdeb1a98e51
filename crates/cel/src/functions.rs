//! The functions that expressions may call.

use std::sync::LazyLock;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, Value as CelValue};

/// The functions that expressions may call. The interpreter has no types as values; their names stand for them.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut functions = Context::default().with_all();
    functions.add_function("type", |value: CelValue| type_name(&value).to_owned());
    functions
});

/// The types that expressions may name.
pub(super) const TYPES: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
];

fn type_name(value: &CelValue) -> &'static str {
    match value {
        CelValue::Bool(_) => "bool",
        CelValue::Bytes(_) => "bytes",
        CelValue::Float(_) => "double",
        CelValue::Int(_) => "int",
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Null => "null_type",
        CelValue::String(_) => "string",
        CelValue::UInt(_) => "uint",
        CelValue::Duration(_) => "google.protobuf.Duration",
        CelValue::Timestamp(_) => "google.protobuf.Timestamp",
        CelValue::Function(..) | CelValue::Opaque(_) => "",
    }
}

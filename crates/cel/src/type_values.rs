//! Types as the values of expressions, such as `int` and `type(1)`.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::{Expr, SelectExpr};
use kube_cel::cel::objects::Opaque;

use super::types::Type;

/// A type as a value.
#[derive(Debug, PartialEq, Eq)]
struct TypeValue(String);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

/// Returns the type that a name means.
pub(super) fn type_of(name: &str) -> Option<Type> {
    Some(match name {
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "optional_type" => Type::optional(Type::Dyn),
        "type" => Type::meta(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "net.IP" | "net.CIDR" => Type::Opaque(Arc::from(name)),
        "bool" | "bytes" | "double" | "int" | "null_type" | "string" | "uint" => {
            return Type::named(name);
        }
        _ => return None,
    })
}

/// Returns the type that a name means, as a value.
pub(super) fn named(name: &str) -> Option<CelValue> {
    let name = name.strip_prefix('.').unwrap_or(name);
    type_of(name).is_some().then(|| made(name))
}

/// Returns the type of a value.
pub(super) fn of(value: &CelValue) -> CelValue {
    made(name_of(value))
}

/// Returns the name of a type that is a value.
pub(super) fn name_in(value: &CelValue) -> Option<&str> {
    match value {
        CelValue::Opaque(opaque) => opaque.downcast_ref::<TypeValue>().map(|it| it.0.as_str()),
        _ => None,
    }
}

fn made(name: &str) -> CelValue {
    CelValue::Opaque(Arc::new(TypeValue(name.to_owned())))
}

/// Returns the name of a value's type.
pub(super) fn name_of(value: &CelValue) -> &str {
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
        CelValue::Opaque(opaque) => opaque.runtime_type_name(),
        CelValue::Function(..) => "",
    }
}

/// Returns true if the name of a type has points and this behind the last of them.
pub(super) fn ends_in_type(name: &str) -> bool {
    matches!(name, "Duration" | "Timestamp" | "IP" | "CIDR")
}

/// Returns the first part and the whole of a name with points.
pub(super) fn qualified(select: &SelectExpr) -> Option<(&str, String)> {
    if select.test {
        return None;
    }
    match &select.operand.expr {
        Expr::Ident(first) => {
            let first = first.strip_prefix('.').unwrap_or(first);
            Some((first, format!("{first}.{}", select.field)))
        }
        Expr::Select(inner) => {
            let (first, name) = qualified(inner)?;
            Some((first, format!("{name}.{}", select.field)))
        }
        _ => None,
    }
}

//! Finds out if a function has an overload for the values that it is called with. Checked expressions can lack one only
//! for values of type `dyn`.

use kube_cel::cel::Value as CelValue;

use super::failure::Failure;
use super::merged_lists::list_items;
use super::signatures::FUNCTIONS;
use super::types::Type;
use super::{optional, type_values};

/// The functions whose failures do not tell which function it was.
const UNNAMED: [&str; 6] = [
    "contains",
    "endsWith",
    "find",
    "findAll",
    "matches",
    "startsWith",
];

/// The functions that cel-go looks for by a trait of their receiver's type, and then as a method of texts and times.
const OF_TRAITS: [&str; 2] = ["size", "sort"];

/// Returns the failure of a call if no overload is for these values, the receiver first; `None` for what is no function
/// of the table.
pub(super) fn none_for(name: &str, is_member: bool, values: &[&CelValue]) -> Option<Failure> {
    let signatures = FUNCTIONS.get(name)?;
    let mut called = signatures
        .iter()
        .filter(|it| it.member == is_member && it.takes.len() == values.len());
    let has_one = called.any(|it| it.takes.iter().zip(values).all(|(of, it)| fits(of, it)));
    if has_one {
        return None;
    }
    if UNNAMED.contains(&name) {
        return Some(Failure::NoOverload);
    }
    if OF_TRAITS.contains(&name) {
        if name == "sort" && matches!(values, [CelValue::List(_)]) {
            return None;
        }
        let is_receiver = matches!(
            values.first()?,
            CelValue::String(_) | CelValue::Duration(_) | CelValue::Timestamp(_)
        );
        return Some(if is_receiver {
            Failure::NoOverload
        } else {
            Failure::NoOverloadOf(name.to_owned().into())
        });
    }
    Some(none(name, values.iter().copied()))
}

/// Returns the failure that names a function with the types of the values that it was called with.
pub(super) fn none<'v>(name: &str, values: impl Iterator<Item = &'v CelValue>) -> Failure {
    let types: Vec<&str> = values.map(type_values::name_of).collect();
    Failure::NoOverloadOf(format!("{name}({})", types.join(", ")).into())
}

/// Returns true if a value may be of a type. Of a list or a map one part is looked at, as in cel-go.
fn fits(of: &Type, value: &CelValue) -> bool {
    match (of, value) {
        (Type::Dyn | Type::Variable(_), _)
        | (Type::Null, CelValue::Null)
        | (Type::Bool, CelValue::Bool(_))
        | (Type::Int, CelValue::Int(_))
        | (Type::Uint, CelValue::UInt(_))
        | (Type::Double, CelValue::Float(_))
        | (Type::String, CelValue::String(_))
        | (Type::Bytes, CelValue::Bytes(_))
        | (Type::Duration, CelValue::Duration(_))
        | (Type::Timestamp, CelValue::Timestamp(_))
        | (Type::Map(..), CelValue::Map(_)) => true,
        (Type::List(of), list) => match list_items(list) {
            // A list of lists may be one of anything.
            Some(items) => {
                matches!(**of, Type::List(_)) || items.first().is_none_or(|it| fits(of, it))
            }
            None => false,
        },
        (Type::Optional(of), CelValue::Opaque(_)) => match optional::of_value(value) {
            Ok(inside) => inside.is_none_or(|it| fits(of, it)),
            Err(_) => false,
        },
        (Type::Meta(_), value) => type_values::name_in(value).is_some(),
        (Type::Opaque(name), CelValue::Opaque(opaque)) => opaque.runtime_type_name() == &**name,
        _ => false,
    }
}

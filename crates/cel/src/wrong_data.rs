//! Data that expressions see without a type: data of another type than its schema has, each use of which fails, members
//! that are null, which only count, and floats without a schema, which can be compared alone.

use std::borrow::Cow;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Opaque;

use super::failure::{Failure, no_such_key};

/// The reason why data has no value.
#[derive(Debug, PartialEq, Eq)]
struct WrongData(Cow<'static, str>);

impl Opaque for WrongData {
    fn runtime_type_name(&self) -> &'static str {
        "error"
    }
}

/// A member that is not there, of this name.
#[derive(Debug, PartialEq, Eq)]
struct NoMember(String);

impl Opaque for NoMember {
    fn runtime_type_name(&self) -> &'static str {
        "error"
    }
}

/// The bits of a float, one of which stands for both zeros.
#[derive(Debug, PartialEq, Eq)]
struct UntypedFloat(u64);

impl Opaque for UntypedFloat {
    fn runtime_type_name(&self) -> &'static str {
        "unknown"
    }
}

/// Returns data each use of which fails for this reason. It may be counted, and be where it is not looked at.
pub fn wrong_data(why: impl Into<Cow<'static, str>>) -> CelValue {
    CelValue::Opaque(Arc::new(WrongData(why.into())))
}

/// Returns a member that counts for the size of its object and otherwise is not there.
pub fn no_member(name: &str) -> CelValue {
    CelValue::Opaque(Arc::new(NoMember(name.to_owned())))
}

/// Returns true for a member that is not there.
pub(super) fn is_no_member(value: &CelValue) -> bool {
    matches!(value, CelValue::Opaque(it) if it.downcast_ref::<NoMember>().is_some())
}

/// Returns a float that equals no integer.
pub fn untyped_float(number: f64) -> CelValue {
    CelValue::Opaque(Arc::new(UntypedFloat((number + 0.0).to_bits())))
}

/// Returns the failure of each use of a value, if it is wrong data.
pub(super) fn failure_of(value: &CelValue) -> Option<Failure> {
    match value {
        CelValue::Opaque(opaque) => {
            if let Some(NoMember(name)) = opaque.downcast_ref() {
                return Some(no_such_key(name));
            }
            let wrong = opaque.downcast_ref::<WrongData>()?;
            Some(Failure::Other(wrong.0.clone()))
        }
        _ => None,
    }
}

/// Returns the failure of the first item that is wrong data.
pub(super) fn failure_in(items: &[CelValue]) -> Option<Failure> {
    items.iter().find_map(failure_of)
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::objects::{Key, Map};

    use super::*;
    use crate::{Meter, Scope, compile, execute};

    #[test]
    fn wrong_data_fails_where_it_is_used_and_floats_without_a_type_equal_no_integer() {
        let list = CelValue::List(Arc::new(vec![wrong_data("is wrong"), CelValue::Int(1)]));
        let members = [("wrong", wrong_data("is wrong")), ("list", list)];
        let members = members.map(|(name, value)| (Key::from(name), value));
        let map = Arc::new(members.into_iter().collect());
        let mut scope = Scope::default();
        scope.add("self", CelValue::Map(Map { map }));
        scope.add("half", untyped_float(0.5));
        scope.add("five", untyped_float(5.0));
        for (source, expected) in [
            ("self.wrong", Err("is wrong")),
            ("has(self.wrong)", Err("is wrong")),
            ("self.wrong == 1", Err("is wrong")),
            ("1 == self.wrong", Err("is wrong")),
            ("self.list[0]", Err("is wrong")),
            ("self.list == [0, 1]", Err("is wrong")),
            ("self.list != [0, 1]", Ok(true)),
            ("[0, 1] == self.list", Ok(false)),
            ("2 in self.list", Err("is wrong")),
            ("1 in self.list", Ok(true)),
            ("sets.contains(self.list, [2])", Err("is wrong")),
            ("sets.equivalent([1], self.list)", Ok(false)),
            ("sets.intersects(self.list, [1])", Ok(true)),
            ("self.list.indexOf(1) == 1", Ok(true)),
            ("self.list.distinct().size() == 2", Ok(true)),
            ("self.list.exists(x, x == 1)", Ok(true)),
            ("self.list.all(x, x == 1)", Err("is wrong")),
            ("self.size() == 2 && self.list.size() == 2", Ok(true)),
            ("self.wrong == 1 || true", Ok(true)),
            ("self.?wrong.hasValue()", Err("is wrong")),
            ("optional.of(self).?wrong.hasValue()", Err("is wrong")),
            ("half == half && half != five", Ok(true)),
            ("five == 5", Ok(false)),
            ("5 == five", Ok(false)),
        ] {
            let program = compile(source).expect("an expression");
            let found = execute(&program, &scope, &mut Meter::new());
            let found = found.map_err(|failure| failure.to_string());
            let expected = expected.map(CelValue::Bool).map_err(str::to_owned);
            assert_eq!(found, expected, "{source}");
        }
    }
}

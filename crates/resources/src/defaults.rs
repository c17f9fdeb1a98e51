//! Sets defaults of absent fields by tables of rules, each a path and a value.
//!
//! A rule sets a value only if the field is absent. Before defaults, the store removes every field that is zero and not
//! a pointer in Go (`codec::canonicalize`), because Go treats it as absent. Zero values behind pointers are kept, so
//! that validation can refuse them.
//!
//! kube-apiserver's answers come out of Go types, which omit most empty members and write a few of them.
//! [`remove_empty`] removes empty members; rules of the kind [`DefaultRule::Zero`] add those that Go writes.

#[cfg(test)]
mod tests;

use ringwatch::codec::RequiredValue;
use ringwatch_apimachinery::path::{get, get_mut, set, text};
use ringwatch_apimachinery::quantity::Amount;
use serde_json::{Map, Value};

/// A default, or a condition or path under which rules apply.
#[derive(Clone, Copy, Debug)]
pub(super) enum DefaultRule {
    /// Writes a value at a dotted path that has none, with the objects that lead there.
    Set(&'static str, Literal),
    /// Writes an empty value that Kubernetes' types encode nevertheless. It comes after all else, so that the field
    /// manager of the write does not own it.
    Zero(&'static str, Literal),
    /// Applies rules to the value at a path, if there is one. A step that ends with `[]` leads to every item of a list.
    In(&'static str, &'static [Self]),
    /// Applies rules if the text at a path is one of these.
    When(&'static str, &'static [&'static str], &'static [Self]),
    /// Applies rules if a path has a value.
    With(&'static str, &'static [Self]),
    /// Rounds the quantities in the map at a path to thousandths, away from zero.
    Quantities(&'static str),
    /// Runs a function for defaults that the other rules cannot express. The paths are those of the fields that it
    /// fills in.
    Run(
        #[cfg_attr(
            not(test),
            expect(dead_code, reason = "the test of all defaults asks for them")
        )]
        &'static [&'static str],
        fn(&mut Value),
    ),
    /// Runs a function that gives the path a value if it has none.
    Fill(&'static str, fn(&mut Value)),
}

/// A value in a table of defaults.
#[derive(Clone, Copy, Debug)]
pub(super) enum Literal {
    /// The JSON value null.
    Null,
    True,
    False,
    Int(i64),
    Text(&'static str),
    /// An object without members.
    Empty,
    /// A list of one string.
    One(&'static str),
}

/// The names of members beside `driver` that hold an object whose meaning the server does not know.
const DRIVERS_OWN: [&str; 2] = ["data", "parameters"];

/// Applies the rules that give values, in their order.
pub(super) fn apply(rules: &[DefaultRule], object: &mut Value) {
    run(rules, object, Pass::Values);
}

/// Applies the rules that write empty values.
pub(super) fn apply_zeros(rules: &[DefaultRule], object: &mut Value) {
    run(rules, object, Pass::Zeros);
}

/// The pass over a table, which decides the rules that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Values,
    Zeros,
}

fn run(rules: &[DefaultRule], object: &mut Value, pass: Pass) {
    for rule in rules {
        match *rule {
            DefaultRule::Set(path, literal) if pass == Pass::Values => fill(object, path, literal),
            DefaultRule::Zero(path, literal) if pass == Pass::Zeros => fill(object, path, literal),
            DefaultRule::Run(_, run) | DefaultRule::Fill(_, run) if pass == Pass::Values => {
                run(object)
            }
            DefaultRule::Quantities(path) if pass == Pass::Values => round(object, path),
            DefaultRule::Set(..)
            | DefaultRule::Zero(..)
            | DefaultRule::Run(..)
            | DefaultRule::Fill(..)
            | DefaultRule::Quantities(_) => {}
            DefaultRule::In(path, rules) => visit(object, path, rules, pass),
            DefaultRule::When(path, texts, rules) => {
                if texts.contains(&text(object, path)) {
                    run(rules, object, pass);
                }
            }
            DefaultRule::With(path, rules) => {
                if !is_absent(object, path) {
                    run(rules, object, pass);
                }
            }
        }
    }
}

/// Returns the values that objects have which were given these defaults. What a function may give or not
/// ([`DefaultRule::Run`]) is left out, and so are zeros, which the wire often cannot tell from no value.
pub(super) fn wanted(rules: &[DefaultRule]) -> Vec<RequiredValue> {
    let inner = |rules| Some(wanted(rules)).filter(|it| !it.is_empty());
    let of_rule = |rule: &DefaultRule| match *rule {
        DefaultRule::Set(_, literal) if literal.is_zero() => None,
        DefaultRule::Set(path, _) | DefaultRule::Fill(path, _) => Some(RequiredValue::Value(path)),
        DefaultRule::In(path, rules) => Some(RequiredValue::Within(path, inner(rules)?)),
        DefaultRule::When(path, texts, rules) => {
            Some(RequiredValue::IfText(path, texts, inner(rules)?))
        }
        DefaultRule::With(path, rules) => Some(RequiredValue::IfValue(path, inner(rules)?)),
        DefaultRule::Zero(..) | DefaultRule::Run(..) | DefaultRule::Quantities(_) => None,
    };
    rules.iter().filter_map(of_rule).collect()
}

fn fill(object: &mut Value, path: &str, literal: Literal) {
    if is_absent(object, path) {
        set(object, path, literal.value());
    }
}

/// True if a path has no value.
pub(crate) fn is_absent(object: &Value, path: &str) -> bool {
    get(object, path).is_none_or(Value::is_null)
}

/// Rounds the quantities of a map to thousandths. Only those with a suffix `n` or `u` or a negative exponent can be
/// finer and are parsed.
fn round(object: &mut Value, path: &str) {
    let amounts = get_mut(object, path).and_then(Value::as_object_mut);
    for value in amounts.into_iter().flat_map(|it| it.values_mut()) {
        let text = value.as_str().unwrap_or_default();
        let small = text.ends_with(['n', 'u']) || text.contains("e-");
        if let Some(amount) = small.then(|| text.parse::<Amount>().ok()).flatten() {
            *value = amount.in_thousandths().to_string().into();
        }
    }
}

/// Applies rules to every object that a path, which may have `[]`, leads to.
fn visit(object: &mut Value, path: &str, rules: &[DefaultRule], pass: Pass) {
    let (step, rest) = path
        .split_once('.')
        .map_or((path, None), |(step, rest)| (step, Some(rest)));
    let arrive = |found: &mut Value| match rest {
        Some(rest) => visit(found, rest, rules, pass),
        None if found.is_object() => run(rules, found, pass),
        None => {}
    };
    if let Some(list) = step.strip_suffix("[]") {
        let elements = object.get_mut(list).and_then(Value::as_array_mut);
        elements.into_iter().flatten().for_each(arrive);
    } else if let Some(found) = object.get_mut(step) {
        arrive(found);
    }
}

/// Removes members that are null or empty lists, at any depth. Empty maps have gone before: what is an empty object
/// here is a structure, which may mean something, as `emptyDir` does.
///
/// Objects that drivers of devices get and tell are their own, and keep all that is in them. The entries of field
/// managers, often the larger part of an object, have no such members.
pub(super) fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let has_driver = members.contains_key("driver");
            members.retain(|name, member| {
                if has_driver && DRIVERS_OWN.contains(&name.as_str()) {
                    return !member.is_null();
                }
                if name != "managedFields" {
                    remove_empty(member);
                }
                match member {
                    Value::Null => false,
                    Value::Array(elements) => !elements.is_empty(),
                    _ => true,
                }
            });
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

impl Literal {
    /// Returns true for null, false, 0 and the empty text.
    pub(super) fn is_zero(self) -> bool {
        matches!(
            self,
            Self::Null | Self::False | Self::Int(0) | Self::Text("")
        )
    }

    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::True => Value::Bool(true),
            Self::False => Value::Bool(false),
            Self::Int(number) => number.into(),
            Self::Text(text) => text.into(),
            Self::Empty => Value::Object(Map::new()),
            Self::One(text) => Value::Array(vec![text.into()]),
        }
    }
}

//! Walks through the tree of an expression and charges each step.
//!
//! The parser and the functions are the `cel` crate's. Its interpreter counts no cost while it runs and knows no
//! messages, so the cost of an expression could only be estimated beforehand; this one counts it.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapEntryExpr, MapExpr, SelectExpr,
    StructExpr,
};
use kube_cel::cel::objects::{Key, Map};

use super::failure::{Failure, ValueResult};
use super::meter::Meter;
use super::optional;
use super::scope::Scope;
use super::{calls, equality, macros, operators, overloads, type_values, wrong_data};

mod computed_members;
mod loops;

/// Costs of constructing a list, a map and a message.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const MESSAGE_COST: u64 = 40;

/// The evaluation of one expression.
pub(super) struct Interpreter<'r> {
    scope: &'r Scope,
    meter: &'r mut Meter,
    /// The variables of the enclosing comprehensions. An accumulator may be an error, which a later item can override.
    locals: Vec<(&'r str, ValueResult)>,
    /// The number of computed members that the expression may use: those before itself.
    computed: usize,
    /// The number of computed members whose evaluation is in progress, each for the one before.
    nested: usize,
}

impl<'r> Interpreter<'r> {
    pub(super) fn new(scope: &'r Scope, meter: &'r mut Meter) -> Self {
        Self {
            scope,
            meter,
            locals: Vec::new(),
            computed: scope.computed_count(),
            nested: 0,
        }
    }

    pub(super) fn value(&mut self, expression: &'r IdedExpr) -> ValueResult {
        let value = self.any_value(expression)?;
        wrong_data::failure_of(&value).map_or(Ok(value), Err)
    }

    /// Returns the value of an expression, which may be wrong data.
    fn any_value(&mut self, expression: &'r IdedExpr) -> ValueResult {
        match &expression.expr {
            Expr::Literal(literal) => self.constant(literal),
            Expr::Ident(name) => self.named(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(message) => self.message(message),
            Expr::Comprehension(loops) => self.loops(loops),
            Expr::Unspecified => Err(Failure::NoOverload),
        }
    }

    /// Returns a constant, whose copy is charged.
    fn constant(&mut self, literal: &LiteralValue) -> ValueResult {
        self.meter.charge_bytes(match literal {
            LiteralValue::String(it) => it.inner().len(),
            LiteralValue::Bytes(it) => it.inner().len(),
            _ => 0,
        })?;
        Ok(constant(literal))
    }

    fn named(&mut self, name: &str) -> ValueResult {
        self.meter.charge_bytes(name.len())?;
        if let Some((_, value)) = self.local(name) {
            let value = value.clone();
            self.meter.charge(1)?;
            charge_failure(self.meter, &value)?;
            return value;
        }
        let known = self.scope.value(name);
        // The name of a type costs nothing.
        if known.is_none()
            && let Some(of) = type_values::named(name)
        {
            return Ok(of);
        }
        self.meter.charge(1)?;
        let missing = || Failure::Other(format!("no such attribute(s): {name}").into());
        known.ok_or_else(missing)
    }

    fn local(&self, name: &str) -> Option<&(&'r str, ValueResult)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.locals.iter().rev().find(|(local, _)| *local == name)
    }

    fn select(&mut self, select: &'r SelectExpr) -> ValueResult {
        self.meter.charge_bytes(select.field.len())?;
        if let Expr::Ident(name) = &select.operand.expr
            && self.local(name).is_none()
        {
            if self.scope.is_computed(name) {
                return self.computed(&select.field, select.test);
            }
            if let Some(value) = self.scope.qualified(name, &select.field) {
                self.meter.charge(1)?;
                return Ok(value);
            }
        }
        if let Some(of) = self.type_named(select) {
            return Ok(of);
        }
        let operand = self.value(&select.operand)?;
        if select.test {
            return operators::has(&operand, &select.field).map(CelValue::Bool);
        }
        self.meter.charge(1)?;
        operators::member(&operand, &select.field)
    }

    /// Returns the type that a name with points means.
    fn type_named(&self, select: &SelectExpr) -> Option<CelValue> {
        if !type_values::ends_in_type(&select.field) {
            return None;
        }
        let (first, name) = type_values::qualified(select)?;
        if self.local(first).is_some() || self.scope.has(first) {
            return None;
        }
        type_values::named(&name)
    }

    fn call(&mut self, call: &'r CallExpr) -> ValueResult {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::CONDITIONAL, [condition, yes, no]) => {
                let branch = if self.truth(condition)? { yes } else { no };
                self.value(branch)
            }
            (op::LOGICAL_OR, [left, right]) => self.either(left, right, true),
            (op::LOGICAL_AND, [left, right]) => self.either(left, right, false),
            (op::NOT_STRICTLY_FALSE, [it]) => {
                self.meter.charge(1)?;
                match self.value(it) {
                    Err(error) if error.is_final() => Err(error),
                    Ok(CelValue::Bool(false)) => Ok(CelValue::Bool(false)),
                    _ => Ok(CelValue::Bool(true)),
                }
            }
            ("optMap", [variable, inner]) => self.map_optional(call, variable, inner, true),
            ("optFlatMap", [variable, inner]) => self.map_optional(call, variable, inner, false),
            ("or" | "orValue", [other]) => self.or_else(call, other),
            (op::ADD, [left, right]) => self.add(left, right),
            (macros::INSERT, [map, more @ ..]) => self.insert(map, more),
            _ => self.plain_call(call),
        }
    }

    fn truth(&mut self, expression: &'r IdedExpr) -> Result<bool, Failure> {
        match self.value(expression)? {
            CelValue::Bool(flag) => Ok(flag),
            _ => Err(Failure::NoOverload),
        }
    }

    /// Evaluates `||` (decided by true) or `&&` (by false). A deciding side overrides an error on the other side.
    fn either(&mut self, left: &'r IdedExpr, right: &'r IdedExpr, decisive: bool) -> ValueResult {
        let left = self.truth(left);
        match left {
            Err(error) if error.is_final() => return Err(error),
            Ok(flag) if flag == decisive => return Ok(CelValue::Bool(flag)),
            _ => {}
        }
        match (self.truth(right), left) {
            (Err(error), _) if error.is_final() => Err(error),
            (Ok(flag), _) if flag == decisive => Ok(CelValue::Bool(flag)),
            (_, Err(error)) => Err(error),
            (right, Ok(_)) => right.map(CelValue::Bool),
        }
    }

    /// Returns the accumulator of a comprehension, taken out of its variable so that it grows in place.
    fn gathered(&mut self, variable: &'r IdedExpr) -> Option<ValueResult> {
        let Expr::Ident(name) = &variable.expr else {
            return None;
        };
        let mut locals = self.locals.iter_mut().rev();
        let local = locals.find(|(local, _)| name.starts_with('@') && local == name);
        local.map(|(_, value)| std::mem::replace(value, Ok(CelValue::Null)))
    }

    /// Evaluates `+`. The list in an accumulator is extended in place.
    fn add(&mut self, left: &'r IdedExpr, right: &'r IdedExpr) -> ValueResult {
        let gathered = self.gathered(left);
        if let Some(Ok(CelValue::List(mut items))) = gathered {
            self.meter.charge(2)?;
            let CelValue::List(more) = self.value(right)? else {
                return Err(Failure::NoOverload);
            };
            if (items.len() + more.len()) as u64 > super::meter::PARTS_MAX {
                return Err(Failure::TooLarge);
            }
            Arc::make_mut(&mut items).extend(more.iter().cloned());
            return Ok(CelValue::List(items));
        }
        let left = match gathered {
            Some(value) => {
                self.meter.charge(1)?;
                value?
            }
            None => self.value(left)?,
        };
        let right = self.value(right)?;
        operators::sum(left, right, self.meter)
    }

    /// Adds an entry, or the entries of a map, to the map in an accumulator.
    fn insert(&mut self, map: &'r IdedExpr, more: &'r [IdedExpr]) -> ValueResult {
        self.meter.charge(2)?;
        let Some(CelValue::Map(mut map)) = self.gathered(map).transpose()? else {
            return Err(Failure::NoOverload);
        };
        let mut values = Vec::with_capacity(more.len());
        for part in more {
            values.push(self.value(part)?);
        }
        let members = Arc::make_mut(&mut map.map);
        match values.as_slice() {
            [key, value] => {
                self.meter.charge_value(value)?;
                operators::insert(members, equality::key(key)?, value.clone())?;
            }
            [all @ CelValue::Map(more)] => {
                self.meter.charge_value(all)?;
                for (key, value) in more.map.iter() {
                    operators::insert(members, key.clone(), value.clone())?;
                }
            }
            other => {
                let first =
                    CelValue::Map(Map::from(std::collections::HashMap::<Key, CelValue>::new()));
                return Err(overloads::none(
                    macros::INSERT,
                    [&first].into_iter().chain(other),
                ));
            }
        }
        Ok(CelValue::Map(map))
    }

    fn plain_call(&mut self, call: &'r CallExpr) -> ValueResult {
        let (name, target) = match call.target.as_deref() {
            None => (call.func_name.clone(), None),
            Some(target) => match self.namespace(target) {
                Some(namespace) => (format!("{namespace}.{}", call.func_name), None),
                None => (call.func_name.clone(), Some(self.value(target)?)),
            },
        };
        let mut values = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            values.push(self.value(argument)?);
        }
        if let Some(outcome) = operators::operate(&name, &values, self.meter) {
            return outcome;
        }
        calls::call(self.scope, self.meter, &name, target, values)
    }

    /// Returns the first half of a function's name, such as `math` in `math.greatest`.
    fn namespace(&self, target: &'r IdedExpr) -> Option<&'r str> {
        match &target.expr {
            Expr::Ident(name)
                if super::NAMESPACES.contains(&name.as_str()) && self.local(name).is_none() =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    /// Evaluates `optional.optMap(variable, expression)`, which maps the content of the optional.
    fn map_optional(
        &mut self,
        call: &'r CallExpr,
        variable: &'r IdedExpr,
        inner: &'r IdedExpr,
        wraps: bool,
    ) -> ValueResult {
        self.meter.charge(1)?;
        let (Some(target), Expr::Ident(name)) = (call.target.as_deref(), &variable.expr) else {
            return Err(Failure::NoOverload);
        };
        let target = self.value(target)?;
        let Some(found) = optional::of_value(&target)? else {
            return Ok(optional::none());
        };
        self.locals.push((name, Ok(found.clone())));
        let made = self.value(inner);
        self.locals.pop();
        if wraps {
            let made = optional::some(made?);
            // It can hold another one: what is too deep is found here.
            self.meter.charge_value(&made)?;
            Ok(made)
        } else {
            made
        }
    }

    /// Evaluates `or` and `orValue`. The argument is evaluated only if the optional is empty.
    fn or_else(&mut self, call: &'r CallExpr, other: &'r IdedExpr) -> ValueResult {
        self.meter.charge(1)?;
        let target = call.target.as_deref().ok_or(Failure::NoOverload)?;
        let target = self.value(target)?;
        match optional::of_value(&target) {
            Ok(None) => self.value(other),
            Ok(Some(found)) if call.func_name == "orValue" => Ok(found.clone()),
            // What is no optional is itself.
            _ => Ok(target),
        }
    }

    fn list(&mut self, list: &'r ListExpr) -> ValueResult {
        self.meter.charge(LIST_COST)?;
        let mut items = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            let value = self.value(element)?;
            if list.optional_indices.binary_search(&index).is_ok() {
                items.extend(optional::of_value(&value)?.cloned());
            } else {
                items.push(value);
            }
        }
        self.made(CelValue::List(items.into()))
    }

    fn map(&mut self, map: &'r MapExpr) -> ValueResult {
        self.meter.charge(MAP_COST)?;
        let mut members = std::collections::HashMap::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(MapEntryExpr {
                key,
                value,
                optional,
            }) = &entry.expr
            else {
                return Err(Failure::NoOverload);
            };
            let key = equality::key(&self.value(key)?)?;
            match self.entry(value, *optional)? {
                Some(value) => members.insert(key, value),
                None => members.remove(&key),
            };
        }
        self.made_map(members)
    }

    /// Evaluates the construction of a message, which is a map of its fields.
    fn message(&mut self, message: &'r StructExpr) -> ValueResult {
        self.meter.charge(MESSAGE_COST)?;
        let mut members = std::collections::HashMap::with_capacity(message.entries.len());
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return Err(Failure::NoOverload);
            };
            if let Some(value) = self.entry(&field.value, field.optional)? {
                members.insert(Key::from(field.field.as_str()), value);
            }
        }
        self.made_map(members)
    }

    fn entry(
        &mut self,
        value: &'r IdedExpr,
        is_optional: bool,
    ) -> Result<Option<CelValue>, Failure> {
        let value = self.value(value)?;
        if is_optional {
            return Ok(optional::of_value(&value)?.cloned());
        }
        Ok(Some(value))
    }

    fn made_map(&mut self, members: std::collections::HashMap<Key, CelValue>) -> ValueResult {
        self.made(CelValue::Map(Map {
            map: Arc::new(members),
        }))
    }

    /// Charges the parts of a constructed value, and returns it.
    fn made(&mut self, value: CelValue) -> ValueResult {
        self.meter.charge_value(&value)?;
        Ok(value)
    }
}

/// Charges the copy of a failure, whose words may be as long as a text of the data.
fn charge_failure(meter: &mut Meter, outcome: &ValueResult) -> Result<(), Failure> {
    match outcome {
        Err(Failure::Other(why) | Failure::NoOverloadOf(why)) => meter.charge_bytes(why.len()),
        _ => Ok(()),
    }
}

fn constant(literal: &LiteralValue) -> CelValue {
    match literal {
        LiteralValue::Boolean(it) => CelValue::Bool(*it.inner()),
        LiteralValue::Int(it) => CelValue::Int(*it.inner()),
        LiteralValue::UInt(it) => CelValue::UInt(*it.inner()),
        LiteralValue::Double(it) => CelValue::Float(*it.inner()),
        LiteralValue::String(it) => CelValue::String(it.inner().to_owned().into()),
        LiteralValue::Bytes(it) => CelValue::Bytes(it.inner().to_vec().into()),
        LiteralValue::Null => CelValue::Null,
    }
}

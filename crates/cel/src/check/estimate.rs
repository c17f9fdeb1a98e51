//! Estimates the maximum cost of an expression from the maximum sizes of its values.
//!
//! The sizes of declared values are those that their schema allows; the sizes of others follow from what they are made
//! of. Follows `checker.Cost` of cel-go, whose estimates decide in kube-apiserver which definitions may be written.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
    SelectExpr,
};
use part_estimate::{Entries, PartEstimate};

use super::call::FunctionCall;
use super::calls;
use super::checker::Checker;
use super::field_path::{FieldPath, PathStep};
use super::ranges::Range;
use super::{Names, part_estimate};
use crate::type_values;
use crate::types::{DeclaredType, Type};

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const MESSAGE_COST: u64 = 40;

/// The variable whose declaration describes all values of an expression.
const WHOLE: &str = "self";

/// Returns the range of the cost of running an expression.
pub(super) fn cost(expression: &IdedExpr, checker: &Checker<'_>, names: &Names) -> Range {
    let mut estimator = Estimator {
        checker,
        names,
        root: names.variables.get(WHOLE),
        locals: Vec::new(),
    };
    estimator.part(expression).cost
}

struct Estimator<'a> {
    checker: &'a Checker<'a>,
    names: &'a Names,
    root: Option<&'a DeclaredType>,
    locals: Vec<(&'a str, Local<'a>)>,
}

/// A variable of a macro.
#[derive(Clone)]
struct Local<'a> {
    path: FieldPath<'a>,
    size: Option<Range>,
    entries: Option<Entries>,
}

impl<'a> Estimator<'a> {
    fn part(&mut self, it: &'a IdedExpr) -> PartEstimate<'a> {
        match &it.expr {
            Expr::Literal(literal) => {
                let mut known = self.plain(it, Range::NOTHING);
                known.computed = Some(length(literal));
                if let LiteralValue::Int(whole) = literal {
                    known.whole = Some(*whole.inner());
                }
                known
            }
            Expr::Ident(name) => self.named(it, name),
            Expr::Select(select) => self.select(it, select),
            Expr::Call(call) => self.call(it, call),
            Expr::List(list) => self.list(it, list),
            Expr::Map(map) => self.map(it, map),
            Expr::Struct(message) => {
                let mut cost = Range::exactly(MESSAGE_COST);
                for entry in &message.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        cost = cost.plus(self.part(&field.value).cost);
                    }
                }
                self.plain(it, cost)
            }
            Expr::Comprehension(loops) => self.loops(it, loops),
            Expr::Unspecified => self.plain(it, Range::NOTHING),
        }
    }

    /// Returns the estimate of a part of which only the cost and the type are known.
    fn plain(&self, it: &IdedExpr, cost: Range) -> PartEstimate<'a> {
        let of = self.checker.types.get(&std::ptr::from_ref(it));
        let of = of.map_or(Type::Dyn, |of| self.checker.bindings.resolve_or_dyn(of));
        PartEstimate::new(cost, of, FieldPath::nowhere(self.root))
    }

    fn named(&self, it: &'a IdedExpr, name: &str) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::ONE);
        match self.locals.iter().rev().find(|(local, _)| *local == name) {
            Some((_, local)) => {
                known.path = local.path.clone();
                known.bound = local.size;
                known.entries = local.entries;
            }
            // The name of a type is as large as the whole, as in kube-apiserver.
            None => {
                let declared = self.names.variables.get(name).or(self.root);
                known.path = FieldPath::nowhere(declared).then(PathStep::Variable);
            }
        }
        known
    }

    fn select(&mut self, it: &'a IdedExpr, select: &'a SelectExpr) -> PartEstimate<'a> {
        // The checker puts the name of a type with points in it in the place of the selections.
        if let Some((first, name)) = type_values::qualified(select)
            && !self.locals.iter().any(|(local, _)| *local == first)
            && type_values::type_of(&name).is_some()
        {
            return self.named(it, &name);
        }
        let operand = self.part(&select.operand);
        if select.test {
            return self.plain(it, operand.cost);
        }
        let counts = matches!(operand.of, Type::Map(..) | Type::Object(_));
        let own = if counts { Range::ONE } else { Range::NOTHING };
        let mut known = self.plain(it, operand.cost.plus(own));
        known.path = operand.path.then(PathStep::Field(&select.field));
        known
    }

    fn call(&mut self, it: &'a IdedExpr, call: &'a CallExpr) -> PartEstimate<'a> {
        if let ("optMap" | "optFlatMap", Some(target), [variable, inner]) = (
            call.func_name.as_str(),
            call.target.as_deref(),
            call.args.as_slice(),
        ) {
            return self.map_optional(it, target, variable, inner);
        }
        let arguments: Vec<PartEstimate<'a>> =
            call.args.iter().map(|it| self.settled(it)).collect();
        let mut known = self.plain(it, Range::NOTHING);
        let Some(resolved) = self.checker.calls.get(&std::ptr::from_ref(it)) else {
            // An optional selection, which is no function.
            known.cost = calls::sum(&arguments).plus(Range::ONE);
            return known;
        };
        if let ("dyn", [argument]) = (resolved.name.as_str(), arguments.as_slice()) {
            known.cost = argument.cost.plus(Range::ONE);
            known.computed = argument.known_size();
            known.entries = argument.entries;
            return known;
        }
        let target = call.target.as_deref().filter(|_| resolved.is_member);
        let target = target.map(|target| self.settled(target));
        let mut cost: Option<Range> = None;
        let mut size: Option<Range> = None;
        for overload in &resolved.overloads {
            let call = FunctionCall {
                name: &resolved.name,
                takes: &overload.takes,
                target: target.as_ref(),
                arguments: &arguments,
            };
            let estimate = calls::estimate(&call);
            cost = Some(cost.map_or(estimate.cost, |it| it.or(estimate.cost)));
            size = match (size, estimate.size) {
                (Some(a), Some(b)) => Some(a.or(b)),
                (a, b) => a.or(b),
            };
            if estimate.entries.is_some() {
                known.entries = estimate.entries;
            }
            if let (op::INDEX, [Type::List(_) | Type::Map(..), _], [all, _]) =
                (call.name, call.takes, call.arguments)
            {
                size = all.entries.map(|it| it.value);
                known.path = all.path.then(PathStep::Inside);
            }
            size = size.or_else(|| known.known_size());
        }
        known.cost = cost.unwrap_or(Range::NOTHING);
        if let Some(target) = target {
            known.cost = known.cost.plus(target.cost);
        }
        known.computed = size;
        known
    }

    /// Returns the estimate of a part with the size that it has before any other part is looked at.
    fn settled(&mut self, it: &'a IdedExpr) -> PartEstimate<'a> {
        let mut known = self.part(it);
        known.computed = known.known_size();
        known
    }

    /// Estimates what the macros stand for: `target.hasValue() ? optional.of(inner) : optional.none()`, with the
    /// variable bound to `target.value()` by a loop through an empty list.
    fn map_optional(
        &mut self,
        it: &'a IdedExpr,
        target: &'a IdedExpr,
        variable: &'a IdedExpr,
        inner: &'a IdedExpr,
    ) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::ONE);
        let target = self.part(target);
        let Expr::Ident(name) = &variable.expr else {
            return known;
        };
        let value = match &target.of {
            Type::Optional(value) => value.is_scalar(),
            _ => false,
        };
        let local = Local {
            path: FieldPath::nowhere(self.root),
            size: value.then_some(Range::ONE),
            entries: None,
        };
        self.locals.push((name, local));
        let inner = self.part(inner);
        self.locals.pop();
        let call = target.cost.plus(Range::ONE);
        let bound = Range::exactly(LIST_COST).plus(call).plus(inner.cost);
        let scalar = known.of.is_scalar().then_some(Range::ONE);
        let is_flat = matches!(&it.expr, Expr::Call(call) if call.func_name == "optFlatMap");
        let (made, size) = if is_flat {
            (bound, inner.known_size())
        } else {
            (bound.plus(Range::ONE), scalar)
        };
        known.cost = call.plus(made.or(Range::ONE));
        let or_any = |size: Option<Range>| size.unwrap_or(Range::ANY);
        known.computed = Some(or_any(size).or(or_any(scalar)));
        known
    }

    fn list(&mut self, it: &'a IdedExpr, list: &'a ListExpr) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::exactly(LIST_COST));
        let mut value: Option<Range> = None;
        for element in &list.elements {
            let element = self.part(element);
            known.cost = known.cost.plus(element.cost);
            let size = element.size();
            value = Some(value.map_or(size, |so_far| so_far.or(size)));
        }
        known.computed = Some(Range::exactly(list.elements.len() as u64));
        known.entries = Some(Entries {
            in_list: true,
            key: Range::ONE,
            value: value.unwrap_or(Range::NOTHING),
        });
        known
    }

    fn map(&mut self, it: &'a IdedExpr, map: &'a MapExpr) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::exactly(MAP_COST));
        let mut entries: Option<Entries> = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let (key, value) = (self.part(&entry.key), self.part(&entry.value));
            known.cost = known.cost.plus(key.cost).plus(value.cost);
            let entry = Entries {
                in_list: false,
                key: key.size(),
                value: value.size(),
            };
            entries = Some(entries.map_or(entry, |so_far| so_far.or(entry)));
        }
        known.computed = Some(Range::exactly(map.entries.len() as u64));
        known.entries = entries.or(Some(Entries {
            in_list: false,
            key: Range::NOTHING,
            value: Range::NOTHING,
        }));
        known
    }

    fn loops(&mut self, it: &'a IdedExpr, loops: &'a ComprehensionExpr) -> PartEstimate<'a> {
        let range = self.part(&loops.iter_range);
        let start = self.part(&loops.accu_init);
        let gathered = Local {
            path: start.path.clone(),
            size: start.known_size(),
            entries: start.entries,
        };
        self.locals.push((&loops.accu_var, gathered));
        let around = self.locals.len();
        let in_list = range
            .entries
            .map_or(matches!(range.of, Type::List(_)), |it| it.in_list);
        match &loops.iter_var2 {
            Some(second) => {
                self.locals.push((&loops.iter_var, key_of(&range, in_list)));
                self.locals.push((second, value_of(&range)));
            }
            None if in_list => self.locals.push((&loops.iter_var, value_of(&range))),
            None => self.locals.push((&loops.iter_var, key_of(&range, in_list))),
        }
        let condition = self.part(&loops.loop_cond);
        let step = self.part(&loops.loop_step);
        self.locals.truncate(around);
        let result = self.part(&loops.result);
        self.locals.pop();
        // The size of the range is looked up only now: its path may lead elsewhere after the loop.
        let count = range.size();
        let turns = count.times(condition.cost.plus(step.cost));
        let cost = range.cost.plus(start.cost).plus(result.cost).plus(turns);
        let mut known = self.plain(it, cost);
        match loops.accu_init.expr {
            _ if is_binding(loops) => {
                known.computed = result.known_size();
                known.entries = result.entries;
            }
            Expr::Literal(_) => known.computed = start.computed,
            Expr::List(_) | Expr::Map(_) => {
                known.computed = Some(count);
                known.entries = step.entries;
            }
            _ => {}
        }
        known
    }
}

/// Returns true for a loop that only binds a variable.
fn is_binding(loops: &ComprehensionExpr) -> bool {
    let is_false =
        |it: &Expr| matches!(it, Expr::Literal(LiteralValue::Boolean(flag)) if !*flag.inner());
    let is_empty = |it: &Expr| matches!(it, Expr::List(list) if list.elements.is_empty());
    is_empty(&loops.iter_range.expr) && is_false(&loops.loop_cond.expr)
}

/// Returns the variable of the keys or indexes of a range.
fn key_of<'a>(range: &PartEstimate<'a>, in_list: bool) -> Local<'a> {
    let step = if in_list {
        PathStep::Index
    } else {
        PathStep::Key
    };
    Local {
        path: range.path.then(step),
        size: range.entries.map(|it| it.key),
        entries: None,
    }
}

/// Returns the variable of the items or values of a range.
fn value_of<'a>(range: &PartEstimate<'a>) -> Local<'a> {
    Local {
        path: range.path.then(PathStep::Inside),
        size: range.entries.map(|it| it.value),
        entries: None,
    }
}

fn length(literal: &LiteralValue) -> Range {
    Range::exactly(match literal {
        LiteralValue::String(text) => text.inner().chars().count() as u64,
        LiteralValue::Bytes(bytes) => bytes.inner().len() as u64,
        _ => 1,
    })
}

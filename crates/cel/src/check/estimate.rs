//! Estimates the maximum cost of an expression from the maximum sizes of its values.
//!
//! The sizes of declared values are those that their schema allows; the sizes of others follow from what they are
//! made of. It is computed as kube-apiserver does, since it decides which definitions may be written.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
    SelectExpr,
};

use super::checker::Checker;
use super::ranges::Range;
use super::{Names, calls};
use crate::types::{Declared, Form, Type};

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const MESSAGE_COST: u64 = 40;

/// Returns the maximum cost of running an expression.
pub(super) fn cost(expression: &IdedExpr, checker: &Checker<'_>, names: &Names) -> u64 {
    let mut estimator = Estimator {
        checker,
        names,
        locals: Vec::new(),
    };
    estimator.part(expression).cost.max
}

/// The estimate of a part of an expression.
#[derive(Clone, Debug)]
pub(super) struct PartEstimate<'a> {
    /// The range of the cost of evaluating it.
    pub(super) cost: Range,
    /// The size of its value, as far as it is known.
    pub(super) size: Option<Range>,
    /// The sizes of its keys or places and of what is there.
    pub(super) entries: Option<(Range, Range)>,
    /// The declaration of its value, if it has one.
    pub(super) declared: Option<&'a Declared>,
    pub(super) of: Type,
}

impl PartEstimate<'_> {
    pub(super) fn size(&self) -> Range {
        self.size.unwrap_or(Range::ANY)
    }
}

struct Estimator<'a> {
    checker: &'a Checker<'a>,
    names: &'a Names,
    locals: Vec<(&'a str, PartEstimate<'a>)>,
}

impl<'a> Estimator<'a> {
    fn part(&mut self, it: &'a IdedExpr) -> PartEstimate<'a> {
        let known = match &it.expr {
            Expr::Literal(literal) => self.plain(it, Range::NOTHING, Some(length(literal))),
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
                self.plain(it, cost, None)
            }
            Expr::Comprehension(loops) => self.loops(it, loops),
            Expr::Unspecified => self.plain(it, Range::NOTHING, None),
        };
        self.sized(known)
    }

    fn plain(&self, it: &IdedExpr, cost: Range, size: Option<Range>) -> PartEstimate<'a> {
        let of = self.checker.types.get(&std::ptr::from_ref(it));
        PartEstimate {
            cost,
            size,
            entries: None,
            declared: None,
            of: of.map_or(Type::Dyn, |of| self.checker.bindings.resolve_or_dyn(of)),
        }
    }

    /// Adds the size that follows from the declaration or the type.
    fn sized(&self, mut known: PartEstimate<'a>) -> PartEstimate<'a> {
        if known.size.is_none() {
            let declared = known.declared.map(|it| Range::up_to(it.max));
            let scalar = known.of.is_scalar().then_some(Range::ONE);
            known.size = declared.or(scalar);
        }
        known
    }

    fn named(&mut self, it: &'a IdedExpr, name: &str) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::ONE, None);
        match self.locals.iter().rev().find(|(local, _)| *local == name) {
            Some((_, local)) => {
                known.declared = local.declared;
                known.entries = local.entries;
                if known.declared.is_none() && !known.of.is_scalar() {
                    known.size = local.size;
                }
            }
            // The name of a type is as large as the whole, as in kube-apiserver.
            None => {
                let variables = &self.names.variables;
                known.declared = variables.get(name).or_else(|| variables.get("self"));
            }
        }
        known
    }

    fn select(&mut self, it: &'a IdedExpr, select: &'a SelectExpr) -> PartEstimate<'a> {
        let operand = self.part(&select.operand);
        if select.test {
            return self.plain(it, operand.cost, None);
        }
        let counts = matches!(
            operand.of,
            Type::Map(..) | Type::Object(_) | Type::Variable(_)
        );
        let own = if counts { Range::ONE } else { Range::NOTHING };
        let mut known = self.plain(it, operand.cost.plus(own), None);
        known.declared = operand.declared.and_then(|it| it.field(&select.field));
        known
    }

    fn call(&mut self, it: &'a IdedExpr, call: &'a CallExpr) -> PartEstimate<'a> {
        let target = call.target.as_deref().filter(|target| {
            !matches!(&target.expr, Expr::Ident(name) if crate::NAMESPACES.contains(&name.as_str()))
        });
        if let ("optMap" | "optFlatMap", [variable, inner]) =
            (call.func_name.as_str(), call.args.as_slice())
        {
            return self.map_optional(it, target, variable, inner);
        }
        let target = target.map(|target| self.part(target));
        let arguments: Vec<PartEstimate<'a>> = call.args.iter().map(|it| self.part(it)).collect();
        let mut known = self.plain(it, Range::NOTHING, None);
        let estimate = calls::estimate(&call.func_name, target.as_ref(), &arguments, &known.of);
        known.cost = target.map_or(Range::NOTHING, |target| target.cost);
        known.cost = known.cost.plus(estimate.cost);
        known.size = estimate.size;
        match (call.func_name.as_str(), arguments.as_slice()) {
            (op::INDEX, [all, _]) => {
                known.declared = all.declared.and_then(Declared::inside);
                known.size = all.entries.map(|(_, inside)| inside);
            }
            (op::CONDITIONAL, [_, a, b]) | (op::ADD, [a, b]) => {
                known.entries = joined(a.entries, b.entries);
            }
            ("dyn", [it]) => {
                known.size = it.size;
                known.entries = it.entries;
            }
            _ => {}
        }
        known
    }

    fn map_optional(
        &mut self,
        it: &'a IdedExpr,
        target: Option<&'a IdedExpr>,
        variable: &'a IdedExpr,
        inner: &'a IdedExpr,
    ) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::ONE, None);
        let Some(target) = target.map(|target| self.part(target)) else {
            return known;
        };
        known.cost = known.cost.plus(target.cost);
        if let Expr::Ident(name) = &variable.expr {
            self.locals.push((name, target));
            let inner = self.part(inner);
            self.locals.pop();
            known.cost = known.cost.plus(inner.cost);
            known.size = inner.size;
        }
        known
    }

    fn list(&mut self, it: &'a IdedExpr, list: &'a ListExpr) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::exactly(LIST_COST), None);
        let mut inside: Option<Range> = None;
        for element in &list.elements {
            let element = self.part(element);
            known.cost = known.cost.plus(element.cost);
            let size = element.size();
            inside = Some(inside.map_or(size, |so_far| so_far.or(size)));
        }
        known.size = Some(Range::exactly(list.elements.len() as u64));
        known.entries = Some((Range::ONE, inside.unwrap_or(Range::NOTHING)));
        known
    }

    fn map(&mut self, it: &'a IdedExpr, map: &'a MapExpr) -> PartEstimate<'a> {
        let mut known = self.plain(it, Range::exactly(MAP_COST), None);
        let mut entries: Option<(Range, Range)> = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let (key, value) = (self.part(&entry.key), self.part(&entry.value));
            known.cost = known.cost.plus(key.cost).plus(value.cost);
            let sizes = (key.size(), value.size());
            entries = entries.map_or(Some(sizes), |so_far| joined(Some(so_far), Some(sizes)));
        }
        known.size = Some(Range::exactly(map.entries.len() as u64));
        known.entries = entries.or(Some((Range::NOTHING, Range::NOTHING)));
        known
    }

    fn loops(&mut self, it: &'a IdedExpr, loops: &'a ComprehensionExpr) -> PartEstimate<'a> {
        let range = self.part(&loops.iter_range);
        let start = self.part(&loops.accu_init);
        self.locals.push((&loops.accu_var, start.clone()));
        let around = self.locals.len();
        let is_map = matches!(range.of, Type::Map(..));
        let (place, item) = (self.place(loops, &range), self.item(loops, &range));
        match &loops.iter_var2 {
            Some(second) => {
                self.locals.push((&loops.iter_var, place));
                self.locals.push((second, item));
            }
            None if is_map => self.locals.push((&loops.iter_var, place)),
            None => self.locals.push((&loops.iter_var, item)),
        }
        let condition = self.part(&loops.loop_cond);
        let step = self.part(&loops.loop_step);
        self.locals.truncate(around);
        let result = self.part(&loops.result);
        self.locals.pop();
        let turns = range.size().times(condition.cost.plus(step.cost));
        let cost = range.cost.plus(start.cost).plus(result.cost).plus(turns);
        let mut known = self.plain(it, cost, None);
        if matches!(loops.accu_init.expr, Expr::List(_) | Expr::Map(_)) {
            known.size = range.size.or(Some(Range::ANY));
            known.entries = step.entries;
        } else {
            known.size = start.size;
        }
        known
    }

    /// Returns a place in a list, or a key of a map.
    fn place(&self, loops: &'a ComprehensionExpr, range: &PartEstimate<'a>) -> PartEstimate<'a> {
        let size = range.entries.map(|(place, _)| place);
        let mut known = self.plain(&loops.iter_range, Range::ONE, size);
        known.declared = match range.declared.map(|it| &it.form) {
            Some(Form::Map(_)) => Some(&KEY),
            _ => None,
        };
        known
    }

    /// Returns the estimate of the item that a comprehension iterates over.
    fn item(&self, loops: &'a ComprehensionExpr, range: &PartEstimate<'a>) -> PartEstimate<'a> {
        let size = range.entries.map(|(_, item)| item);
        let mut known = self.plain(&loops.iter_range, Range::ONE, size);
        known.declared = range.declared.and_then(Declared::inside);
        known
    }
}

/// The names of members are strings without a declared size.
static KEY: Declared = Declared {
    form: Form::Plain(Type::String),
    max: 0,
    min_bytes: 2,
};

fn joined(a: Option<(Range, Range)>, b: Option<(Range, Range)>) -> Option<(Range, Range)> {
    let (a, b) = (a?, b?);
    Some((a.0.or(b.0), a.1.or(b.1)))
}

fn length(literal: &LiteralValue) -> Range {
    Range::exactly(match literal {
        LiteralValue::String(text) => text.inner().chars().count() as u64,
        LiteralValue::Bytes(bytes) => bytes.inner().len() as u64,
        _ => 1,
    })
}

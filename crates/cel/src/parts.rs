//! Walks through the parts of an expression.

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// Calls a function on all parts of an expression, on each after those that it is made of.
pub(super) fn for_each(it: &mut IdedExpr, visit: &mut impl FnMut(&mut IdedExpr)) {
    match &mut it.expr {
        Expr::Select(select) => for_each(&mut select.operand, visit),
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                for_each(target, visit);
            }
            call.args.iter_mut().for_each(|it| for_each(it, visit));
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|it| for_each(it, visit)),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|it| for_each_of_entry(&mut it.expr, visit)),
        Expr::Struct(message) => message
            .entries
            .iter_mut()
            .for_each(|it| for_each_of_entry(&mut it.expr, visit)),
        Expr::Comprehension(loops) => {
            for_each(&mut loops.iter_range, visit);
            for_each(&mut loops.accu_init, visit);
            for_each(&mut loops.loop_cond, visit);
            for_each(&mut loops.loop_step, visit);
            for_each(&mut loops.result, visit);
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
    visit(it);
}

fn for_each_of_entry(entry: &mut EntryExpr, visit: &mut impl FnMut(&mut IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => for_each(&mut field.value, visit),
        EntryExpr::MapEntry(entry) => {
            for_each(&mut entry.key, visit);
            for_each(&mut entry.value, visit);
        }
    }
}

/// Calls a function on all parts of an expression, on each after those that it is made of, without changing any.
pub(super) fn for_each_of<'e>(it: &'e IdedExpr, visit: &mut impl FnMut(&'e IdedExpr)) {
    match &it.expr {
        Expr::Select(select) => for_each_of(&select.operand, visit),
        Expr::Call(call) => {
            if let Some(target) = &call.target {
                for_each_of(target, visit);
            }
            call.args.iter().for_each(|it| for_each_of(it, visit));
        }
        Expr::List(list) => list.elements.iter().for_each(|it| for_each_of(it, visit)),
        Expr::Map(map) => map
            .entries
            .iter()
            .for_each(|it| for_each_in_entry(&it.expr, visit)),
        Expr::Struct(message) => {
            let entries = message.entries.iter();
            entries.for_each(|it| for_each_in_entry(&it.expr, visit));
        }
        Expr::Comprehension(loops) => {
            for_each_of(&loops.iter_range, visit);
            for_each_of(&loops.accu_init, visit);
            for_each_of(&loops.loop_cond, visit);
            for_each_of(&loops.loop_step, visit);
            for_each_of(&loops.result, visit);
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
    visit(it);
}

fn for_each_in_entry<'e>(entry: &'e EntryExpr, visit: &mut impl FnMut(&'e IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => for_each_of(&field.value, visit),
        EntryExpr::MapEntry(entry) => {
            for_each_of(&entry.key, visit);
            for_each_of(&entry.value, visit);
        }
    }
}

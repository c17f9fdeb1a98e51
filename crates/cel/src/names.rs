//! The names in an expression which the language refuses though its grammar has them.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use super::part_error::PartError;
use super::{RESERVED, parts};

/// Returns the errors about reserved words that stand for variables or functions, and about names between backticks.
pub(super) fn check(expression: &IdedExpr) -> Vec<PartError> {
    let mut wrong = Vec::new();
    parts::for_each_of(expression, &mut |part| match &part.expr {
        Expr::Ident(name) => wrong.extend(reserved(part.id, 0, name)),
        Expr::Call(call) if call.target.is_none() => {
            // The place of a call is that of its bracket.
            let length = call.func_name.chars().count();
            let shift = 0_isize.saturating_sub_unsigned(length);
            wrong.extend(reserved(part.id, shift, &call.func_name));
            if let (op::OPT_SELECT, [_, field]) = (call.func_name.as_str(), call.args.as_slice())
                && let Expr::Literal(LiteralValue::String(field)) = &field.expr
            {
                wrong.extend(escaped(part.id, 2, field.inner()));
            }
        }
        // The place of a selection is that of its point.
        Expr::Select(select) => wrong.extend(escaped(part.id, 1, &select.field)),
        Expr::Struct(message) => {
            for entry in &message.entries {
                if let EntryExpr::StructField(field) = &entry.expr {
                    wrong.extend(escaped(entry.id, 0, &field.field));
                }
            }
        }
        _ => {}
    });
    wrong
}

fn reserved(part: u64, shift: isize, name: &str) -> Option<PartError> {
    let name = name.strip_prefix('.').unwrap_or(name);
    let error = || PartError::at(part, format!("reserved identifier: {name}")).shifted(shift);
    RESERVED.contains(&name).then(error)
}

fn escaped(part: u64, shift: isize, name: &str) -> Option<PartError> {
    let error = || PartError::at(part, "unsupported syntax: '`'").shifted(shift);
    name.starts_with('`').then(error)
}

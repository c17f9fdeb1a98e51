//! Checks formats that are literals of an expression against the values that they are for. Follows
//! `stringFormatValidator` of cel-go's extension for strings.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use crate::formatting::{self, Clause, FormatPart};
use crate::part_error::PartError;
use crate::types::Type;

/// Returns the error in a call of `format` on a literal with a list that is written out.
pub(super) fn check(
    type_of: &dyn Fn(&IdedExpr) -> Type,
    whole: &IdedExpr,
    call: &CallExpr,
) -> Option<PartError> {
    let target = call.target.as_deref()?;
    let (Expr::Literal(LiteralValue::String(format)), [values]) =
        (&target.expr, call.args.as_slice())
    else {
        return None;
    };
    let Expr::List(values) = &values.expr else {
        return None;
    };
    let values = &values.elements;
    let mut taken = 0;
    let mut rest = format.inner();
    loop {
        match formatting::next(rest, taken < values.len(), taken) {
            Err(why) => return Some(PartError::at(whole.id, why.to_string())),
            Ok(None) => break,
            Ok(Some((part, after))) => {
                rest = after;
                if let FormatPart::Clause(clause) = part {
                    if let Err((id, kind)) = verify(type_of, clause, &values[taken]) {
                        let why = formatting::unfit(clause, &kind);
                        let why = format!("error during formatting: {why}");
                        return Some(PartError::at(id, why));
                    }
                    taken += 1;
                }
            }
        }
    }
    (taken < values.len()).then(|| {
        let why = format!(
            "too many arguments supplied to string.format (expected {taken}, got {})",
            values.len()
        );
        PartError::at(whole.id, why)
    })
}

/// Checks that a clause takes a value. The error is the part whose type it does not take, with the name of this.
fn verify(
    type_of: &dyn Fn(&IdedExpr) -> Type,
    clause: Clause,
    value: &IdedExpr,
) -> Result<(), (u64, String)> {
    let of = type_of(value);
    let takes = match (clause, &of) {
        (_, Type::Dyn | Type::Error | Type::Variable(_)) => true,
        (Clause::Text, of) => !matches!(of, Type::Optional(_) | Type::Object(_) | Type::Opaque(_)),
        (Clause::Decimal | Clause::Octal, of) => matches!(of, Type::Int | Type::Uint),
        (Clause::Fixed(_) | Clause::Scientific(_), of) => {
            matches!(of, Type::Double | Type::String)
        }
        (Clause::Binary, of) => matches!(of, Type::Int | Type::Uint | Type::Bool),
        (Clause::Hexadecimal { .. }, of) => {
            matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes)
        }
    };
    if !takes {
        return Err((value.id, of.runtime_name()));
    }
    if clause != Clause::Text {
        return Ok(());
    }
    match &value.expr {
        Expr::List(list) => list
            .elements
            .iter()
            .try_for_each(|it| verify(type_of, clause, it)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                verify(type_of, clause, &entry.key)?;
                verify(type_of, clause, &entry.value)
            }
            EntryExpr::StructField(_) => Ok(()),
        }),
        _ => Ok(()),
    }
}

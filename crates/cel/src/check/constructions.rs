//! Infers the types of lists, maps and messages that an expression constructs.

use kube_cel::cel::common::ast::{EntryExpr, IdedExpr, ListExpr, MapExpr, StructExpr};

use super::aggregate::Aggregate;
use super::checker::{Checker, undeclared};
use super::unify::most_general;
use crate::part_error::PartError;
use crate::types::Type;

impl Checker<'_> {
    /// Adds a list or a part of a map, unless parts of several types may be there.
    fn add_aggregate(&mut self, parts: Vec<(u64, Type)>, is_list: bool) {
        if !self.in_format && parts.len() > 1 {
            self.aggregates.push(Aggregate { parts, is_list });
        }
    }

    /// Returns the type of a list that is written out.
    pub(super) fn list(&mut self, list: &ListExpr) -> Result<Type, String> {
        let mut of: Option<Type> = None;
        let mut items = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            let mut item = self.check(element);
            if list.optional_indices.binary_search(&index).is_ok() {
                item = self.unwrapped(item, element);
            }
            items.push((element.id, item.clone()));
            of = Some(self.joined(of, item, element));
        }
        self.add_aggregate(items, true);
        let of = of.unwrap_or_else(|| Type::Variable(self.bindings.fresh(1)));
        Ok(Type::list(of))
    }

    /// Returns the type of a map that is written out.
    pub(super) fn map(&mut self, map: &MapExpr) -> Result<Type, String> {
        let (mut keys, mut values) = (None, None);
        let (mut all_keys, mut all_values) = (Vec::new(), Vec::new());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key);
            all_keys.push((entry.key.id, key.clone()));
            keys = Some(self.joined(keys, key, &entry.key));
            let mut value = self.check(&entry.value);
            if entry.optional {
                value = self.unwrapped(value, &entry.value);
            }
            all_values.push((entry.value.id, value.clone()));
            values = Some(self.joined(values, value, &entry.value));
        }
        self.add_aggregate(all_keys, false);
        self.add_aggregate(all_values, false);
        let mut known =
            |it: Option<Type>| it.unwrap_or_else(|| Type::Variable(self.bindings.fresh(1)));
        Ok(Type::map(known(keys), known(values)))
    }

    fn unwrapped(&mut self, it: Type, at: &IdedExpr) -> Type {
        match self.bindings.resolve(&it) {
            Type::Optional(inside) => (*inside).clone(),
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => {
                let why = format!("expected type 'optional_type({other})' but found '{other}'");
                self.errors.push(PartError::at(at.id, why));
                other
            }
        }
    }

    /// Joins the type of the next item, key or value with that of those before, and adds an error if they do not fit.
    fn joined(&mut self, so_far: Option<Type>, next: Type, at: &IdedExpr) -> Type {
        let Some(so_far) = so_far else {
            return next;
        };
        if self.bindings.fit(&so_far, &next) {
            let (so_far, next) = (self.bindings.resolve(&so_far), self.bindings.resolve(&next));
            return most_general(so_far, next);
        }
        if self.in_format {
            return Type::Dyn;
        }
        let (so_far, next) = (
            self.bindings.resolve_or_dyn(&so_far),
            self.bindings.resolve_or_dyn(&next),
        );
        let why = format!("expected type '{so_far}' but found '{next}'");
        self.errors.push(PartError::at(at.id, why));
        Type::Error
    }

    /// Returns the type of a message that is constructed.
    pub(super) fn message(&mut self, message: &StructExpr) -> Result<Type, String> {
        let made = self.names.message(&message.type_name);
        let made = made.ok_or_else(|| undeclared(&message.type_name))?;
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let mut given = self.check(&field.value);
            if field.optional {
                given = self.unwrapped(given, &field.value);
            }
            match self.member(&made, &field.field) {
                Err(why) => self.errors.push(PartError::at(entry.id, why)),
                Ok(wanted) if !self.bindings.fit(&wanted, &given) => {
                    let given = self.bindings.resolve_or_dyn(&given);
                    let why = format!(
                        "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                        field.field
                    );
                    self.errors.push(PartError::at(entry.id, why));
                }
                Ok(_) => {}
            }
        }
        Ok(made)
    }
}

//! Infers the types of an expression and of its parts, and reports type errors.

use std::collections::HashMap;

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SelectExpr,
};

use super::aggregate::Aggregate;
use super::unify::Bindings;
use super::{Names, format_calls, literals};
use crate::part_error::PartError;
use crate::signatures::{FUNCTIONS, LETTERS, Signature};
use crate::type_values;
use crate::types::{DeclaredType, Type};

/// The function that a call means.
pub(super) struct ResolvedCall {
    pub(super) name: String,
    /// True if what stands before the point is the receiver, and no namespace.
    pub(super) is_member: bool,
    /// The overloads that fit the arguments.
    pub(super) overloads: Vec<&'static Signature>,
}

/// A walk through an expression.
pub(super) struct Checker<'a> {
    pub(super) names: &'a Names,
    /// The variables of the enclosing macros, with their types; the innermost is last.
    locals: Vec<(String, Type)>,
    pub(super) bindings: Bindings,
    /// The type of every part, by its place in memory.
    pub(super) types: HashMap<*const IdedExpr, Type>,
    /// The functions that are called, by the places of the calls.
    pub(super) calls: HashMap<*const IdedExpr, ResolvedCall>,
    /// True in calls of `format`, where lists and maps may have parts of several types.
    pub(super) in_format: bool,
    /// The type errors that were found, with their positions.
    pub(super) errors: Vec<PartError>,
    /// The types of the items of each list that is written out, and of the keys and of the values of each map.
    pub(super) aggregates: Vec<Aggregate>,
    /// The errors in literals, which are told of expressions without other errors.
    pub(super) wrong_literals: Vec<PartError>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Self {
            names,
            locals: Vec::new(),
            bindings: Bindings::default(),
            types: HashMap::new(),
            calls: HashMap::new(),
            in_format: false,
            errors: Vec::new(),
            aggregates: Vec::new(),
            wrong_literals: Vec::new(),
        }
    }

    /// Returns the type of an expression; anything where it has none.
    pub(super) fn check(&mut self, expression: &IdedExpr) -> Type {
        let found = match &expression.expr {
            Expr::Literal(literal) => Ok(constant(literal)),
            Expr::Ident(name) => self.named(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(message) => self.message(message),
            Expr::Comprehension(loops) => self.loops(loops),
            Expr::Unspecified => Ok(Type::Dyn),
        };
        let found = found.unwrap_or_else(|why| {
            self.errors.push(PartError::at(expression.id, why));
            Type::Error
        });
        self.types
            .insert(std::ptr::from_ref(expression), found.clone());
        found
    }

    /// Returns the type of a part that was checked.
    pub(super) fn type_of(&self, part: &IdedExpr) -> Type {
        let found = self.types.get(&std::ptr::from_ref(part));
        found.map_or(Type::Dyn, |it| self.bindings.resolve_or_dyn(it))
    }

    fn named(&self, name: &str) -> Result<Type, String> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let local = self.locals.iter().rev().find(|(local, _)| local == name);
        if let Some((_, found)) = local {
            return Ok(self.bindings.resolve(found));
        }
        if let Some(declared) = self.names.variables.get(name) {
            return Ok(declared.type_of());
        }
        let of = type_values::type_of(name);
        of.map(Type::meta).ok_or_else(|| undeclared(name))
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Type, String> {
        if let Some((first, name)) = type_values::qualified(select)
            && !self.locals.iter().any(|(local, _)| local == first)
        {
            if let Some(declared) = self.names.variables.get(&name) {
                return Ok(declared.type_of());
            }
            if let Some(of) = type_values::type_of(&name) {
                return Ok(Type::meta(of));
            }
        }
        let operand = self.check(&select.operand);
        let found = self.member(&self.bindings.resolve(&operand), &select.field)?;
        Ok(if select.test { Type::Bool } else { found })
    }

    pub(super) fn member(&self, operand: &Type, name: &str) -> Result<Type, String> {
        match operand {
            Type::Dyn | Type::Error | Type::Variable(_) => Ok(Type::Dyn),
            Type::Optional(inside) => {
                let found = self.member(&self.bindings.resolve(inside), name)?;
                Ok(match found {
                    Type::Optional(_) => found,
                    other => Type::optional(other),
                })
            }
            Type::Map(_, value) => Ok(self.bindings.resolve(value)),
            Type::Object(object) => {
                let field = object.fields.get(name).map(DeclaredType::type_of);
                let field = field.or_else(|| object.others.clone());
                field.ok_or_else(|| format!("undefined field '{name}'"))
            }
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }

    fn call(&mut self, whole: &IdedExpr, call: &CallExpr) -> Result<Type, String> {
        let around = self.in_format;
        self.in_format |= call.func_name == "format";
        let gives = self.call_function(whole, call);
        self.in_format = around;
        gives
    }

    fn call_function(&mut self, whole: &IdedExpr, call: &CallExpr) -> Result<Type, String> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::OPT_SELECT, [operand, field]) => {
                let operand = self.check(operand);
                self.check(field);
                let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
                    return Err("unsupported optional field selection".to_owned());
                };
                let found = self.member(&self.bindings.resolve(&operand), name.inner())?;
                return Ok(match found {
                    Type::Optional(_) => found,
                    other => Type::optional(other),
                });
            }
            ("optMap" | "optFlatMap", [variable, inner]) if call.target.is_some() => {
                return self.map_optional(call, variable, inner);
            }
            _ => {}
        }
        let (name, target) = self.function(call);
        let target = target.map(|target| self.check(target));
        let is_member = target.is_some();
        let mut given: Vec<Type> = target.into_iter().collect();
        given.extend(call.args.iter().map(|argument| self.check(argument)));
        let Some(signatures) = FUNCTIONS.get(&name) else {
            return Err(undeclared(&name));
        };
        if matches!(name.as_str(), op::LOGICAL_AND | op::LOGICAL_OR) {
            let before = self.errors.len();
            for (argument, given) in call.args.iter().zip(&given) {
                self.expect_type(argument, &Type::Bool, given);
            }
            if self.errors.len() > before {
                return Ok(Type::Error);
            }
        }
        let (overloads, gives) = self.overloads(&name, is_member, signatures, &given)?;
        self.wrong_literals.extend(literals::check(&name, call));
        if name == "format" {
            self.wrong_literals.extend(format_calls::check(
                &|part| self.type_of(part),
                whole,
                call,
            ));
        }
        let resolved = ResolvedCall {
            name,
            is_member,
            overloads,
        };
        self.calls.insert(std::ptr::from_ref(whole), resolved);
        Ok(gives)
    }

    /// Returns the name of a function and its receiver; `None` for the receiver if the text before the point is a
    /// namespace.
    fn function<'e>(&self, call: &'e CallExpr) -> (String, Option<&'e IdedExpr>) {
        let target = call.target.as_deref();
        if let Some(Expr::Ident(prefix)) = target.map(|target| &target.expr) {
            let name = format!("{prefix}.{}", call.func_name);
            let is_variable = self.locals.iter().any(|(local, _)| local == prefix);
            // Only expressions that may make patches have the functions of these.
            let is_known = prefix != "jsonpatch" || self.names.messages.contains_key("JSONPatch");
            if FUNCTIONS.contains_key(&name) && !is_variable && is_known {
                return (name, None);
            }
        }
        (call.func_name.clone(), target)
    }

    /// Returns the overloads that fit what is given, and the type of their results.
    fn overloads(
        &mut self,
        name: &str,
        member: bool,
        signatures: &'static [Signature],
        given: &[Type],
    ) -> Result<(Vec<&'static Signature>, Type), String> {
        let mut overloads = Vec::new();
        let mut found: Option<Type> = None;
        for signature in signatures {
            if signature.member != member || signature.takes.len() != given.len() {
                continue;
            }
            let before = self.bindings.mark();
            let first = self.bindings.fresh(LETTERS);
            let mut pairs = signature.takes.iter().zip(given);
            let fits = pairs.all(|(wanted, given)| {
                let wanted = self.bindings.instance(wanted, first);
                self.bindings.fit(&wanted, given)
            });
            if !fits {
                self.bindings.forget(before);
                continue;
            }
            overloads.push(signature);
            let gives = self.bindings.instance(&signature.gives, first);
            let gives = self.bindings.resolve(&gives);
            match &found {
                None => found = Some(gives),
                Some(other) if *other == gives => {}
                Some(_) => found = Some(Type::Dyn),
            }
        }
        let gives = found.ok_or_else(|| self.no_overload(name, member, given))?;
        Ok((overloads, gives))
    }

    fn no_overload(&self, name: &str, member: bool, given: &[Type]) -> String {
        let given: Vec<String> = given
            .iter()
            .map(|it| self.bindings.resolve_or_dyn(it).to_string())
            .collect();
        let called = match given.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", given.join(", ")),
        };
        format!("found no matching overload for '{name}' applied to '{called}'")
    }

    fn map_optional(
        &mut self,
        call: &CallExpr,
        variable: &IdedExpr,
        inner: &IdedExpr,
    ) -> Result<Type, String> {
        let Expr::Ident(name) = &variable.expr else {
            return Err(format!(
                "{}() variable name must be a simple identifier",
                call.func_name
            ));
        };
        let target = call
            .target
            .as_deref()
            .map_or(Type::Dyn, |it| self.check(it));
        let inside = match self.bindings.resolve(&target) {
            Type::Optional(inside) => (*inside).clone(),
            Type::Dyn | Type::Error | Type::Variable(_) => Type::Dyn,
            other => {
                let given = [other];
                return Err(self.no_overload("hasValue", true, &given));
            }
        };
        self.locals.push((name.clone(), inside));
        let made = self.check(inner);
        self.locals.pop();
        Ok(match (call.func_name.as_str(), made) {
            ("optFlatMap", made) => made,
            (_, made) => Type::optional(made),
        })
    }

    fn loops(&mut self, loops: &ComprehensionExpr) -> Result<Type, String> {
        let range = self.check(&loops.iter_range);
        let range = self.bindings.resolve(&range);
        let is_map = matches!(range, Type::Map(..));
        let (place, item) = match range {
            Type::List(of) => (Type::Int, (*of).clone()),
            Type::Map(key, value) => ((*key).clone(), (*value).clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => (Type::Dyn, Type::Dyn),
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.errors.push(PartError::at(loops.iter_range.id, why));
                (Type::Error, Type::Error)
            }
        };
        let gathered = self.check(&loops.accu_init);
        self.locals.push((loops.accu_var.clone(), gathered.clone()));
        let around = self.locals.len();
        match &loops.iter_var2 {
            Some(second) => {
                self.locals.push((loops.iter_var.clone(), place));
                self.locals.push((second.clone(), item));
            }
            // The one variable of a loop through a map is the key.
            None if is_map => self.locals.push((loops.iter_var.clone(), place)),
            None => self.locals.push((loops.iter_var.clone(), item)),
        }
        self.expect(&loops.loop_cond, &Type::Bool);
        self.expect(&loops.loop_step, &gathered);
        self.locals.truncate(around);
        let result = self.check(&loops.result);
        self.locals.pop();
        Ok(self.bindings.resolve(&result))
    }

    fn expect(&mut self, part: &IdedExpr, wanted: &Type) {
        let found = self.check(part);
        self.expect_type(part, wanted, &found);
    }

    fn expect_type(&mut self, part: &IdedExpr, wanted: &Type, found: &Type) {
        if !self.bindings.fit(wanted, found) {
            let (wanted, found) = (
                self.bindings.resolve_or_dyn(wanted),
                self.bindings.resolve_or_dyn(found),
            );
            let why = format!("expected type '{wanted}' but found '{found}'");
            self.errors.push(PartError::at(part.id, why));
        }
    }
}

pub(super) fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn constant(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::UInt(_) => Type::Uint,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::String(_) => Type::String,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Null => Type::Null,
    }
}

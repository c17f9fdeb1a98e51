//! Macros that the parser leaves as calls: `sortBy`, `cel.bind`, and those of two variables, `all`, `exists`,
//! `existsOne`, `transformList`, `transformMap` and `transformMapEntry`. The variables are indexes and items of a list,
//! or keys and values of a map.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
};

use super::part_error::PartError;
use super::parts;

/// The function that adds an entry to the map in an accumulator.
pub(super) const INSERT: &str = "cel.@mapInsert";

/// The function that sorts a list by keys.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// Name of the variable that holds the list which is sorted.
const SORTED: &str = "@__sortBy_input__";

/// Name of a comprehension's accumulator variable.
const GATHERED: &str = "@result";

/// Name of the accumulator variable in earlier versions of cel-go, which no variable may have.
const OLD_GATHERED: &str = "__result__";

const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// Expands the macros to comprehensions, `cel.bind` only if the expression `binds`. Returns the parts of the expression
/// that should be names of variables and are not.
pub(super) fn expand(expression: &mut IdedExpr, binds: bool) -> Vec<PartError> {
    let mut expansion = Expansion {
        binds,
        wrong: Vec::new(),
    };
    parts::for_each(expression, &mut |part| {
        let id = part.id;
        if let Expr::Call(call) = &mut part.expr
            && let Some(made) = expanded(id, call, &mut expansion)
        {
            part.expr = made;
        }
    });
    expansion.wrong
}

/// The choice of macros, and the parts that should be names of variables and are not.
struct Expansion {
    binds: bool,
    wrong: Vec<PartError>,
}

impl Expansion {
    fn no_name(&mut self, part: u64) {
        let why = "argument must be a simple name";
        self.wrong.push(PartError::at(part, why));
    }
}

/// Returns the comprehension that a macro expands to; `None` if the call is no macro.
fn expanded(id: u64, call: &mut CallExpr, expansion: &mut Expansion) -> Option<Expr> {
    let make = Maker { id };
    if call.func_name == "sortBy" && call.args.len() == 2 {
        return sort_by(&make, call, expansion);
    }
    if expansion.binds && is_bind(call) {
        return bind(&make, call, expansion);
    }
    let body: fn(&Maker, &str, Vec<IdedExpr>) -> ComprehensionParts =
        match (call.func_name.as_str(), call.args.len()) {
            ("all", 3) => all,
            ("exists", 3) => exists,
            ("existsOne" | "exists_one", 3) => exists_one,
            ("transformList", 3 | 4) => transform_list,
            ("transformMap", 3 | 4) => transform_map,
            ("transformMapEntry", 3 | 4) => transform_map_entry,
            _ => return None,
        };
    let range = *call.target.take()?;
    let mut arguments = std::mem::take(&mut call.args);
    let inner = arguments.split_off(2);
    let mut names = arguments.into_iter();
    let (first, second) = (names.next()?, names.next()?);
    let (first_id, second_id) = (first.id, second.id);
    let (Expr::Ident(first), Expr::Ident(second)) = (&first.expr, &second.expr) else {
        let is_name = matches!(first.expr, Expr::Ident(_));
        expansion.no_name(if is_name { second_id } else { first_id });
        return None;
    };
    let (first, second) = (first.clone(), second.clone());
    if first == second {
        let why = format!("duplicate variable name: {first}");
        expansion.wrong.push(PartError::at(second_id, why));
    }
    for (name, id) in [(&first, first_id), (&second, second_id)] {
        if name == OLD_GATHERED {
            expansion.wrong.push(PartError::at(id, OVERWRITES));
        }
    }
    let body = body(&make, &first, inner);
    Some(make.comprehension(range, first, Some(second), body).expr)
}

/// Expands `list.sortBy(variable, key)` to a list that is held in a variable, and sorted by the keys of its items.
fn sort_by(make: &Maker, call: &mut CallExpr, expansion: &mut Expansion) -> Option<Expr> {
    let list = *call.target.take()?;
    let mut arguments = std::mem::take(&mut call.args).into_iter();
    let (variable, key) = (arguments.next()?, arguments.next()?);
    let Expr::Ident(name) = variable.expr else {
        expansion.no_name(variable.id);
        return None;
    };
    let held = || make.part(Expr::Ident(SORTED.to_owned()));
    let keys = make.comprehension(held(), name, None, make.list(vec![key]));
    let sorted = make.part(Expr::Call(CallExpr {
        func_name: SORT_BY_KEYS.to_owned(),
        target: Some(Box::new(held())),
        args: vec![keys],
    }));
    Some(make.held(SORTED, list, sorted))
}

fn is_bind(call: &CallExpr) -> bool {
    let target = call.target.as_ref().map(|target| &target.expr);
    let is_of_cel = matches!(target, Some(Expr::Ident(name)) if name == "cel");
    is_of_cel && call.func_name == "bind" && call.args.len() == 3
}

/// Expands `cel.bind(variable, value, expression)` to the expression with a variable that holds the value.
fn bind(make: &Maker, call: &mut CallExpr, expansion: &mut Expansion) -> Option<Expr> {
    let mut arguments = std::mem::take(&mut call.args).into_iter();
    let (variable, value) = (arguments.next()?, arguments.next()?);
    let Expr::Ident(name) = variable.expr else {
        expansion.no_name(variable.id);
        return None;
    };
    Some(make.held(&name, value, arguments.next()?))
}

/// The parts of a comprehension besides its range.
struct ComprehensionParts {
    init: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

fn all(make: &Maker, _: &str, inner: Vec<IdedExpr>) -> ComprehensionParts {
    ComprehensionParts {
        init: make.truth(true),
        condition: make.call(op::NOT_STRICTLY_FALSE, vec![make.gathered()]),
        step: make.call(op::LOGICAL_AND, make.with_gathered(inner)),
        result: make.gathered(),
    }
}

fn exists(make: &Maker, _: &str, inner: Vec<IdedExpr>) -> ComprehensionParts {
    let none_yet = make.call(op::LOGICAL_NOT, vec![make.gathered()]);
    ComprehensionParts {
        init: make.truth(false),
        condition: make.call(op::NOT_STRICTLY_FALSE, vec![none_yet]),
        step: make.call(op::LOGICAL_OR, make.with_gathered(inner)),
        result: make.gathered(),
    }
}

fn exists_one(make: &Maker, _: &str, mut inner: Vec<IdedExpr>) -> ComprehensionParts {
    let one = || make.part(Expr::Literal(LiteralValue::Int(1.into())));
    inner.push(make.call(op::ADD, vec![make.gathered(), one()]));
    inner.push(make.gathered());
    ComprehensionParts {
        init: make.part(Expr::Literal(LiteralValue::Int(0.into()))),
        condition: make.truth(true),
        step: make.call(op::CONDITIONAL, inner),
        result: make.call(op::EQUALS, vec![make.gathered(), one()]),
    }
}

fn transform_list(make: &Maker, _: &str, inner: Vec<IdedExpr>) -> ComprehensionParts {
    make.list(inner)
}

fn transform_map(make: &Maker, key: &str, inner: Vec<IdedExpr>) -> ComprehensionParts {
    make.transform(Expr::Map(MapExpr::default()), inner, |made| {
        let key = make.part(Expr::Ident(key.to_owned()));
        make.call(INSERT, vec![make.gathered(), key, made])
    })
}

fn transform_map_entry(make: &Maker, _: &str, inner: Vec<IdedExpr>) -> ComprehensionParts {
    make.transform(Expr::Map(MapExpr::default()), inner, |made| {
        make.call(INSERT, vec![make.gathered(), made])
    })
}

/// Creates parts of expressions at the position of the macro.
struct Maker {
    id: u64,
}

impl Maker {
    fn part(&self, expr: Expr) -> IdedExpr {
        IdedExpr { id: self.id, expr }
    }

    fn comprehension(
        &self,
        range: IdedExpr,
        first: String,
        second: Option<String>,
        body: ComprehensionParts,
    ) -> IdedExpr {
        self.part(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: range,
            iter_var: first,
            iter_var2: second,
            accu_var: GATHERED.to_owned(),
            accu_init: body.init,
            loop_cond: body.condition,
            loop_step: body.step,
            result: body.result,
        })))
    }

    /// Returns an expression in which a variable holds a value.
    fn held(&self, name: &str, value: IdedExpr, result: IdedExpr) -> Expr {
        Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.part(Expr::List(ListExpr::default())),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: self.truth(false),
            loop_step: self.part(Expr::Ident(name.to_owned())),
            result,
        }))
    }

    fn truth(&self, flag: bool) -> IdedExpr {
        self.part(Expr::Literal(LiteralValue::Boolean(flag.into())))
    }

    fn gathered(&self) -> IdedExpr {
        self.part(Expr::Ident(GATHERED.to_owned()))
    }

    fn with_gathered(&self, inner: Vec<IdedExpr>) -> Vec<IdedExpr> {
        [self.gathered()].into_iter().chain(inner).collect()
    }

    fn call(&self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.part(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }))
    }

    /// Returns the comprehension that collects an expression of each item in a list.
    fn list(&self, inner: Vec<IdedExpr>) -> ComprehensionParts {
        self.transform(Expr::List(ListExpr::default()), inner, |made| {
            let one = self.part(Expr::List(ListExpr::new(vec![made])));
            self.call(op::ADD, vec![self.gathered(), one])
        })
    }

    /// Returns the comprehension that collects an expression of each item, or of the items that a condition selects.
    fn transform(
        &self,
        init: Expr,
        mut inner: Vec<IdedExpr>,
        gather: impl FnOnce(IdedExpr) -> IdedExpr,
    ) -> ComprehensionParts {
        let made = inner.pop().unwrap_or_default();
        let step = gather(made);
        let step = match inner.pop() {
            Some(condition) => self.call(op::CONDITIONAL, vec![condition, step, self.gathered()]),
            None => step,
        };
        ComprehensionParts {
            init: self.part(init),
            condition: self.truth(true),
            step,
            result: self.gathered(),
        }
    }
}

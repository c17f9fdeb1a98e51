//! Checks the rules of a definition's schemas when it is written: their types, and what they cost at most.
//!
//! A rule costs as often as there are values that it is about. Where a list or map around them has no bound, that is as
//! many as fit into a request.
//!
//! All versions of a definition share one budget for the rules of their defaults, and one bound of the errors.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::{
    DeclaredType, Meter, Names, Program, SizedType, Type, check_program, on_large_stack,
};
use serde_json::json;

use super::cel_value::escaped;
use super::declare::{declare, items_max, properties_max, values_of_request};
use super::default_checks;
use super::node::SchemaNode;
use super::outcome::SchemaErrors;
use super::path::Path;
use super::rule::Rule;

/// Maximum estimated cost of one rule.
const RULE_COST_MAX: u64 = 10_000_000;

/// Maximum estimated cost of all rules of a schema.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// Maximum number of rules that are named if all together cost too much.
const NAMED_MAX: usize = 4;

/// Minimum cost of a rule that is named then. Follows `TotalCost.ObserveExpressionCost`.
const NAMED_COST_MIN: u64 = SCHEMA_COST_MAX / 100;

/// Returns the errors in the rules of schemas at these paths. Of rules that an older schema has, only the cost is
/// checked, and that only if all older schemas kept within the limits.
pub(super) fn check_rules<'s>(
    schemas: impl Iterator<Item = (&'s str, &'s SchemaNode)>,
    old: &[&SchemaNode],
) -> Vec<FieldError> {
    let mut known = BTreeSet::new();
    for root in old {
        expressions(root, &mut known);
    }
    let is_costly = |root: &&SchemaNode| {
        let costly = check(
            root,
            &known,
            &mut Path::default(),
            &mut SchemaErrors::default(),
        );
        !costly.is_valid()
    };
    let was_costly = LazyCell::new(|| old.iter().any(is_costly));
    let (mut path, mut found, mut meter) = (Path::default(), SchemaErrors::default(), Meter::new());
    for (place, root) in schemas {
        let mark = path.member(place);
        // What ends the check of the defaults is among the errors.
        let _ = default_checks::check(root, &mut path, &mut meter, &mut found);
        let costly = check(root, &known, &mut path, &mut found);
        if !costly.is_valid() && !*was_costly {
            found.merge(costly);
        }
        path.leave(mark);
    }
    found.into_errors()
}

/// Adds the rules of a schema that cannot be run, and returns those that cost too much.
fn check(
    root: &SchemaNode,
    known: &BTreeSet<&str>,
    path: &mut Path,
    wrong: &mut SchemaErrors,
) -> SchemaErrors {
    let mut walk = RuleWalk {
        known,
        path,
        wrong,
        costly: SchemaErrors::default(),
        total: 0,
        costs: Vec::new(),
    };
    if root.ruled {
        on_large_stack(|| {
            let declared = declare(root, true);
            walk.node(root, declared.as_ref(), Some(1));
        });
        walk.check_total();
    }
    walk.costly
}

/// Collects all expressions of a schema's rules.
fn expressions<'n>(node: &'n SchemaNode, all: &mut BTreeSet<&'n str>) {
    if !node.ruled {
        return;
    }
    for rule in &node.rules {
        all.insert(&rule.text);
        all.extend(rule.message_text.as_deref());
    }
    let additional = node.additional.as_ref().and_then(|it| it.schema());
    let below = node.properties.values().chain(additional);
    for inner in below.chain(node.items.as_deref()) {
        expressions(inner, all);
    }
}

struct RuleWalk<'w> {
    known: &'w BTreeSet<&'w str>,
    path: &'w mut Path,
    /// Rules that cannot be run.
    wrong: &'w mut SchemaErrors,
    /// Rules that cost too much.
    costly: SchemaErrors,
    total: u64,
    costs: Vec<(u64, String)>,
}

/// An expression of a rule, with the type that its value must have.
struct RuleExpression<'a> {
    /// The name of the rule's member, for errors.
    member: &'static str,
    text: &'a str,
    program: &'a Program,
    gives: Type,
}

impl RuleWalk<'_> {
    /// `count` is how many such values there may be, if lists and maps around are bounded.
    fn node(&mut self, node: &SchemaNode, declared: Option<&DeclaredType>, count: Option<u64>) {
        if !node.ruled {
            return;
        }
        for (index, rule) in node.rules.iter().enumerate() {
            let mark = self.path.member("x-kubernetes-validations");
            let inner = self.path.index(index);
            self.rule(rule, declared, count);
            self.path.leave(inner);
            self.path.leave(mark);
        }
        for (name, property) in &node.properties {
            let inside = declared.and_then(|it| it.field(&escaped(name)));
            let mark = self.path.member("properties");
            let key = self.path.key(name);
            self.node(property, inside, count);
            self.path.leave(key);
            self.path.leave(mark);
        }
        let times = |bound: Option<i64>| {
            let bound = u64::try_from(bound?).unwrap_or_default();
            Some(count?.saturating_mul(bound))
        };
        let inside = declared.and_then(|it| match &it.form {
            SizedType::List(inside) | SizedType::Map(inside) => Some(inside.as_ref()),
            SizedType::Plain(_) => None,
        });
        if let Some(items) = node.items.as_deref() {
            let mark = self.path.member("items");
            self.node(items, inside, times(items_max(node)));
            self.path.leave(mark);
        }
        if let Some(values) = node.additional.as_ref().and_then(|it| it.schema()) {
            let mark = self.path.member("additionalProperties");
            self.node(values, inside, times(properties_max(node)));
            self.path.leave(mark);
        }
    }

    fn rule(&mut self, rule: &Rule, declared: Option<&DeclaredType>, count: Option<u64>) {
        let own = declared
            .cloned()
            .unwrap_or_else(|| DeclaredType::unsized_(Type::Dyn));
        let count = count.unwrap_or_else(|| values_of_request(own.min_bytes));
        let mut names = Names::default();
        let old = if rule.optional_old == Some(true) {
            DeclaredType {
                form: SizedType::Plain(Type::optional(own.type_of())),
                ..own.clone()
            }
        } else {
            own.clone()
        };
        names.variables.insert("self".to_owned(), own);
        names.variables.insert("oldSelf".to_owned(), old);
        let expression = RuleExpression {
            member: "rule",
            text: &rule.text,
            program: &rule.program,
            gives: Type::Bool,
        };
        let is_right = self.expression(&expression, &names, count);
        self.texts(rule, is_right);
        if let (Some(text), Some(program)) = (&rule.message_text, &rule.message_program) {
            let expression = RuleExpression {
                member: "messageExpression",
                text,
                program,
                gives: Type::String,
            };
            self.expression(&expression, &names, count);
        }
    }

    /// Checks what is said of a rule beside its expressions, of which `rule` is right or not.
    fn texts(&mut self, rule: &Rule, is_right: bool) {
        let mut wrong = |member: &str, kind: FieldErrorKind, detail: String| {
            let mark = self.path.member(member);
            let path = &*self.path;
            self.wrong
                .push(path, || FieldError::new(kind, path.field(), detail));
            self.path.leave(mark);
        };
        match &rule.message {
            Some(message) if message.trim().is_empty() => {
                let detail = format!("{}: must be non-empty if specified", json!(message));
                wrong("message", FieldErrorKind::Invalid, detail);
            }
            None if rule.text.contains(['\n', '\r']) => {
                let detail = "message must be specified if rule contains line breaks";
                wrong("message", FieldErrorKind::Required, detail.to_owned());
            }
            _ => {}
        }
        if let Some(optional) = rule.optional_old.filter(|_| !rule.uses_old || !is_right) {
            let detail = format!("{optional}: may not be set if oldSelf is not used in rule");
            wrong("optionalOldSelf", FieldErrorKind::Invalid, detail);
        }
    }

    /// Returns true if an expression can be evaluated.
    fn expression(&mut self, expression: &RuleExpression<'_>, names: &Names, count: u64) -> bool {
        let mark = self.path.member(expression.member);
        let is_right = self.expression_here(expression, names, count);
        self.path.leave(mark);
        is_right
    }

    fn expression_here(
        &mut self,
        expression: &RuleExpression<'_>,
        names: &Names,
        count: u64,
    ) -> bool {
        let RuleExpression {
            member,
            text,
            program,
            gives,
        } = expression;
        let is_message = *gives == Type::String;
        let wrong = match check_program(text, program, names) {
            Ok(checked) if checked.gives == *gives => {
                self.cost(member, checked.cost.saturating_mul(count));
                return true;
            }
            Ok(_) if is_message => "messageExpression must evaluate to a string".to_owned(),
            Ok(_) => "cel expression must evaluate to a bool".to_owned(),
            Err(error) if is_message => format!("messageExpression compilation failed: {error}"),
            Err(error) => format!("compilation failed: {error}"),
        };
        if !self.known.contains(text) {
            let path = &*self.path;
            self.wrong.push(path, || {
                FieldError::invalid(path.field(), &json!(text), wrong)
            });
        }
        false
    }

    fn cost(&mut self, member: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost > RULE_COST_MAX {
            let what = format!("estimated {member} cost");
            let why = too_costly(&what, cost, RULE_COST_MAX);
            self.forbid(Path::field, why);
        }
        if cost < NAMED_COST_MIN {
            return;
        }
        self.costs.push((cost, self.path.field()));
        self.costs.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.costs.truncate(NAMED_MAX);
    }

    fn check_total(&mut self) {
        if self.total <= SCHEMA_COST_MAX {
            return;
        }
        for (_, field) in std::mem::take(&mut self.costs) {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.forbid(|_| field, why.to_owned());
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let why = too_costly(what, self.total, SCHEMA_COST_MAX);
        self.forbid(Path::field, why);
    }

    fn forbid(&mut self, field: impl FnOnce(&Path) -> String, why: String) {
        let path = &*self.path;
        self.costly
            .push(path, || FieldError::forbidden(field(path), why));
    }
}

#[allow(clippy::cast_precision_loss)] // a rough figure
fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

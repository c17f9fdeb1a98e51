//! Checks the rules of a schema when it is written: their types, and what they cost at most.
//!
//! A rule costs as often as there are values that it is about. Where a list or map around them has no bound, that is as
//! many as fit into a request.

use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::{Declared, Form, Meter, Names, Program, Type, check_program, on_large_stack};
use serde_json::json;

use super::cel_value::escaped;
use super::declare::{declare, items_max, properties_max, values_of_request};
use super::evaluate::evaluate;
use super::node::Node;
use super::path::Path;
use super::rules::Rule;

/// Maximum estimated cost of one rule.
const RULE_COST_MAX: u64 = 10_000_000;

/// Maximum estimated cost of all rules of a schema.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// Maximum number of rules that are named if all together cost too much.
const NAMED_MAX: usize = 4;

/// Minimum cost of a rule that is named then. Follows `TotalCost.ObserveExpressionCost`.
const NAMED_COST_MIN: u64 = SCHEMA_COST_MAX / 100;

/// Returns the errors in the rules of a schema. Of rules that an older schema has, only the cost is checked.
pub(super) fn check_rules(root: &Node, known: &BTreeSet<&str>) -> RuleErrors {
    let mut walk = Walk {
        known,
        path: Path::default(),
        found: RuleErrors::default(),
        total: 0,
        costs: Vec::new(),
        additional_level: 0,
        defaults: Meter::new(),
    };
    if root.ruled {
        on_large_stack(|| {
            let declared = declare(root, true);
            walk.node(root, declared.as_ref(), Some(1));
        });
        walk.check_total();
    }
    walk.found
}

/// Collects all expressions of a schema's rules.
pub(super) fn expressions<'n>(node: &'n Node, all: &mut BTreeSet<&'n str>) {
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

/// The errors in the validation rules of a schema.
#[derive(Debug, Default)]
pub(super) struct RuleErrors {
    /// Rules that cannot be run.
    pub(super) wrong: Vec<FieldError>,
    /// Rules that cost too much.
    pub(super) costly: Vec<FieldError>,
}

struct Walk<'w> {
    known: &'w BTreeSet<&'w str>,
    path: Path,
    found: RuleErrors,
    total: u64,
    costs: Vec<(u64, String)>,
    /// The number of `additionalProperties` around. Defaults in these are not checked.
    additional_level: usize,
    /// The cost that the rules of all defaults may still have.
    defaults: Meter,
}

/// An expression of a rule, with the type that its value must have.
struct Expression<'a> {
    /// The name of the rule's member, for errors.
    member: &'static str,
    text: &'a str,
    program: &'a Program,
    gives: Type,
}

impl Walk<'_> {
    /// `count` is how many such values there may be, if lists and maps around are bounded.
    fn node(&mut self, node: &Node, declared: Option<&Declared>, count: Option<u64>) {
        if !node.ruled {
            return;
        }
        self.default(node);
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
            Form::List(inside) | Form::Map(inside) => Some(inside.as_ref()),
            Form::Plain(_) => None,
        });
        if let Some(items) = node.items.as_deref() {
            let mark = self.path.member("items");
            self.node(items, inside, times(items_max(node)));
            self.path.leave(mark);
        }
        if let Some(values) = node.additional.as_ref().and_then(|it| it.schema()) {
            let mark = self.path.member("additionalProperties");
            self.additional_level += 1;
            self.node(values, inside, times(properties_max(node)));
            self.additional_level -= 1;
            self.path.leave(mark);
        }
    }

    /// Checks that a default breaks no rule, neither as a value that stays nor as a new one. Follows `ValidateDefaults`.
    fn default(&mut self, node: &Node) {
        let Some(default) = node.default.as_ref().filter(|_| self.additional_level == 0) else {
            return;
        };
        let mark = self.path.member("default");
        for old in [Some(default), None] {
            let path = self.path.clone();
            let broken = evaluate(node, default, old, path, &mut self.defaults);
            if !broken.is_empty() {
                self.found.wrong.extend(broken);
                break;
            }
        }
        self.path.leave(mark);
    }

    fn rule(&mut self, rule: &Rule, declared: Option<&Declared>, count: Option<u64>) {
        let own = declared
            .cloned()
            .unwrap_or_else(|| Declared::unsized_(Type::Dyn));
        let count = count.unwrap_or_else(|| values_of_request(own.min_bytes));
        let mut names = Names::default();
        let old = if rule.optional_old == Some(true) {
            Declared {
                form: Form::Plain(Type::optional(own.type_of())),
                ..own.clone()
            }
        } else {
            own.clone()
        };
        names.variables.insert("self".to_owned(), own);
        names.variables.insert("oldSelf".to_owned(), old);
        let expression = Expression {
            member: "rule",
            text: &rule.text,
            program: &rule.program,
            gives: Type::Bool,
        };
        let is_right = self.expression(&expression, &names, count);
        self.texts(rule, is_right);
        if let (Some(text), Some(program)) = (&rule.message_text, &rule.message_program) {
            let expression = Expression {
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
            let error = FieldError::new(kind, self.path.field(), detail);
            self.path.leave(mark);
            self.found.wrong.push(error);
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
    fn expression(&mut self, expression: &Expression<'_>, names: &Names, count: u64) -> bool {
        let Expression {
            member,
            text,
            program,
            gives,
        } = expression;
        let mark = self.path.member(member);
        let field = self.path.field();
        self.path.leave(mark);
        let is_message = *gives == Type::String;
        let wrong = match check_program(text, program, names) {
            Ok(checked) if checked.gives == *gives => {
                self.cost(member, field, checked.cost.saturating_mul(count));
                return true;
            }
            Ok(_) if is_message => "messageExpression must evaluate to a string".to_owned(),
            Ok(_) => "cel expression must evaluate to a bool".to_owned(),
            Err(error) if is_message => format!("messageExpression compilation failed: {error}"),
            Err(error) => format!("compilation failed: {error}"),
        };
        if !self.known.contains(text) {
            let error = FieldError::invalid(field, &json!(text), wrong);
            self.found.wrong.push(error);
        }
        false
    }

    fn cost(&mut self, member: &str, field: String, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost > RULE_COST_MAX {
            let what = format!("estimated {member} cost");
            self.forbid(field.clone(), too_costly(&what, cost, RULE_COST_MAX));
        }
        if cost < NAMED_COST_MIN {
            return;
        }
        self.costs.push((cost, field));
        self.costs.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.costs.truncate(NAMED_MAX);
    }

    fn check_total(&mut self) {
        if self.total <= SCHEMA_COST_MAX {
            return;
        }
        for (_, field) in std::mem::take(&mut self.costs) {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.forbid(field, why.to_owned());
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let why = too_costly(what, self.total, SCHEMA_COST_MAX);
        self.forbid(String::new(), why);
    }

    fn forbid(&mut self, field: String, why: String) {
        let error = FieldError::new(FieldErrorKind::Forbidden, field, why);
        self.found.costly.push(error);
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

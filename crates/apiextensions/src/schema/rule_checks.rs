//! Checks the rules of a definition's schemas when it is written: their types, and what they cost at most.
//!
//! A rule costs as often as there are values that it is about. Where a list or map around them has no bound, that is as
//! many as fit into a request.
//!
//! All versions of a definition share one budget for the rules of their defaults, and one bound of the errors.

use std::collections::BTreeSet;

use ringwatch_apimachinery::go_text::bad_value;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::{
    DeclaredType, Meter, Names, Program, SizedType, Type, check_program, on_large_stack,
};
use serde_json::Value;

use super::StructuralSchema;
use super::cel_value::escaped;
use super::declare::{declare, declare_inner, items_max, properties_max, values_of_request};
use super::default_checks;
use super::node::{Additional, ListType, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;
use super::rule::Rule;
use super::rules::{of_message, shown};

/// Maximum estimated cost of one rule.
const RULE_COST_MAX: u64 = 10_000_000;

/// Maximum estimated cost of all rules of a schema.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// Maximum number of rules that are named if all together cost too much.
const NAMED_MAX: usize = 4;

/// Minimum cost of a rule that is named then. Follows `TotalCost.ObserveExpressionCost`.
const NAMED_COST_MIN: u64 = SCHEMA_COST_MAX / 100;

/// A check of the rules of a definition's schemas, one after the other. All versions share one budget for the rules of
/// their defaults. Of rules that an older schema has, only the cost is checked.
#[derive(Debug)]
pub struct RuleCheck<'o> {
    /// The expressions that an older schema has.
    known: BTreeSet<&'o str>,
    meter: Meter,
}

impl<'o> RuleCheck<'o> {
    /// Begins a check of schemas that replace older ones.
    pub fn beside(old: impl IntoIterator<Item = &'o StructuralSchema>) -> Self {
        let mut known = BTreeSet::new();
        for schema in old {
            expressions(&schema.root, &mut known);
        }
        let meter = Meter::new();
        Self { known, meter }
    }

    /// Returns the errors in the rules of a schema, which is at a path and was read from `said`: defaults that break
    /// rules, or else wrong types and costs beyond the limits. The costs of single rules count unless the schema has
    /// not changed.
    pub fn errors(
        &mut self,
        place: &str,
        mut schema: StructuralSchema,
        said: &Value,
        is_unchanged: bool,
    ) -> Vec<FieldError> {
        let root = &mut schema.root;
        if !root.ruled {
            return Vec::new();
        }
        let (mut path, mut found) = (Path::default(), SchemaErrors::default());
        let mark = path.member(place);
        let mut walk = RuleWalk {
            known: &self.known,
            path: &mut path,
            found: &mut found,
            is_unchanged,
            total: 0,
            costs: Vec::new(),
        };
        on_large_stack(|| {
            let declared = declare(root);
            let place = RulePlace {
                said,
                count: Some(1),
                uncorrelatable: None,
                is_below_rules: false,
                declares_itself: false,
            };
            walk.node(root, declared.as_ref(), place);
        });
        walk.check_total();
        let mut of_defaults = SchemaErrors::default();
        // What ends the check of the defaults is among the errors.
        let _ = default_checks::check(root, &mut path, &mut self.meter, &mut of_defaults);
        path.leave(mark);
        if of_defaults.is_valid() {
            found.into_errors()
        } else {
            of_defaults.into_errors()
        }
    }
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
    found: &'w mut SchemaErrors,
    /// True if single rules may cost what they like.
    is_unchanged: bool,
    total: u64,
    costs: Vec<(u64, String)>,
}

/// The place of a schema among others.
#[derive(Clone, Copy)]
struct RulePlace<'s> {
    /// The schema as it is written.
    said: &'s Value,
    /// The number of such values that there may be, if lists and maps around are bounded.
    count: Option<u64>,
    /// The bytes of the path of the first schema around whose parts have no older values, if there is one.
    uncorrelatable: Option<usize>,
    /// True if a schema around has rules.
    is_below_rules: bool,
    /// True if the schema itself declares its type where the one around does not: nobody asks for the type around, or
    /// it is there but does not show this part. Follows `CELSchemaContext.TypeInfo`.
    declares_itself: bool,
}

impl RulePlace<'_> {
    /// Returns the place of the parts of a schema here, whose type is declared or not. Rules count even where they are
    /// not checked because of what else is wrong.
    fn around_parts(self, is_declared: bool) -> Self {
        let rules = self.said.get("x-kubernetes-validations");
        let rules = rules.and_then(Value::as_array);
        let is_below_rules = self.is_below_rules || rules.is_some_and(|it| !it.is_empty());
        Self {
            is_below_rules,
            declares_itself: !is_below_rules || is_declared,
            ..self
        }
    }
}

/// An expression of a rule, with the type that its value must have.
struct RuleExpression<'a> {
    /// The name of the rule's member, for errors.
    member: &'static str,
    text: &'a str,
    program: &'a mut Result<Program, String>,
    gives: Type,
    /// The number of times that it may be evaluated for one object.
    times: u64,
    /// The rule as it is written.
    said: Option<&'a Value>,
}

impl RuleExpression<'_> {
    /// Returns the maximum cost, or why it cannot be evaluated, as errors tell it.
    fn cost(&self, names: &Names) -> Result<u64, String> {
        let program = self.program.as_ref().map_err(String::clone)?;
        let is_message = self.gives == Type::String;
        match check_program(self.text, program, names) {
            Ok(checked) if checked.gives == self.gives => Ok(checked.cost),
            Ok(_) if is_message => Err("messageExpression must evaluate to a string".to_owned()),
            Ok(_) => Err("cel expression must evaluate to a bool".to_owned()),
            Err(error) if is_message => Err(of_message(&error)),
            Err(error) => Err(error.detail()),
        }
    }
}

impl RuleWalk<'_> {
    fn node(
        &mut self,
        node: &mut SchemaNode,
        declared: Option<&DeclaredType>,
        place: RulePlace<'_>,
    ) {
        if !node.ruled {
            return;
        }
        let own = match declared {
            None if place.declares_itself => declare_inner(node),
            _ => None,
        };
        let declared = declared.or(own.as_ref());
        let place = place.around_parts(declared.is_some());
        self.parts(node, declared, place);
        match declared {
            Some(declared) => self.rules(node, declared, place),
            None => self.undeclared(node),
        }
    }

    fn parts(
        &mut self,
        node: &mut SchemaNode,
        declared: Option<&DeclaredType>,
        place: RulePlace<'_>,
    ) {
        let said = |name: &str| place.said.get(name).unwrap_or(&Value::Null);
        let times = |bound: Option<i64>| {
            let bound = u64::try_from(bound?).unwrap_or_default();
            Some(place.count?.saturating_mul(bound))
        };
        let here = Some(self.path.as_str().len());
        let inside = declared.and_then(|it| match &it.form {
            SizedType::List(inside) | SizedType::Map(inside) => Some(inside.as_ref()),
            SizedType::Plain(_) => None,
        });
        let count = times(properties_max(node));
        if let Some(Additional::Schema(values)) = &mut node.additional {
            let mark = self.path.member("additionalProperties");
            let inner = RulePlace {
                said: said("additionalProperties"),
                count,
                ..place
            };
            self.node(values, inside, inner);
            self.path.leave(mark);
        }
        // Follows `MapIsCorrelatable`, which does not know other words.
        let map_type = said("x-kubernetes-map-type").as_str();
        let is_correlatable = map_type.is_none_or(|it| ["granular", "atomic"].contains(&it));
        for (name, property) in &mut node.properties {
            let inside = declared.and_then(|it| it.field(&escaped(name)));
            let mark = self.path.member("properties");
            let key = self.path.key(name);
            let inner = RulePlace {
                said: said("properties").get(name).unwrap_or(&Value::Null),
                uncorrelatable: place
                    .uncorrelatable
                    .or_else(|| here.filter(|_| !is_correlatable)),
                ..place
            };
            self.node(property, inside, inner);
            self.path.leave(key);
            self.path.leave(mark);
        }
        let count = times(items_max(node));
        if let Some(items) = node.items.as_deref_mut() {
            let has_keys = matches!(node.list, ListType::Map(_));
            let mark = self.path.member("items");
            let inner = RulePlace {
                said: said("items"),
                count,
                uncorrelatable: place.uncorrelatable.or_else(|| here.filter(|_| !has_keys)),
                ..place
            };
            self.node(items, inside, inner);
            self.path.leave(mark);
        }
    }

    fn rules(&mut self, node: &mut SchemaNode, declared: &DeclaredType, place: RulePlace<'_>) {
        for (index, rule) in node.rules.iter_mut().enumerate() {
            let mark = self.path.member("x-kubernetes-validations");
            let inner = self.path.index(index);
            let said = place.said.get("x-kubernetes-validations");
            let said = said.and_then(|it| it.get(index));
            self.rule(rule, said, declared, place);
            self.path.leave(inner);
            self.path.leave(mark);
        }
    }

    /// Says that there is no type of the values that the rules of a schema are about, if it has any.
    fn undeclared(&mut self, node: &SchemaNode) {
        if node.rules.is_empty() {
            return;
        }
        let mark = self.path.member("x-kubernetes-validations");
        let path = &*self.path;
        self.found.push(path, || {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            FieldError::new(FieldErrorKind::Internal, path.field(), why)
        });
        self.path.leave(mark);
    }

    fn rule(
        &mut self,
        rule: &mut Rule,
        said: Option<&Value>,
        declared: &DeclaredType,
        place: RulePlace<'_>,
    ) {
        let own = declared.clone();
        let count = place.count;
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
            program: &mut rule.program,
            gives: Type::Bool,
            times: count,
            said,
        };
        let is_right = self.expression(expression, &names);
        if let (Some(text), Some(program)) = (&rule.message_text, &mut rule.message_program)
            && is_right
        {
            let expression = RuleExpression {
                member: "messageExpression",
                text,
                program,
                gives: Type::String,
                // However many values may break the rule. Follows `MessageExpressionMaxCost`.
                times: 1,
                said,
            };
            self.expression(expression, &names);
        }
        self.older_values(rule, said, is_right, place);
    }

    /// Checks that a rule, which is right or not, finds the older values that it uses.
    fn older_values(
        &mut self,
        rule: &Rule,
        said: Option<&Value>,
        is_right: bool,
        place: RulePlace<'_>,
    ) {
        let uses_old = rule.uses_old && is_right;
        if let Some(bytes) = place.uncorrelatable.filter(|_| uses_old) {
            let around = self.path.as_str()[..bytes].to_owned();
            let text = said.and_then(|it| it.get("rule")).unwrap_or(&Value::Null);
            self.wrong("rule", || {
                let why =
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within";
                (bad_value(text), format!("{why} {around}"))
            });
        }
        if let Some(optional) = rule.optional_old.filter(|_| !uses_old) {
            self.wrong("optionalOldSelf", || {
                let why = "may not be set if oldSelf is not used in rule";
                (optional.to_string(), why.to_owned())
            });
        }
    }

    /// Adds an error about a member of the rule, which is shown with a text.
    fn wrong(&mut self, member: &str, said: impl FnOnce() -> (String, String)) {
        let mark = self.path.member(member);
        let path = &*self.path;
        self.found.push(path, || {
            let (shown, why) = said();
            let detail = format!("{shown}: {why}");
            FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
        });
        self.path.leave(mark);
    }

    /// Returns true if an expression can be evaluated. What is wrong with it takes the place of its program.
    fn expression(&mut self, expression: RuleExpression<'_>, names: &Names) -> bool {
        let mark = self.path.member(expression.member);
        let cost = expression.cost(names);
        let is_right = cost.is_ok();
        match cost {
            Ok(cost) => self.cost(expression.member, cost.saturating_mul(expression.times)),
            Err(why) if expression.program.is_err() || !self.known.contains(expression.text) => {
                let path = &*self.path;
                self.found.push(path, || {
                    let rule = expression.said.and_then(Value::as_object).map(shown);
                    let detail = format!("{}: {why}", rule.unwrap_or_default());
                    FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
                });
                *expression.program = Err(why);
            }
            Err(_) => {}
        }
        self.path.leave(mark);
        is_right
    }

    fn cost(&mut self, member: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost > RULE_COST_MAX && !self.is_unchanged {
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
        self.found
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

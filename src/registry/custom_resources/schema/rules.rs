//! Rules of a schema in CEL (`x-kubernetes-validations`), compiled when the schema is read.

use std::panic::catch_unwind;
use std::str::Chars;

use kube_cel::cel::Program;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};
use serde_json::{Map, Value};

use super::cel_value::TYPES;
use super::cost::{self, Cost};
use super::node::Node;
use super::read::Reader;
use crate::registry::FieldErrorKind;

/// Rules that a schema has at most, in all its parts.
pub(super) const RULES_MAX: usize = 1_000;

/// Bytes that a rule has at most.
const RULE_BYTES_MAX: usize = 16 << 10;

/// Levels of its tree that a rule has at most, as far as they can be seen in its text. The parser takes stack for each.
const RULE_LEVELS_MAX: usize = 100;

/// Levels that a bracket counts for.
const BRACKET_LEVELS: usize = 3;

/// Bytes of stack for the parser: unoptimised, it takes 35 KB a level.
const PARSER_STACK_BYTES: usize = 16 << 20;

/// The reasons that a rule may give.
const REASONS: [(&str, FieldErrorKind); 4] = [
    ("FieldValueInvalid", FieldErrorKind::Invalid),
    ("FieldValueForbidden", FieldErrorKind::Forbidden),
    ("FieldValueRequired", FieldErrorKind::Required),
    ("FieldValueDuplicate", FieldErrorKind::Duplicate),
];

/// What rules may name beside their own variables and types: the value, and what it was.
const NAMES: [&str; 2] = ["self", "oldSelf"];

/// What stands before the name of a function.
const NAMESPACES: [&str; 10] = [
    "base64",
    "cidr",
    "format",
    "ip",
    "jsonpatch",
    "lists",
    "math",
    "optional",
    "sets",
    "strings",
];

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// What it says, for messages.
    pub(super) text: String,
    /// What is run.
    pub(super) program: Program,
    /// What to say when it does not hold.
    pub(super) message: Option<String>,
    /// What makes a better message.
    pub(super) message_program: Option<Program>,
    /// As what to say it.
    pub(super) reason: FieldErrorKind,
    /// Of which member to say it, empty for the value itself.
    pub(super) field: String,
    /// Whether it compares with an older value.
    pub(super) uses_old: bool,
    /// Whether it runs without an older value too.
    pub(super) optional_old: bool,
    /// How much work it is.
    pub(super) cost: Cost,
}

impl Reader {
    /// The rules of a schema; `node` is the schema without them.
    pub(super) fn rules(&mut self, schema: &Map<String, Value>, node: &Node) -> Vec<Rule> {
        let mut rules = Vec::new();
        let Some(Value::Array(all)) = schema.get("x-kubernetes-validations") else {
            return rules;
        };
        for (index, rule) in all.iter().enumerate() {
            let mark = self.path.member("x-kubernetes-validations");
            let inner = self.path.index(index);
            self.rules_read += 1;
            if self.rules_read > RULES_MAX {
                self.invalid(rule, &format!("must not have more than {RULES_MAX} rules"));
            } else if let Value::Object(rule) = rule {
                rules.extend(self.rule(rule, node));
            } else {
                self.invalid(rule, "must be a rule");
            }
            self.path.leave(inner);
            self.path.leave(mark);
            if self.rules_read > RULES_MAX {
                break;
            }
        }
        rules
    }

    fn rule(&mut self, rule: &Map<String, Value>, node: &Node) -> Option<Rule> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str);
        let source = text("rule").unwrap_or_default().trim();
        if source.is_empty() {
            self.require("rule", "rule is not specified");
            return None;
        }
        let message = text("message").filter(|message| !message.is_empty());
        if message.is_some_and(|message| message.trim().contains(['\n', '\r'])) {
            self.wrong("message", message, "message must not contain line breaks");
        }
        let reason = text("reason").unwrap_or("FieldValueInvalid");
        let known = REASONS.iter().find(|(name, _)| *name == reason);
        if known.is_none() {
            self.not_supported("reason", reason, &REASONS.map(|(name, _)| name));
        }
        let program = self.program("rule", source)?;
        let message_program = match text("messageExpression") {
            Some(source) => Some(self.program("messageExpression", source)?),
            None => None,
        };
        let uses_old = program.references().has_variable("oldSelf");
        let optional_old = rule
            .get("optionalOldSelf")
            .is_some_and(|value| value == true);
        let mut cost = cost::of(program.expression());
        if let Some(message) = &message_program {
            cost.add(cost::of(message.expression()));
        }
        Some(Rule {
            text: source.to_owned(),
            message: message.map(|message| message.trim().to_owned()),
            reason: known?.1,
            field: self.field_path(text("fieldPath"), node)?,
            program,
            message_program,
            uses_old,
            optional_old,
            cost,
        })
    }

    fn program(&mut self, name: &str, source: &str) -> Option<Program> {
        if source.len() > RULE_BYTES_MAX || levels(source) > RULE_LEVELS_MAX {
            self.wrong(name, None, "compilation failed: expression is too large");
            return None;
        }
        let program = match compile(source) {
            Ok(program) => program,
            Err(error) => {
                self.wrong(name, Some(source), &format!("compilation failed: {error}"));
                return None;
            }
        };
        let mut bound = Vec::new();
        if let Some(unknown) = undeclared(program.expression(), &mut bound) {
            let why = format!(
                "compilation failed: undeclared reference to '{unknown}' (in container '')"
            );
            self.wrong(name, Some(source), &why);
            return None;
        }
        Some(program)
    }

    fn wrong(&mut self, name: &str, value: Option<&str>, why: &str) {
        self.under(name, |reader| {
            reader.invalid(&Value::from(value.unwrap_or_default()), why)
        });
    }

    /// The path of the member that a rule is about, as it goes on after the value's own path.
    fn field_path(&mut self, written: Option<&str>, node: &Node) -> Option<String> {
        let Some(written) = written.filter(|written| !written.is_empty()) else {
            return Some(String::new());
        };
        let Some(path) = normalized(written, node) else {
            let why = format!(
                "fieldPath must be a valid path: {written} does not refer to a valid field"
            );
            self.wrong("fieldPath", Some(written), &why);
            return None;
        };
        Some(path)
    }
}

/// Compiles an expression. The parser panics at some limits of its own; that is an error of the expression.
fn compile(source: &str) -> Result<Program, String> {
    let parse = || catch_unwind(|| Program::compile(source));
    match stacker::grow(PARSER_STACK_BYTES, parse) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("expression is too large".to_owned()),
    }
}

/// How deep the tree of an expression may be: open brackets, and operators that follow each other. What is between
/// `&&`, `||` and commas stands side by side.
fn levels(source: &str) -> usize {
    let mut open = Vec::new();
    let (mut run, mut depth, mut deepest) = (0, 0, 0);
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => skip_text(&mut letters, letter),
            '(' | '[' | '{' => {
                open.push(run);
                depth += BRACKET_LEVELS;
                run = 0;
            }
            ')' | ']' | '}' => {
                depth = usize::saturating_sub(depth, run + BRACKET_LEVELS);
                run = open.pop().unwrap_or_default();
            }
            '&' | '|' | ',' => {
                depth = usize::saturating_sub(depth, run);
                run = 0;
            }
            '+' | '-' | '*' | '/' | '%' | '.' | '!' | '=' | '<' | '>' | '?' => {
                run += 1;
                depth += 1;
            }
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// After a quotation mark: what is quoted has no operators.
fn skip_text(letters: &mut Chars<'_>, quote: char) {
    while let Some(letter) = letters.next() {
        if letter == quote {
            return;
        }
        if letter == '\\' {
            letters.next();
        }
    }
}

/// Follows `.name` and `['name']` through a schema.
fn normalized(written: &str, node: &Node) -> Option<String> {
    let mut path = String::new();
    let mut node = node;
    let mut rest = written;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            (name, rest) = after.split_once("']")?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (name, rest) = after.split_at(end);
        }
        if node.properties.contains_key(name) {
            path.extend([".", name]);
        } else {
            path.extend(["[", name, "]"]);
        }
        node = node.member(name)?;
    }
    Some(path)
}

/// A name that nothing stands for, if there is one. `bound` are the variables of the loops around.
fn undeclared<'e>(expression: &'e IdedExpr, bound: &mut Vec<&'e str>) -> Option<&'e str> {
    match &expression.expr {
        Expr::Ident(name) => {
            let name = name.as_str();
            let known = NAMES.contains(&name) || TYPES.contains(&name) || bound.contains(&name);
            (!known).then_some(name)
        }
        Expr::Call(call) => {
            if call.func_name == "range" || call.func_name == "lists.range" {
                return Some("lists.range");
            }
            let target = call
                .target
                .as_deref()
                .filter(|target| !is_namespace(target));
            let mut parts = target.into_iter().chain(&call.args);
            parts.find_map(|part| undeclared(part, bound))
        }
        Expr::Select(select) => undeclared(&select.operand, bound),
        Expr::List(list) => list
            .elements
            .iter()
            .find_map(|part| undeclared(part, bound)),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                undeclared(&entry.key, bound).or_else(|| undeclared(&entry.value, bound))
            }
            EntryExpr::StructField(field) => undeclared(&field.value, bound),
        }),
        Expr::Comprehension(loops) => {
            let outside = undeclared(&loops.iter_range, bound);
            let depth = bound.len();
            bound.extend([loops.iter_var.as_str(), loops.accu_var.as_str()]);
            bound.extend(loops.iter_var2.as_deref());
            let inside = [
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ]
            .into_iter()
            .find_map(|part| undeclared(part, bound));
            bound.truncate(depth);
            outside.or(inside)
        }
        Expr::Literal(_) | Expr::Unspecified => None,
        Expr::Struct(made) => Some(&made.type_name),
    }
}

/// The first half of a function's name, such as `math` in `math.greatest`.
fn is_namespace(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if NAMESPACES.contains(&name.as_str()))
}

/// Whether a schema or one below it has rules.
pub(super) fn any(rules: &[Rule], node: &Node) -> bool {
    let additional = node
        .additional
        .as_ref()
        .and_then(|additional| additional.schema());
    let below = node
        .properties
        .values()
        .chain(additional)
        .chain(node.items.as_deref());
    !rules.is_empty() || below.into_iter().any(|below| below.ruled)
}

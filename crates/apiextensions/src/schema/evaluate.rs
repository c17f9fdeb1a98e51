//! Runs the rules of a schema on an object.
//!
//! ```text
//!   walk (value, older value) --convert--> self, oldSelf --run, metered--> errors
//! ```
//!
//! Older values are found by name, and in lists by the keys of a map list; in other lists nothing tells which
//! item was which. What has not changed is not run again, except by rules that compare: so a definition may
//! become stricter without breaking the objects that there are.

use std::ops::ControlFlow;

use kube_cel::cel::Value as CelValue;
use ringwatch_apimachinery::go_text::{bad_value, quoted};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_cel::{Failure, Meter, Scope, execute, none_value, on_large_stack, some_value};
use serde_json::Value;

use super::cel_value::to_cel;
use super::comparisons::Comparisons;
use super::kind::JsonType;
use super::node::SchemaNode;
use super::older_values::{OlderValue, OlderValues};
use super::outcome::SchemaErrors;
use super::path::Path;
use super::rule::Rule;

/// Bytes of a message that a rule makes.
const MESSAGE_BYTES_MAX: usize = 5 << 10;

/// Evaluates all rules that concern the value at a path, within a budget. Returns the errors, and whether further rules
/// may be run: not after one that costs too much.
pub(super) fn evaluate(
    root: &SchemaNode,
    object: &Value,
    old: Option<&Value>,
    path: &mut Path,
    meter: &mut Meter,
) -> (SchemaErrors, ControlFlow<()>) {
    let mut run = Run {
        path,
        outcome: SchemaErrors::default(),
        meter,
        comparisons: Comparisons::default(),
        older_values: OlderValues::default(),
    };
    let flow = if root.ruled {
        on_large_stack(|| run.node(root, object, old.and_then(OlderValue::new), false))
    } else {
        ControlFlow::Continue(())
    };
    (run.outcome, flow)
}

/// A value that rules are about.
struct Subject<'s, 'v> {
    node: &'v SchemaNode,
    value: &'s Value,
    /// The value as the rules see it.
    seen: CelValue,
    old: Option<&'s mut OlderValue<'v>>,
}

struct Run<'r, 'v> {
    /// The path that the walk has reached.
    path: &'r mut Path,
    /// The errors that were found so far.
    outcome: SchemaErrors,
    /// The cost that rules may still have.
    meter: &'r mut Meter,
    comparisons: Comparisons<'v>,
    older_values: OlderValues,
}

impl<'v> Run<'_, 'v> {
    fn node(
        &mut self,
        node: &'v SchemaNode,
        value: &Value,
        mut old: Option<OlderValue<'v>>,
        unchanged_above: bool,
    ) -> ControlFlow<()> {
        if !node.ruled || value.is_null() {
            return ControlFlow::Continue(());
        }
        let unchanged = unchanged_above
            || old
                .as_ref()
                .is_some_and(|old| self.comparisons.is_unchanged(node, value, old.value()));
        if !node.rules.is_empty() {
            self.rules(node, value, &mut old, unchanged)?;
        }
        match value {
            Value::Array(items) => self.items(node, items, old, unchanged),
            Value::Object(_) => self.members(node, value, old, unchanged),
            _ => ControlFlow::Continue(()),
        }
    }

    fn items(
        &mut self,
        node: &'v SchemaNode,
        items: &[Value],
        old: Option<OlderValue<'v>>,
        unchanged: bool,
    ) -> ControlFlow<()> {
        let Some(inner) = node.items.as_deref().filter(|inner| inner.ruled) else {
            return ControlFlow::Continue(());
        };
        let older = old.as_ref().and_then(|old| old.value().as_array());
        let older = older.map_or(&[][..], Vec::as_slice);
        let older = self.comparisons.older_items(node, older);
        for (index, item) in items.iter().enumerate() {
            let mark = self.path.index(index);
            let older = older.index_of(item);
            let older = older.and_then(|at| old.as_ref()?.item(at));
            let flow = self.node(inner, item, older, unchanged);
            self.path.leave(mark);
            flow?;
        }
        ControlFlow::Continue(())
    }

    fn members(
        &mut self,
        node: &'v SchemaNode,
        value: &Value,
        old: Option<OlderValue<'v>>,
        unchanged: bool,
    ) -> ControlFlow<()> {
        for (name, value) in value.as_object().into_iter().flatten() {
            let Some(inner) = node.member(name).filter(|inner| inner.ruled) else {
                continue;
            };
            let mark = self.path.member_of(node, name);
            let old = old.as_ref().and_then(|old| old.member(node, name));
            let flow = self.node(inner, value, old, unchanged);
            self.path.leave(mark);
            flow?;
        }
        ControlFlow::Continue(())
    }

    fn rules(
        &mut self,
        node: &'v SchemaNode,
        value: &Value,
        old: &mut Option<OlderValue<'v>>,
        unchanged: bool,
    ) -> ControlFlow<()> {
        let has_old = old.is_some();
        let runs = |rule: &&Rule| match (rule.uses_old, has_old) {
            (true, false) => rule.optional_old == Some(true),
            (true, true) => true,
            (false, _) => !unchanged,
        };
        let mut rules = node.rules.iter().filter(runs).peekable();
        if rules.peek().is_none() {
            return ControlFlow::Continue(());
        }
        let mut subject = Subject {
            node,
            value,
            seen: to_cel(value, Some(node)),
            old: old.as_mut(),
        };
        let mut scope = Scope::default();
        scope.add("self", subject.seen.clone());
        for rule in rules {
            if let Some(older) = self.older(rule, &mut subject) {
                scope.add("oldSelf", older);
            }
            self.rule(rule, &scope, &mut subject)?;
        }
        ControlFlow::Continue(())
    }

    /// Returns `oldSelf` of a rule, if it uses that.
    fn older(&mut self, rule: &Rule, subject: &mut Subject<'_, 'v>) -> Option<CelValue> {
        if !rule.uses_old {
            return None;
        }
        let old = subject.old.as_deref_mut();
        if rule.optional_old == Some(true) {
            let older = old.map(|old| self.older_values.plain(old));
            return Some(older.map_or_else(none_value, some_value));
        }
        old.map(|old| self.older_values.typed(subject.node, old))
    }

    fn rule(
        &mut self,
        rule: &Rule,
        scope: &Scope,
        subject: &mut Subject<'_, 'v>,
    ) -> ControlFlow<()> {
        let node = subject.node;
        let words = rule.message.as_deref().unwrap_or(&rule.text).trim();
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => {
                self.type_error(node, || format!("rule compile error: {why}"));
                return ControlFlow::Continue(());
            }
        };
        let failure = match execute(program, scope, self.meter) {
            Ok(CelValue::Bool(true)) => return ControlFlow::Continue(()),
            Ok(_) => return self.broken(rule, subject),
            Err(failure) => failure,
        };
        self.type_error(node, || match &failure {
            Failure::NoOverload | Failure::NoOverloadOf(_) => format!(
                "'{failure}': call arguments did not match a supported operator, function or macro signature for rule: {words}"
            ),
            Failure::Other(_) | Failure::NoHash(_) => format!("{failure} evaluating rule: {words}"),
            Failure::CallLimit | Failure::TooLarge => format!(
                "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {words}"
            ),
            Failure::OutOfBudget => failure.to_string(),
        });
        match failure {
            Failure::NoOverload
            | Failure::NoOverloadOf(_)
            | Failure::NoHash(_)
            | Failure::Other(_) => ControlFlow::Continue(()),
            Failure::CallLimit | Failure::TooLarge | Failure::OutOfBudget => ControlFlow::Break(()),
        }
    }

    /// Says that a rule does not hold.
    fn broken(&mut self, rule: &Rule, subject: &mut Subject<'_, 'v>) -> ControlFlow<()> {
        let made = match self.message(rule, subject) {
            Ok(made) => made,
            Err(why) => {
                self.error_of_type(subject.node, &rule.field, || why);
                return ControlFlow::Break(());
            }
        };
        let text = || match &rule.message {
            Some(message) => message.trim().to_owned(),
            None => format!("failed rule: {}", rule.text.trim()),
        };
        let (path, outcome) = (&*self.path, &mut self.outcome);
        outcome.push(path, || {
            let text = made.unwrap_or_else(text);
            let field = field_of(path, &rule.field);
            let detail = detail(rule.reason, subject.node, subject.value, text);
            FieldError::new(rule.reason, field, detail)
        });
        ControlFlow::Continue(())
    }

    /// Returns the message that a rule makes, if it is a good one. It sees an older value if there is one and any rule
    /// of the node uses that, and never an optional one, whatever its type is.
    ///
    /// # Errors
    /// Why no further rules are run: it costs too much.
    fn message(
        &mut self,
        rule: &Rule,
        subject: &mut Subject<'_, 'v>,
    ) -> Result<Option<String>, String> {
        let Some(Ok(program)) = &rule.message_program else {
            return Ok(None);
        };
        let node = subject.node;
        let mut scope = Scope::default();
        scope.add("self", subject.seen.clone());
        if let Some(old) = subject.old.as_deref_mut()
            && node.rules.iter().any(|rule| rule.uses_old)
        {
            scope.add("oldSelf", self.older_values.typed(node, old));
        }
        let text = match execute(program, &scope, self.meter) {
            Ok(CelValue::String(text)) => text,
            Err(failure @ (Failure::CallLimit | Failure::TooLarge | Failure::OutOfBudget)) => {
                return Err(too_costly_message(rule, &failure));
            }
            _ => return Ok(None),
        };
        let text = text.trim();
        let good = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        Ok(good.then(|| text.to_owned()))
    }

    /// Adds an error that shows the type instead of the value, as kube-apiserver does.
    fn type_error(&mut self, node: &SchemaNode, why: impl FnOnce() -> String) {
        self.error_of_type(node, "", why);
    }

    /// Adds such an error about a member of the value, or about that itself.
    fn error_of_type(&mut self, node: &SchemaNode, member: &str, why: impl FnOnce() -> String) {
        let (path, outcome) = (&*self.path, &mut self.outcome);
        outcome.push(path, || {
            let kind = node.kind.map_or("", JsonType::name);
            let detail = format!("{kind:?}: {}", why());
            FieldError::new(FieldErrorKind::Invalid, field_of(path, member), detail)
        });
    }
}

/// Returns the words about a `messageExpression` that costs too much.
fn too_costly_message(rule: &Rule, failure: &Failure) -> String {
    if *failure == Failure::OutOfBudget {
        return "messageExpression evaluation failed due to running out of cost budget, \
                no further validation rules will be run"
            .to_owned();
    }
    let text = quoted(rule.message_text.as_deref().unwrap_or_default());
    format!(
        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {text}"
    )
}

/// Returns the path of a member of what is at a place, or of that itself.
fn field_of(path: &Path, member: &str) -> String {
    if member.is_empty() {
        return path.field();
    }
    let field = format!("{}{member}", path.as_str());
    field
        .strip_prefix('.')
        .map_or_else(|| field.clone(), str::to_owned)
}

/// Returns the text after the error's kind. Objects and lists are not shown.
fn detail(reason: FieldErrorKind, node: &SchemaNode, value: &Value, text: String) -> String {
    let compound = matches!(node.kind, Some(JsonType::Object | JsonType::Array));
    match (reason, compound) {
        (FieldErrorKind::Invalid, false) => format!("{}: {text}", bad_value(value)),
        (FieldErrorKind::Duplicate, false) => bad_value(value),
        (FieldErrorKind::Duplicate, true) => String::new(),
        _ => text,
    }
}

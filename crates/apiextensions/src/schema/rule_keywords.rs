//! Checks what the rules of a schema say, their expressions aside.

use std::cell::OnceCell;

use ringwatch_apimachinery::go_text::quoted;
use serde_json::{Map, Value, json};

use super::keyword_checks::{KeywordWalk, UNSUPPORTED, below, says, text};
use super::rules::{REASONS, RULES_MAX, names_in};
use super::schema_reader::SCHEMA_LEVELS_MAX;

const RULES: &str = "x-kubernetes-validations";

impl KeywordWalk<'_> {
    /// Checks what rules say, their expressions aside.
    pub(super) fn rules(&mut self, schema: &Map<String, Value>) {
        let rules = schema.get(RULES).and_then(Value::as_array);
        let rules = rules.into_iter().flatten().enumerate().take(RULES_MAX);
        // Looked at once for all rules, since a schema can have many of them and be large.
        let readable = OnceCell::new();
        let readable = || *readable.get_or_init(|| is_readable(schema, 0));
        for (index, rule) in rules {
            let Some(rule) = rule.as_object() else {
                continue;
            };
            let mark = self.path.member(RULES);
            let inner = self.path.index(index);
            self.rule(rule, schema, &readable);
            self.path.leave(inner);
            self.path.leave(mark);
        }
    }

    fn rule(
        &mut self,
        rule: &Map<String, Value>,
        schema: &Map<String, Value>,
        readable: &dyn Fn() -> bool,
    ) {
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
        let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if source.is_empty() {
            self.require("rule", "rule is not specified");
        } else if is_blank(message) {
            self.invalid(
                "message",
                &quoted(message),
                "must be non-empty if specified",
            );
        } else if has_breaks(message.trim()) {
            self.invalid("message", &quoted(message), "must not contain line breaks");
        } else if has_breaks(source) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            self.require("message", why);
        }
        if is_blank(text(rule, "messageExpression")) {
            let why = "messageExpression must be non-empty if specified";
            self.require("messageExpression", why);
        }
        let reason = rule.get("reason").and_then(Value::as_str);
        let known = REASONS.map(|(name, _)| name);
        if let Some(reason) = reason.filter(|reason| !known.contains(reason)) {
            self.not_supported("reason", reason, &known);
        }
        let field = text(rule, "fieldPath");
        if is_blank(field) {
            self.invalid(
                "fieldPath",
                &quoted(field),
                "must be non-empty if specified",
            );
        }
        if has_breaks(field) {
            self.invalid("fieldPath", &quoted(field), "must not contain line breaks");
        }
        if !leads_somewhere(schema, field) && readable() {
            self.invalid("fieldPath", &quoted(field), "must be a valid path");
        }
    }
}

/// Returns true if a schema, and those in it, have only keywords that a structure can have.
fn is_readable(schema: &Map<String, Value>, level: usize) -> bool {
    let unsupported = UNSUPPORTED.iter().chain(&["$schema"]);
    !unsupported.into_iter().any(|name| says(schema, name))
        && schema.get("x-kubernetes-preserve-unknown-fields") != Some(&json!(false))
        && below(schema)
            .filter_map(Value::as_object)
            .all(|inner| level == SCHEMA_LEVELS_MAX || is_readable(inner, level + 1))
}

/// Returns true if a path leads to a member that a schema has. Follows `ValidFieldPath`.
fn leads_somewhere(schema: &Map<String, Value>, path: &str) -> bool {
    let Some(names) = names_in(path) else {
        return false;
    };
    let mut schema = Some(schema);
    for name in names {
        let Some(here) = schema else { return false };
        let inner = match here.get("properties") {
            Some(all) => all.get(&*name),
            None => here.get("additionalProperties").filter(|it| !it.is_null()),
        };
        let Some(inner) = inner else { return false };
        schema = inner.as_object();
    }
    true
}

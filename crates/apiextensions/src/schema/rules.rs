//! Reads and compiles the rules of a schema (`x-kubernetes-validations`).

use std::borrow::Cow;

use ringwatch_apimachinery::{FieldErrorKind, go_text};
use ringwatch_cel::{CompileError, compile};
use serde_json::{Map, Value};

use super::node::SchemaNode;
use super::rule::Rule;
use super::schema_reader::SchemaReader;

/// Rules that a schema has at most, in all its parts.
pub(super) const RULES_MAX: usize = 1_000;

/// Bytes of its expressions at most, together. Checking as many takes seconds.
pub(super) const RULE_BYTES_MAX: usize = 1 << 20;

/// The reasons that a rule may give, sorted as error messages list them.
pub(super) const REASONS: [(&str, FieldErrorKind); 4] = [
    ("FieldValueDuplicate", FieldErrorKind::Duplicate),
    ("FieldValueForbidden", FieldErrorKind::Forbidden),
    ("FieldValueInvalid", FieldErrorKind::Invalid),
    ("FieldValueRequired", FieldErrorKind::Required),
];

impl SchemaReader {
    /// Returns the rules of a schema; `node` is the schema without them.
    pub(super) fn rules(&mut self, schema: &Map<String, Value>, node: &SchemaNode) -> Vec<Rule> {
        let mut rules = Vec::new();
        let Some(Value::Array(all)) = schema.get("x-kubernetes-validations") else {
            return rules;
        };
        for (index, rule) in all.iter().enumerate() {
            let mark = self.path.member("x-kubernetes-validations");
            let inner = self.path.index(index);
            self.rules_read += 1;
            self.rule_bytes += ["rule", "messageExpression"]
                .map(|name| rule.get(name).and_then(Value::as_str).map_or(0, str::len))
                .into_iter()
                .sum::<usize>();
            let too_much = self.rules_read > RULES_MAX || self.rule_bytes > RULE_BYTES_MAX;
            if too_much {
                let why = format!(
                    "must not have more than {RULES_MAX} rules of {RULE_BYTES_MAX} bytes together"
                );
                self.invalid(&Value::from(""), &why);
            } else if let Value::Object(rule) = rule {
                rules.extend(read_rule(rule, node));
            } else {
                self.invalid(rule, "must be a rule");
            }
            self.path.leave(inner);
            self.path.leave(mark);
            if too_much {
                break;
            }
        }
        rules
    }
}

/// Returns a rule; `node` is its schema. None if keywords of it are wrong.
fn read_rule(rule: &Map<String, Value>, node: &SchemaNode) -> Option<Rule> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str);
    let source = text("rule").unwrap_or_default();
    if source.trim().is_empty() {
        return None;
    }
    let message = text("message").filter(|message| !message.is_empty());
    let known = known_reason(text("reason").unwrap_or("FieldValueInvalid"));
    let program = compile(source).map_err(|error| error.detail());
    let message_text = text("messageExpression").filter(|it| !it.trim().is_empty());
    let message_program =
        message_text.map(|text| compile(text).map_err(|error| of_message(&error)));
    let uses_old = program.as_ref().is_ok_and(|it| it.names("oldSelf"));
    let optional_old = rule.get("optionalOldSelf").and_then(Value::as_bool);
    Some(Rule {
        text: source.to_owned(),
        message: message.map(str::to_owned),
        reason: known?,
        field: normalized(text("fieldPath").unwrap_or_default(), node)?,
        program,
        message_program,
        message_text: message_text.map(str::to_owned),
        uses_old,
        optional_old,
    })
}

/// Returns an error of a `messageExpression` as kube-apiserver words it.
pub(super) fn of_message(error: &CompileError) -> String {
    format!("messageExpression {} failed: {error}", error.step())
}

/// Returns a rule as errors show it: kube-apiserver's own type in JSON.
pub(super) fn shown(rule: &Map<String, Value>) -> String {
    let text = |name: &str| {
        let text = rule.get(name).and_then(Value::as_str);
        go_text::json(&text.unwrap_or_default().into())
    };
    let pointer = |name: &str| go_text::json(rule.get(name).unwrap_or(&Value::Null));
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text("rule"),
        text("message"),
        text("messageExpression"),
        pointer("reason"),
        text("fieldPath"),
        pointer("optionalOldSelf"),
    )
}

/// Returns the kind of the errors of a rule that gives this reason.
fn known_reason(reason: &str) -> Option<FieldErrorKind> {
    let known = REASONS.iter().find(|(name, _)| *name == reason);
    known.map(|(_, kind)| *kind)
}

/// Returns the path of the member that a rule is about, as it goes on after the value's own path.
fn normalized(given: &str, node: &SchemaNode) -> Option<String> {
    let mut path = String::new();
    let mut node = node;
    for name in names_in(given)? {
        if node.properties.contains_key(&*name) {
            path.extend([".", &*name]);
        } else {
            path.extend(["[", &*name, "]"]);
        }
        node = node.member(&name)?;
    }
    Some(path)
}

/// Returns the names in a path of `.name` and `['name']`; `None` if it is none. Follows `ValidFieldPath`.
pub(super) fn names_in(path: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut names = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let mut quotes = after.match_indices('\'').map(|(at, _)| at);
            let end = quotes.find(|at| !after[..*at].ends_with('\\'))?;
            (name, rest) = (unescaped(&after[..end])?, after[end..].strip_prefix("']")?);
        } else {
            let after = rest.strip_prefix('.').filter(|it| !it.is_empty())?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            (name, rest) = (after[..end].into(), &after[end..]);
        }
        names.push(name);
    }
    Some(names)
}

/// Returns a quoted name as it is; `None` if it has an escape that there is not. Follows `unescapeSingleQuote`.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('\\') {
        return Some(text.into());
    }
    let mut name = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        name.push(match letter {
            '\\' => match letters.next()? {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                same @ ('\'' | '\\') => same,
                _ => return None,
            },
            other => other,
        });
    }
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_kube_apiserver_reads_them() {
        for (path, names) in [
            ("", Some(vec![])),
            (".a.b['c.d']['e']", Some(vec!["a", "b", "c.d", "e"])),
            (r"['a\'b']", Some(vec!["a'b"])),
            (r"['a\\b\n']", Some(vec!["a\\b\n"])),
            (r"['\x']", None),
            ("['a'b']", None),
            ("['a'", None),
            (".", None),
            ("a", None),
        ] {
            let found = names_in(path);
            let found: Option<Vec<&str>> = found
                .as_ref()
                .map(|all| all.iter().map(|it| &**it).collect());
            assert_eq!(found, names, "{path}");
        }
    }
}

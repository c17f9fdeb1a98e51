//! The subset of JSONPath that columns of custom resources can use.
//!
//! A path consists of members (`.spec.color`, with `\.` for a dot in a name, or `['name']`), indices (`[0]`, `[-1]`),
//! wildcards (`[*]`) and filters (`[?(@.type=="Ready")]`).

use serde_json::Value;

/// A parsed path: the steps from an object to a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

/// Maximum number of steps of a path.
const STEPS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Member(String),
    /// The item at an index, which counts from the end if it is negative.
    Item(i64),
    /// The step to all items of a list, or all members of a map.
    All,
    /// The items of which the value at a path equals, or does not equal, a literal.
    Chosen {
        part: JsonPath,
        equal: bool,
        value: Value,
    },
}

impl JsonPath {
    /// Parses a path; returns `None` if it is malformed, has more than [`STEPS_MAX`] steps, or is beyond the supported
    /// subset.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner.strip_suffix('}')?;
        }
        let mut rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(name) = rest.strip_prefix('.') {
                member(name)?
            } else {
                bracketed(rest.strip_prefix('[')?)?
            };
            steps.extend(step);
            rest = after;
            if steps.len() > STEPS_MAX {
                return None;
            }
        }
        Some(Self(steps))
    }

    /// Returns the first value that the path leads to.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        find(&self.0, value)
    }
}

fn find<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Member(name) => find(rest, value.get(name)?),
        Step::Item(place) => {
            let items = value.as_array()?;
            let from_end = || {
                items
                    .len()
                    .checked_sub(usize::try_from(place.unsigned_abs()).ok()?)
            };
            let place = usize::try_from(*place).ok().or_else(from_end)?;
            find(rest, items.get(place)?)
        }
        Step::All => match value {
            Value::Array(items) => items.iter().find_map(|item| find(rest, item)),
            Value::Object(members) => members.values().find_map(|item| find(rest, item)),
            _ => None,
        },
        Step::Chosen {
            part,
            equal,
            value: wanted,
        } => {
            let chosen = |item: &&Value| part.find(item).is_some_and(|it| (it == wanted) == *equal);
            let items = value.as_array()?.iter();
            items.filter(chosen).find_map(|item| find(rest, item))
        }
    }
}

/// Parses a member's name and returns its step and the rest of the path. An empty name stands for the object itself and
/// is no step.
fn member(text: &str) -> Option<(Option<Step>, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    let step = match name.as_str() {
        "" => None,
        "*" => Some(Step::All),
        _ => Some(Step::Member(name)),
    };
    Some((step, &text[end..]))
}

/// Parses a step in brackets, of which the opening one is consumed already, and returns it and the rest of the path.
fn bracketed(text: &str) -> Option<(Option<Step>, &str)> {
    if let Some(choice) = text.strip_prefix("?(") {
        let end = choice.find(")]")?;
        return Some((Some(choose(&choice[..end])?), &choice[end + 2..]));
    }
    let end = text.find(']')?;
    let (inner, after) = (text[..end].trim(), &text[end + 1..]);
    let step = if inner == "*" {
        Step::All
    } else if let Ok(place) = inner.parse() {
        Step::Item(place)
    } else {
        Step::Member(unquoted(inner)?.to_owned())
    };
    Some((Some(step), after))
}

/// Parses the comparison of a filter, such as `@.type=="Ready"`.
fn choose(text: &str) -> Option<Step> {
    let (part, equal, value) = match (text.split_once("=="), text.split_once("!=")) {
        (Some((part, value)), _) => (part, true, value),
        (None, Some((part, value))) => (part, false, value),
        (None, None) => return None,
    };
    let part = JsonPath::parse(part.trim().strip_prefix('@')?)?;
    let value = value.trim();
    let value = match unquoted(value) {
        Some(text) => text.into(),
        None => serde_json::from_str(value).ok()?,
    };
    Some(Step::Chosen { part, equal, value })
}

fn unquoted(text: &str) -> Option<&str> {
    let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    quoted('\'').or_else(|| quoted('"'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_members_items_and_choices() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "status": {"conditions": [
                {"type": "Synced", "status": "False"},
                {"type": "Ready", "status": "True", "since": 3}]},
            "spec": {"ports": [80, 443]},
        });
        for (path, found) in [
            (".spec.ports[0]", Some(json!(80))),
            (".spec.ports[-1]", Some(json!(443))),
            (".spec.ports[-3]", None),
            (".spec.ports[9]", None),
            (".spec.ports[*]", Some(json!(80))),
            (r".metadata.annotations.a\.b/c", Some(json!("x"))),
            (".metadata.annotations['a.b/c']", Some(json!("x"))),
            (
                ".status.conditions[?(@.type==\"Ready\")].status",
                Some(json!("True")),
            ),
            (".status.conditions[?(@.type=='Gone')].status", None),
            (
                ".status.conditions[?(@.since==3)].type",
                Some(json!("Ready")),
            ),
            (
                ".status.conditions[?(@.type!='Synced')].type",
                Some(json!("Ready")),
            ),
            ("{.spec.ports[1]}", Some(json!(443))),
            (".spec.nothing", None),
        ] {
            let parsed = JsonPath::parse(path).expect(path);
            assert_eq!(parsed.find(&object), found.as_ref(), "{path}");
        }
        for wrong in ["spec", ".a[", ".a[?(@.b)]", ".a[b]", "{.a"] {
            assert_eq!(JsonPath::parse(wrong), None, "{wrong}");
        }
        assert_eq!(JsonPath::parse(&".a".repeat(STEPS_MAX + 1)), None);
    }
}

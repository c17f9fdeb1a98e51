//! The functions of strings. Follows version 2 of cel-go's extension for strings, whose positions count characters.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use ringwatch_apimachinery::go_text;

use super::failure::{Failure, ValueResult};
use super::{formatting, type_values};

/// Calls a function of strings; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let made = match (name, values) {
        ("join", [CelValue::List(items)]) => join(items, ""),
        ("join", [CelValue::List(items), CelValue::String(between)]) => join(items, between),
        ("format", [CelValue::String(format), CelValue::List(items)]) => {
            formatting::format(format, items)
        }
        (_, [CelValue::String(text), rest @ ..]) => return of_text(name, text, rest),
        _ => return None,
    };
    Some(made.map(CelValue::from))
}

fn of_text(name: &str, text: &str, rest: &[&CelValue]) -> Option<ValueResult> {
    let made = match (name, rest) {
        ("charAt", [CelValue::Int(index)]) => char_at(text, *index),
        ("substring", [CelValue::Int(start)]) => substring(text, *start, None),
        ("substring", [CelValue::Int(start), CelValue::Int(end)]) => {
            substring(text, *start, Some(*end))
        }
        ("lowerAscii", []) => Ok(text.to_ascii_lowercase()),
        ("upperAscii", []) => Ok(text.to_ascii_uppercase()),
        ("trim", []) => Ok(text.trim().to_owned()),
        ("replace", [CelValue::String(old), CelValue::String(new)]) => {
            Ok(text.replace(old.as_str(), new))
        }
        (
            "replace",
            [
                CelValue::String(old),
                CelValue::String(new),
                CelValue::Int(limit),
            ],
        ) => Ok(match usize::try_from(*limit) {
            Ok(limit) => text.replacen(old.as_str(), new, limit),
            Err(_) => text.replace(old.as_str(), new),
        }),
        ("startsWith", [CelValue::String(part)]) => {
            return Some(Ok(CelValue::Bool(text.starts_with(part.as_str()))));
        }
        ("endsWith", [CelValue::String(part)]) => {
            return Some(Ok(CelValue::Bool(text.ends_with(part.as_str()))));
        }
        ("split", [CelValue::String(separator)]) => return Some(Ok(split(text, separator, -1))),
        ("split", [CelValue::String(separator), CelValue::Int(limit)]) => {
            return Some(Ok(split(text, separator, *limit)));
        }
        ("indexOf", [CelValue::String(part)]) => return Some(index_of(text, part, 0)),
        ("indexOf", [CelValue::String(part), CelValue::Int(from)]) => {
            return Some(index_of(text, part, *from));
        }
        ("lastIndexOf", [CelValue::String(part)]) => {
            let length = count(text);
            let from = if part.is_empty() { length } else { length - 1 };
            // A part that is longer is not looked for.
            let is_longer = text.len() < part.len();
            return Some(if is_longer {
                Ok(CelValue::Int(-1))
            } else {
                last_index_of(text, part, from)
            });
        }
        ("lastIndexOf", [CelValue::String(part), CelValue::Int(from)]) => {
            return Some(last_index_of(text, part, *from));
        }
        _ => return None,
    };
    Some(made.map(CelValue::from))
}

fn count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn out_of_range(index: i64) -> Failure {
    Failure::Other(format!("index out of range: {index}").into())
}

/// Returns the byte at which a character begins, or the length of the text for the one behind its last.
fn byte_of(text: &str, index: i64) -> Result<usize, Failure> {
    let places = text.char_indices().map(|(place, _)| place);
    let mut places = places.chain([text.len()]);
    let place = usize::try_from(index).ok().and_then(|it| places.nth(it));
    place.ok_or_else(|| out_of_range(index))
}

fn char_at(text: &str, index: i64) -> Result<String, Failure> {
    let rest = &text[byte_of(text, index)?..];
    Ok(rest.chars().take(1).collect())
}

fn substring(text: &str, start: i64, end: Option<i64>) -> Result<String, Failure> {
    if let Some(end) = end.filter(|end| start > *end) {
        let why = format!("invalid substring range. start: {start}, end: {end}");
        return Err(Failure::Other(why.into()));
    }
    let start = byte_of(text, start)?;
    let end = match end {
        Some(end) => byte_of(text, end)?,
        None => text.len(),
    };
    Ok(text[start..end].to_owned())
}

/// Splits a text at a separator, between all characters at an empty one, into so many parts at most; a negative number
/// is no limit.
fn split(text: &str, separator: &str, limit: i64) -> CelValue {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<CelValue> = if limit == 0 {
        Vec::new()
    } else if separator.is_empty() {
        let mut starts = text.char_indices().map(|(place, _)| place);
        let mut parts = Vec::new();
        let mut start = starts.next();
        while let Some(from) = start {
            start = starts.next().filter(|_| parts.len() + 1 < limit);
            parts.push(CelValue::from(&text[from..start.unwrap_or(text.len())]));
        }
        parts
    } else {
        text.splitn(limit, separator).map(CelValue::from).collect()
    };
    CelValue::List(Arc::new(parts))
}

fn index_of(text: &str, part: &str, from: i64) -> ValueResult {
    if part.is_empty() {
        return Ok(CelValue::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Ok(start) = byte_of(text, from) else {
        return Ok(CelValue::Int(-1));
    };
    let found = text[start..].find(part);
    let found = found.map_or(-1, |place| from + count(&text[start..start + place]));
    Ok(CelValue::Int(found))
}

/// Returns where a part begins for the last time, at this character or before it.
fn last_index_of(text: &str, part: &str, from: i64) -> ValueResult {
    if part.is_empty() {
        return Ok(CelValue::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    if from >= count(text) {
        return Ok(CelValue::Int(-1));
    }
    let end = byte_of(text, from.saturating_add(count(part))).unwrap_or(text.len());
    let found = text[..end].rfind(part);
    Ok(CelValue::Int(
        found.map_or(-1, |place| count(&text[..place])),
    ))
}

fn join(items: &[CelValue], between: &str) -> Result<String, Failure> {
    let mut made = String::new();
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            made.push_str(between);
        }
        let CelValue::String(text) = item else {
            let shown = match item {
                CelValue::Int(it) => it.to_string(),
                CelValue::UInt(it) => it.to_string(),
                CelValue::Bool(it) => it.to_string(),
                CelValue::Float(it) => go_text::float(*it),
                other => type_values::name_of(other).to_owned(),
            };
            let why = format!("join: invalid input: {shown}");
            return Err(Failure::Other(why.into()));
        };
        made.push_str(text);
    }
    Ok(made)
}

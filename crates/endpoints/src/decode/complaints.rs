//! Duplicate and unknown fields of a document: errors or warnings, as `fieldValidation` says.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The beginning of the errors of Go's YAML library.
const YAML_ERRORS: &str = "yaml: unmarshal errors:";

/// Complaints about one document.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints {
    /// Repeated keys of its YAML, by line.
    pub(super) repeated: Vec<String>,
    /// The messages about unknown and duplicate fields, in the order of the response's warnings.
    pub(super) fields: Vec<String>,
}

impl Complaints {
    /// Joins the complaints into the error of a strict decoder; `None` if there are none.
    pub(super) fn error(&self) -> Option<String> {
        let yaml = yaml_error(&self.repeated);
        let all: Vec<&str> = yaml
            .iter()
            .chain(&self.fields)
            .map(String::as_str)
            .collect();
        (!all.is_empty()).then(|| format!("strict decoding error: {}", all.join(", ")))
    }

    /// Returns the complaints as warnings, one each.
    pub(super) fn warnings(self) -> impl Iterator<Item = String> {
        self.repeated.into_iter().chain(self.fields)
    }
}

/// Returns the error of Go's YAML library about duplicate keys; `None` if there are none.
pub(crate) fn yaml_error(repeated: &[String]) -> Option<String> {
    let lines = repeated.iter().map(|line| format!("\n  {line}"));
    (!repeated.is_empty()).then(|| lines.fold(YAML_ERRORS.to_owned(), |text, line| text + &line))
}

/// Sorts complaints, each of which ends with a quoted path, by the position of their field in the JSON. For a repeated
/// field that is the last position. Parses the document once, however many complaints there are.
pub(super) fn order(json: &[u8], complaints: &mut [String]) {
    if complaints.len() < 2 {
        return;
    }
    let mut wanted = PathTree::default();
    for complaint in &*complaints {
        wanted.add(path_of(complaint));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let mut count = 0;
    let walk = Walk {
        at: &mut wanted,
        count: &mut count,
    };
    if walk.deserialize(&mut deserializer).is_err() {
        // It has been parsed before, so this cannot fail; if it did, only the order would be lost.
        return;
    }
    let places: Vec<_> = complaints
        .iter()
        .map(|complaint| wanted.place(path_of(complaint)).unwrap_or(usize::MAX))
        .collect();
    let taken = complaints.iter_mut().map(std::mem::take);
    let mut ordered: Vec<_> = places.into_iter().zip(taken).collect();
    ordered.sort_by_key(|(place, _)| *place);
    for (complaint, (_, next)) in complaints.iter_mut().zip(ordered) {
        *complaint = next;
    }
}

fn path_of(complaint: &str) -> &str {
    complaint.split('"').nth(1).unwrap_or_default()
}

/// A step of a path such as `a.b[0].c`.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

/// Maximum number of steps of a path to look for. No document nests more than 128 levels, so a longer path has dots or
/// brackets in its names.
const STEPS_MAX: usize = 256;

/// Splits a path of a field into steps; `None` if it cannot be one.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, indexes) = part.split_once('[').unwrap_or((part, ""));
        steps.push(Step::Member(name));
        for index in indexes.split('[').filter(|index| !index.is_empty()) {
            let index = index.trim_end_matches(']').parse();
            steps.push(Step::Item(index.ok()?));
        }
        // Each step is a level of a tree that is walked and dropped by recursion.
        if steps.len() > STEPS_MAX {
            return None;
        }
    }
    Some(steps)
}

/// A tree of the paths to look for, with the positions of their values in the document.
#[derive(Debug, Default)]
struct PathTree<'a> {
    /// The position of the value among those on these paths; `None` if it was not found.
    number: Option<usize>,
    members: HashMap<&'a str, Self>,
    items: HashMap<usize, Self>,
}

impl<'a> PathTree<'a> {
    /// Adds a path to look for.
    fn add(&mut self, path: &'a str) {
        let steps = steps(path).into_iter().flatten();
        let mut at = self;
        for step in steps {
            at = match step {
                Step::Member(name) => at.members.entry(name).or_default(),
                Step::Item(index) => at.items.entry(index).or_default(),
            };
        }
    }

    /// Returns the position of the last value at a path. Values within an earlier duplicate field do not count.
    fn place(&self, path: &str) -> Option<usize> {
        let mut at = self;
        for step in steps(path)? {
            let above = at.number;
            at = match step {
                Step::Member(name) => at.members.get(name)?,
                Step::Item(index) => at.items.get(&index)?,
            };
            if at.number <= above {
                return None;
            }
        }
        at.number
    }
}

/// A visitor of a document that descends only into the paths to look for.
struct Walk<'w, 'a> {
    at: &'w mut PathTree<'a>,
    /// The number of values found so far.
    count: &'w mut usize,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.at.number = Some(*self.count);
        *self.count += 1;
        if self.at.members.is_empty() && self.at.items.is_empty() {
            IgnoredAny::deserialize(deserializer).map(drop)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let next = match self.at.items.get_mut(&index) {
                Some(at) => items.next_element_seed(Walk {
                    at,
                    count: self.count,
                })?,
                None => items.next_element::<IgnoredAny>()?.map(drop),
            };
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            match self.at.members.get_mut(name.as_str()) {
                Some(at) => members.next_value_seed(Walk {
                    at,
                    count: self.count,
                })?,
                None => members.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_in_the_order_of_the_document() {
        let json = br#"{"z": 1, "a": [{"y": 1}, {"c": 1, "x": 1, "c": 2}], "b": 1}"#;
        let mut complaints = [
            "duplicate field \"a[1].c\"",
            "unknown field \"a[1].x\"",
            "unknown field \"b\"",
            "unknown field \"nowhere.c\"",
            "unknown field \"z\"",
        ]
        .map(str::to_owned);
        order(json, &mut complaints);
        let paths = complaints.map(|it| it.split('"').nth(1).unwrap_or_default().to_owned());
        assert_eq!(paths, ["z", "a[1].x", "a[1].c", "b", "nowhere.c"]);
    }

    /// A tree of half a million levels would overflow the stack when it is dropped.
    #[test]
    fn a_name_of_many_dots_is_not_looked_for() {
        let name = ".".repeat(500_000);
        let json = format!(r#"{{"{name}": 1, "b": 2}}"#);
        let unknown = |name: &str| format!("unknown field \"{name}\"");
        let mut complaints = [unknown(&name), unknown("b")];
        order(json.as_bytes(), &mut complaints);
        assert_eq!(complaints, [unknown("b"), unknown(&name)]);
    }

    #[test]
    fn yaml_comes_first() {
        let complaints = Complaints {
            repeated: vec!["line 1: x".into(), "line 2: y".into()],
            fields: vec!["unknown field \"z\"".into()],
        };
        assert_eq!(
            complaints.error().expect("an error"),
            "strict decoding error: yaml: unmarshal errors:\n  line 1: x\n  line 2: y, unknown field \"z\""
        );
        assert_eq!(Complaints::default().error(), None);
    }
}

//! Random JSON patches against the text of RFC 6902, with what kube-apiserver's library takes beyond it: missing
//! members of maps are null, indexes may count from the end.
//!
//! The model knows paths by their keys, and builds each value anew; only the patch that is sent has them as texts.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::JsonPatch;
use crate::params::FieldValidation;

/// Keys of maps, with what paths escape.
const NAMES: [&str; 5] = ["a", "b", "x/y", "~", ""];

type Path = Vec<String>;

#[derive(Clone, Debug)]
struct Step {
    name: &'static str,
    path: Path,
    from: Path,
    value: Option<Value>,
}

impl Step {
    fn new(name: &'static str, path: &[String], value: Value) -> Self {
        let (path, from, value) = (path.to_vec(), Vec::new(), Some(value));
        Self {
            name,
            path,
            from,
            value,
        }
    }

    fn json(&self) -> Value {
        let mut json = json!({"op": self.name, "path": pointer(&self.path)});
        if matches!(self.name, "move" | "copy") {
            json["from"] = pointer(&self.from).into();
        }
        if let Some(value) = &self.value {
            json["value"] = value.clone();
        }
        json
    }

    /// Returns the object after the step; `None` if it is refused.
    fn carried_out(&self, object: &Value) -> Option<Value> {
        let value = self.value.clone().unwrap_or_default();
        match self.name {
            "add" => with(object, &self.path, &|place, key| added(place, key, &value)),
            "remove" => with(object, &self.path, &removed),
            "replace" if self.path.is_empty() => {
                (value.is_object() || value.is_array()).then_some(value)
            }
            "replace" => with(object, &self.path, &|place, key| match place {
                Value::Array(_) => added(
                    &removed(place, key)?,
                    &index(place, key)?.to_string(),
                    &value,
                ),
                _ => added(place, key, &value),
            }),
            "move" => {
                let moved = found(object, &self.from)??;
                let rest = with(object, &self.from, &removed)?;
                with(&rest, &self.path, &|place, key| added(place, key, &moved))
            }
            "copy" => {
                let copied = found(object, &self.from).filter(|_| !self.from.is_empty())?;
                let copied = copied.unwrap_or_default();
                with(object, &self.path, &|place, key| added(place, key, &copied))
            }
            "test" => {
                (found(object, &self.path)?.unwrap_or_default() == value).then(|| object.clone())
            }
            _ => None,
        }
    }
}

fn pointer(path: &[String]) -> String {
    let escaped = |key: &String| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    path.iter().map(escaped).collect()
}

/// Returns the value at a path; `None` if the path leads nowhere, `Some(None)` if its last key is no member of a map.
fn found(object: &Value, path: &[String]) -> Option<Option<Value>> {
    let Some((key, rest)) = path.split_first() else {
        return Some(Some(object.clone()));
    };
    let next = match object {
        Value::Object(members) => members.get(key),
        Value::Array(items) => Some(&items[index(object, key)?]),
        _ => return None,
    };
    match next {
        Some(next) => found(next, rest),
        None => rest.is_empty().then_some(None),
    }
}

/// Returns a value in which the map or list at the end of a path is changed.
fn with(
    object: &Value,
    path: &[String],
    change: &dyn Fn(&Value, &str) -> Option<Value>,
) -> Option<Value> {
    let (key, rest) = path.split_first()?;
    if !object.is_object() && !object.is_array() {
        return None;
    }
    if rest.is_empty() {
        return change(object, key);
    }
    let mut changed = object.clone();
    let place = match &mut changed {
        Value::Object(members) => members.get_mut(key)?,
        Value::Array(items) => &mut items[index(object, key)?],
        _ => return None,
    };
    *place = with(place, rest, change)?;
    Some(changed)
}

fn added(place: &Value, key: &str, value: &Value) -> Option<Value> {
    let mut place = place.clone();
    match &mut place {
        Value::Object(members) => drop(members.insert(key.to_owned(), value.clone())),
        Value::Array(items) if key == "-" => items.push(value.clone()),
        Value::Array(items) => {
            // There is one place more than there are items.
            items.push(Value::Null);
            let at = index(&Value::from(items.clone()), key)?;
            items.pop();
            items.insert(at, value.clone());
        }
        _ => return None,
    }
    Some(place)
}

fn removed(place: &Value, key: &str) -> Option<Value> {
    let mut place = place.clone();
    match &mut place {
        Value::Object(members) => drop(members.remove(key)?),
        Value::Array(items) => {
            let at = index(&Value::from(items.clone()), key)?;
            items.remove(at);
        }
        _ => return None,
    }
    Some(place)
}

fn index(list: &Value, key: &str) -> Option<usize> {
    let count = i64::try_from(list.as_array()?.len()).ok()?;
    let at: i64 = key.parse().ok()?;
    let at = if at < 0 { at + count } else { at };
    (0..count).contains(&at).then(|| usize::try_from(at).ok())?
}

/// Returns the steps that make one value of another at a path.
fn difference(from: &Value, to: &Value, path: &mut Path, steps: &mut Vec<Step>) {
    match (from, to) {
        _ if from == to => {}
        (Value::Object(from), Value::Object(to)) => {
            for name in from
                .keys()
                .chain(to.keys().filter(|name| !from.contains_key(*name)))
            {
                path.push(name.clone());
                match (from.get(name), to.get(name)) {
                    (Some(old), Some(new)) => difference(old, new, path, steps),
                    (Some(old), None) => {
                        steps.push(Step::new("test", path, old.clone()));
                        steps.push(Step::new("remove", path, Value::Null));
                    }
                    (None, new) => {
                        let new = new.cloned().unwrap_or_default();
                        steps.push(Step::new("add", path, new));
                    }
                }
                path.pop();
            }
        }
        (Value::Array(from), Value::Array(to)) => {
            let shared = from.len().min(to.len());
            let mut at = |key: &str, name, value: Value, steps: &mut Vec<Step>| {
                path.push(key.to_owned());
                steps.push(Step::new(name, path, value));
                path.pop();
            };
            for (place, new) in to[..shared].iter().enumerate() {
                at(&place.to_string(), "replace", new.clone(), steps);
            }
            for _ in shared..from.len() {
                at("-1", "remove", Value::Null, steps);
            }
            for new in &to[shared..] {
                at("-", "add", new.clone(), steps);
            }
        }
        _ => {
            steps.push(Step::new("test", path, from.clone()));
            steps.push(Step::new("replace", path, to.clone()));
        }
    }
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0..2).prop_map(Value::from),
        Just(json!("x")),
        Just(Value::Null)
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            2 => members(inner.clone()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let name = prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
    let members = prop::collection::btree_map(name, value, 0..4);
    members.prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

/// A path that leads somewhere more often than not: each number chooses a key of what is there.
fn path_into(object: &Value, choices: &[u8]) -> Path {
    let mut path = Path::new();
    let mut at = object;
    for choice in choices {
        let astray = ["a", "-", "-1", "7", "+0", "x/y", "-9", "01"][usize::from(choice % 8)];
        let turn = usize::from(choice / 8);
        let key = match at {
            Value::Object(members) if !members.is_empty() && turn % 6 > 0 => {
                members.keys().nth(turn % members.len()).cloned()
            }
            Value::Array(items) if !items.is_empty() && turn % 6 > 0 => {
                Some((turn % items.len()).to_string())
            }
            _ => None,
        };
        let key = key.unwrap_or_else(|| astray.to_owned());
        path.push(key.clone());
        at = match found(at, &[key]) {
            Some(Some(_)) => at
                .pointer(&pointer(&path[path.len() - 1..]))
                .unwrap_or(&Value::Null),
            _ => &Value::Null,
        };
    }
    path
}

/// A step by its name, the choices of its paths, and its value.
type Choice = (&'static str, Vec<u8>, Vec<u8>, Option<Value>);

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    const NAMES: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];
    let path = || prop::collection::vec(any::<u8>(), 0..4);
    let step = (
        prop::sample::select(&NAMES[..]),
        path(),
        path(),
        prop::option::weighted(0.9, tree()),
    );
    let unknown = Just(("merge", Vec::new(), Vec::new(), None));
    prop::collection::vec(prop_oneof![40 => step, 1 => unknown], 1..5)
}

fn applied(steps: &[Step], object: &Value) -> Option<Value> {
    let patch: Value = steps.iter().map(Step::json).collect();
    let patch = JsonPatch::read(patch, FieldValidation::Warn).expect("a patch");
    patch.apply(object).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn patches_mean_what_the_model_says(object in members(tree()), choices in choices()) {
        let mut expected = Some(object.clone());
        let mut steps = Vec::new();
        for (name, path, from, value) in choices {
            let now = expected.clone().unwrap_or_default();
            let (path, from) = (path_into(&now, &path), path_into(&now, &from));
            // A test is of what is there more often than not.
            let there = (name == "test" && path.len() % 2 == 1).then(|| found(&now, &path)).flatten();
            let value = there.unwrap_or(value);
            let step = Step { name, path, from, value };
            expected = expected.and_then(|object| step.carried_out(&object));
            steps.push(step);
        }
        prop_assert_eq!(applied(&steps, &object), expected, "{}: {:?}", object, steps);
    }

    #[test]
    fn the_difference_of_two_objects_makes_one_of_the_other(from in members(tree()), to in members(tree())) {
        let mut steps = Vec::new();
        difference(&from, &to, &mut Path::new(), &mut steps);
        prop_assert_eq!(applied(&steps, &from), Some(to.clone()), "{:?}", steps);
        // What it finds it to be and what it makes of it are true, and testing changes nothing.
        let tests: Vec<_> = steps.iter().filter(|step| step.name == "test").cloned().collect();
        prop_assert_eq!(applied(&tests, &from), Some(from));
        let whole = Step::new("test", &[], to.clone());
        prop_assert_eq!(applied(std::slice::from_ref(&whole), &to), Some(to));
        prop_assert_eq!(applied(&[whole], &json!({"other": 0})), None);
    }
}

//! The rules of structured-merge-diff over sets of whole paths, written out without care for speed: how objects differ,
//! what a configuration names, and what merging and pruning leave.
//!
//! A path is the list of its steps as `fieldsV1` writes them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::merging::{ItemSchema, ListKeys, MergeSchema, Merging};

pub(super) type Path = Vec<String>;
pub(super) type Paths = BTreeSet<Path>;

/// A type of a random schema.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Text,
    Struct(BTreeMap<String, Self>),
    Map(Box<Self>),
    /// Texts, each of which is its own key.
    Set,
    /// Items that differ by the values of members.
    Keyed(Vec<String>, Item),
    /// Texts as one whole.
    List,
    /// A type of members or items as one whole.
    Whole(Box<Self>),
    /// Whatever is sent.
    Free,
}

/// The type of a list's items, and the defaults of their keys.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) members: Box<Type>,
    pub(super) defaults: BTreeMap<String, Value>,
}

impl ItemSchema for Item {
    fn default_of(&self, member: &str) -> Option<&Value> {
        self.defaults.get(member)
    }
}

impl MergeSchema for Type {
    fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
        let mut at = self;
        for step in steps {
            at = at.member_type(step)?;
        }
        Some(match at {
            Self::Text | Self::Struct(_) | Self::Free => Merging::Members { named: true },
            Self::Map(_) => Merging::Members { named: false },
            Self::Set => Merging::Set,
            Self::Keyed(names, item) => Merging::Keyed(ListKeys {
                names,
                items: Some(item),
            }),
            Self::List | Self::Whole(_) => Merging::Whole,
        })
    }
}

impl Type {
    /// Returns the type of a member, or of the items of a list.
    fn member_type(&self, step: Option<&str>) -> Option<&Self> {
        match (self, step) {
            (Self::Struct(members), Some(name)) => members.get(name),
            (Self::Map(member), Some(_)) => Some(member),
            (Self::Keyed(_, item), None) => Some(&item.members),
            (Self::Whole(inner), step) => inner.member_type(step),
            _ => None,
        }
    }

    /// Returns the type that a step of a path leads to.
    fn at_step(&self, step: &str) -> Option<&Self> {
        if let Self::Free = self {
            return Some(self);
        }
        self.member_type(step.strip_prefix("f:"))
    }

    /// Returns true if a step is the name of a field that the type has.
    fn names(&self, step: &str) -> bool {
        let name = step.strip_prefix("f:");
        matches!(self, Self::Struct(members) if name.is_some_and(|name| members.contains_key(name)))
    }

    /// Returns the ways in which two values are looked at: as one whole, or in parts. What is free may be of one form
    /// before and of another one after.
    fn forms(&self, old: Option<&Value>, new: Option<&Value>) -> Vec<Form> {
        let free = |value: Option<&Value>| match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => Some(Form::Members),
            Some(_) => Some(Form::Whole),
        };
        match self {
            Self::Text | Self::List | Self::Whole(_) => vec![Form::Whole],
            Self::Struct(_) | Self::Map(_) => vec![Form::Members],
            Self::Set | Self::Keyed(..) => vec![Form::Items],
            Self::Free => match (free(old), free(new)) {
                (None, None) => vec![Form::Whole],
                (Some(form), None) | (None, Some(form)) => vec![form],
                (Some(old), Some(new)) if old == new => vec![old],
                (Some(old), Some(new)) => vec![old, new],
            },
        }
    }

    /// Returns the step to an item of a list.
    fn step_to(&self, item: &Value) -> String {
        let Self::Keyed(keys, of) = self else {
            return format!("v:{item}");
        };
        let key = |name: &String| {
            let value = item.get(name).or_else(|| of.defaults.get(name))?;
            Some((name.clone(), value.clone()))
        };
        format!("k:{}", Value::Object(keys.iter().filter_map(key).collect()))
    }

    /// Returns the steps from a value, in order, each with what is there; several where items share one.
    fn parts<'v>(&self, form: Form, value: Option<&'v Value>) -> Vec<(String, Vec<&'v Value>)> {
        let mut parts: Vec<(String, Vec<&Value>)> = Vec::new();
        match (form, value) {
            (Form::Members, Some(Value::Object(members))) => {
                parts.extend(
                    members
                        .iter()
                        .map(|(name, it)| (format!("f:{name}"), vec![it])),
                );
            }
            (Form::Items, Some(Value::Array(items))) => {
                for item in items {
                    let step = self.step_to(item);
                    match parts.iter_mut().find(|(other, _)| *other == step) {
                        Some((_, items)) => items.push(item),
                        None => parts.push((step, vec![item])),
                    }
                }
            }
            _ => {}
        }
        parts
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Whole,
    Members,
    Items,
}

/// The differences of two objects.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) added: Paths,
    pub(super) modified: Paths,
    pub(super) removed: Paths,
}

impl Changes {
    pub(super) fn between(root: &Type, old: &Value, new: &Value) -> Self {
        let mut changes = Self::default();
        changes.compare(root, &[], Some(old), Some(new));
        changes
    }

    pub(super) fn added_and_modified(&self) -> Paths {
        &self.added | &self.modified
    }

    fn compare(&mut self, of: &Type, path: &[String], old: Option<&Value>, new: Option<&Value>) {
        let at = path.to_vec();
        for form in of.forms(old, new) {
            let (olds, news) = (of.parts(form, old), of.parts(form, new));
            if olds.is_empty() && news.is_empty() {
                // One whole, or nothing in either.
                match (old, new) {
                    (None, _) => drop(self.added.insert(at.clone())),
                    (_, None) => drop(self.removed.insert(at.clone())),
                    (old, new) if old != new => drop(self.modified.insert(at.clone())),
                    _ => {}
                }
                continue;
            }
            let steps: BTreeSet<&String> = olds.iter().chain(&news).map(|(step, _)| step).collect();
            for step in steps {
                let behind = |parts: &[(String, Vec<&Value>)]| {
                    let found = parts.iter().find(|(it, _)| it == step);
                    found.map(|(_, values)| {
                        values.iter().map(|it| (*it).clone()).collect::<Vec<_>>()
                    })
                };
                let (olds, news) = (
                    behind(&olds).unwrap_or_default(),
                    behind(&news).unwrap_or_default(),
                );
                self.compare_part(
                    of,
                    [path, std::slice::from_ref(step)].concat(),
                    &olds,
                    &news,
                );
            }
            if old.is_none() {
                self.added.insert(at.clone());
            } else if new.is_none() {
                self.removed.insert(at.clone());
            }
        }
    }

    /// Compares what is behind one step: items that share it are one whole.
    fn compare_part(&mut self, of: &Type, path: Path, old: &[Value], new: &[Value]) {
        let of = path
            .last()
            .and_then(|step| of.at_step(step))
            .unwrap_or(&Type::Text);
        match (old.len() > 1, new.len() > 1) {
            (false, false) => self.compare(of, &path, old.first(), new.first()),
            (true, true) => {
                if old != new {
                    self.modified.insert(path);
                }
            }
            (true, false) => {
                if let Some(new) = new.first() {
                    self.compare(of, &path, None, Some(new));
                }
                self.removed.insert(path);
            }
            (false, true) => {
                if let Some(old) = old.first() {
                    self.compare(of, &path, Some(old), None);
                }
                self.added.insert(path);
            }
        }
    }
}

/// Returns the paths that an object names.
pub(super) fn fields(of: &Type, value: &Value) -> Paths {
    let mut found = Paths::new();
    name_fields(of, &[], value, &mut found);
    found
}

fn name_fields(of: &Type, path: &[String], value: &Value, found: &mut Paths) {
    let form = of.forms(Some(value), None)[0];
    if form == Form::Whole && !(matches!(of, Type::Free) && value.is_null()) {
        found.insert(path.to_vec());
        return;
    }
    for (step, values) in of.parts(form, Some(value)) {
        let path = [path, std::slice::from_ref(&step)].concat();
        if let [value] = values.as_slice() {
            name_fields(
                of.at_step(&step).unwrap_or(&Type::Text),
                &path,
                value,
                found,
            );
            let is_empty = value.is_null() || **value == json!({});
            if !is_empty && of.names(&step) {
                continue;
            }
        }
        found.insert(path);
    }
}

/// Returns true if two items of a list in a configuration share a step.
pub(super) fn repeats(of: &Type, value: &Value) -> bool {
    if let Type::Whole(inner) = of {
        // A list that is one whole has items without steps, which may have lists that are none.
        return match (&**inner, value) {
            (Type::Set, _) => false,
            (Type::Keyed(_, item), Value::Array(items)) => {
                items.iter().any(|it| repeats(&item.members, it))
            }
            (inner, value) => repeats(inner, value),
        };
    }
    let form = of.forms(Some(value), None)[0];
    let mut parts = of.parts(form, Some(value)).into_iter();
    parts.any(|(step, values)| {
        let below = of.at_step(&step).unwrap_or(&Type::Text);
        values.len() > 1 || values.iter().any(|value| repeats(below, value))
    })
}

/// Returns an object with the fields of a configuration.
pub(super) fn merge(of: &Type, old: Option<&Value>, new: Option<&Value>) -> Option<Value> {
    let form = match (of, old, new) {
        (Type::Free, _, Some(Value::Null)) => Form::Members,
        (Type::Free, old, None) => of.forms(old, None)[0],
        (Type::Free, _, new) => of.forms(None, new)[0],
        _ => of.forms(old, new)[0],
    };
    let (olds, news) = (of.parts(form, old), of.parts(form, new));
    if form == Form::Whole || (olds.is_empty() && news.is_empty()) {
        return new.or(old).cloned();
    }
    let below = |step: &str| of.at_step(step).unwrap_or(&Type::Text);
    if form == Form::Items {
        let items = |value: Option<&Value>| {
            let items = value.and_then(Value::as_array);
            items.cloned().unwrap_or_default()
        };
        return Some(merged_items(of, &items(old), &items(new)).into());
    }
    let value_of = |parts: &[(String, Vec<&Value>)], step: &str| {
        parts
            .iter()
            .find(|(it, _)| it == step)
            .map(|(_, values)| values[0].clone())
    };
    let mut merged = Map::new();
    for (step, _) in olds.iter().chain(&news) {
        let (old, new) = (value_of(&olds, step), value_of(&news, step));
        let value = merge(below(step), old.as_ref(), new.as_ref()).expect("a member");
        merged.insert(step["f:".len()..].to_owned(), value);
    }
    Some(merged.into())
}

/// Merges two lists: goes along both, and takes an item that both have where the configuration has it.
fn merged_items(of: &Type, old: &[Value], new: &[Value]) -> Vec<Value> {
    let merge = |step: &str, old: Option<&Value>, new: Option<&Value>| {
        merge(of.at_step(step).unwrap_or(&Type::Text), old, new).expect("an item")
    };
    let steps = |items: &[Value]| {
        items
            .iter()
            .map(|item| of.step_to(item))
            .collect::<Vec<_>>()
    };
    let (olds, news) = (steps(old), steps(new));
    // Items that share a step are not merged with a new one.
    let merged_with = |step: &String| {
        let mut same = old
            .iter()
            .zip(&olds)
            .filter(|(_, it)| *it == step)
            .map(|(item, _)| item);
        match (same.next(), same.next()) {
            (first, None) => first,
            _ => Some(&Value::Null),
        }
    };
    let mut shared = news.iter().filter(|step| olds.contains(step)).peekable();
    let (mut left, mut right, mut result) = (0, 0, Vec::new());
    while left < old.len() || right < new.len() {
        if left < old.len() && right < new.len() {
            let step = &olds[left];
            if news[right] == *step {
                result.push(merge(step, merged_with(step), Some(&new[right])));
                (left, right) = (left + 1, right + 1);
                shared.next();
                continue;
            }
            if news.contains(step) && shared.peek().is_some_and(|next| *next != step) {
                // It comes where the configuration has it.
                left += 1;
                continue;
            }
        }
        if left < old.len() {
            let step = &olds[left];
            if !news.contains(step) {
                result.push(merge(step, Some(&old[left]), None));
                left += 1;
                continue;
            }
            left += usize::from(news[..right].contains(step));
        }
        if right < new.len() {
            let step = &news[right];
            result.push(merge(step, merged_with(step), Some(&new[right])));
            shared.next_if(|next| *next == step);
            right += 1;
        }
    }
    result
}

/// Returns an object without paths and what is below them.
pub(super) fn without(of: &Type, value: &Value, gone: &Paths) -> Value {
    let rest = |step: &str| -> Paths {
        let below = gone
            .iter()
            .filter(|path| path.first().is_some_and(|it| it == step));
        below.map(|path| path[1..].to_vec()).collect()
    };
    let form = of.forms(Some(value), None)[0];
    let kept = |step: &str, value: &Value| {
        let rest = rest(step);
        let below = of.at_step(step).unwrap_or(&Type::Text);
        (!rest.contains(&Path::new())).then(|| without(below, value, &rest))
    };
    match (form, value) {
        (Form::Members, Value::Object(members)) => {
            let kept = members.iter().filter_map(|(name, value)| {
                Some((name.clone(), kept(&format!("f:{name}"), value)?))
            });
            Value::Object(kept.collect())
        }
        (Form::Items, Value::Array(items)) => items
            .iter()
            .filter_map(|item| kept(&of.step_to(item), item))
            .collect(),
        _ => value.clone(),
    }
}

/// Returns paths with all steps on their way that are names of fields.
pub(super) fn with_named(of: &Type, paths: &Paths) -> Paths {
    let mut all = paths.clone();
    for path in paths {
        let mut at = Some(of);
        for (depth, step) in path.iter().enumerate() {
            if at.is_some_and(|at| at.names(step)) {
                all.insert(path[..=depth].to_vec());
            }
            at = at.and_then(|at| at.at_step(step));
        }
    }
    all
}

/// Returns paths of which those that lead into one whole are the path of the whole.
pub(super) fn reconciled(of: &Type, paths: &Paths) -> Paths {
    let whole = |path: &Path| {
        let mut at = Some(of);
        for (depth, step) in path.iter().enumerate() {
            at = at.and_then(|at| at.at_step(step));
            if matches!(at, Some(Type::List | Type::Whole(_))) {
                return path[..=depth].to_vec();
            }
        }
        path.clone()
    };
    paths.iter().map(whole).collect()
}

/// Returns the paths that are neither among others nor below them.
pub(super) fn outside(paths: &Paths, others: &Paths) -> Paths {
    let is_outside = |path: &&Path| !others.iter().any(|other| path.starts_with(other));
    paths.iter().filter(is_outside).cloned().collect()
}

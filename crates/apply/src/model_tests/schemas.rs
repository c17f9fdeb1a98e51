//! Random configurations, with nulls and empty values, of custom types with random schemas.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::managed_fields::ManagedFields;
use crate::merging::{ListKeys, MergeSchema, Merging};
use crate::path::PathElement;
use crate::schema::Schema;
use crate::shape::Shape;
use crate::value::tests::in_floats;
use crate::walk::{field_set, item_element};

/// A part of a random schema.
#[derive(Clone, Debug)]
enum Node {
    Text,
    Struct(BTreeMap<String, Self>),
    Map(Box<Self>),
    /// Items that differ by `name`; the struct of an item.
    Parts(Vec<String>, Box<Self>),
    Set,
    /// One whole.
    List,
    /// One whole.
    Atom(Box<Self>),
    /// Whatever is sent.
    Free,
}

impl MergeSchema for Node {
    fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
        let mut node = self;
        for step in steps {
            node = match (node, step) {
                (Self::Struct(members), Some(name)) => members.get(name)?,
                (Self::Map(member), Some(_)) => member,
                (Self::Parts(_, item), None) => item,
                (Self::Atom(inner), Some(name)) => match &**inner {
                    Self::Struct(members) => members.get(name)?,
                    _ => return None,
                },
                _ => return None,
            };
        }
        Some(match node {
            Self::Text | Self::Struct(_) | Self::Free => Merging::Members { named: true },
            Self::Map(_) => Merging::Members { named: false },
            Self::Parts(names, _) => Merging::Keyed(ListKeys { names, items: None }),
            Self::Set => Merging::Set,
            Self::List | Self::Atom(_) => Merging::Whole,
        })
    }
}

fn named(members: Vec<Node>) -> BTreeMap<String, Node> {
    let names = ["a", "b", "c"].into_iter().map(str::to_owned);
    names.zip(members).collect()
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        3 => Just(Node::Text),
        1 => Just(Node::Set),
        1 => Just(Node::List),
        1 => Just(Node::Free),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let members = prop::collection::vec(inner.clone(), 1..4).prop_map(named);
        prop_oneof![
            4 => members.clone().prop_map(Node::Struct),
            2 => inner.prop_map(|inner| Node::Map(inner.into())),
            2 => members.clone().prop_map(|mut members| {
                members.insert("name".to_owned(), Node::Text);
                Node::Parts(vec!["name".to_owned()], Node::Struct(members).into())
            }),
            1 => members.prop_map(|members| Node::Atom(Node::Struct(members).into())),
        ]
    })
}

/// Decisions of a random value, one by one.
pub(super) struct Choices<'a>(pub(super) std::slice::Iter<'a, u8>);

impl Choices<'_> {
    pub(super) fn next(&mut self, of: u8) -> u8 {
        self.0.next().map_or(0, |it| it % of)
    }

    fn text(&mut self) -> Value {
        json!(["x", "y"][usize::from(self.next(2))])
    }

    /// Makes a value of a schema: seldom null, empty in a part of the cases.
    fn value(&mut self, node: &Node) -> Value {
        if self.next(6) == 5 {
            return Value::Null;
        }
        match node {
            Node::Text => self.text(),
            Node::Set | Node::List => {
                let mut items = ["x", "y"].into_iter();
                items.by_ref().filter(|_| self.next(2) == 1).collect()
            }
            Node::Struct(members) => self.members(members.iter().map(|(name, it)| (&**name, it))),
            Node::Map(member) => self.members([("k", &**member), ("l", member)].into_iter()),
            Node::Atom(inner) => match self.value(inner) {
                Value::Null => json!({}),
                value => value,
            },
            Node::Parts(_, item) => {
                let mut items = Vec::new();
                for name in ["p", "q"] {
                    if self.next(2) == 1 {
                        let mut item = self.value(item);
                        if item.is_null() {
                            item = json!({});
                        }
                        item["name"] = name.into();
                        items.push(item);
                    }
                }
                items.into()
            }
            Node::Free => match self.next(4) {
                0 => self.text(),
                1 => json!([self.text()]),
                _ => self.members([("k", &Node::Text), ("l", &Node::Free)].into_iter()),
            },
        }
    }

    fn members<'n>(&mut self, members: impl Iterator<Item = (&'n str, &'n Node)>) -> Value {
        let mut found = Map::new();
        for (name, node) in members {
            if self.next(2) == 1 {
                found.insert(name.to_owned(), self.value(node));
            }
        }
        found.into()
    }
}

/// A configuration, its manager, and true if it is forced.
type Sent = (&'static str, bool, Vec<u8>);

fn all_sent() -> impl Strategy<Value = Vec<Sent>> {
    let choices = prop::collection::vec(any::<u8>(), 0..60);
    let force = prop::bool::weighted(0.3);
    prop::collection::vec((prop::sample::select(&MANAGERS[..]), force, choices), 2..7)
}

/// Returns the value at a path.
pub(super) fn at<'v>(
    schema: Schema<'_>,
    mut value: &'v Value,
    path: &[PathElement],
) -> Option<&'v Value> {
    for (depth, step) in path.iter().enumerate() {
        value = match (step, value) {
            (PathElement::Field(name), value) => value.get(name)?,
            (step, Value::Array(items)) => {
                let shape = schema.shape(&path[..depth], value);
                let is_it = |item: &&Value| item_element(shape, item).as_ref() == Some(step);
                items.iter().find(is_it)?
            }
            _ => return None,
        };
    }
    Some(value)
}

/// Returns true if the value at a path, which stays, is another one as far as its owner is concerned: parts of it have
/// owners of their own.
fn differs(schema: Schema<'_>, old: &Value, new: &Value, path: &[PathElement]) -> bool {
    let (Some(old), Some(new)) = (at(schema, old, path), at(schema, new, path)) else {
        return at(schema, old, path).is_none() && at(schema, new, path).is_some();
    };
    let shape = |value: &Value| {
        let shape = schema.shape(path, value);
        (shape != Shape::Leaf && !is_empty(value)).then_some(shape)
    };
    match (shape(old), shape(new)) {
        (Some(one), Some(other)) => one != other && old != new,
        (Some(_), None) => !is_empty_of_its_kind(old, new),
        (None, Some(_)) => !is_empty_of_its_kind(new, old),
        (None, None) => old != new,
    }
}

/// Returns true if a value is null, or a list or object as the full one is, without anything in it.
fn is_empty_of_its_kind(full: &Value, empty: &Value) -> bool {
    match (full, empty) {
        (_, Value::Null) => true,
        (Value::Object(_), Value::Object(members)) => members.is_empty(),
        (Value::Array(_), Value::Array(items)) => items.is_empty(),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Returns true if there is a null or an empty list in a value: members that may go again, since a list is owned by its
/// items alone.
fn has_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_nothing),
        Value::Array(items) => items.is_empty() || items.iter().any(has_nothing),
        _ => false,
    }
}

/// Returns the owned paths of each manager but this one.
pub(super) fn others(object: &Value, manager: &str) -> Vec<Vec<PathElement>> {
    let managed = ManagedFields::decode(object).expect("entries");
    let entries = managed.entries.iter();
    let others = entries.filter(|(identity, _)| identity.name != manager);
    others.flat_map(|(_, entry)| entry.fields.paths()).collect()
}

fn custom<'a>(name: &'a str, schema: &'a Node) -> Manager<'a> {
    Manager {
        custom: Some(schema),
        ..Manager::for_tests(name, "example.com/v1", "")
    }
}

fn custom_config(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": spec,
        // An object without entries is not followed.
        "metadata": {"name": "t", "labels": {"l": "1"}}})
}

/// Returns the value with numbers in place of its texts.
fn with_numbers(value: &Value) -> Value {
    match value {
        Value::String(text) => text.bytes().next().map_or(0, i64::from).into(),
        Value::Array(items) => items.iter().map(with_numbers).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let numbers = members.map(|(name, member)| (name.clone(), with_numbers(member)));
            Value::Object(numbers.collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn the_form_of_numbers_is_no_change(
        members in prop::collection::vec(node(), 1..4),
        choices in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let spec = Node::Struct(named(members));
        let root = Node::Struct([("spec".to_owned(), spec.clone())].into());
        let config = custom_config(&with_numbers(&Choices(choices.iter()).value(&spec)));
        let mut floats = config.clone();
        floats["spec"] = in_floats(&config["spec"]);
        for (first, second) in [(&config, &floats), (&floats, &config)] {
            let live = apply(None, first, &custom("one", &root), false).expect("an object");
            let next = apply(Some(&live), second, &custom("two", &root), false);
            let mut next = next.expect("no conflict");
            let entries = |object: &Value| ManagedFields::decode(object).expect("entries").entries;
            let owned: Vec<_> = entries(&next).into_values().map(|entry| entry.fields).collect();
            let all = entries(&live).into_values().next().expect("an entry").fields;
            prop_assert_eq!(owned, [all.clone(), all]);
            prop_assert_eq!(&next["spec"], &live["spec"]);
            // And an update takes nothing.
            let before = next.clone();
            next["spec"] = second["spec"].clone();
            update(Some(&before), &mut next, &custom("three", &root));
            prop_assert_eq!(entries(&next), entries(&before));
        }
    }

    #[test]
    fn no_value_of_another_manager_goes(
        members in prop::collection::vec(node(), 1..4),
        sent in all_sent(),
    ) {
        let spec = Node::Struct(named(members));
        let root = Node::Struct([("spec".to_owned(), spec.clone())].into());
        let schema = Schema::new("example.com/v1", "Thing", Some(&root));
        let mut live: Option<Value> = None;
        let (mut story, mut had_nothing) = (String::new(), false);
        for (name, force, choices) in sent {
            let manager = custom(name, &root);
            let config = custom_config(&Choices(choices.iter()).value(&spec));
            story += &format!("\n{name} {force} {}", config["spec"]);
            had_nothing |= has_nothing(&config);
            let forced = apply(live.as_ref(), &config, &manager, true).expect("an object");
            let empty = json!({});
            let before = live.as_ref().unwrap_or(&empty);
            let owned = others(before, name);
            let taken: BTreeSet<String> = owned.iter()
                .filter(|path| differs(schema, before, &forced, path))
                .map(|path| path::show(path))
                .collect();
            let next = match apply(live.as_ref(), &config, &manager, false) {
                Ok(next) => {
                    prop_assert!(taken.is_empty(), "not refused: {taken:?}{story}");
                    for path in &owned {
                        let old = at(schema, before, path);
                        let is_there = at(schema, &next, path).is_some();
                        // What has but empty lists left may go, as in kube-apiserver, and what is in a free object
                        // whose place something of another form takes.
                        let is_text = old.is_some_and(Value::is_string);
                        let around = (1..path.len()).rev().find_map(|steps| at(schema, &next, &path[..steps]));
                        let is_replaced = around.is_some_and(|it| !it.is_object());
                        let may_go = is_replaced || (had_nothing && !is_text);
                        prop_assert!(is_there || may_go, "{} is gone{story}", path::show(path));
                    }
                    next
                }
                Err(Error::ApplyConflict { causes }) => {
                    let causes = causes.into_iter().map(|(_, field)| field);
                    prop_assert_eq!(causes.collect::<BTreeSet<_>>(), taken, "{}", story);
                    if !force {
                        continue;
                    }
                    forced
                }
                Err(error) => panic!("{error}{story}"),
            };
            // All that is owned is there, but for lists that have lost their last item.
            for path in others(&next, "nobody") {
                let is_there = at(schema, &next, &path).is_some();
                prop_assert!(is_there || had_nothing, "no {} in {next}{story}", path::show(&path));
            }
            // All that was sent is there, but for the null of what merges by its members.
            for path in field_set(schema, &config).paths() {
                let wanted = at(schema, &config, &path).expect("a value");
                let Some(found) = at(schema, &next, &path) else {
                    prop_assert!(had_nothing, "no {} in {next}{story}", path::show(&path));
                    continue;
                };
                let is_less = is_empty_of_its_kind(found, wanted);
                let has_parts = schema.shape(&path, wanted) != Shape::Leaf;
                prop_assert!(wanted == found || is_less || has_parts, "{wanted} {found}{story}");
            }
            // And another time changes nothing.
            if !had_nothing {
                let again = apply(Some(&next), &config, &manager, false);
                prop_assert_eq!(again.expect("no conflict"), next.clone(), "{}", story);
            }
            live = Some(next);
        }
    }
}

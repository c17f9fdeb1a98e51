//! Random types of custom objects, and random values of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::reference::{Item, Type};
use super::schemas::Choices;

pub(super) fn named(members: Vec<Type>) -> BTreeMap<String, Type> {
    ["a", "b", "c"]
        .into_iter()
        .map(str::to_owned)
        .zip(members)
        .collect()
}

pub(super) fn types() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![
        3 => Just(Type::Text),
        1 => Just(Type::Set),
        1 => Just(Type::List),
        1 => Just(Type::Free),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let members = prop::collection::vec(inner.clone(), 1..4).prop_map(named);
        let keyed = (members.clone(), 0..4_u8).prop_map(|(mut members, keys)| {
            members.insert("name".to_owned(), Type::Text);
            let mut names = vec!["name".to_owned()];
            let mut defaults = BTreeMap::new();
            if keys > 1 {
                names.insert(usize::from(keys > 2), "side".to_owned());
                members.insert("side".to_owned(), Type::Text);
            }
            if keys > 2 {
                defaults.insert("side".to_owned(), json!("left"));
            }
            let members = Type::Struct(members).into();
            Type::Keyed(names, Item { members, defaults })
        });
        prop_oneof![
            4 => members.clone().prop_map(Type::Struct),
            2 => inner.prop_map(|inner| Type::Map(inner.into())),
            3 => keyed,
            1 => members.prop_map(|members| Type::Whole(Type::Struct(members).into())),
        ]
    })
}

/// Returns a type of which some parts are one whole that were not, and the other way around.
pub(super) fn changed(of: &Type, choices: &mut Choices<'_>) -> Type {
    let inner = match of {
        Type::Struct(members) => {
            let members = members
                .iter()
                .map(|(name, of)| (name.clone(), changed(of, choices)));
            Type::Struct(members.collect())
        }
        Type::Map(member) => Type::Map(changed(member, choices).into()),
        Type::Keyed(names, item) => {
            let Type::Struct(members) = &*item.members else {
                unreachable!("items are structs");
            };
            let members = members
                .iter()
                .map(|(name, of)| (name.clone(), changed(of, choices)));
            let members = Type::Struct(members.collect()).into();
            let defaults = item.defaults.clone();
            Type::Keyed(names.clone(), Item { members, defaults })
        }
        Type::Whole(inner) if choices.next(2) == 1 => return (**inner).clone(),
        Type::Text | Type::List | Type::Free | Type::Whole(_) => return of.clone(),
        Type::Set => Type::Set,
    };
    match choices.next(4) {
        3 => Type::Whole(inner.into()),
        _ => inner,
    }
}

/// The form of random values.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub(super) nulls: bool,
    pub(super) repeated: bool,
}

impl Values {
    pub(super) fn of(self, of: &Type, choices: &mut Choices<'_>) -> Value {
        if self.nulls && choices.next(12) == 11 {
            return Value::Null;
        }
        let text = |choices: &mut Choices<'_>| json!(["x", "y"][usize::from(choices.next(2))]);
        match of {
            Type::Text => text(choices),
            Type::Whole(inner) => match self.of(inner, choices) {
                Value::Null => json!({}),
                value => value,
            },
            Type::Set | Type::List => {
                let mut items: Vec<_> = (0..choices.next(4)).map(|_| text(choices)).collect();
                if matches!(of, Type::Set) && !(self.repeated && choices.next(2) == 1) {
                    let mut seen = BTreeSet::new();
                    items.retain(|item| seen.insert(item.to_string()));
                }
                items.into()
            }
            Type::Struct(members) => {
                self.members(members.iter().map(|(name, of)| (&**name, of)), choices)
            }
            Type::Map(member) => {
                self.members([("k", &**member), ("l", member)].into_iter(), choices)
            }
            Type::Keyed(keys, item) => {
                let mut items: Vec<Value> = Vec::new();
                for _ in 0..choices.next(4) {
                    let mut made = match self.of(&item.members, choices) {
                        Value::Object(members) => members,
                        _ => Map::new(),
                    };
                    made.insert(
                        "name".to_owned(),
                        json!(["p", "q"][usize::from(choices.next(2))]),
                    );
                    made.remove("side");
                    if keys.len() > 1 && choices.next(2) == 1 {
                        made.insert(
                            "side".to_owned(),
                            json!(["left", "right"][usize::from(choices.next(2))]),
                        );
                    }
                    items.push(made.into());
                }
                if !(self.repeated && choices.next(2) == 1) {
                    let mut seen = BTreeSet::new();
                    let key = |item: &Value| {
                        let side = item
                            .get("side")
                            .or_else(|| item_default(of))
                            .map(Value::to_string);
                        (item["name"].to_string(), side)
                    };
                    items.retain(|item| seen.insert(key(item)));
                }
                items.into()
            }
            Type::Free => match choices.next(5) {
                0 => text(choices),
                1 => json!([text(choices)]),
                _ => self.members(
                    [("k", &Type::Text), ("l", &Type::Free)].into_iter(),
                    choices,
                ),
            },
        }
    }

    fn members<'t>(
        self,
        members: impl Iterator<Item = (&'t str, &'t Type)>,
        choices: &mut Choices<'_>,
    ) -> Value {
        let mut made = Map::new();
        for (name, of) in members {
            if choices.next(2) == 1 {
                made.insert(name.to_owned(), self.of(of, choices));
            }
        }
        made.into()
    }
}

fn item_default(of: &Type) -> Option<&Value> {
    match of {
        Type::Keyed(_, item) => item.defaults.get("side"),
        _ => None,
    }
}

/// Returns an object in which some members are those of another one.
pub(super) fn mixed(one: &Value, other: &Value, choices: &mut Choices<'_>) -> Value {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let mut members = Map::new();
            for name in names {
                match (one.get(name), other.get(name), choices.next(3)) {
                    (Some(one), Some(other), _) => {
                        drop(members.insert(name.clone(), mixed(one, other, choices)))
                    }
                    (Some(one), None, 0 | 1) => drop(members.insert(name.clone(), one.clone())),
                    (None, Some(other), 1 | 2) => drop(members.insert(name.clone(), other.clone())),
                    _ => {}
                }
            }
            members.into()
        }
        (one, _) if choices.next(2) == 1 => one.clone(),
        (_, other) => other.clone(),
    }
}

/// Returns the type of an object whose spec and status are of a type.
pub(super) fn root_of(spec: Type) -> Type {
    let metadata = BTreeMap::from([
        ("name".to_owned(), Type::Text),
        ("labels".to_owned(), Type::Map(Type::Text.into())),
        ("finalizers".to_owned(), Type::Set),
    ]);
    let members = BTreeMap::from([
        ("apiVersion".to_owned(), Type::Text),
        ("kind".to_owned(), Type::Text),
        ("metadata".to_owned(), Type::Struct(metadata)),
        ("spec".to_owned(), spec.clone()),
        ("status".to_owned(), spec),
    ]);
    Type::Struct(members)
}

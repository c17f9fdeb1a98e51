//! Random writes by several managers against a plain model of who owns what.
//!
//! The model knows a pod of a few fields: members of a map, items of a list by their key and what is in
//! them, items of a set, and a list that is one whole.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringwatch_apimachinery::Error;
use serde_json::{Map, Value, json};

use super::set::FieldSet;
use super::{Manager, apply, path, update};

mod built_in;
mod random_types;
mod reference;
mod schemas;
mod structured;
mod wrong_types;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Label(&'static str),
    Container(&'static str),
    Image(&'static str),
    Finalizer(&'static str),
    Tolerations,
}

use Field::{Container, Finalizer, Image, Label, Tolerations};

const FIELDS: [Field; 9] = [
    Label("a"),
    Label("b"),
    Container("c"),
    Image("c"),
    Container("d"),
    Image("d"),
    Finalizer("x"),
    Finalizer("y"),
    Tolerations,
];
const MANAGERS: [&str; 3] = ["alpha", "beta", "gamma"];

/// The fields that there are, and their values; those that are there or not have value 0.
type Content = BTreeMap<Field, u8>;
/// A manager, and whether it applies.
type Writer = (&'static str, bool);

/// The expected object and owners, by the model.
#[derive(Clone, Debug, Default)]
struct Model {
    content: Content,
    owners: BTreeMap<Writer, BTreeSet<Field>>,
}

#[derive(Clone, Debug)]
enum Write {
    /// A configuration, and whether it takes what others own.
    Apply(Content, bool),
    /// An update of the whole object.
    Replace(Content),
    /// A patch of some fields of the object.
    Patch(Content),
}

impl Field {
    fn path(self) -> String {
        match self {
            Label(name) => format!(".metadata.labels.{name}"),
            Container(name) => format!(".spec.containers[name=\"{name}\"]"),
            Image(name) => format!(".spec.containers[name=\"{name}\"].image"),
            Finalizer(name) => format!(".metadata.finalizers[=\"{name}\"]"),
            Tolerations => ".spec.tolerations".to_owned(),
        }
    }
}

impl Model {
    /// Applies a configuration, or returns the fields that others manage.
    fn apply(&mut self, manager: &'static str, config: &Content, force: bool) -> BTreeSet<Field> {
        let me = (manager, true);
        let last = self.owners.remove(&me).unwrap_or_default();
        let changes = |field: &Field| {
            let live = self.content.get(field);
            live.is_some() && live != config.get(field)
        };
        let changed: BTreeSet<Field> = config.keys().copied().filter(changes).collect();
        let owned = |field: &Field| self.owners.values().any(|owned| owned.contains(field));
        let conflicts: BTreeSet<Field> = changed.iter().copied().filter(owned).collect();
        if !force && !conflicts.is_empty() {
            self.owners.insert(me, last);
            self.tidy();
            return conflicts;
        }
        let given_up: Vec<Field> = last
            .into_iter()
            .filter(|field| !config.contains_key(field) && !owned(field))
            .collect();
        self.content.extend(config);
        for field in given_up {
            self.remove(field);
        }
        for owned in self.owners.values_mut() {
            owned.retain(|field| !changed.contains(field));
        }
        self.owners.insert(me, config.keys().copied().collect());
        self.tidy();
        BTreeSet::new()
    }

    fn update(&mut self, manager: &'static str, new: Content) {
        let differs = |field: &&Field| self.content.get(field) != new.get(field);
        let changed: BTreeSet<Field> = FIELDS.iter().filter(differs).copied().collect();
        for owned in self.owners.values_mut() {
            owned.retain(|field| !changed.contains(field));
        }
        let mine = self.owners.entry((manager, false)).or_default();
        mine.extend(changed.iter().filter(|field| new.contains_key(field)));
        self.content = new;
        self.tidy();
    }

    /// Takes a field away, and with an item what is in it.
    fn remove(&mut self, field: Field) {
        self.content.remove(&field);
        if let Container(name) = field {
            self.content.remove(&Image(name));
        }
    }

    /// Drops the ownership of absent fields, and the managers that own nothing.
    fn tidy(&mut self) {
        for owned in self.owners.values_mut() {
            owned.retain(|field| self.content.contains_key(field));
        }
        self.owners.retain(|_, owned| !owned.is_empty());
    }
}

fn object(content: &Content) -> Value {
    let mut labels = Map::new();
    let mut containers: BTreeMap<&str, Value> = BTreeMap::new();
    let mut finalizers = Vec::new();
    // There is always something to own: an object without entries is not followed.
    let mut spec = Map::new();
    spec.insert("nodeName".to_owned(), "n".into());
    for (field, value) in content {
        match field {
            Label(name) => drop(labels.insert((*name).to_owned(), value.to_string().into())),
            Container(name) => drop(containers.insert(name, json!({"name": name}))),
            Image(name) => {
                let container = containers.get_mut(name).expect("the container comes first");
                container["image"] = value.to_string().into();
            }
            Finalizer(name) => finalizers.push(*name),
            Tolerations => {
                spec.insert(
                    "tolerations".to_owned(),
                    json!([{"key": value.to_string()}]),
                );
            }
        }
    }
    if !containers.is_empty() {
        let containers: Vec<_> = containers.into_values().collect();
        spec.insert("containers".to_owned(), containers.into());
    }
    let mut metadata = json!({"name": "p"});
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    if !finalizers.is_empty() {
        metadata["finalizers"] = json!(finalizers);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Returns the fields of an object that the model knows.
fn content(object: &Value) -> Content {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    let container = |name: &str| {
        let list = object["spec"]["containers"].as_array();
        list.into_iter().flatten().find(|it| it["name"] == name)
    };
    let value = |field: &Field| match field {
        Label(name) => number(&object["metadata"]["labels"][*name]),
        Container(name) => container(name).map(|_| 0),
        Image(name) => container(name).and_then(|it| number(&it["image"])),
        Finalizer(name) => {
            let list = object["metadata"]["finalizers"].as_array();
            list.is_some_and(|list| list.contains(&json!(name)))
                .then_some(0)
        }
        Tolerations => number(&object["spec"]["tolerations"][0]["key"]),
    };
    let found = FIELDS
        .iter()
        .filter_map(|field| Some((*field, value(field)?)));
    found.collect()
}

/// Returns the owners of the fields that the model knows.
fn owners(object: &Value) -> BTreeMap<(String, bool), BTreeSet<Field>> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten().map(|entry| {
        let fields = FieldSet::from_json(&entry["fieldsV1"]).expect("a set");
        let paths: BTreeSet<String> = fields.paths().iter().map(|it| path::show(it)).collect();
        let owned = FIELDS
            .into_iter()
            .filter(|it| paths.contains(&it.path()))
            .collect();
        let manager = entry["manager"].as_str().expect("a manager").to_owned();
        ((manager, entry["operation"] == "Apply"), owned)
    });
    entries
        .filter(|(_, owned): &(_, BTreeSet<Field>)| !owned.is_empty())
        .collect()
}

fn some_content() -> impl Strategy<Value = Content> {
    let present = prop::collection::vec(prop::option::of(0..2_u8), FIELDS.len());
    present.prop_map(|present| {
        let pairs = FIELDS.into_iter().zip(present);
        let chosen = pairs.filter_map(|(field, value)| {
            let there_or_not = matches!(field, Container(_) | Finalizer(_));
            value.map(|value| (field, if there_or_not { 0 } else { value }))
        });
        let mut content: Content = chosen.collect();
        for name in ["c", "d"] {
            // An image is in a container.
            if content.contains_key(&Image(name)) {
                content.insert(Container(name), 0);
            }
        }
        content
    })
}

fn writes() -> impl Strategy<Value = Vec<(&'static str, Write)>> {
    let write = prop_oneof![
        4 => (some_content(), any::<bool>()).prop_map(|(config, force)| Write::Apply(config, force)),
        1 => some_content().prop_map(Write::Replace),
        2 => some_content().prop_map(Write::Patch),
    ];
    prop::collection::vec((prop::sample::select(&MANAGERS[..]), write), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn managers_own_what_the_model_says(writes in writes()) {
        let mut model = Model::default();
        let mut live: Option<Value> = None;
        let mut story = String::new();
        for (name, write) in writes {
            let manager = Manager::for_tests(name, "v1", "");
            let sent = match &write {
                Write::Apply(content, _) | Write::Replace(content) => object(content),
                Write::Patch(content) => {
                    let mut all = model.content.clone();
                    all.extend(content);
                    object(&all)
                }
            };
            let verb = match &write {
                Write::Apply(_, true) => "forces",
                Write::Apply(_, false) => "applies",
                Write::Replace(_) | Write::Patch(_) => "updates to",
            };
            story += &format!("\n{name} {verb} {sent}");
            match write {
                Write::Apply(config, force) => {
                    let refused = model.apply(name, &config, force);
                    let refused: BTreeSet<String> = refused.iter().map(|it| it.path()).collect();
                    match apply(live.as_ref(), &sent, &manager, force) {
                        Ok(next) => {
                            prop_assert!(refused.is_empty(), "not refused: {refused:?}{story}");
                            live = Some(next);
                        }
                        Err(Error::ApplyConflict { causes }) => {
                            let causes = causes.into_iter().map(|(_, field)| field);
                            prop_assert_eq!(causes.collect::<BTreeSet<_>>(), refused, "{}", story);
                        }
                        Err(error) => prop_assert!(false, "{error}{story}"),
                    }
                }
                Write::Replace(_) | Write::Patch(_) => {
                    let mut next = sent.clone();
                    update(live.as_ref(), &mut next, &manager);
                    model.update(name, content(&sent));
                    live = Some(next);
                }
            }
            let live = live.clone().unwrap_or_default();
            prop_assert_eq!(content(&live), model.content.clone(), "{}", story);
            let owned = model.owners.iter();
            let owned = owned.map(|((name, applies), fields)| {
                (((*name).to_owned(), *applies), fields.clone())
            });
            prop_assert_eq!(owners(&live), owned.collect::<BTreeMap<_, _>>(), "{}\n{}", story, live);
        }
    }
}

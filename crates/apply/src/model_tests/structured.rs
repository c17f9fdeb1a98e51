//! Random writes to objects of random types, which may change meanwhile, against the rules of structured-merge-diff:
//! the whole object, all owners with their times, and all conflicts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;
use ringwatch_apimachinery::Error;
use serde_json::{Value, json};

use super::random_types::{Values, changed, mixed, named, root_of, types};
use super::reference::{
    Changes, Path, Paths, Type, fields, merge, outside, reconciled, repeats, with_named, without,
};
use super::schemas::Choices;
use crate::{Manager, apply, update};

/// A manager: true if it applies, its name, the version unless it applies, and the subresource.
type Owner = (bool, String, String, String);

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    version: String,
    time: Option<String>,
    paths: Paths,
}

/// The expected object and its owners.
#[derive(Clone, Debug, Default)]
struct Model {
    live: Option<Value>,
    owners: BTreeMap<Owner, Owned>,
}

/// A conflict: its manager, and the field.
type Conflicts = BTreeSet<(String, String)>;

impl Model {
    fn before(&self) -> Value {
        self.live.clone().unwrap_or_else(|| json!({}))
    }

    fn reconcile(&mut self, root: &Type) {
        for owned in self.owners.values_mut() {
            owned.paths = reconciled(root, &owned.paths);
        }
    }

    /// Takes paths from all owners.
    fn take(&mut self, paths: &Paths) {
        for owned in self.owners.values_mut() {
            owned.paths = &owned.paths - paths;
        }
        self.owners.retain(|_, owned| !owned.paths.is_empty());
    }

    /// Makes a manager the owner of what differs from an object.
    fn note(&mut self, root: &Type, old: &Value, new: &Value, name: &str, manager: &Manager<'_>) {
        self.reconcile(root);
        let changes = Changes::between(root, old, new);
        let reset = reset(manager);
        let changed = outside(&changes.added_and_modified(), &reset);
        self.take(&changed);
        self.take(&outside(&changes.removed, &reset));
        let taken = &changed - &untracked();
        if taken.is_empty() {
            return;
        }
        let owned = self
            .owners
            .entry(owner(manager, name, false))
            .or_insert_with(|| Owned {
                version: manager.api_version.to_owned(),
                time: None,
                paths: Paths::new(),
            });
        owned.paths.extend(taken);
        owned.time = manager.time_text();
    }

    fn update(&mut self, root: &Type, new: &Value, manager: &Manager<'_>) {
        // An object without owners is not followed.
        if self.live.is_none() || !self.owners.is_empty() {
            self.note(root, &self.before(), new, manager.name, manager);
        }
        self.live = Some(new.clone());
    }

    fn apply(
        &mut self,
        root: &Type,
        config: &Value,
        manager: &Manager<'_>,
        force: bool,
    ) -> Result<(), Conflicts> {
        let live = self.before();
        let mut after = self.clone();
        if self.live.is_some() && after.owners.is_empty() {
            after.note(root, &json!({}), &live, "before-first-apply", manager);
        }
        after.reconcile(root);
        let me = owner(manager, manager.name, true);
        let last = after.owners.remove(&me);
        let wanted = outside(&fields(root, config), &reset(manager));
        let merged = merge(root, Some(&live), Some(config)).expect("an object");
        let next = match &last {
            None => merged,
            Some(last) => {
                let others = after.owners.values().flat_map(|owned| owned.paths.clone());
                let claimed = with_named(root, &others.chain(wanted.clone()).collect());
                pruned(root, &merged, &with_named(root, &last.paths), &claimed)
            }
        };
        let changes = Changes::between(root, &live, &next);
        let changed = outside(&changes.added_and_modified(), &reset(manager));
        let conflicts: Conflicts = after
            .owners
            .iter()
            .flat_map(|(owner, owned)| {
                (&owned.paths & &changed)
                    .into_iter()
                    .map(|path| (shown_owner(owner), shown(&path)))
            })
            .collect();
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        after.take(&changed);
        after.take(&outside(&changes.removed, &reset(manager)));
        let paths = &wanted - &untracked();
        if !paths.is_empty() {
            let is_same = live == next;
            let time = if is_same {
                last.and_then(|last| last.time)
            } else {
                manager.time_text()
            };
            let version = manager.api_version.to_owned();
            after.owners.insert(
                me,
                Owned {
                    version,
                    time,
                    paths,
                },
            );
        }
        after.live = Some(next);
        *self = after;
        Ok(())
    }
}

/// Returns a merged object without what its manager applied last and nobody owns now.
fn pruned(root: &Type, merged: &Value, last: &Paths, claimed: &Paths) -> Value {
    let named = |value: &Value| with_named(root, &fields(root, value));
    let all = named(merged);
    let mut owned = named(&without(root, merged, last));
    owned.extend(claimed.clone());
    // What others have not applied goes only if this manager has.
    let left = named(&without(root, merged, &(&all - &owned)));
    without(root, merged, &(&(&all - &left) & last))
}

/// Returns the paths that a write cannot change.
fn reset(manager: &Manager<'_>) -> Paths {
    let names: &[&str] = match manager.subresource {
        "status" => &["f:metadata", "f:spec"],
        _ => &["f:status"],
    };
    names.iter().map(|name| vec![(*name).to_owned()]).collect()
}

fn untracked() -> Paths {
    let paths: [&[&str]; 4] = [
        &["f:apiVersion"],
        &["f:kind"],
        &["f:metadata"],
        &["f:metadata", "f:name"],
    ];
    let owned = |path: &&[&str]| path.iter().map(|step| (*step).to_owned()).collect();
    paths.iter().map(owned).collect()
}

fn owner(manager: &Manager<'_>, name: &str, applies: bool) -> Owner {
    let version = if applies { "" } else { manager.api_version };
    (
        applies,
        name.to_owned(),
        version.to_owned(),
        manager.subresource.to_owned(),
    )
}

fn shown_owner((applies, name, version, subresource): &Owner) -> String {
    let mut text = format!("conflict with {name:?}");
    if !subresource.is_empty() {
        text += &format!(" with subresource {subresource:?}");
    }
    if !applies {
        text += &format!(" using {version}");
    }
    text
}

fn shown(path: &Path) -> String {
    let step = |step: &String| match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("v", value)) => format!("[={value}]"),
        Some((_, keys)) => {
            let keys: BTreeMap<String, Value> = serde_json::from_str(keys).expect("keys");
            let keys: Vec<_> = keys
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("[{}]", keys.join(","))
        }
        None => step.clone(),
    };
    path.iter().map(step).collect()
}

/// Puts the parts that a write cannot change back to what they were before, as the strategies of resources do.
fn restore(object: &mut Value, before: &Value, subresource: &str) {
    let parts: &[&str] = match subresource {
        "status" => &["spec", "metadata"],
        _ => &["status"],
    };
    let entries = object["metadata"]["managedFields"].clone();
    for part in parts {
        let members = object.as_object_mut().expect("an object");
        match before.get(part) {
            Some(was) => drop(members.insert((*part).to_owned(), was.clone())),
            None => drop(members.remove(*part)),
        }
    }
    *object = content(object);
    if !entries.is_null() {
        object["metadata"]["managedFields"] = entries;
    }
}

/// Returns the owners that an object tells of, which stand in the order of entries.
fn owners_of(object: &Value) -> BTreeMap<Owner, Owned> {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut places = Vec::new();
    let mut owners = BTreeMap::new();
    for entry in entries.into_iter().flatten() {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let applies = entry["operation"] == "Apply";
        places.push((
            !applies,
            text("time"),
            text("manager"),
            text("apiVersion"),
            text("subresource"),
        ));
        let mut paths = Paths::new();
        read_paths(&entry["fieldsV1"], &mut Vec::new(), &mut paths);
        let owned = Owned {
            version: text("apiVersion"),
            time: entry["time"].as_str().map(str::to_owned),
            paths,
        };
        let version = if applies {
            String::new()
        } else {
            text("apiVersion")
        };
        let earlier = owners.insert(
            (applies, text("manager"), version, text("subresource")),
            owned,
        );
        assert_eq!(earlier, None, "two entries of one manager");
    }
    assert!(places.is_sorted(), "{places:?}");
    owners
}

fn read_paths(json: &Value, path: &mut Path, paths: &mut Paths) {
    let steps = json.as_object().expect("steps");
    if steps.is_empty() || steps.contains_key(".") {
        paths.insert(path.clone());
    }
    for (step, below) in steps.iter().filter(|(step, _)| *step != ".") {
        path.push(step.clone());
        read_paths(below, path, paths);
        path.pop();
    }
}

/// Returns the object without its entries.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    if let Some(metadata) = content["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    content
}

/// A write: its manager, its form, and what it writes.
#[derive(Clone, Debug)]
struct Write {
    name: &'static str,
    version: &'static str,
    subresource: &'static str,
    form: WriteForm,
    changes_type: bool,
    choices: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum WriteForm {
    Apply,
    Force,
    /// An apply of what was written last.
    Again,
    /// An update to an object that has nothing to do with the one before.
    Replace,
    /// An update that leaves a part of the object.
    Change,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let form = prop_oneof![
        5 => Just(WriteForm::Apply),
        3 => Just(WriteForm::Force),
        1 => Just(WriteForm::Again),
        2 => Just(WriteForm::Replace),
        3 => Just(WriteForm::Change),
    ];
    let write = (
        prop::sample::select(vec!["alpha", "beta", "gamma"]),
        prop::sample::select(vec!["example.com/v1", "example.com/v1", "example.com/v2"]),
        prop::sample::select(vec!["", "", "", "status"]),
        form,
        prop::bool::weighted(0.1),
        prop::collection::vec(any::<u8>(), 0..70),
    );
    let write = write.prop_map(
        |(name, version, subresource, form, changes_type, choices)| Write {
            name,
            version,
            subresource,
            form,
            changes_type,
            choices,
        },
    );
    prop::collection::vec(write, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn objects_and_owners_are_those_of_the_rules(
        members in prop::collection::vec(types(), 1..4),
        to_change in prop::collection::vec(any::<u8>(), 20),
        writes in writes(),
    ) {
        let mut spec = Type::Struct(named(members));
        let mut model = Model::default();
        let mut live: Option<Value> = None;
        let mut sent = json!({"kind": "Thing", "metadata": {"name": "t"}});
        let mut story = String::new();
        for (second, write) in (0..).zip(writes) {
            if write.changes_type {
                spec = changed(&spec, &mut Choices(to_change[second..].iter()));
                story += &format!("\nthe type is {spec:?}");
            }
            let root = root_of(spec.clone());
            // An object is created by itself.
            let subresource = if live.is_none() { "" } else { write.subresource };
            let manager = Manager {
                custom: Some(&root),
                has_status_subresource: true,
                time: Timestamp::from_second(1_767_225_600 + i64::try_from(second)?).ok(),
                ..Manager::for_tests(write.name, write.version, subresource)
            };
            let applies = matches!(write.form, WriteForm::Apply | WriteForm::Force | WriteForm::Again);
            let choices = &mut Choices(write.choices.iter());
            let values = Values { nulls: true, repeated: !applies || choices.next(20) == 19 };
            if write.form != WriteForm::Again {
                let mut next = json!({"kind": "Thing", "metadata": {"name": "t"}});
                for name in ["spec", "status"] {
                    if choices.next(3) > 0 {
                        next[name] = values.of(&spec, choices);
                    }
                }
                for (name, of) in [("labels", Type::Map(Type::Text.into())), ("finalizers", Type::Set)] {
                    if choices.next(4) == 3 {
                        next["metadata"][name] = Values { nulls: false, repeated: false }.of(&of, choices);
                    }
                }
                if write.form == WriteForm::Change {
                    next = mixed(&model.before(), &next, choices);
                    next["kind"] = "Thing".into();
                    next["metadata"]["name"] = "t".into();
                }
                sent = next;
            }
            sent["apiVersion"] = write.version.into();
            for object in [&mut live, &mut model.live].into_iter().flatten() {
                object["apiVersion"] = write.version.into();
            }
            let before = content(&model.before());
            story += &format!("\n{} {subresource:?} {:?} {sent}", write.name, write.form);
            if !applies {
                let mut next = sent.clone();
                update(live.as_ref(), &mut next, &manager);
                model.update(&root, &sent, &manager);
                live = Some(next);
            } else if repeats(&root, &sent) {
                let refused = apply(live.as_ref(), &sent, &manager, true);
                prop_assert!(matches!(refused, Err(Error::Untranslated(_))), "{refused:?}{story}");
                continue;
            } else {
                let force = write.form == WriteForm::Force;
                let expected = model.apply(&root, &sent, &manager, force);
                match apply(live.as_ref(), &sent, &manager, force) {
                    Ok(next) => {
                        prop_assert_eq!(expected, Ok(()), "{}", story);
                        live = Some(next);
                    }
                    Err(Error::ApplyConflict { causes }) => {
                        prop_assert_eq!(expected, Err(causes.into_iter().collect()), "{}", story);
                        continue;
                    }
                    Err(error) => panic!("{error}{story}"),
                }
            }
            for object in [&mut live, &mut model.live].into_iter().flatten() {
                restore(object, &before, subresource);
            }
            let found = live.clone().unwrap_or_default();
            prop_assert_eq!(content(&found), content(&model.before()), "{}", story);
            prop_assert_eq!(owners_of(&found), model.owners.clone(), "{}\n{}", story, found);
        }
    }
}

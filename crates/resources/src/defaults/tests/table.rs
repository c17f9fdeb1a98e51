//! The table of all fields that have a default, taken from the rules of all kinds, and what becomes of them when they
//! are absent, null or zero.
//!
//! `verification/peers/compare-defaults` reads the lines that the test prints, and asks kube-apiserver about each.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringwatch::codec;
use ringwatch_registry::Resource;
use ringwatch_registry::store::admitted_to_storage_version;
use serde_json::{Map, Value, json};

use super::samples;
use crate::built_in;
use crate::defaults::{DefaultRule, Literal};
use crate::strategy::generic::Generic;

/// A value that must be at a path for a rule to apply.
type Given = (String, Value);

/// A field that has a default.
pub(super) struct Field {
    /// The place of the rule that fills the field in.
    base: String,
    pub(super) path: String,
    given: Vec<Given>,
    /// The value that the field gets; `None` if a function says.
    literal: Option<Literal>,
    /// True if stored objects are known by the field to have their defaults.
    pub(super) is_looked_for: bool,
}

/// A field as a client may leave it, each in an object that is otherwise the same.
pub(super) struct Forms {
    pub(super) absent: Value,
    null: Value,
    zero: Value,
}

fn join(base: &str, path: &str) -> String {
    if base.is_empty() {
        path.to_owned()
    } else {
        format!("{base}.{path}")
    }
}

/// Returns the fields that rules at a place fill in.
fn fields(rules: &[DefaultRule], base: &str, given: &[Given]) -> Vec<Field> {
    let field = |path: &str, literal, is_looked_for| Field {
        base: base.to_owned(),
        path: join(base, path),
        given: given.to_vec(),
        literal,
        is_looked_for,
    };
    let below = |rules: &[DefaultRule], path: &str, value: Value| {
        fields(rules, base, &[given, &[(join(base, path), value)]].concat())
    };
    let of_rule = |rule: &DefaultRule| match *rule {
        DefaultRule::Set(path, literal) => vec![field(path, Some(literal), !literal.is_zero())],
        DefaultRule::Run(paths, _) => paths.iter().map(|path| field(path, None, false)).collect(),
        DefaultRule::Fill(path, _) => vec![field(path, None, true)],
        DefaultRule::Zero(..) | DefaultRule::Quantities(_) => Vec::new(),
        DefaultRule::In(path, rules) => fields(rules, &join(base, path), given),
        DefaultRule::When(path, texts, rules) => {
            let texts = texts.iter();
            texts
                .flat_map(|&text| below(rules, path, text.into()))
                .collect()
        }
        DefaultRule::With(path, rules) => below(rules, path, samples::value(path)),
    };
    rules.iter().flat_map(of_rule).collect()
}

/// True if a value has all that a path leads through.
fn leads_through(value: &Value, steps: &[&str]) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    match step.strip_suffix("[]") {
        Some(list) => value[list]
            .as_array()
            .is_some_and(|items| items.iter().any(|item| leads_through(item, rest))),
        None => value.get(step).is_some_and(|it| leads_through(it, rest)),
    }
}

/// Goes to the members around a path, makes what is missing on the way, and does something to them. Of the items of a
/// list those are meant that have what the path leads through, or else the first.
fn reach(value: &mut Value, steps: &[&str], act: &mut dyn FnMut(&mut Map<String, Value>, &str)) {
    if value.is_null() {
        *value = json!({});
    }
    let members = value.as_object_mut().expect("an object on the way");
    let Some((step, rest)) = steps.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return steps.iter().for_each(|last| act(members, last));
    };
    let Some(list) = step.strip_suffix("[]") else {
        return reach(members.entry(*step).or_insert(Value::Null), rest, act);
    };
    let items = members.entry(list).or_insert(Value::Null);
    if items.is_null() {
        *items = json!([{}]);
    }
    let items = items.as_array_mut().expect("a list on the way");
    let before_last = &rest[..rest.len() - 1];
    let some = items.iter().any(|item| leads_through(item, before_last));
    let meant = items
        .iter_mut()
        .enumerate()
        .filter(|(at, item)| leads_through(item, before_last) || !some && *at == 0);
    for (_, item) in meant {
        reach(item, rest, act);
    }
}

fn steps(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

fn put(object: &mut Value, path: &str, value: &Value) {
    reach(object, &steps(path), &mut |members, last| {
        members.insert(last.to_owned(), value.clone());
    });
}

/// Returns every value at a path, in whatever items of lists.
fn values<'v>(value: &'v Value, steps: &[&str]) -> Vec<&'v Value> {
    let Some((step, rest)) = steps.split_first() else {
        return vec![value];
    };
    match step.strip_suffix("[]") {
        Some(list) => {
            let items = value[list].as_array().into_iter().flatten();
            items.flat_map(|item| values(item, rest)).collect()
        }
        None => value.get(step).map_or(Vec::new(), |it| values(it, rest)),
    }
}

impl Field {
    /// Returns the object of a kind in the forms of the field.
    pub(super) fn forms(&self, sample: &Value, zero: &Value) -> Forms {
        let mut whole = sample.clone();
        for (path, value) in &self.given {
            put(&mut whole, path, value);
        }
        // The rule finds its place, of which nothing is said but what the sample says.
        let inside = join(&self.base, "inside");
        reach(&mut whole, &steps(&inside), &mut |_, _| {});
        let (null, zero) = (self.with(&whole, &Value::Null), self.with(&whole, zero));
        let mut absent = whole;
        let steps = steps(&self.path);
        if leads_through(&absent, &steps[..steps.len() - 1]) {
            reach(&mut absent, &steps, &mut |members, last| {
                members.remove(last);
            });
        }
        Forms { absent, null, zero }
    }

    fn with(&self, object: &Value, value: &Value) -> Value {
        let mut object = object.clone();
        put(&mut object, &self.path, value);
        object
    }

    /// Checks what the server makes of the forms, and returns them for other servers to try.
    fn check(&self, resource: &Resource, sample: &Value) -> Value {
        let version = resource.storage_version.to_string();
        let kind = codec::kind(&version, &resource.storage_kind).expect("a kind with a message");
        let name = format!("{} {}", resource.qualified_name(), self.path);
        let (empty, is_pointer) = codec::empty_at(kind, &self.path).expect(&name);
        let forms = self.forms(sample, &empty);
        let [absent, null, zero] =
            [&forms.absent, &forms.null, &forms.zero].map(|form| stored(resource, form));
        assert_eq!(absent, null, "{name}: null is absent");
        let becomes = values(&absent, &steps(&self.path));
        let is_filled = |it: &&Value| match self.literal.map(Literal::value) {
            Some(Value::Null) => it.is_null(),
            Some(Value::Object(_)) => it.is_object(),
            Some(literal) => **it == literal,
            None => !it.is_null() && **it != empty,
        };
        let filled = becomes.iter().any(is_filled);
        assert!(filled, "{name} is filled in: {absent}");
        let is_told = resource.strategy.told_if_empty().contains(&&*self.path);
        if is_told || is_pointer && !empty.is_object() {
            let kept = values(&zero, &steps(&self.path)).contains(&&empty);
            assert!(kept, "{name} keeps zero: {zero}");
        } else if !is_pointer {
            assert_eq!(zero, absent, "{name}: zero is absent");
        }
        // What the tables of protobuf do not know yet is compared in JSON alone.
        let wire = |object: &Value| codec::encode_value(object).map(|it| STANDARD.encode(it));
        let served = |object: Value| {
            let mut object = resource.strategy.to_served(object);
            object["apiVersion"] = json!(resource.group_version.to_string());
            object
        };
        let [absent, nothing, zero] = [forms.absent, forms.null, forms.zero].map(served);
        json!({"groupVersion": resource.group_version.to_string(), "plural": resource.plural,
            "namespaced": resource.namespaced, "field": self.path, "protobuf": wire(&absent),
            "absent": absent, "null": nothing, "zero": zero})
    }
}

/// Returns an object of the storage version as it is stored.
pub(super) fn stored(resource: &Resource, object: &Value) -> Value {
    if resource.group_version == resource.storage_version {
        return admitted_to_storage_version(resource, resource, object.clone()).expect("an object");
    }
    let version = resource.storage_version.to_string();
    let kind = codec::kind(&version, &resource.storage_kind).expect("a kind with a message");
    let mut object = object.clone();
    codec::canonicalize(kind, object.as_object_mut().expect("an object"));
    resource.strategy.default(&mut object);
    codec::complete(kind, object.as_object_mut().expect("an object"));
    object
}

/// Every field that has a default, of every kind: absent and null are the same, and so is zero unless the field keeps
/// it, which is a pointer or a list of which an empty one is told.
#[test]
fn what_is_empty_is_absent() {
    let mut count = 0;
    for (resource, sample, field) in all_fields() {
        println!("DEFAULT {}", field.check(&resource, &sample));
        count += 1;
    }
    assert!(count > 400, "{count} fields");
}

/// Returns every field that has a default, with its kind and an object in which its rule finds its place.
pub(super) fn all_fields() -> Vec<(Arc<Resource>, Value, Field)> {
    let mut kinds = BTreeSet::new();
    let mut all = Vec::new();
    for resource in built_in() {
        let strategy: &dyn Any = &*resource.strategy;
        let generic = strategy.downcast_ref::<Generic>().expect("switches");
        let fields = fields(generic.rules(), "", &[]);
        // The versions of a kind share its rules.
        if fields.is_empty() || !kinds.insert(resource.storage_kind.clone()) {
            continue;
        }
        let samples = samples::objects(&resource);
        for field in fields {
            let base = steps(&field.base);
            let fits = |sample: &&Value| field.base.is_empty() || leads_through(sample, &base);
            let sample = samples.iter().find(fits).unwrap_or(&samples[0]);
            all.push((Arc::clone(&resource), sample.clone(), field));
        }
    }
    all
}

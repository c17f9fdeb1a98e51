//! Random trees and patches, fitting or not, against the rules of apimachinery's `strategicpatch` written out without
//! care for speed.
//!
//! The trees have a budget's kind, since its selector is replaced as a whole, and lists that merge by their names.

mod trees;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use self::trees::Choices;
use super::merge;

type Members = Map<String, Value>;

/// The rules of the lists: the map, the list, and the key of its items, or none if it is a set.
const MERGED: [(&str, &str, Option<&str>); 4] = [
    ("metadata", "finalizers", None),
    ("spec", "containers", Some("name")),
    ("containers", "env", Some("name")),
    ("containers", "ports", Some("containerPort")),
];

/// The rule of a list.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Key(&'static str),
    Set,
    Replaced,
}

fn rule(parent: &str, list: &str) -> Rule {
    let found = MERGED
        .iter()
        .find(|(map, name, _)| (*map, *name) == (parent, list));
    match found {
        Some((.., Some(key))) => Rule::Key(key),
        Some((.., None)) => Rule::Set,
        None => Rule::Replaced,
    }
}

/// Returns a map after a patch; `None` if it is refused, as by all functions of the model.
fn patched(current: &Members, patch: &Members, parent: &str) -> Option<Members> {
    let mut rest = patch.clone();
    match rest.remove("$patch") {
        None => {}
        Some(directive) if directive == "replace" => return Some(rest),
        Some(directive) if directive == "delete" => return Some(Members::new()),
        Some(_) => return None,
    }
    let mut next = current.clone();
    if let Some(kept) = rest.remove("$retainKeys") {
        let kept = kept.as_array()?;
        let is_kept = |name: &String| kept.contains(&name.as_str().into());
        let exempt =
            |name: &str| name.starts_with("$deleteFrom") || name.starts_with("$setElement");
        if rest
            .iter()
            .any(|(name, value)| !value.is_null() && !exempt(name) && !is_kept(name))
        {
            return None;
        }
        next.retain(|name, _| is_kept(name));
    }
    for (directive, order) in patch
        .iter()
        .filter(|(name, _)| name.starts_with("$setElement"))
    {
        rest.remove(directive);
        let (name, order) = (
            directive.strip_prefix("$setElementOrder/")?,
            order.as_array()?,
        );
        let list = |map: &Members| match map.get(name) {
            None => Some(None),
            Some(value) => Some(Some(value.as_array()?.clone())),
        };
        let (live, sent) = (list(&next)?, list(&rest)?);
        let Some(merged) = in_set_order(live, sent, order, rule(parent, name), name)? else {
            continue;
        };
        next.insert(name.to_owned(), merged.into());
        rest.remove(name);
    }
    for (name, value) in &rest {
        let deletes = name.starts_with("$deleteFrom");
        let name = match deletes {
            true => name.strip_prefix("$deleteFromPrimitiveList/")?,
            false => name,
        };
        let was = next.remove(name);
        if let Some(after) = member_after(was, value, (parent, name), deletes)? {
            next.insert(name.to_owned(), after);
        }
    }
    Some(next)
}

/// Returns a member after a patch without an order; `None` within if there is none.
fn member_after(
    was: Option<Value>,
    value: &Value,
    (parent, name): (&str, &str),
    deletes: bool,
) -> Option<Option<Value>> {
    let is_empty_list = was == Some(json!([])) && value.is_array();
    let was = was.filter(|_| deletes || !is_empty_list);
    Some(match (&was, value) {
        (_, Value::Null) => None,
        (Some(Value::Object(_)), Value::Object(_)) if name == "selector" => Some(value.clone()),
        (Some(Value::Object(own)), Value::Object(patch)) => {
            Some(Value::Object(patched(own, patch, name)?))
        }
        (Some(Value::Array(own)), Value::Array(_)) if own.is_empty() => was,
        (Some(Value::Array(own)), Value::Array(sent)) => {
            Some(list_after(own, sent, rule(parent, name), name, deletes)?.into())
        }
        (Some(own), _) if kind_of(own) == kind_of(value) => Some(value.clone()),
        _ if deletes => was,
        _ => without(value, true),
    })
}

/// Returns the list that a patch without an order leaves.
fn list_after(
    own: &[Value],
    sent: &[Value],
    rule: Rule,
    name: &str,
    deletes: bool,
) -> Option<Vec<Value>> {
    if rule == Rule::Replaced && !deletes {
        return Some(sent.to_vec());
    }
    let kind = one_kind(own, sent)?;
    if deletes && kind != "map" {
        return Some(
            own.iter()
                .filter(|item| !sent.contains(item))
                .cloned()
                .collect(),
        );
    }
    let (kept, new, replaces) = joined(own, sent, rule, name)?;
    let order: Vec<Value> = sent
        .iter()
        .filter(|it| it.get("$patch").is_none())
        .cloned()
        .collect();
    let all = [kept.clone(), new].concat();
    match replaces {
        true => interleaved(&all, &[], &all, rule),
        false => interleaved(&all, &order, &kept, rule),
    }
}

/// Returns the list that a patch with an order leaves; `None` within if there is none.
fn in_set_order(
    live: Option<Vec<Value>>,
    sent: Option<Vec<Value>>,
    order: &[Value],
    rule: Rule,
    name: &str,
) -> Option<Option<Vec<Value>>> {
    let (own, items) = (
        live.clone().unwrap_or_default(),
        sent.clone().unwrap_or_default(),
    );
    if live.is_none() && sent.is_none() {
        return Some(None);
    }
    follows(&items, order, rule)?;
    one_kind(&own, &items)?;
    let (all, live) = match (live, sent) {
        (Some(live), None) => (live.clone(), live),
        (None, _) => (
            items.iter().filter_map(|it| without(it, false)).collect(),
            Vec::new(),
        ),
        (Some(_), Some(sent)) if rule == Rule::Replaced => (sent, own),
        (Some(live), Some(sent)) => {
            let (kept, new, replaces) = joined(&live, &sent, rule, name)?;
            let all = [kept.clone(), new].concat();
            let takes_place = !replaces && matches!(rule, Rule::Key(_));
            let live = match takes_place {
                true => all.iter().take(live.len()).cloned().collect(),
                false => live,
            };
            let named: Vec<_> = sent
                .iter()
                .filter(|it| it.get("$patch").is_none())
                .cloned()
                .collect();
            let (order, before) = if replaces {
                (Vec::new(), all.clone())
            } else {
                (named, kept)
            };
            (interleaved(&all, &order, &before, rule)?, live)
        }
    };
    Some(Some(interleaved(&all, order, &live, rule)?))
}

/// Returns what stays of a list and what is new in it, and true if the patch replaces it.
fn joined(
    own: &[Value],
    sent: &[Value],
    rule: Rule,
    name: &str,
) -> Option<(Vec<Value>, Vec<Value>, bool)> {
    let is_of_maps = one_kind(own, sent)? == "map";
    let (mut kept, mut new) = (own.to_vec(), Vec::new());
    let key = match (rule, is_of_maps) {
        (Rule::Key(key), true) => key,
        (Rule::Set | Rule::Replaced, false) => {
            let is_first = |list: &[Value], at: usize| !list[..at].contains(&list[at]);
            let all = [own, sent].concat();
            let firsts = (0..all.len()).filter(|at| is_first(&all, *at));
            let (kept, new): (Vec<_>, Vec<_>) = firsts.partition(|at| *at < own.len());
            let items = |places: Vec<usize>| places.into_iter().map(|at| all[at].clone()).collect();
            return Some((items(kept), items(new), false));
        }
        _ => return None,
    };
    let mut replaces = false;
    let mut others = Vec::new();
    for item in sent {
        match item.get("$patch") {
            None => others.push(item),
            Some(directive) if directive == "replace" => replaces = true,
            Some(directive) if directive == "delete" => {
                let value = item.get(key)?;
                kept.retain(|own| own.get(key) != Some(value));
            }
            Some(_) => return None,
        }
    }
    if replaces {
        return Some((others.into_iter().cloned().collect(), new, true));
    }
    for item in others {
        let value = item.get(key)?;
        let mut all = kept.iter_mut().chain(&mut new);
        match all.find(|own| own.get(key) == Some(value)) {
            Some(own) => *own = patched(own.as_object()?, item.as_object()?, name)?.into(),
            None => new.push(item.clone()),
        }
    }
    Some((kept, new, false))
}

/// Checks that the items of a patch come in an order.
fn follows(items: &[Value], order: &[Value], rule: Rule) -> Option<()> {
    if items.is_empty() || order.is_empty() {
        return Some(());
    }
    if matches!(rule, Rule::Key(_)) && !items.iter().all(Value::is_object) {
        return None;
    }
    let is_deleted = |item: &&Value| {
        matches!(rule, Rule::Key(_)) && item.get("$patch") == Some(&json!("delete"))
    };
    let items: Vec<_> = items.iter().filter(|item| !is_deleted(item)).collect();
    let (mut at, mut place) = (0, 0);
    while at < items.len() {
        if place == order.len() {
            return None;
        }
        if items[at].get("$patch").is_some() {
            at += 1;
            continue;
        }
        if told(items[at], rule)? == told(&order[place], rule)? {
            at += 1;
        }
        place += 1;
    }
    Some(())
}

/// Puts the items of an order into it, and each other one before the first of these that it stood before.
fn interleaved(all: &[Value], order: &[Value], live: &[Value], rule: Rule) -> Option<Vec<Value>> {
    let tell = |list: &[Value]| -> Option<Vec<Value>> {
        list.iter()
            .map(|item| Some(told(item, rule)?.clone()))
            .collect()
    };
    let (order, live) = (tell(order)?, tell(live)?);
    tell(all)?;
    let place =
        |list: &[Value], item: &Value| list.iter().position(|it| Some(it) == told(item, rule));
    let (mut named, others): (Vec<_>, Vec<_>) = all
        .iter()
        .cloned()
        .partition(|item| place(&order, item).is_some());
    named.sort_by_key(|item| place(&order, item));
    // By insertion: what was nowhere is before all others, and they before it.
    let mut sorted: Vec<Value> = Vec::new();
    for other in others {
        let stays_behind = |it: &Value| match (place(&live, it), place(&live, &other)) {
            (Some(one), Some(other)) => one <= other,
            _ => false,
        };
        let at = sorted.iter().rposition(stays_behind).map_or(0, |at| at + 1);
        sorted.insert(at, other);
    }
    let mut others = sorted;
    let mut result = Vec::new();
    for item in named {
        let was = place(&live, &item);
        let before =
            |other: &Value| was.is_some() && place(&live, other).is_some_and(|at| Some(at) < was);
        while others.first().is_some_and(before) {
            result.push(others.remove(0));
        }
        result.push(item);
    }
    result.extend(others);
    Some(result)
}

/// Returns what tells an item from others.
fn told(item: &Value, rule: Rule) -> Option<&Value> {
    match rule {
        Rule::Key(key) => item.as_object()?.get(key),
        Rule::Set | Rule::Replaced => (!item.is_object() && !item.is_array()).then_some(item),
    }
}

/// Returns a value without the maps that have `$patch`, and perhaps without the nulls of maps.
fn without(value: &Value, nulls: bool) -> Option<Value> {
    Some(match value {
        Value::Array(items) => items
            .iter()
            .filter_map(|item| without(item, nulls))
            .collect(),
        Value::Object(members) => {
            let mut members = members.clone();
            members.retain(|_, value| !(nulls && value.is_null()));
            if members.contains_key("$patch") {
                return None;
            }
            let left = members
                .iter()
                .filter_map(|(name, it)| Some((name.clone(), without(it, nulls)?)));
            Value::Object(left.collect())
        }
        scalar => scalar.clone(),
    })
}

/// Returns the one kind of all items.
fn one_kind(own: &[Value], sent: &[Value]) -> Option<&'static str> {
    let mut kinds = own.iter().chain(sent).map(kind_of);
    let first = kinds.next()?;
    let is_mergeable = first != "list" && first != "null";
    (is_mergeable && kinds.all(|kind| kind == first)).then_some(first)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) => ["integer", "float"][usize::from(number.is_f64())],
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn trees_are_patched_by_the_rules(
        own in prop::collection::vec(any::<u8>(), 0..160),
        sent in prop::collection::vec(any::<u8>(), 0..160),
    ) {
        let mut object = Choices(own.iter()).map(&["metadata", "spec"], false);
        object["kind"] = "PodDisruptionBudget".into();
        let patch = Choices(sent.iter()).map(&["metadata", "spec"], true);
        let (own, sent) = (object.as_object().expect("a map"), patch.as_object().expect("a map"));
        let expected = patched(own, sent, "").map(Value::Object);
        let found = merge(&object, &patch);
        prop_assert_eq!(found.ok(), expected, "\nobject: {}\npatch: {}", object, patch);
    }
}

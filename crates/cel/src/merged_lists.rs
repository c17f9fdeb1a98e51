//! Lists of data that are sets or have keys: they are equal in any order, and `+` merges them. And lists of texts that
//! expressions see as something else.
//!
//! Follows `unstructuredSetList`, `unstructuredMapList` and `unstructuredList` of Kubernetes. The left one of two lists
//! decides what they equal and how they are added. Go looks items up as they are written, and by what they have become
//! on the right: so a set of numbers with an integer, or of times, does not even equal itself, and items of some types
//! cannot be looked up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, FixedOffset, TimeDelta};
use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Opaque};

use super::failure::Failure;
use super::wrong_data::wrong_data;

/// The function that tells if two items are equal.
type Equal<'e> = &'e mut dyn FnMut(&CelValue, &CelValue) -> Result<bool, Failure>;

/// A list that is no plain one.
#[derive(Clone, Debug, PartialEq)]
struct MergedList {
    items: Arc<Vec<CelValue>>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A set, with its items as they are written.
    Set(Arc<Vec<CelValue>>),
    /// A list of maps of which no two have the same values of these members.
    Keyed(Arc<[Key]>),
    /// A list of texts, such as times.
    Texts,
}

impl Eq for MergedList {}

impl Opaque for MergedList {
    fn runtime_type_name(&self) -> &'static str {
        "list"
    }
}

impl MergedList {
    fn into_value(self) -> CelValue {
        CelValue::Opaque(Arc::new(self))
    }
}

/// Returns a set. Its items as they are `written` are given unless they are the same.
pub fn set_list(items: Vec<CelValue>, written: Option<Vec<CelValue>>) -> CelValue {
    let items = Arc::new(items);
    let written = written.map_or_else(|| items.clone(), Arc::new);
    let kind = Kind::Set(written);
    MergedList { items, kind }.into_value()
}

/// Returns a list of maps that have the values of these members as their keys.
pub fn keyed_list(items: Vec<CelValue>, keys: impl IntoIterator<Item = String>) -> CelValue {
    let kind = Kind::Keyed(keys.into_iter().map(Key::from).collect());
    let items = Arc::new(items);
    MergedList { items, kind }.into_value()
}

/// Returns a list of texts that expressions see as something else.
pub fn text_list(items: Vec<CelValue>) -> CelValue {
    let items = Arc::new(items);
    let kind = Kind::Texts;
    MergedList { items, kind }.into_value()
}

/// Returns the items of any list; `None` for what is no list.
pub fn list_items(value: &CelValue) -> Option<&Arc<Vec<CelValue>>> {
    match value {
        CelValue::List(items) => Some(items),
        other => merged(other).map(|it| &it.items),
    }
}

fn merged(value: &CelValue) -> Option<&MergedList> {
    match value {
        CelValue::Opaque(opaque) => opaque.downcast_ref(),
        _ => None,
    }
}

/// Makes a plain list of any list.
pub(super) fn make_plain(value: &mut CelValue) {
    if let Some(list) = merged(value) {
        *value = CelValue::List(list.items.clone());
    }
}

/// Returns true if the items of two lists are looked up in one another to find out if they are equal: then even items
/// are walked through that do not equal any.
pub(super) fn are_looked_up(one: &CelValue, other: &CelValue) -> bool {
    let (one, others) = (merged(one), list_items(other));
    one.zip(others).is_some_and(|(one, others)| {
        one.items.len() == others.len() && !matches!(one.kind, Kind::Texts)
    })
}

/// Returns how often members are looked up to add a list to a list with keys: items of other lists may have none of
/// them.
pub(super) fn lookups_of_sum(left: &CelValue, right: &CelValue) -> u64 {
    let (left, more) = (merged(left), list_items(right));
    let lookups = left.zip(more).map_or(0, |(left, more)| match &left.kind {
        Kind::Keyed(keys) => (left.items.len() + more.len()).saturating_mul(keys.len()),
        Kind::Set(_) | Kind::Texts => 0,
    });
    lookups as u64
}

/// Returns true if a list that is no plain one equals another value; `None` if it is none.
pub(super) fn equals(
    one: &CelValue,
    other: &CelValue,
    equal: Equal<'_>,
) -> Option<Result<bool, Failure>> {
    let one = merged(one)?;
    let Some(others) = list_items(other) else {
        let is_null = matches!(other, CelValue::Null);
        return Some(is_null.then_some(false).ok_or(Failure::NoOverload));
    };
    Some(match &one.kind {
        _ if one.items.len() != others.len() => Ok(false),
        Kind::Set(written) => has_all(written, others),
        Kind::Keyed(keys) => has_equals(&one.items, keys, others, equal),
        Kind::Texts => equal_in_order(&one.items, others, equal),
    })
}

/// Returns true if two lists have equal items in the same order.
pub(super) fn equal_in_order(
    one: &[CelValue],
    other: &[CelValue],
    equal: Equal<'_>,
) -> Result<bool, Failure> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (one, other) in one.iter().zip(other) {
        if !equal(one, other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_all(written: &[CelValue], others: &[CelValue]) -> Result<bool, Failure> {
    let items = looked_up(written)?;
    for other in others {
        if !Word::of(other)?.is_some_and(|it| items.contains(&it)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_equals(
    items: &[CelValue],
    keys: &[Key],
    others: &[CelValue],
    equal: Equal<'_>,
) -> Result<bool, Failure> {
    let places = places(items, keys)?;
    for other in others {
        let place = key_of(other, keys)?.and_then(|key| places.get(&key));
        let is_equal = place
            .map(|place| equal(&items[*place], other))
            .transpose()?;
        if is_equal != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds a list to another one. A set gets the items that it does not have; in a list with keys, items replace those
/// with the same keys.
pub(super) fn sum(left: CelValue, right: &CelValue) -> Result<CelValue, Failure> {
    let more = list_items(right).ok_or(Failure::NoOverload)?;
    if let CelValue::List(mut items) = left {
        // cel-go returns the other list if one has nothing.
        if items.is_empty() {
            return Ok(right.clone());
        }
        Arc::make_mut(&mut items).extend(more.iter().cloned());
        return Ok(CelValue::List(items));
    }
    let mut sum = merged(&left).ok_or(Failure::NoOverload)?.clone();
    let items = Arc::make_mut(&mut sum.items);
    match &mut sum.kind {
        Kind::Set(written) => {
            let mut known = looked_up(written)?;
            let written = Arc::make_mut(written);
            for item in more.iter() {
                if Word::of(item)?.is_none_or(|word| known.insert(word)) {
                    items.push(read_again(item));
                    written.push(item.clone());
                }
            }
        }
        Kind::Texts => items.extend(more.iter().map(read_again)),
        Kind::Keyed(keys) => {
            let places = places(items, keys)?;
            for item in more.iter() {
                match key_of(item, keys)?.and_then(|key| places.get(&key)) {
                    Some(place) => items[*place] = item.clone(),
                    None => items.push(item.clone()),
                }
            }
        }
    }
    Ok(sum.into_value())
}

/// Returns an item of one list as another one has it, which reads what it gets by its schema: no times, since those are
/// texts there.
fn read_again(item: &CelValue) -> CelValue {
    let found = match item {
        CelValue::Timestamp(_) => "time.Time",
        CelValue::Duration(_) => "time.Duration",
        CelValue::Bytes(_) => "[]uint8",
        _ => return item.clone(),
    };
    wrong_data(format!("invalid data, expected string, got {found}"))
}

/// Returns the items of a set as they are looked up.
fn looked_up(written: &[CelValue]) -> Result<HashSet<Word>, Failure> {
    let words = written.iter().map(Word::of);
    words.filter_map(Result::transpose).collect()
}

/// Returns the places of items by their keys, of those with the same keys that of the last.
fn places(items: &[CelValue], keys: &[Key]) -> Result<HashMap<Vec<Option<Word>>, usize>, Failure> {
    let mut places = HashMap::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        if let Some(key) = key_of(item, keys)? {
            places.insert(key, place);
        }
    }
    Ok(places)
}

/// Returns the key of an item, in which members that it does not have are none; `None` if it is no map.
fn key_of(item: &CelValue, keys: &[Key]) -> Result<Option<Vec<Option<Word>>>, Failure> {
    let CelValue::Map(map) = item else {
        return Ok(None);
    };
    let member = |key| match map.map.get(key) {
        None => Ok(None),
        // These are looked up as they are written.
        Some(CelValue::Bytes(bytes)) => Ok(Some(Word::Bytes(bytes.clone()))),
        Some(CelValue::Timestamp(time)) => Ok(Some(Word::Time(*time))),
        Some(CelValue::Duration(duration)) => Ok(Some(Word::Duration(*duration))),
        Some(it) => Word::of(it),
    };
    let key: Result<Vec<_>, Failure> = keys.iter().map(member).collect();
    key.map(Some)
}

/// A value by which Go looks up items. Numbers of different types are different, and zero has no sign.
#[derive(PartialEq, Eq, Hash)]
enum Word {
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(Arc<String>),
    Bytes(Arc<Vec<u8>>),
    Time(DateTime<FixedOffset>),
    Duration(TimeDelta),
}

impl Word {
    /// Returns the word of a value; `None` if nothing is found by it.
    fn of(value: &CelValue) -> Result<Option<Self>, Failure> {
        Ok(Some(match value {
            CelValue::Bool(it) => Self::Bool(*it),
            CelValue::Int(it) => Self::Int(*it),
            CelValue::Float(it) if !it.is_nan() => Self::Float((it + 0.0).to_bits()),
            CelValue::String(it) => Self::Text(it.clone()),
            CelValue::Bytes(_) => return Err(Failure::NoHash("[]uint8")),
            CelValue::Map(_) => return Err(Failure::NoHash("map[string]interface {}")),
            other if list_items(other).is_some() => return Err(Failure::NoHash("[]interface {}")),
            _ => return Ok(None),
        }))
    }
}

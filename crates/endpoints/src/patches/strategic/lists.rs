//! The lists of strategic merge patches. Follows `mergeSlice` and `mergePatchIntoOriginal` of `strategicpatch`.
//!
//! The hard part is their order: items that the patch names are in its order, or in that of `$setElementOrder`, and the
//! others stay before those that they stood before.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::Error;
use serde_json::{Map, Value};

use super::{
    Directive, FieldPosition, ListMerge, PATCH, bad, directive, failed, go_type, merge_map, taken,
};
use crate::patches::go_words;

/// A list, by its name and the map that has it.
#[derive(Clone, Copy)]
pub(super) struct ItemList<'a> {
    pub(super) by: ListMerge,
    /// The position of its items.
    pub(super) place: FieldPosition<'a>,
}

/// Merges a list of the object with that of a patch; `deletes` if its items are to be deleted.
pub(super) fn merge_list(
    current: Vec<Value>,
    patch: &[Value],
    list: ItemList<'_>,
    deletes: bool,
    depth: usize,
) -> Result<Vec<Value>, Error> {
    if list.by == ListMerge::Replace && !deletes {
        return Ok(patch.to_vec());
    }
    if current.is_empty() && patch.is_empty() {
        return Ok(current);
    }
    let is_of_maps = element_type(&current, patch)? == MAP;
    if deletes && !is_of_maps {
        let gone: HashSet<&Value> = patch.iter().collect();
        let stays = current.into_iter().filter(|item| !gone.contains(item));
        return Ok(stays.collect());
    }
    merged_items(current, patch, list, depth)?.in_order_of(patch, list)
}

/// Merges a list of the map with that of a patch, if there is any, in the order that the patch sets.
pub(super) fn merge_list_in_order(
    map: &mut Map<String, Value>,
    patch: Option<&Value>,
    order: &Value,
    list: ItemList<'_>,
    depth: usize,
) -> Result<(), Error> {
    let items_of = |value: &Value| match value {
        Value::Array(items) => Ok(items.clone()),
        _ => Err(bad("invalid patch format of setElementOrder list")),
    };
    let name = list.place.name;
    let order = items_of(order)?;
    let current = map.get(name).map(items_of).transpose()?;
    let patch = patch.map(items_of).transpose()?;
    if current.is_none() && patch.is_none() {
        return Ok(());
    }
    let (live, sent) = (
        current.as_deref().unwrap_or_default(),
        patch.as_deref().unwrap_or_default(),
    );
    check_order(sent, &order, list)?;
    element_type(live, sent)?;
    let (items, live) = match (current, patch) {
        (Some(current), None) => (current.clone(), current),
        (None, patch) => {
            let items = patch.iter().flatten().filter_map(|item| taken(item, true));
            (items.collect(), Vec::new())
        }
        (Some(_), Some(patch)) if list.by == ListMerge::Replace => (patch, Vec::new()),
        (Some(current), Some(patch)) => {
            let before = current.clone();
            let merged = merged_items(current, &patch, list, depth)?;
            // New items take the places at the end that deleted ones leave.
            let live = match (merged.replaces, list.by) {
                (false, ListMerge::ByKey(_)) => {
                    merged.items.iter().take(before.len()).cloned().collect()
                }
                _ => before,
            };
            (merged.in_order_of(&patch, list)?, live)
        }
    };
    let (order, live) = (list.identities(&order)?, list.identities(&live)?);
    let items = list.ordered(items, &order, &live)?;
    map.insert(name.to_owned(), Value::Array(items));
    Ok(())
}

const MAP: &str = "map[string]interface {}";

/// Returns the type of the items of two lists.
///
/// # Errors
/// [`Error::Untranslated`] if there are none or they have several types, [`Error::Unprocessable`] if they are lists.
fn element_type(current: &[Value], patch: &[Value]) -> Result<&'static str, Error> {
    let mut types = current.iter().chain(patch).map(go_type);
    let Some(first) = types.next() else {
        return Err(failed("no elements in any of the given slices"));
    };
    if first == "[]interface {}" {
        return Err(Error::Unprocessable);
    }
    if first == "<nil>" || types.any(|other| other != first) {
        let lists = Value::from(vec![Value::from(current), Value::from(patch)]);
        return Err(failed(format!(
            "list element types are not identical: {}",
            go_words(&lists)
        )));
    }
    Ok(first)
}

/// The items of two lists, merged.
struct MergedItems {
    /// The items that were there before, and after them the new ones.
    items: Vec<Value>,
    /// The number of those that were there before.
    before: usize,
    /// True if they are those of the patch alone.
    replaces: bool,
}

impl MergedItems {
    /// Returns the items in the order of the patch.
    fn in_order_of(self, patch: &[Value], list: ItemList<'_>) -> Result<Vec<Value>, Error> {
        let order = list.identities(patch.iter().filter(|item| !has_directive(item)))?;
        let live = list.identities(&self.items[..self.before])?;
        list.ordered(self.items, &order, &live)
    }
}

/// Merges the items of two lists of one type.
fn merged_items(
    current: Vec<Value>,
    patch: &[Value],
    list: ItemList<'_>,
    depth: usize,
) -> Result<MergedItems, Error> {
    let is_of_maps = current.iter().chain(patch).any(Value::is_object);
    match list.by {
        ListMerge::ByKey(key) => merged_maps(current, patch, key, list.place, depth),
        _ if is_of_maps => Err(failed("cannot merge lists without merge key for struct")),
        ListMerge::Set | ListMerge::Replace => {
            let before = current.len();
            let mut items = current;
            items.extend_from_slice(patch);
            let (mut seen, mut at, mut kept) = (HashSet::new(), 0, 0);
            items.retain(|item| {
                let is_new = seen.insert(item.clone());
                kept += usize::from(is_new && at < before);
                at += 1;
                is_new
            });
            Ok(MergedItems {
                items,
                before: kept,
                replaces: false,
            })
        }
    }
}

/// Merges the maps of two lists by a key: first removes those that the patch deletes, then merges the others. A new one
/// is taken as it is, with its directives.
fn merged_maps(
    current: Vec<Value>,
    patch: &[Value],
    key: &str,
    place: FieldPosition<'_>,
    depth: usize,
) -> Result<MergedItems, Error> {
    let patch = ItemsByKey::read(patch, key, place.name)?;
    if patch.replaces {
        let items: Vec<_> = patch
            .items
            .into_iter()
            .cloned()
            .map(Value::Object)
            .collect();
        return Ok(MergedItems {
            before: items.len(),
            items,
            replaces: true,
        });
    }
    let mut items = current;
    items.retain(|item| {
        item.get(key)
            .is_none_or(|value| !patch.deleted.contains(value))
    });
    let before = items.len();
    let mut places = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.clone()).or_insert(at);
        }
    }
    for members in &patch.items {
        let at = *places
            .entry(key_of(members, key)?.clone())
            .or_insert(items.len());
        match items.get_mut(at) {
            None => items.push(Value::Object((*members).clone())),
            Some(Value::Object(old)) => {
                *old = merge_map(std::mem::take(old), members, place, depth)?
            }
            Some(other) => return Err(not_a_map(other, place.name)),
        }
    }
    Ok(MergedItems {
        items,
        before,
        replaces: false,
    })
}

/// A patch of a list whose items merge by a key, in which each has one.
struct ItemsByKey<'p> {
    /// True if the items replace the list, which any of the patch's items may say.
    replaces: bool,
    /// The keys of items to delete.
    deleted: HashSet<&'p Value>,
    /// The items that are no directives.
    items: Vec<&'p Map<String, Value>>,
}

impl<'p> ItemsByKey<'p> {
    fn read(patch: &'p [Value], key: &str, list: &str) -> Result<Self, Error> {
        let mut read = Self {
            replaces: false,
            deleted: HashSet::new(),
            items: Vec::new(),
        };
        for item in patch {
            let members = members_of(item, list)?;
            match directive(members)? {
                Some(Directive::Replace) => read.replaces = true,
                Some(Directive::Delete) => drop(read.deleted.insert(key_of(members, key)?)),
                None => {
                    key_of(members, key)?;
                    read.items.push(members);
                }
            }
        }
        Ok(read)
    }
}

/// Checks that the items of a patch come in the order that it sets. Follows `validatePatchWithSetOrderList`.
fn check_order(patch: &[Value], order: &[Value], list: ItemList<'_>) -> Result<(), Error> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut items = Vec::with_capacity(patch.len());
    for item in patch {
        let is_deleted = match list.by {
            ListMerge::ByKey(_) => {
                let directive = members_of(item, list.place.name)?.get(PATCH);
                directive.and_then(Value::as_str) == Some("delete")
            }
            ListMerge::Set | ListMerge::Replace => false,
        };
        if !is_deleted {
            items.push(item);
        }
    }
    let mut items = items.into_iter().peekable();
    let mut places = order.iter();
    while items.peek().is_some() {
        if items
            .next_if(|item| has_directive(item) && !places.as_slice().is_empty())
            .is_some()
        {
            continue;
        }
        let (Some(item), Some(place)) = (items.peek(), places.next()) else {
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                go_words(&Value::from(patch)),
                go_words(&Value::from(order)),
            )));
        };
        if list.identity(item)? == list.identity(place)? {
            items.next();
        }
    }
    Ok(())
}

fn has_directive(item: &Value) -> bool {
    item.get(PATCH).is_some()
}

/// Returns the members of a list's item, which merge by one of them.
fn members_of<'a>(item: &'a Value, list: &str) -> Result<&'a Map<String, Value>, Error> {
    item.as_object().ok_or_else(|| not_a_map(item, list))
}

fn not_a_map(item: &Value, list: &str) -> Error {
    let found = go_type(item);
    failed(format!(
        "expected the items of {list} to be a {MAP}, but received a {found}"
    ))
}

fn key_of<'a>(members: &'a Map<String, Value>, key: &str) -> Result<&'a Value, Error> {
    members.get(key).ok_or_else(|| {
        failed(format!(
            "map: {} does not contain declared merge key: {key}",
            go_words(&Value::Object(members.clone()))
        ))
    })
}

/// Maximum number of items that Go sorts by insertion.
const INSERTED_MAX: usize = 20;

/// Sorts items by their places in the live list. One that has none counts as less than all others, and these as less
/// than it: so does it in Go, where an order that names nothing leaves new items among those that it does not name.
fn sort_unnamed(items: &mut [(Option<usize>, Value)]) {
    if items.len() > INSERTED_MAX || items.iter().all(|(was_at, _)| was_at.is_some()) {
        items.sort_by_key(|(was_at, _)| *was_at);
        return;
    }
    for end in 1..items.len() {
        let mut at = end;
        while at > 0
            && items[at]
                .0
                .zip(items[at - 1].0)
                .is_none_or(|(one, other)| one < other)
        {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
}

impl ItemList<'_> {
    /// Returns the value that tells an item from others: that of the merge key, or the item itself.
    fn identity(self, item: &Value) -> Result<&Value, Error> {
        match self.by {
            ListMerge::ByKey(key) => key_of(members_of(item, self.place.name)?, key),
            ListMerge::Set | ListMerge::Replace if item.is_object() || item.is_array() => {
                Err(failed("cannot order lists without merge key"))
            }
            ListMerge::Set | ListMerge::Replace => Ok(item),
        }
    }

    /// Returns the place of the first item with each identity.
    fn identities<'v>(
        self,
        items: impl IntoIterator<Item = &'v Value>,
    ) -> Result<HashMap<Value, usize>, Error> {
        let mut places = HashMap::new();
        for (at, item) in items.into_iter().enumerate() {
            places.entry(self.identity(item)?.clone()).or_insert(at);
        }
        Ok(places)
    }

    /// Orders items: those that are in `order` as there, the others as they are in the live list. If both orders are
    /// possible, those of the patch come first.
    fn ordered(
        self,
        items: Vec<Value>,
        order: &HashMap<Value, usize>,
        live: &HashMap<Value, usize>,
    ) -> Result<Vec<Value>, Error> {
        let (mut named, mut rest) = (Vec::new(), Vec::new());
        for item in items {
            let identity = self.identity(&item)?;
            let was_at = live.get(identity).copied();
            match order.get(identity).copied() {
                Some(rank) => named.push((rank, was_at, item)),
                None => rest.push((was_at, item)),
            }
        }
        named.sort_by_key(|(rank, ..)| *rank);
        sort_unnamed(&mut rest);
        let mut merged = Vec::with_capacity(named.len() + rest.len());
        let mut rest = rest.into_iter().peekable();
        for (_, was_at, item) in named {
            let was_before = |(other, _): &(Option<usize>, Value)| {
                other.zip(was_at).is_some_and(|(other, item)| other < item)
            };
            while let Some((_, other)) = rest.next_if(was_before) {
                merged.push(other);
            }
            merged.push(item);
        }
        merged.extend(rest.map(|(_, other)| other));
        Ok(merged)
    }
}

//! Records a write of fields that its manager has already and nobody else has, such as the renewal of a Lease: the
//! entries stay as they are, but for the time of the manager's.
//!
//! Most updates are such writes. All that is unusual in any way is left to the sets of fields by which
//! [`update()`](super::update()) records every write.

use serde_json::Value;

use super::changed_values::changed_values;
use super::managed_fields::{EntryOperation, UPDATE_ENTRIES_MAX};
use super::set::FieldSet;
use super::{Manager, UNTRACKED_FIELDS};

/// An entry exactly as this server writes it, so that it may stay as it is.
struct WrittenEntry<'a> {
    operation: EntryOperation,
    manager: &'a str,
    api_version: &'a str,
    time: &'a str,
    subresource: &'a str,
    fields: &'a Value,
}

/// Sets the time of the manager's entry in `new` and returns true, if there is nothing else to do.
pub(super) fn renew(live: &Value, new: &mut Value, manager: &Manager<'_>) -> bool {
    let (Some(own), Some(time)) = (own_entry(live, new, manager), manager.time_text()) else {
        return false;
    };
    if !sends_entries(new, manager) {
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
    }
    let Some(entries) = new["metadata"]["managedFields"].as_array_mut() else {
        return false;
    };
    entries[own]["time"] = time.into();
    entries.sort_by(|one, other| {
        let place = |entry| WrittenEntry::read(entry).map(|entry| entry.place());
        place(one).cmp(&place(other))
    });
    true
}

/// Returns true if the entries are those that the client sent, rather than those of the live object.
fn sends_entries(new: &Value, manager: &Manager<'_>) -> bool {
    manager.subresource.is_empty() && !new["metadata"]["managedFields"].is_null()
}

/// Returns the index of the manager's entry if it has all fields that have changed, and no other one has any of them.
fn own_entry(live: &Value, new: &Value, manager: &Manager<'_>) -> Option<usize> {
    let object = match sends_entries(new, manager) {
        true => new,
        false => live,
    };
    let list = &object["metadata"]["managedFields"];
    let entries = list.as_array()?;
    if entries.len() > UPDATE_ENTRIES_MAX {
        return None;
    }
    let entries: Vec<_> = entries
        .iter()
        .map(WrittenEntry::read)
        .collect::<Option<_>>()?;
    let is_repeated = |(at, entry): (usize, &WrittenEntry<'_>)| {
        let mut others = entries[..at].iter();
        others.any(|other| other.identity() == entry.identity())
    };
    if entries.iter().enumerate().any(is_repeated) {
        return None;
    }
    let schema = manager.schema(object);
    if !entries.iter().all(|it| schema.has_version(it.api_version)) {
        return None;
    }
    let (version, subresource) = (manager.api_version, manager.subresource);
    let identity = (
        EntryOperation::Update,
        manager.entry_name(),
        version,
        subresource,
    );
    let own = entries.iter().position(|it| it.identity() == identity)?;
    let changed = changed_fields(live, new, manager)?;
    let is_own = |(at, entry): (usize, &WrittenEntry<'_>)| match at == own {
        true => changed.is_within(entry.fields),
        false => !changed.meets(entry.fields),
    };
    entries.iter().enumerate().all(is_own).then_some(own)
}

/// Returns the fields that the write has changed; `None` unless they are in both objects, with other values.
fn changed_fields(live: &Value, new: &Value, manager: &Manager<'_>) -> Option<FieldSet> {
    let schema = manager.schema(new);
    let comparison = changed_values(schema, live.as_object()?, new.as_object()?)?;
    let changed = comparison
        .excluding(&manager.reset_fields(schema))
        .into_changed();
    let is_tracked = changed.intersection(&UNTRACKED_FIELDS).is_empty();
    (is_tracked && !changed.is_empty()).then_some(changed)
}

impl<'a> WrittenEntry<'a> {
    /// Reads an entry; `None` if this server would write it in another way.
    fn read(entry: &'a Value) -> Option<Self> {
        let entry = entry.as_object()?;
        let (mut operation, mut fields, mut known) = (None, None, 0);
        let mut text = |name: &str| {
            let Some(value) = entry.get(name) else {
                return Some("");
            };
            known += 1;
            value.as_str().filter(|text| !text.is_empty())
        };
        let (manager, api_version) = (text("manager")?, text("apiVersion")?);
        let (time, subresource) = (text("time")?, text("subresource")?);
        if text("fieldsType")? == "FieldsV1" {
            fields = entry.get("fieldsV1").filter(|it| FieldSet::is_written(it));
        }
        match text("operation")? {
            "Apply" => operation = Some(EntryOperation::Apply),
            "Update" => operation = Some(EntryOperation::Update),
            _ => {}
        }
        let (operation, fields) = (operation?, fields?);
        // And the fields themselves.
        (entry.len() == known + 1).then_some(Self {
            operation,
            manager,
            api_version,
            time,
            subresource,
            fields,
        })
    }

    /// Returns the parts that no two entries have in common.
    fn identity(&self) -> (EntryOperation, &'a str, &'a str, &'a str) {
        let version = match self.operation {
            EntryOperation::Apply => "",
            EntryOperation::Update => self.api_version,
        };
        (self.operation, self.manager, version, self.subresource)
    }

    /// Returns the parts by which entries are sorted.
    fn place(&self) -> impl Ord + use<'a> {
        let version = (self.manager, self.api_version);
        (self.operation, self.time, version, self.subresource)
    }
}

//! `metadata.managedFields`: the entries of an object's managers.
//!
//! A manager is identified by its name, operation and subresource, and for updates by the version that it writes as
//! well; so a manager that applies has one entry for all versions.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::go_text::quoted;
use serde_json::{Map, Value, json};

use super::set::FieldSet;

/// Maximum number of entries of updating managers; older ones are merged, as in Kubernetes.
pub(super) const UPDATE_ENTRIES_MAX: usize = 10;

/// The name of the entry into which older entries of updating managers are merged.
const OLD_UPDATES: &str = "ancient-changes";

/// The parsed `metadata.managedFields` of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ManagedFields {
    /// The entries by manager, operation, version and subresource.
    pub(super) entries: BTreeMap<Identity, ManagerEntry>,
}

/// The reason why the entries of an object cannot be read. They are shown in kube-apiserver's words, up to those about
/// the fields of an entry, which it shows as a Go value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadableEntries {
    /// They are no list.
    NoList,
    /// An entry has another operation, or none.
    Operation,
    /// An entry has no version.
    NoVersion,
    /// The entry in this place has no type of fields.
    NoFieldsType(usize),
    /// The entry in this place has fields of another type.
    FieldsType(usize, String),
    /// The fields of the entry in this place are no set of paths.
    Fields(usize),
}

impl std::error::Error for UnreadableEntries {}

impl From<UnreadableEntries> for Error {
    fn from(why: UnreadableEntries) -> Self {
        Self::Internal(why.to_string())
    }
}

impl Display for UnreadableEntries {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoList => f.write_str("managed fields must be a list"),
            Self::Operation => f.write_str("operation must be `Apply` or `Update`"),
            Self::NoVersion => f.write_str("apiVersion must not be empty"),
            Self::NoFieldsType(place) => {
                write!(f, "missing fieldsType in managed fields entry {place}")
            }
            Self::FieldsType(place, found) => {
                let found = quoted(found);
                write!(
                    f,
                    "invalid fieldsType {found} in managed fields entry {place}"
                )
            }
            Self::Fields(place) => {
                write!(
                    f,
                    "error decoding versioned set from managed fields entry {place}: error decoding set"
                )
            }
        }
    }
}

/// Checks that the entries of an object can be read. Follows `ValidateManagedFields`.
///
/// # Errors
/// The reason why they cannot.
pub fn validate_managed_fields(object: &Value) -> Result<(), UnreadableEntries> {
    ManagedFields::decode(object).map(drop)
}

/// The identity of a manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    /// The operation by which the manager writes.
    pub(super) operation: EntryOperation,
    /// The name of the manager.
    pub(super) name: String,
    /// The version it writes; empty if it applies.
    pub(super) api_version: String,
    /// The subresource through which it writes; empty for the object itself.
    pub(super) subresource: String,
}

/// The operation of an entry in `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryOperation {
    /// The manager writes by server-side apply.
    Apply,
    /// Any write but an apply.
    Update,
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManagerEntry {
    /// The version in which the fields are named.
    pub(super) api_version: String,
    /// The time at which it last took or applied fields, as RFC 3339 in seconds and UTC.
    pub(super) time: Option<String>,
    /// The fields that the manager owns.
    pub(super) fields: FieldSet,
}

impl ManagedFields {
    /// Reads the entries of an object.
    pub(super) fn decode(object: &Value) -> Result<Self, UnreadableEntries> {
        let mut managed = Self::default();
        let list = match &object["metadata"]["managedFields"] {
            Value::Null => return Ok(managed),
            list => list.as_array().ok_or(UnreadableEntries::NoList)?,
        };
        for (place, entry) in list.iter().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => EntryOperation::Apply,
                "Update" => EntryOperation::Update,
                _ => return Err(UnreadableEntries::Operation),
            };
            if text("apiVersion").is_empty() {
                return Err(UnreadableEntries::NoVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(UnreadableEntries::NoFieldsType(place)),
                other => return Err(UnreadableEntries::FieldsType(place, other.to_owned())),
            }
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => {
                    FieldSet::from_json(fields).ok_or(UnreadableEntries::Fields(place))?
                }
            };
            let identity = Identity::new(
                text("manager"),
                operation,
                text("apiVersion"),
                text("subresource"),
            );
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            let api_version = text("apiVersion").to_owned();
            managed.entries.insert(
                identity,
                ManagerEntry {
                    api_version,
                    time,
                    fields,
                },
            );
        }
        Ok(managed)
    }

    /// Writes the entries into an object, in place of what it had.
    pub(super) fn encode(&self, object: &mut Value) {
        let Some(members) = object.as_object_mut() else {
            return;
        };
        let metadata = members.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else {
            return;
        };
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|(one, a), (other, b)| a.place(one).cmp(&b.place(other)));
        let list: Vec<_> = entries
            .into_iter()
            .map(|(identity, entry)| entry.encode(identity))
            .collect();
        if list.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }

    /// Removes fields from all managers, and the managers that own none then.
    pub(super) fn take(&mut self, fields: &FieldSet) {
        self.entries.retain(|_, entry| {
            entry.fields.subtract(fields);
            !entry.fields.is_empty()
        });
    }

    /// Merges the oldest entries of updating managers, version by version, if there are too many.
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<_> = self
            .entries
            .iter()
            .filter(|(identity, _)| identity.operation == EntryOperation::Update)
            .map(|(identity, entry)| (entry.time.clone(), identity.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut first_of: BTreeMap<String, Identity> = BTreeMap::new();
        for (_, identity) in updaters {
            if count <= UPDATE_ENTRIES_MAX {
                return;
            }
            let Some(first) = first_of.get(&identity.api_version).cloned() else {
                first_of.insert(identity.api_version.clone(), identity);
                continue;
            };
            let bucket = Identity::new(
                OLD_UPDATES,
                EntryOperation::Update,
                &identity.api_version,
                "",
            );
            let Some(mut joined) = self.entries.remove(&identity) else {
                continue;
            };
            let older = match self.entries.remove(&bucket) {
                Some(older) => Some(older),
                None => self.entries.remove(&first),
            };
            if let Some(older) = older {
                // Those of the older ones grow from entry to entry, so that they are not the ones to be moved.
                let newer = std::mem::replace(&mut joined.fields, older.fields);
                joined.fields.unite(newer);
            }
            self.entries.insert(bucket, joined);
            count -= 1;
        }
    }
}

impl Identity {
    /// Makes the identity of a manager.
    pub(super) fn new(
        name: &str,
        operation: EntryOperation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = match operation {
            EntryOperation::Apply => "",
            EntryOperation::Update => api_version,
        };
        Self {
            operation,
            name: name.to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Returns the text by which conflicts are sorted: the entry in JSON, as kube-apiserver identifies managers.
    pub(super) fn in_json(&self) -> String {
        let operation = match self.operation {
            EntryOperation::Apply => "Apply",
            EntryOperation::Update => "Update",
        };
        let members = [
            ("manager", self.name.as_str()),
            ("operation", operation),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        let told = members.into_iter().filter(|(_, text)| !text.is_empty());
        let told = told.map(|(name, text)| format!("\"{name}\":{}", Value::from(text)));
        format!("{{{}}}", told.collect::<Vec<_>>().join(","))
    }

    /// Returns the manager as conflicts name it.
    pub(super) fn show(&self) -> String {
        let mut shown = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == EntryOperation::Update {
            shown.push_str(&format!(" using {}", self.api_version));
        }
        shown
    }
}

impl ManagerEntry {
    /// Returns the parts by which entries are sorted.
    fn place<'a>(&'a self, identity: &'a Identity) -> impl Ord + use<'a> {
        let manager = (&identity.name, &self.api_version, &identity.subresource);
        (identity.operation, &self.time, manager)
    }

    fn encode(&self, identity: &Identity) -> Value {
        let operation = match identity.operation {
            EntryOperation::Apply => "Apply",
            EntryOperation::Update => "Update",
        };
        let mut entry = Map::new();
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                entry.insert(name.to_owned(), value.into());
            }
        };
        put("manager", &identity.name);
        put("operation", operation);
        put("apiVersion", &self.api_version);
        put("time", self.time.as_deref().unwrap_or_default());
        put("subresource", &identity.subresource);
        put("fieldsType", "FieldsV1");
        entry.insert("fieldsV1".to_owned(), self.fields.to_json());
        Value::Object(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, second: usize, field: &str) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1",
            "time": format!("2026-01-01T00:00:{second:02}Z"), "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:{field}"): {}}}})
    }

    fn decoded(entries: Vec<Value>) -> ManagedFields {
        ManagedFields::decode(&json!({"metadata": {"managedFields": entries}})).expect("entries")
    }

    fn encoded(managed: &ManagedFields) -> Vec<Value> {
        let mut object = json!({});
        managed.encode(&mut object);
        let list = object["metadata"]["managedFields"].as_array();
        list.cloned().unwrap_or_default()
    }

    #[test]
    fn entries_are_read_and_written_by_operation_and_time() {
        let mut applied = entry("z", 9, "c");
        applied["operation"] = "Apply".into();
        let managed = decoded(vec![
            entry("b", 2, "a"),
            entry("c", 1, "b"),
            applied.clone(),
        ]);
        let expected = [applied, entry("c", 1, "b"), entry("b", 2, "a")];
        assert_eq!(encoded(&managed), expected);
    }

    #[test]
    fn entries_of_one_manager_and_time_are_written_by_version() {
        let of = |version: &str, subresource: &str| {
            let mut entry = entry("a", 1, "a");
            entry["operation"] = "Apply".into();
            entry["apiVersion"] = version.into();
            if !subresource.is_empty() {
                entry["subresource"] = subresource.into();
            }
            entry
        };
        let managed = decoded(vec![of("v2", ""), of("v1", "status")]);
        assert_eq!(encoded(&managed), [of("v1", "status"), of("v2", "")]);
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        for (wrong, why) in [
            (json!({}), "operation must be `Apply` or `Update`"),
            (
                json!({"operation": "Update", "fieldsType": "FieldsV1"}),
                "apiVersion must not be empty",
            ),
            (
                json!({"operation": "Update", "apiVersion": "v1"}),
                "missing fieldsType in managed fields entry 1",
            ),
            (
                json!({"operation": "Update", "fieldsType": "FieldsV2", "apiVersion": "v1"}),
                r#"invalid fieldsType "FieldsV2" in managed fields entry 1"#,
            ),
            (
                json!({"operation": "Update", "fieldsType": "FieldsV1", "apiVersion": "v1", "fieldsV1": {"x": {}}}),
                "error decoding versioned set from managed fields entry 1: error decoding set",
            ),
        ] {
            let object = json!({"metadata": {"managedFields": [entry("a", 1, "a"), wrong]}});
            let found = validate_managed_fields(&object).expect_err(why);
            assert_eq!(found.to_string(), why);
        }
        let none = json!({"metadata": {"managedFields": {}}});
        assert_eq!(
            validate_managed_fields(&none),
            Err(UnreadableEntries::NoList)
        );
    }

    #[test]
    fn old_updates_are_joined_beyond_ten() {
        let entries = (0..12).map(|n| entry(&format!("m{n:02}"), n, &n.to_string()));
        let mut managed = decoded(entries.collect());
        managed.cap();
        let list = encoded(&managed);
        assert_eq!(list.len(), 10);
        let oldest = &list[0];
        assert_eq!(oldest["manager"], "ancient-changes");
        assert_eq!(oldest["time"], "2026-01-01T00:00:02Z");
        let fields = json!({"f:data": {"f:0": {}, "f:1": {}, "f:2": {}}});
        assert_eq!(oldest["fieldsV1"], fields);
        assert_eq!(list[1], entry("m03", 3, "3"));
    }

    #[test]
    fn conflicts_name_managers_by_what_tells_them_apart() {
        let update = Identity::new("a", EntryOperation::Update, "v1", "status");
        assert_eq!(update.show(), r#""a" with subresource "status" using v1"#);
        assert_eq!(
            Identity::new("b", EntryOperation::Apply, "v1", "").show(),
            r#""b""#
        );
    }
}

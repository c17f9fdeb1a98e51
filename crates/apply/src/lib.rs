//! Tracks the owners of fields in `metadata.managedFields`, and implements server-side apply.
//!
//! Every write records which manager changed which fields. [`update()`] does it for ordinary writes, whose manager
//! becomes the owner of the fields that it changes; [`apply()`] lets managers share an object, each with the fields
//! that it wants, and refuses to take fields from others unless forced. `schema` has the rules by which the fields of a
//! type merge. Other patches do not belong here; `ringwatch-endpoints` has them.

mod apply;
mod changed_values;
mod last_applied;
mod managed_fields;
mod merge;
mod merging;
#[cfg(test)]
mod model_tests;
pub mod overlay;
mod path;
mod reconcile;
mod renewal;
mod scale;
mod schema;
mod set;
mod shape;
mod tables;
mod typed;
mod update;
mod value;
mod walk;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

pub use apply::{apply, check_configuration, convert_applied};
pub use managed_fields::{UnreadableEntries, validate_managed_fields};
pub use merging::{ItemSchema, ListKeys, MemberSchema, MergeSchema, Merging, Takes, ValueSchema};
pub use overlay::overlay;
pub use scale::Replicas;
use schema::Schema;
use set::FieldSet;
pub use update::update;

/// The manager of a write, and the way it writes.
#[derive(Clone, Debug)]
pub struct Manager<'a> {
    /// The name that the client gave itself.
    pub name: &'a str,
    /// The version in which it writes, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: &'a str,
    /// True if the status is written through a subresource of its own, so that writes of the object itself do not
    /// change it, and writes of the status nothing else.
    pub has_status_subresource: bool,
    /// The schema of the object, if it is a custom resource.
    pub custom: Option<&'a dyn MergeSchema>,
    /// The time of the write; `None` if entries get no time.
    pub time: Option<Timestamp>,
}

impl Manager<'_> {
    /// Returns the schema of an object that this manager writes.
    fn schema<'o>(&'o self, object: &'o Value) -> Schema<'o> {
        let kind = object.get("kind").and_then(Value::as_str);
        Schema::new(self.api_version, kind.unwrap_or_default(), self.custom)
    }

    /// Returns the fields that a write of this kind cannot change.
    fn reset_fields(&self, schema: Schema<'_>) -> FieldSet {
        let fields = schema.reset_fields(self.subresource, self.has_status_subresource);
        fields.iter().copied().collect()
    }

    /// Returns the name as the entries of updates have it.
    fn entry_name(&self) -> &str {
        if self.name.is_empty() {
            "unknown"
        } else {
            self.name
        }
    }

    /// Returns the time as entries have it.
    fn time_text(&self) -> Option<String> {
        let time = self.time?;
        Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    }
}

/// The fields without managers, because the server sets them or they identify the object.
static UNTRACKED_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| {
    [
        "apiVersion",
        "kind",
        "metadata",
        "metadata.clusterName",
        "metadata.creationTimestamp",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.name",
        "metadata.namespace",
        "metadata.resourceVersion",
        "metadata.selfLink",
        "metadata.uid",
    ]
    .into_iter()
    .collect()
});

#[cfg(test)]
impl<'a> Manager<'a> {
    /// Creates a manager that writes at the beginning of 2026.
    fn for_tests(name: &'a str, api_version: &'a str, subresource: &'a str) -> Self {
        Self {
            name,
            api_version,
            subresource,
            has_status_subresource: false,
            custom: None,
            time: "2026-01-01T00:00:00Z".parse().ok(),
        }
    }
}

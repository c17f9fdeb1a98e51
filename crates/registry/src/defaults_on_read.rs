//! Defaults for objects that were stored without them.
//!
//! kube-apiserver sets defaults whenever it reads an object. Here they are set when an object is written, so that
//! stored bytes can be served unchanged. Objects that an older kube-apiserver or another program stored may lack some.
//! They are recognized by their bytes ([`Strategy::wanted`](super::Strategy::wanted),
//! [`Strategy::lacks_defaults`](super::Strategy::lacks_defaults)), once for each value that is read, so that only these
//! are parsed.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringwatch::codec::{self, Presence};
use ringwatch::meta::Object;
use ringwatch::storage::Completion;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_apimachinery::path::text;
use serde_json::Value;

use super::Resource;

/// Sets a built-in resource's defaults on objects that lack them.
#[derive(Debug)]
pub struct DefaultsOnRead {
    resource: Arc<Resource>,
    /// The checks of the bytes of objects, of the storage version and of the served one; none if the kind has no
    /// message.
    presences: Vec<Presence>,
}

impl DefaultsOnRead {
    /// Makes the completion that gives this resource's defaults.
    #[must_use]
    pub fn new(resource: Arc<Resource>) -> Self {
        let wanted = resource.strategy.wanted();
        let versions = BTreeSet::from([&resource.storage_version, &resource.group_version]);
        let check = |version: &GroupVersion| {
            Presence::new(&version.to_string(), &resource.storage_kind, &wanted)
        };
        Self {
            presences: versions.into_iter().filter_map(check).collect(),
            resource,
        }
    }
}

impl Completion for DefaultsOnRead {
    fn is_complete(&self, object: &Object) -> bool {
        let has_values = self.presences.iter().all(|it| it.holds(object));
        has_values && !self.resource.strategy.lacks_defaults(object)
    }

    fn complete(&self, object: &mut Value) {
        let kind = codec::kind(text(object, "apiVersion"), &self.resource.storage_kind);
        // As on a write, zeros that are no pointers in Go are absent to defaults.
        if let Some((kind, members)) = kind.zip(object.as_object_mut()) {
            codec::canonicalize(kind, members);
        }
        self.resource.strategy.default(object);
        if let Some((kind, members)) = kind.zip(object.as_object_mut()) {
            codec::complete(kind, members);
        }
    }
}

//! Defaults for objects that were stored without them.
//!
//! kube-apiserver sets defaults whenever it reads an object. Here they are set when an object is written, so that
//! stored bytes can be served unchanged. The exception are pairs of fields with the same meaning: kube-apiserver writes
//! both, but another program may have written only one to etcd. A strategy recognizes such objects by their bytes
//! ([`Strategy::lacks_defaults`](super::Strategy::lacks_defaults)), so that only these are parsed.

use std::sync::Arc;

use ringwatch::meta::Object;
use ringwatch::storage::Completion;
use serde_json::Value;

use super::Resource;

/// Sets a built-in resource's defaults on objects that lack them.
#[derive(Debug)]
pub struct DefaultsOnRead(Arc<Resource>);

impl DefaultsOnRead {
    /// Makes the completion that gives this resource's defaults.
    #[must_use]
    pub fn new(resource: Arc<Resource>) -> Self {
        Self(resource)
    }
}

impl Completion for DefaultsOnRead {
    fn is_complete(&self, object: &Object) -> bool {
        !self.0.strategy.lacks_defaults(object)
    }

    fn complete(&self, object: &mut Value) {
        self.0.strategy.default(object);
    }
}

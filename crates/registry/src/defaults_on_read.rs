//! Defaults for objects that were stored without them.
//!
//! kube-apiserver gives every object its defaults whenever it reads one. Here they are given when an object is written,
//! so that what is stored can be served as it lies there. The exception are pairs of fields with the same meaning:
//! kube-apiserver writes both, but somebody else may have written one to etcd. A strategy recognizes such objects by
//! their bytes ([`Strategy::lacks_defaults`](super::Strategy::lacks_defaults)), so that only they cost a tree.

use std::sync::Arc;

use ringwatch::meta::Object;
use ringwatch::storage::Completion;
use serde_json::Value;

use super::Resource;

/// Gives a built-in resource's defaults to objects that lack them.
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

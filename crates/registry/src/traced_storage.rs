//! A storage whose operations are spans, with the names and attributes of kube-apiserver's: those of the store, or of
//! the watch cache before it.
//!
//! As in kube-apiserver some operations have no span here, but only the requests to etcd that they make.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    Delegate, GetOptions, Interface, List, ListOptions, StorageError, TryUpdate, UpdateOptions,
    WatchStream,
};
use ringwatch_spans::{Attribute, Span, number, start, text};
use serde_json::Value;

/// A storage whose operations are spans.
#[derive(Debug)]
pub(crate) struct TracedStorage {
    inner: Arc<dyn Interface>,
    layer: Layer,
    group: String,
    resource: String,
}

/// The part of the storage that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The store of objects in etcd, or the embedded one.
    Store,
    /// The watch cache and the store behind it.
    Cache,
}

impl TracedStorage {
    /// Traces the operations on a type, which is named by group and plural.
    pub(crate) fn new(
        inner: Arc<dyn Interface>,
        layer: Layer,
        group: &str,
        resource: &str,
    ) -> Self {
        Self {
            inner,
            layer,
            group: group.to_owned(),
            resource: resource.to_owned(),
        }
    }

    /// Starts the span of a write to the store; writes do not concern the cache.
    fn write(&self, name: &'static str, key: &str) -> Span {
        match self.layer {
            Layer::Cache => Span::default(),
            Layer::Store => start(name, || {
                [
                    text("key", key),
                    text("group", &self.group),
                    text("resource", &self.resource),
                ]
            }),
        }
    }

    /// Returns the type as kube-apiserver writes a resource with its group.
    fn resource_type(&self) -> Attribute {
        match self.group.as_str() {
            "" => text("type", &self.resource),
            group => text("type", &format!("{}.{group}", self.resource)),
        }
    }
}

/// Returns a version as a request names it; empty if it names none.
fn version(version: Option<ResourceVersion>) -> String {
    version.map(|it| it.to_string()).unwrap_or_default()
}

#[async_trait]
impl Delegate for TracedStorage {
    fn inner(&self) -> &dyn Interface {
        &*self.inner
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        let span = self.write("Create etcd3", key);
        span.within(self.inner.create(key, object, ttl)).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        let span = match self.layer {
            Layer::Store => Span::default(),
            Layer::Cache => start("cacher.Watch", || [self.resource_type()]),
        };
        span.within(self.inner.watch(key, options)).await
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let span = match self.layer {
            Layer::Store => Span::default(),
            Layer::Cache => start("cacher.Get", || {
                let version = version(options.resource_version);
                [text("key", key), text("resource-version", &version)]
            }),
        };
        span.within(self.inner.get(key, options)).await
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let span = match self.layer {
            Layer::Cache => start("cacher.GetList", || [self.resource_type()]),
            Layer::Store => {
                let name = match options.recursive {
                    true => "List(recursive=true) etcd3",
                    false => "List(recursive=false) etcd3",
                };
                start(name, || {
                    [
                        text("key", key),
                        text("resourceVersion", &version(options.resource_version)),
                        number("limit", options.predicate.limit),
                        text("continue", &options.predicate.continue_token),
                    ]
                })
            }
        };
        span.within(self.inner.get_list(key, options)).await
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        let span = self.write("GuaranteedUpdate etcd3", key);
        let updating = self.inner.guaranteed_update(key, options, update);
        span.within(updating).await
    }
}

//! Refuses to create objects in namespaces that do not exist or are terminating, and to delete the namespaces of the
//! system. Kubernetes' NamespaceLifecycle plugin.
//!
//! Namespaces are read from the watch cache, which may lag behind. So a namespace that the cache does not have, or
//! whose deletion was requested a moment ago, is read from the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ringwatch::clock::{Clock, Instant};
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{GetOptions, Interface, StorageError};
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::Error;
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

/// Namespaces that may not be deleted.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];
/// Time after a deletion for which a namespace is read from the store.
const LIVE_LOOKUP: Duration = Duration::from_secs(30);
/// Maximum number of deleted namespaces that are remembered; beyond that the oldest are forgotten.
const DELETED_NAMESPACES_MAX: usize = 100;

/// The plugin, with the storage of namespaces.
#[derive(Debug)]
pub struct NamespaceLifecycle {
    namespaces: Arc<dyn Interface>,
    clock: Clock,
    /// The namespaces whose deletion was lately requested, with the times of the requests.
    deleted: Mutex<HashMap<String, Instant>>,
}

impl NamespaceLifecycle {
    /// Creates the plugin, which looks namespaces up in this storage.
    #[must_use]
    pub fn new(namespaces: Arc<dyn Interface>, clock: Clock) -> Self {
        Self {
            namespaces,
            clock,
            deleted: Mutex::default(),
        }
    }

    async fn get(&self, name: &str) -> Result<Arc<Object>, StorageError> {
        let key = format!("/namespaces/{name}");
        if !self.is_lately_deleted(name) {
            let cached = GetOptions {
                resource_version: Some(ResourceVersion(0)),
            };
            match self.namespaces.get(&key, cached).await {
                Err(StorageError::KeyNotFound { .. }) => {}
                result => return result,
            }
        }
        self.namespaces.get(&key, GetOptions::default()).await
    }

    fn is_lately_deleted(&self, name: &str) -> bool {
        let deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted
            .get(name)
            .is_some_and(|at| self.clock.now().duration_since(*at) < LIVE_LOOKUP)
    }

    fn remember_deletion(&self, name: &str) {
        let now = self.clock.now();
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.retain(|_, at| now.duration_since(*at) < LIVE_LOOKUP);
        if deleted.len() >= DELETED_NAMESPACES_MAX
            && let Some(oldest) = deleted.iter().min_by_key(|(_, at)| **at)
        {
            let oldest = oldest.0.clone();
            deleted.remove(&oldest);
        }
        deleted.insert(name.to_owned(), now);
    }

    /// Checks that objects may be created in a namespace.
    async fn admit_create(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let namespace = request.namespace;
        let found = match self.get(namespace).await {
            Ok(found) => found,
            Err(StorageError::KeyNotFound { .. }) => {
                return Err(Error::not_found("namespaces", namespace));
            }
            Err(error) => return Err(Error::Storage(error)),
        };
        let found = codec::tree(&found)?;
        if found["status"]["phase"] != "Terminating" {
            return Ok(());
        }
        let message = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut refusal = request.forbid(object, message);
        if let Error::Forbidden { cause, .. } = &mut refusal {
            *cause = Some(("NamespaceTerminating", "metadata.namespace".to_owned()));
        }
        Err(refusal)
    }

    fn admit_delete(&self, request: &Request<'_>) -> Result<(), Error> {
        if !request.is_of("", "namespaces") {
            return Ok(());
        }
        if IMMORTAL.contains(&request.name) {
            return Err(request.forbid(&Value::Null, "this namespace may not be deleted"));
        }
        self.remember_deletion(request.name);
        Ok(())
    }
}

#[async_trait]
impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        match request.operation {
            Operation::Create if request.resource.namespaced => {
                self.admit_create(request, object).await
            }
            Operation::Delete => self.admit_delete(request),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_admission::Chain;
    use ringwatch_registry::testing::{MemoryStorage, config_map, context, patch};
    use ringwatch_registry::{DeleteOptions, RequestContext, Store};
    use serde_json::json;

    use super::*;

    /// Namespaces and ConfigMaps in one storage, as they are served.
    struct Cluster {
        storage: Arc<MemoryStorage>,
        namespaces: Store,
        config_maps: Store,
        context: RequestContext,
    }

    impl Cluster {
        fn new() -> Self {
            let storage = MemoryStorage::new("/namespaces");
            let context = context();
            let lifecycle =
                NamespaceLifecycle::new(Arc::clone(&storage) as _, context.clock.clone());
            let chain = Arc::new(Chain::new(vec![Arc::new(lifecycle)]));
            let store = |plural: &str| {
                let resources = ringwatch_resources::built_in();
                let resource = resources.into_iter().find(|it| it.plural == plural);
                let resource = resource.expect("it is built in");
                Store::new(resource, Arc::clone(&storage) as _)
                    .with_admission(Arc::clone(&chain) as _)
            };
            Self {
                namespaces: store("namespaces"),
                config_maps: store("configmaps"),
                storage: Arc::clone(&storage),
                context,
            }
        }

        async fn create_namespace(&self, name: &str) {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let options = Default::default();
            let store = &self.namespaces;
            let created = store.create(&self.context, "", object, &options).await;
            created.expect("created");
        }

        async fn create(&self, namespace: &str, metadata: Value) -> Result<Arc<Object>, Error> {
            let (store, options) = (&self.config_maps, Default::default());
            store
                .create(&self.context, namespace, config_map(metadata), &options)
                .await
        }

        async fn delete_namespace(&self, name: &str) -> Result<Value, Error> {
            let options = DeleteOptions::default();
            let deleted = self
                .namespaces
                .delete(&self.context, "", name, options)
                .await?;
            assert!(!deleted.finished && deleted.returns_object);
            Ok(codec::tree(&deleted.object).expect("an object"))
        }
    }

    #[tokio::test]
    async fn nothing_is_created_in_a_namespace_that_does_not_exist() {
        let cluster = Cluster::new();
        let error = cluster
            .create("nope", json!({"name": "Bad_Name"}))
            .await
            .expect_err("refused");
        assert_eq!(error.to_string(), "namespaces \"nope\" not found");
        cluster.create_namespace("nope").await;
        cluster
            .create("nope", json!({"name": "a"}))
            .await
            .expect("created");
    }

    #[tokio::test]
    async fn nothing_is_created_in_a_namespace_that_ends() {
        let cluster = Cluster::new();
        cluster.create_namespace("golden2").await;
        let namespace = cluster
            .delete_namespace("golden2")
            .await
            .expect("it begins");
        assert_eq!(namespace["status"], json!({"phase": "Terminating"}));
        assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
        assert!(namespace["metadata"]["deletionGracePeriodSeconds"].is_null());
        for (metadata, name) in [
            (json!({"name": "y"}), "y"),
            (json!({"generateName": "y-"}), "y-"),
            (json!({}), "Unknown"),
        ] {
            let error = cluster
                .create("golden2", metadata)
                .await
                .expect_err("refused");
            assert_eq!(
                error.to_string(),
                format!(
                    "configmaps \"{name}\" is forbidden: unable to create new content in namespace golden2 because it is being terminated"
                )
            );
            let Error::Forbidden { cause, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(
                cause,
                Some(("NamespaceTerminating", "metadata.namespace".to_owned()))
            );
        }
    }

    #[tokio::test]
    async fn a_finalized_namespace_goes() {
        let mut cluster = Cluster::new();
        cluster.create_namespace("golden2").await;
        cluster
            .delete_namespace("golden2")
            .await
            .expect("it begins");
        cluster.context.subresource = "finalize".to_owned();
        let mut finalize = patch(|namespace| namespace["spec"] = json!({"finalizers": []}));
        let (store, options) = (&cluster.namespaces, Default::default());
        let result = store
            .update(&cluster.context, "", "golden2", &mut finalize, &options)
            .await;
        let (last, _) = result.expect("finalized");
        assert_eq!(last.revision(), 3, "the version before the deletion");
        let found = store.get("", "golden2", GetOptions::default()).await;
        assert!(matches!(found, Err(Error::NotFound { .. })));
    }

    #[tokio::test]
    async fn some_namespaces_may_not_be_deleted() {
        let cluster = Cluster::new();
        cluster.create_namespace("default").await;
        let error = cluster
            .delete_namespace("default")
            .await
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "namespaces \"default\" is forbidden: this namespace may not be deleted"
        );
        cluster
            .create("default", json!({"name": "default"}))
            .await
            .expect("created");
        let options = DeleteOptions::default();
        let deleted = cluster
            .config_maps
            .delete(&cluster.context, "default", "default", options);
        assert!(
            deleted.await.expect("deleted").finished,
            "only the namespace is protected"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_lately_deleted_namespace_is_not_looked_up_in_a_cache() {
        let cluster = Cluster::new();
        cluster.create_namespace("a").await;
        let lifecycle = NamespaceLifecycle::new(
            Arc::clone(&cluster.storage) as _,
            cluster.context.clock.clone(),
        );
        let request = |operation, resource, namespace| Request {
            context: &cluster.context,
            operation,
            resource,
            namespace,
            name: "a",
            old: None,
            dry_run: false,
        };
        let delete = request(Operation::Delete, cluster.namespaces.resource(), "");
        let create = request(Operation::Create, cluster.config_maps.resource(), "a");
        let (cached, live) = (Some(ResourceVersion(0)), None);
        for (step, expected) in [("before", cached), ("deleted", live), ("later", cached)] {
            match step {
                "deleted" => lifecycle.admit_delete(&delete).expect("it may be"),
                "later" => tokio::time::advance(LIVE_LOOKUP).await,
                _ => {}
            }
            cluster.storage.take_read();
            lifecycle
                .admit(&create, &mut json!({}))
                .await
                .expect("it is there");
            assert_eq!(cluster.storage.take_read(), [expected], "{step}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bounded_number_of_deletions_is_remembered() {
        let cluster = Cluster::new();
        let lifecycle = NamespaceLifecycle::new(
            Arc::clone(&cluster.storage) as _,
            cluster.context.clock.clone(),
        );
        for index in 0..=DELETED_NAMESPACES_MAX {
            lifecycle.remember_deletion(&format!("n{index}"));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(!lifecycle.is_lately_deleted("n0"), "the oldest");
        assert!(lifecycle.is_lately_deleted("n1"));
        assert_eq!(
            lifecycle.deleted.lock().expect("sound").len(),
            DELETED_NAMESPACES_MAX
        );
    }
}

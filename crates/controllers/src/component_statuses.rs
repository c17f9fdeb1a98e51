//! The ComponentStatuses: the health of the components that run beside the API, asked for at each read.
//!
//! Nothing is stored. Every read asks the components that it is about, all at the same time, at the addresses where
//! kube-apiserver expects them: on this machine, at their usual ports. The store is one component, however many servers
//! it has.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use ringwatch::clock::Clock;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, SelectionPredicate,
    Stats, StorageError, TryUpdate, UpdateOptions, Versioner, WatchStream,
};
use ringwatch_apimachinery::Error;
use ringwatch_endpoints::health::Check;
use ringwatch_http::client::https_get::{self, GetError};
use rustls::ClientConfig;
use serde_json::{Value, json};

/// Maximum number of bytes of an answer that are shown.
const ANSWER_BYTES_MAX: usize = 10 << 10;

/// The statuses of the components, as a read-only store.
pub struct ComponentStatuses {
    components: Vec<Component>,
    /// Accepts any certificate, since those of components are mostly self-signed.
    tls: Arc<ClientConfig>,
    clock: Clock,
    versioner: Versioner,
}

/// A component of a cluster, as clients list it.
struct Component {
    name: &'static str,
    probe: Probe,
}

/// The way in which a component is asked for its health.
enum Probe {
    /// A request to the component's health endpoint.
    Page(String),
    /// The server's own health check of its store.
    Check(Check),
}

/// The health of a component.
#[derive(Debug, PartialEq, Eq)]
struct ComponentHealth {
    healthy: bool,
    message: String,
    error: String,
}

impl std::fmt::Debug for ComponentStatuses {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.components.iter().map(|component| component.name);
        formatter.debug_list().entries(names).finish()
    }
}

impl ComponentStatuses {
    /// Returns the components that kube-apiserver lists. `store` checks the store; the others are asked over `tls` on
    /// their usual ports.
    #[must_use]
    pub fn new(store: Check, tls: Arc<ClientConfig>, clock: Clock) -> Self {
        let page = |port: u16| Probe::Page(format!("https://127.0.0.1:{port}/healthz"));
        let component = |name, probe| Component { name, probe };
        Self {
            components: vec![
                component("controller-manager", page(10257)),
                component("etcd-0", Probe::Check(store)),
                component("scheduler", page(10259)),
            ],
            tls,
            clock,
            versioner: Versioner::default(),
        }
    }

    async fn status(&self, component: &Component) -> Result<Arc<Object>, StorageError> {
        let found = match &component.probe {
            Probe::Page(url) => self.page(url).await,
            Probe::Check(check) => ComponentHealth::of_check(check().await),
        };
        let internal = |message| StorageError::Internal { message };
        Object::from_value(&found.object(component.name), 0, &Default::default())
            .map(Arc::new)
            .map_err(|error| internal(error.to_string()))
    }

    async fn page(&self, url: &str) -> ComponentHealth {
        match https_get::get(url, &self.tls, &self.clock).await {
            Ok(answer) => {
                let shown = &answer[..answer.len().min(ANSWER_BYTES_MAX)];
                let message = String::from_utf8_lossy(shown).into_owned();
                ComponentHealth {
                    healthy: true,
                    message,
                    error: String::new(),
                }
            }
            Err(error) => ComponentHealth {
                healthy: false,
                message: failure(url, &error),
                error: String::new(),
            },
        }
    }
}

impl ComponentHealth {
    fn of_check(outcome: Result<(), String>) -> Self {
        let healthy = outcome.is_ok();
        let message = if healthy { "ok" } else { "" };
        Self {
            healthy,
            message: message.to_owned(),
            error: outcome.err().unwrap_or_default(),
        }
    }

    fn object(self, name: &str) -> Value {
        let status = if self.healthy { "True" } else { "False" };
        let mut condition = json!({"type": "Healthy", "status": status});
        for (member, text) in [("message", self.message), ("error", self.error)] {
            if !text.is_empty() {
                condition[member] = text.into();
            }
        }
        json!({
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [condition],
        })
    }
}

/// Returns the message about an endpoint that cannot be fetched, in the words of Go's client.
fn failure(url: &str, error: &GetError) -> String {
    let why = match error {
        GetError::Status(code) => {
            return format!("HTTP probe failed with statuscode: {}", code.as_u16());
        }
        GetError::TimedOut => {
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()
        }
        other => other.to_string(),
    };
    format!("Get {url:?}: {why}")
}

/// Returns the error of store operations that ComponentStatuses do not have.
fn only_read() -> StorageError {
    StorageError::Internal {
        message: "component statuses can only be read".to_owned(),
    }
}

#[async_trait]
impl Interface for ComponentStatuses {
    fn versioner(&self) -> &Versioner {
        &self.versioner
    }

    async fn get(&self, key: &str, _: GetOptions) -> Result<Arc<Object>, StorageError> {
        let name = key.rsplit('/').next().unwrap_or_default();
        match self.components.iter().find(|it| it.name == name) {
            Some(component) => self.status(component).await,
            // kube-apiserver uses this name of the resource in this error only.
            None => Err(StorageError::Rejected(Box::new(Error::NotFound {
                resource: "componentstatus".to_owned(),
                name: name.to_owned(),
            }))),
        }
    }

    /// Selectors match the name alone, since there are no labels; there are no shards, and there is only one page.
    async fn get_list(&self, _: &str, options: ListOptions) -> Result<List, StorageError> {
        let SelectionPredicate { label, field, .. } = &options.predicate;
        let asked = self.components.iter().map(|it| self.status(it));
        let items: Result<Vec<_>, _> = join_all(asked).await.into_iter().collect();
        let mut items = items?;
        items.retain(|it| {
            let attributes = it.attributes();
            label.matches(attributes.labels()) && field.matches(attributes)
        });
        Ok(List {
            items,
            ..List::default()
        })
    }

    async fn stats(&self) -> Result<Stats, StorageError> {
        Ok(Stats::default())
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        Ok(ResourceVersion(0))
    }

    fn compact_revision(&self) -> u64 {
        0
    }

    async fn create(
        &self,
        _: &str,
        _: &Value,
        _: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        Err(only_read())
    }

    async fn delete(
        &self,
        _: &str,
        _: DeleteOptions,
        _: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        Err(only_read())
    }

    async fn guaranteed_update(
        &self,
        _: &str,
        _: UpdateOptions,
        _: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        Err(only_read())
    }

    async fn watch(&self, _: &str, _: ListOptions) -> Result<WatchStream, StorageError> {
        Err(only_read())
    }

    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        Err(only_read())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests;

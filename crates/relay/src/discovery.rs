//! Discovery of the upstream: the resources of each version of its API, asked for when they are needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::lock;
use ringwatch::clock::Instant;
use ringwatch::storage::StorageError;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_offload::{Work, offload_if_large};
use serde::Deserialize;

use super::error::{MalformedAnswer, too_late};
use super::refusal::{Refusal, RefusedRequest};
use super::resource::api_path;
use super::upstream::Upstream;

/// The time after which an answer is asked for again, so that resources are noticed that come and go.
const CURRENT_FOR: Duration = Duration::from_secs(30);
/// Maximum time of an answer about a version or a kind, for which requests wait.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of versions of APIs that are known at a time, far above what clusters have.
const VERSIONS_MAX: usize = 2_000;

/// A resource, as discovery describes it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DescribedResource {
    name: String,
    /// The kind of its objects.
    pub(crate) kind: String,
    /// True if its objects lie in namespaces.
    #[serde(default)]
    pub(crate) namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

impl DescribedResource {
    /// Returns true if a cache can be filled and kept current.
    pub(crate) fn can_be_followed(&self) -> bool {
        let has = |wanted: &str| self.verbs.iter().any(|verb| verb == wanted);
        has("get") && has("list") && has("watch")
    }
}

/// The resources of a version of an API by name, as one answer listed them.
pub(crate) type Resources = Arc<HashMap<String, DescribedResource>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    group_version: String,
    #[serde(default)]
    resources: Vec<DescribedResource>,
}

/// The last answer about a version of an API.
#[derive(Clone, Debug)]
struct VersionAnswer {
    resources: Resources,
    /// The time at which the upstream was asked last.
    asked: Instant,
    /// The time at which it was asked and has answered last.
    answered: Instant,
}

/// A version of an API.
#[derive(Debug, Default)]
struct ApiVersion {
    /// `None` before the first answer.
    known: Mutex<Option<VersionAnswer>>,
    /// Locked while the upstream is asked.
    asking: lock::Mutex<()>,
}

/// The resources of an upstream.
#[derive(Debug)]
pub(crate) struct Discovery {
    upstream: Arc<Upstream>,
    versions: Mutex<HashMap<GroupVersion, Arc<ApiVersion>>>,
}

impl ApiVersion {
    fn known(&self) -> Option<VersionAnswer> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<VersionAnswer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Discovery {
    /// Creates the discovery of an upstream, of which nothing is known yet.
    pub(crate) fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            upstream,
            versions: Mutex::default(),
        }
    }

    /// Returns the resources of a version of an API; none if the upstream does not serve it. An older answer counts for
    /// as long as the upstream gives no newer one.
    ///
    /// # Errors
    /// The upstream has never answered: its refusal, or the errors of the connection.
    pub(crate) async fn resources(
        &self,
        version: &GroupVersion,
    ) -> Result<Resources, StorageError> {
        let Some(place) = self.place(version) else {
            return Ok(Resources::default());
        };
        if let Some(current) = self.current(&place) {
            return Ok(current);
        }
        let _asking = match (place.asking.try_lock(), place.known()) {
            (Some(asking), _) => asking,
            (None, Some(older)) => return Ok(older.resources),
            (None, None) => place.asking.lock().await,
        };
        if let Some(current) = self.current(&place) {
            return Ok(current);
        }
        let now = self.upstream.clock().now();
        let asked = self.ask(version);
        let asked = self.upstream.clock().timeout(ANSWER_TIMEOUT, asked).await;
        let asked = asked.unwrap_or_else(|_| Err(too_late()));
        let (resources, answered) = match (asked, place.known()) {
            (Ok(resources), Some(older)) if older.resources == resources => (older.resources, now),
            (Ok(resources), _) => (resources, now),
            (Err(_), Some(older)) => (older.resources, older.answered),
            (Err(error), None) => {
                self.lock().remove(version);
                return Err(error);
            }
        };
        if resources.is_empty() {
            // Whoever asks for APIs that are not there fills no memory.
            self.lock().remove(version);
        }
        *place.lock() = Some(VersionAnswer {
            resources: Arc::clone(&resources),
            asked: now,
            answered,
        });
        Ok(resources)
    }

    /// Returns how long ago the upstream has told the resources of a version of an API, if it has not since it was
    /// asked again; else zero.
    pub(crate) fn unanswered(&self, version: &GroupVersion) -> Duration {
        let place = self.lock().get(version).map(Arc::clone);
        let known = place.and_then(|place| place.known());
        let failed = known.filter(|it| it.answered != it.asked);
        let now = self.upstream.clock().now();
        let since = failed.map(|it| now.saturating_duration_since(it.answered));
        since.unwrap_or_default()
    }

    /// Returns the last answer if it need not be asked for again.
    fn current(&self, place: &ApiVersion) -> Option<Resources> {
        let known = place.known()?;
        let now = self.upstream.clock().now();
        let is_current = now.saturating_duration_since(known.asked) < CURRENT_FOR;
        is_current.then_some(known.resources)
    }

    /// Returns the place of the last answer; `None` if there are too many.
    fn place(&self, version: &GroupVersion) -> Option<Arc<ApiVersion>> {
        let mut versions = self.lock();
        if let Some(known) = versions.get(version) {
            return Some(Arc::clone(known));
        }
        if versions.len() >= VERSIONS_MAX {
            return None;
        }
        let new = Arc::default();
        versions.insert(version.clone(), Arc::clone(&new));
        Some(new)
    }

    async fn ask(&self, version: &GroupVersion) -> Result<Resources, StorageError> {
        let path = api_path(&version.group, &version.version);
        let answer = self.upstream.get(&path, "application/json").await?;
        if answer.is_missing() {
            return Ok(Resources::default());
        }
        if !answer.status.is_success() {
            return Err(Refusal::answer(&answer).error(RefusedRequest::List { continued: false }));
        }
        offload_if_large(Work::Body, &answer.body).await;
        let list: ResourceList = serde_json::from_slice(&answer.body)
            .map_err(|error| MalformedAnswer(format!("discovery at {path}: {error}")))?;
        if list.group_version != version.to_string() {
            let other = list.group_version;
            return Err(MalformedAnswer(format!("discovery at {path} is of {other:?}")).into());
        }
        let resources = list.resources.into_iter();
        let resources = resources.map(|it| (it.name.clone(), it));
        Ok(Arc::new(resources.collect()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GroupVersion, Arc<ApiVersion>>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! APIServices: one for every version of every group that this server serves itself.
//!
//! Those of built-in groups are made at every start, and may be deleted until the next. Those of custom
//! resources come and go with them. One whose label somebody has taken away is left as it is. What has no
//! service behind it is served here, and so always available.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::conditions::put_condition;
use ringwatch_apimachinery::path::{list, text};
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_registry::{DeleteOptions, FunctionUpdate, RequestContext, Store, UpdateOptions};
use serde_json::{Value, json};

use super::local_condition;
use crate::default_objects::ensure;

/// Group of APIServices, which comes first in discovery.
const GROUP: &str = "apiregistration.k8s.io";

/// Type of the condition that tells whether an API is available.
const AVAILABLE: &str = "Available";

/// Label of APIServices that the server manages; its value is [`AT_START`] for built-in groups and [`ALWAYS`] for
/// custom ones.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const AT_START: &str = "onstart";
const ALWAYS: &str = "true";

/// Group priority and version priority of custom resources.
const CUSTOM_PRIORITIES: (i64, i64) = (1000, 100);

/// Maximum number of APIServices that are written concurrently.
const AT_ONCE_MAX: usize = 8;

/// The priorities of built-in groups, and of those of their versions that are not 15.
const GROUP_PRIORITIES: &[(&str, i64)] = &[
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("apiextensions.k8s.io", 16_700),
    ("admissionregistration.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
];
const VERSION_PRIORITIES: &[(&str, &str, i64)] = &[
    ("", "v1", 1),
    ("autoscaling", "v2", 30),
    ("flowcontrol.apiserver.k8s.io", "v1", 21),
    ("resource.k8s.io", "v1", 20),
];
const VERSION_PRIORITY: i64 = 15;

/// Creates missing APIServices of built-in groups, corrects the spec of managed ones, and marks all that are served
/// here as available. The group of APIServices itself has no APIService.
///
/// # Errors
/// An error of the store if one cannot be read or written; others may have been written.
pub async fn publish_built_in_apis(
    store: &Store,
    served: &BTreeSet<GroupVersion>,
    clock: &Clock,
) -> Result<(), Error> {
    let wanted = served.iter().filter_map(built_in).collect();
    publish(store, &stored(store).await?, wanted, clock).await?;
    mark_available(store, &stored(store).await?, clock).await
}

/// Creates missing APIServices of custom resources, deletes managed ones whose group version is served no more, and
/// marks all that are served here as available.
///
/// # Errors
/// An error of the store if one cannot be read or written; others may have been written.
pub async fn publish_custom_apis(
    store: &Store,
    served: &BTreeSet<GroupVersion>,
    clock: &Clock,
) -> Result<(), Error> {
    let there = stored(store).await?;
    let wanted: Vec<Value> = served.iter().map(custom).collect();
    let mut writes: Vec<Write<'_>> = Vec::new();
    for (name, object) in &there {
        let is_wanted = wanted.iter().any(|it| it["metadata"]["name"] == **name);
        if managed(object) == Some(ALWAYS) && !is_wanted {
            writes.push(Box::pin(delete(store, name, clock)));
        }
    }
    all(writes).await?;
    publish(store, &there, wanted, clock).await?;
    mark_available(store, &stored(store).await?, clock).await
}

/// Lists the stored APIServices by name.
async fn stored(store: &Store) -> Result<BTreeMap<String, Value>, Error> {
    let list = store.list("", ListOptions::default()).await?;
    let read = list
        .items
        .iter()
        .map(|object| Ok((object.name().to_owned(), codec::tree(object)?)));
    read.collect()
}

fn managed(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][MANAGED].as_str()
}

fn built_in(served: &GroupVersion) -> Option<Value> {
    let (group, version) = built_in_priorities(served)?;
    Some(api_service(served, group, version, AT_START))
}

fn built_in_priorities(served: &GroupVersion) -> Option<(i64, i64)> {
    let (_, group) = GROUP_PRIORITIES
        .iter()
        .find(|(group, _)| *group == served.group)?;
    let version = VERSION_PRIORITIES
        .iter()
        .find(|(group, version, _)| *group == served.group && *version == served.version);
    let version = version.map_or(VERSION_PRIORITY, |(_, _, priority)| *priority);
    Some((*group, version))
}

/// Returns the group priority and the version priority of an API that is served here. Discovery puts higher ones first.
#[must_use]
pub fn local_priorities(served: &GroupVersion) -> (i64, i64) {
    if served.group == GROUP {
        return (i64::MAX, VERSION_PRIORITY);
    }
    built_in_priorities(served).unwrap_or(CUSTOM_PRIORITIES)
}

fn custom(served: &GroupVersion) -> Value {
    let (group, version) = CUSTOM_PRIORITIES;
    api_service(served, group, version, ALWAYS)
}

/// Returns an APIService that is served here, with the priorities of its group and its version.
fn api_service(served: &GroupVersion, group: i64, version: i64, managed: &str) -> Value {
    let name = format!("{}.{}", served.version, served.group);
    let mut spec = json!({"version": served.version,
        "groupPriorityMinimum": group, "versionPriority": version});
    if !served.group.is_empty() {
        spec["group"] = json!(served.group);
    }
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name, "labels": {MANAGED: managed}}, "spec": spec})
}

/// Creates those of the wanted APIServices that are missing and corrects the spec of managed ones.
async fn publish(
    store: &Store,
    there: &BTreeMap<String, Value>,
    wanted: Vec<Value>,
    clock: &Clock,
) -> Result<(), Error> {
    let mut writes: Vec<Write<'_>> = Vec::new();
    for wanted in wanted {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        match there.get_key_value(name) {
            None => writes.push(Box::pin(ensure(store, "", wanted, clock))),
            Some((name, there)) => {
                if managed(there).is_some() && there["spec"] != wanted["spec"] {
                    let mut correct = move |object: &mut Value| {
                        object["spec"] = wanted["spec"].clone();
                    };
                    let corrected =
                        async move { change(store, name, "", &mut correct, clock).await };
                    writes.push(Box::pin(corrected));
                }
            }
        }
    }
    all(writes).await
}

/// Sets the condition `Available` of APIServices that are served here, unless it is set.
async fn mark_available(
    store: &Store,
    there: &BTreeMap<String, Value>,
    clock: &Clock,
) -> Result<(), Error> {
    let mut writes: Vec<Write<'_>> = Vec::new();
    for (name, object) in there {
        if object["spec"]["service"].is_null() && !is_available(object) {
            let mut mark = |object: &mut Value| {
                put_condition(object, local_condition(clock.wall()));
            };
            let marked = async move { change(store, name, "status", &mut mark, clock).await };
            writes.push(Box::pin(marked));
        }
    }
    all(writes).await
}

fn is_available(object: &Value) -> bool {
    list(object, "status.conditions")
        .iter()
        .any(|it| it["type"] == AVAILABLE && it["status"] == "True" && it["reason"] == "Local")
}

/// The condition `Available` of an APIService whose API another server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The condition's status: `True`, `False` or `Unknown`. Requests are proxied if it is `True`.
    pub status: &'static str,
    /// The reason as one word in camel case.
    pub reason: &'static str,
    /// The explanation for users.
    pub message: String,
}

impl Availability {
    /// Makes the condition of an API that is not available.
    #[must_use]
    pub fn no(reason: &'static str, message: String) -> Self {
        Self {
            status: "False",
            reason,
            message,
        }
    }

    /// Returns true if an APIService has this condition.
    #[must_use]
    pub fn is_told_in(&self, object: &Value) -> bool {
        list(object, "status.conditions").iter().any(|it| {
            text(it, "type") == AVAILABLE
                && text(it, "status") == self.status
                && text(it, "reason") == self.reason
        })
    }

    fn condition(&self, now: &str) -> Value {
        json!({"type": AVAILABLE, "status": self.status, "lastTransitionTime": now,
            "reason": self.reason, "message": self.message})
    }
}

/// Sets the condition `Available` in the status of an APIService. Does nothing if the APIService has been deleted or if
/// its API is served here now.
///
/// # Errors
/// An error of the store if the APIService cannot be read or written.
pub async fn tell_availability(
    store: &Store,
    name: &str,
    said: &Availability,
    clock: &Clock,
) -> Result<(), Error> {
    let mut tell = |object: &mut Value| {
        if !object["spec"]["service"].is_null() {
            put_condition(object, said.condition(&format_time(clock.wall())));
        }
    };
    change(store, name, "status", &mut tell, clock).await
}

/// One of the writes that run concurrently in [`all`].
type Write<'a> = BoxFuture<'a, Result<(), Error>>;

async fn all(writes: Vec<Write<'_>>) -> Result<(), Error> {
    futures::stream::iter(writes)
        .buffer_unordered(AT_ONCE_MAX)
        .try_collect()
        .await
}

async fn delete(store: &Store, name: &str, clock: &Clock) -> Result<(), Error> {
    let (context, options) = (context(clock, ""), DeleteOptions::default());
    match store.delete(&context, "", name, options).await {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Updates one APIService by a function; does nothing if it has been deleted.
async fn change(
    store: &Store,
    name: &str,
    subresource: &str,
    change: &mut (dyn FnMut(&mut Value) + Send),
    clock: &Clock,
) -> Result<(), Error> {
    let (context, options) = (context(clock, subresource), UpdateOptions::default());
    let mut changed = FunctionUpdate::new(|object| {
        change(object);
        Ok(())
    });
    match store
        .update(&context, "", name, &mut changed, &options)
        .await
    {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn context(clock: &Clock, subresource: &str) -> RequestContext {
    RequestContext::of_server(clock).on_subresource(subresource)
}

#[cfg(test)]
mod tests {
    use ringwatch::storage::GetOptions;
    use ringwatch_registry::testing::{self, MemoryStorage};

    use super::*;

    fn store() -> Store {
        let resources = crate::built_in();
        let resource = resources.into_iter().find(|it| it.plural == "apiservices");
        let resource = resource.expect("built in");
        let storage = MemoryStorage::new(&format!("/{}", resource.storage_prefix));
        Store::new(resource, storage as _)
    }

    async fn names(store: &Store) -> Vec<String> {
        let there = stored(store).await.expect("a list");
        assert!(there.values().all(is_available), "{there:?}");
        there.into_keys().collect()
    }

    async fn spec(store: &Store, name: &str) -> Value {
        let found = store.get("", name, GetOptions::default()).await;
        codec::tree(&found.expect("there")).expect("an object")["spec"].take()
    }

    #[tokio::test]
    async fn built_in_apis_have_their_priorities() {
        let (store, clock) = (store(), testing::context().clock);
        let served = [
            ("", "v1"),
            ("autoscaling", "v1"),
            ("autoscaling", "v2"),
            ("apiregistration.k8s.io", "v1"),
        ];
        let served = served.map(|(group, version)| GroupVersion::new(group, version));
        let served = BTreeSet::from(served);
        for _ in 0..2 {
            let published = publish_built_in_apis(&store, &served, &clock);
            published.await.expect("published");
        }
        assert_eq!(
            names(&store).await,
            ["v1.", "v1.autoscaling", "v2.autoscaling"]
        );
        let expected = json!({"group": "autoscaling", "version": "v2",
            "groupPriorityMinimum": 17_500, "versionPriority": 30});
        assert_eq!(spec(&store, "v2.autoscaling").await, expected);
        let expected =
            json!({"version": "v1", "groupPriorityMinimum": 18_000, "versionPriority": 1});
        assert_eq!(spec(&store, "v1.").await, expected);
    }

    #[tokio::test]
    async fn conditions_of_others_stay() {
        let (store, clock) = (store(), testing::context().clock);
        let foo = json!({"type": "Foo", "status": "True", "lastTransitionTime": null});
        let said = Availability::no("ServiceNotFound", "none".to_owned());
        for (name, service) in [
            ("v1.local.example.com", Value::Null),
            (
                "v1.far.example.com",
                json!({"namespace": "n", "name": "s", "port": 443}),
            ),
        ] {
            let group = name.trim_start_matches("v1.");
            let object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": name}, "spec": {"group": group, "version": "v1",
                    "groupPriorityMinimum": 7, "versionPriority": 7, "service": service}});
            ensure(&store, "", object, &clock).await.expect("created");
            let mut replace = |object: &mut Value| object["status"]["conditions"] = json!([foo]);
            let replaced = change(&store, name, "status", &mut replace, &clock);
            replaced.await.expect("changed");
            assert!(!said.is_told_in(&stored(&store).await.expect("a list")[name]));
            let told = tell_availability(&store, name, &said, &clock);
            told.await.expect("told");
        }
        let there = stored(&store).await.expect("a list");
        let marked = mark_available(&store, &there, &clock).await;
        marked.expect("marked");
        let there = stored(&store).await.expect("a list");
        for (name, reason) in [
            ("v1.local.example.com", "Local"),
            ("v1.far.example.com", "ServiceNotFound"),
        ] {
            let conditions = list(&there[name], "status.conditions");
            assert_eq!(conditions[0], foo);
            assert_eq!(text(&conditions[1], "reason"), reason);
            assert_eq!(said.is_told_in(&there[name]), reason == said.reason);
        }
    }

    #[tokio::test]
    async fn custom_apis_come_and_go_and_others_stay() {
        let (store, clock) = (store(), testing::context().clock);
        let own = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.own.example.com"}, "spec": {"group": "own.example.com",
                "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 7}});
        ensure(&store, "", own.clone(), &clock)
            .await
            .expect("created");
        let publish = async |groups: &[&str]| {
            let served = groups.iter().map(|group| GroupVersion::new(group, "v1"));
            let served = served.collect();
            let published = publish_custom_apis(&store, &served, &clock);
            published.await.expect("published");
            names(&store).await
        };
        let both = ["v1.a.example.com", "v1.own.example.com"];
        assert_eq!(publish(&["a.example.com", "own.example.com"]).await, both);
        assert_eq!(spec(&store, both[1]).await, own["spec"], "it is somebody's");
        let priority = &spec(&store, both[0]).await["groupPriorityMinimum"];
        assert_eq!(*priority, 1000);
        let mut corrupt = |object: &mut Value| {
            object["spec"]["groupPriorityMinimum"] = json!(5);
        };
        change(&store, both[0], "", &mut corrupt, &clock)
            .await
            .expect("changed");
        assert_eq!(publish(&["a.example.com"]).await, both);
        let priority = &spec(&store, both[0]).await["groupPriorityMinimum"];
        assert_eq!(*priority, 1000, "put right");
        assert_eq!(publish(&[]).await, ["v1.own.example.com"]);
    }
}

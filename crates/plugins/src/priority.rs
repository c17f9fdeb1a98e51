//! Sets the priority of pods from their PriorityClass, or the default class. Kubernetes' Priority plugin.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::{Interface, ListOptions};
use ringwatch_admission::Plugin;
use ringwatch_admission::lookup::find_tree;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, set, text};
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

/// The keys of all classes.
const CLASSES: &str = "/priorityclasses/";
const PRIORITY: &str = "spec.priority";
const POLICY: &str = "spec.preemptionPolicy";

/// The plugin, with the storage of PriorityClasses.
#[derive(Debug)]
pub struct Priority {
    classes: Arc<dyn Interface>,
    /// The default class, with the revisions of the classes among which it was found.
    default: Mutex<(Vec<u64>, Option<Class>)>,
}

/// The freshness of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    /// As the cache has it.
    Cached,
    /// As of the latest write.
    Newest,
}

/// The fields of a PriorityClass that its pods get.
#[derive(Clone, Debug)]
struct Class {
    name: String,
    value: i64,
    policy: Option<Value>,
}

impl Priority {
    /// Creates the plugin, which looks PriorityClasses up in this storage.
    #[must_use]
    pub fn new(classes: Arc<dyn Interface>) -> Self {
        Self {
            classes,
            default: Mutex::default(),
        }
    }

    async fn named(&self, name: &str) -> Result<Option<Class>, Error> {
        let key = format!("{CLASSES}{name}");
        let class = find_tree(&*self.classes, &key).await?;
        Ok(class.map(|class| Class::from_tree(&class)))
    }

    /// Returns the default class; of several, the one with the lowest value.
    async fn default(&self, read: Freshness) -> Result<Option<Class>, Error> {
        let options = ListOptions {
            resource_version: (read == Freshness::Cached).then_some(ResourceVersion(0)),
            recursive: true,
            ..ListOptions::default()
        };
        let list = self.classes.get_list(CLASSES, options).await;
        let list = list.map_err(Error::Storage)?;
        let revisions: Vec<u64> = list.items.iter().map(|it| it.revision()).collect();
        let mut known = self.default.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != revisions {
            let mut default: Option<Class> = None;
            for object in &list.items {
                let tree = codec::tree(object)?;
                let class = Class::from_tree(&tree);
                let less = default.as_ref().is_none_or(|it| class.value < it.value);
                if get(&tree, "globalDefault") == Some(&Value::Bool(true)) && less {
                    default = Some(class);
                }
            }
            *known = (revisions, default);
        }
        Ok(known.1.clone())
    }

    async fn admit_pod(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Error> {
        let name = text(pod, "spec.priorityClassName").to_owned();
        let class = if name.is_empty() {
            self.default(Freshness::Cached).await?
        } else {
            let class = self.named(&name).await?;
            if class.is_none() {
                let message = format!("no PriorityClass with name {name} was found");
                return Err(request.forbid(pod, message));
            }
            class
        };
        let value = class.as_ref().map_or(0, |class| class.value);
        let given = get(pod, PRIORITY).and_then(Value::as_i64);
        if given.is_some_and(|given| given != value) {
            let message = format!(
                "the integer value of priority ({}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name",
                given.unwrap_or_default()
            );
            return Err(request.forbid(pod, message));
        }
        set(pod, PRIORITY, value.into());
        let policy = match class {
            None => Some(Value::from("PreemptLowerPriority")),
            Some(class) => {
                set(pod, "spec.priorityClassName", class.name.into());
                class.policy
            }
        };
        let Some(policy) = policy else {
            return Ok(());
        };
        let differs = get(pod, POLICY).is_some_and(|given| !given.is_null() && *given != policy);
        if differs {
            let show = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let message = format!(
                "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
                show(get(pod, POLICY)).unwrap_or_default(),
                show(Some(&policy)).unwrap_or_default()
            );
            return Err(request.forbid(pod, message));
        }
        set(pod, POLICY, policy);
        Ok(())
    }
}

impl Class {
    fn from_tree(tree: &Value) -> Self {
        Self {
            name: text(tree, "metadata.name").to_owned(),
            value: get(tree, "value").and_then(Value::as_i64).unwrap_or(0),
            policy: get(tree, "preemptionPolicy").cloned(),
        }
    }
}

#[async_trait]
impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        if request.creates("", "pods") {
            return self.admit_pod(request, object).await;
        }
        Ok(())
    }

    /// Checks that no other class is the default, if this one is to be.
    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        let is_default = get(object, "globalDefault") == Some(&Value::Bool(true));
        if !writes || !is_default || !request.is_of("scheduling.k8s.io", "priorityclasses") {
            return Ok(());
        }
        match self.default(Freshness::Newest).await? {
            Some(other)
                if request.operation == Operation::Create
                    || other.name != text(object, "metadata.name") =>
            {
                let other = other.name;
                let message = format!(
                    "PriorityClass {other} is already marked as default. Only one default can exist"
                );
                Err(request.forbid(object, message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_registry::testing::{MemoryStorage, context};
    use ringwatch_registry::{CreateOptions, Store};
    use ringwatch_resources::ensure_system_priorities;
    use serde_json::json;

    use super::*;

    async fn cluster() -> (Store, Priority) {
        let storage = MemoryStorage::new("/priorityclasses");
        let resources = ringwatch_resources::built_in();
        let classes = resources
            .into_iter()
            .find(|it| it.plural == "priorityclasses");
        let store = Store::new(classes.expect("built in"), Arc::clone(&storage) as _);
        let clock = context().clock;
        ensure_system_priorities(&store, &clock)
            .await
            .expect("there");
        (store, Priority::new(storage))
    }

    async fn class(store: &Store, name: &str, more: Value) {
        let mut class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}});
        for (member, value) in more.as_object().expect("members") {
            class[member] = value.clone();
        }
        let (context, options) = (context(), CreateOptions::default());
        let created = store.create(&context, "", class, &options).await;
        created.expect("created");
    }

    async fn admitted(priorities: &Priority, spec: Value) -> Result<Value, String> {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let resources = ringwatch_resources::built_in();
        let pods = resources.iter().find(|it| it.plural == "pods");
        let request = Request {
            context: &context(),
            operation: Operation::Create,
            resource: pods.expect("built in"),
            namespace: "ns",
            name: "p",
            old: None,
            dry_run: false,
        };
        let result = priorities.admit(&request, &mut pod).await;
        result
            .map(|()| pod["spec"].take())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn pods_are_as_urgent_as_their_class() {
        let (store, priorities) = cluster().await;
        assert_eq!(
            admitted(&priorities, json!({})).await,
            Ok(json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}))
        );
        let critical = json!({"priorityClassName": "system-node-critical"});
        assert_eq!(
            admitted(&priorities, critical).await,
            Ok(
                json!({"priorityClassName": "system-node-critical", "priority": 2_000_001_000,
                "preemptionPolicy": "PreemptLowerPriority"})
            )
        );
        class(
            &store,
            "usual",
            json!({"value": 7, "globalDefault": true, "preemptionPolicy": "Never"}),
        )
        .await;
        assert_eq!(
            admitted(&priorities, json!({})).await,
            Ok(json!({"priorityClassName": "usual", "priority": 7, "preemptionPolicy": "Never"}))
        );
    }

    #[tokio::test]
    async fn pods_do_not_say_themselves_how_urgent_they_are() {
        let (_, priorities) = cluster().await;
        assert_eq!(
            admitted(&priorities, json!({"priorityClassName": "nope"})).await,
            Err("pods \"p\" is forbidden: no PriorityClass with name nope was found".to_owned())
        );
        assert_eq!(
            admitted(&priorities, json!({"priority": 3})).await,
            Err("pods \"p\" is forbidden: the integer value of priority (3) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name".to_owned())
        );
        assert_eq!(
            admitted(&priorities, json!({"preemptionPolicy": "Never"})).await,
            Err("pods \"p\" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name".to_owned())
        );
    }
}

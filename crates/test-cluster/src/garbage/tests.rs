//! The collector over a store in memory: the cases of Kubernetes' conformance specs, and random graphs beside a model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::storage::ListOptions;
use ringwatch_registry::testing::{MemoryStorage, TestStrategy, config_map, context, resource};
use ringwatch_registry::{CreateOptions, Resource, Verb};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::json;
use tokio::runtime;
use tokio::sync::watch;

use super::*;
use crate::testing::UnservedDefinition;

/// The namespace of all objects.
const NAMESPACE: &str = "ns";

/// A store of ConfigMaps that own each other.
struct Objects {
    store: Arc<Store>,
    stores: ServedStores,
}

impl Objects {
    fn new() -> Self {
        let strategy = Arc::new(TestStrategy::default());
        let resource = resource("configmaps", "ConfigMap", true, strategy);
        let resource = Resource {
            verbs: vec![Verb::List, Verb::Watch, Verb::Delete],
            ..Resource::clone(&resource)
        };
        let storage = MemoryStorage::new("/configmaps");
        let store = Arc::new(Store::new(Arc::new(resource), storage as _));
        let (_, custom) = watch::channel(Vec::new());
        let stores = ServedStores::new([Arc::clone(&store)].into_iter().collect(), custom);
        Self { store, stores }
    }

    /// Makes objects beside a definition of which nothing is served yet.
    async fn beside_a_definition() -> (Self, UnservedDefinition) {
        let definition = UnservedDefinition::new().await;
        let objects = Self::new();
        let built_in = [Arc::clone(&objects.store), Arc::clone(&definition.store)];
        let (_, custom) = watch::channel(Vec::new());
        let stores = ServedStores::new(built_in.into_iter().collect(), custom);
        (Self { stores, ..objects }, definition)
    }

    /// Runs a test beside the collector.
    async fn beside_the_collector(&self, test: impl Future<Output = ()>) {
        let clock = Clock::real();
        tokio::select! {
            () = Garbage::run(&self.stores, &clock) => unreachable!("it runs until it is dropped"),
            () = test => {}
        }
    }

    /// Creates an object with owners, each of which it may block, and returns its uid.
    async fn create(
        &self,
        name: &str,
        owners: &[(&str, &str, bool)],
        finalizers: &[&str],
    ) -> String {
        let owners: Vec<Value> = owners
            .iter()
            .map(|(name, uid, blocks)| {
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": name,
                    "uid": uid,
                    "blockOwnerDeletion": blocks,
                })
            })
            .collect();
        let metadata = json!({"name": name, "ownerReferences": owners, "finalizers": finalizers});
        let (context, options) = (context(), CreateOptions::default());
        let created = self
            .store
            .create(&context, NAMESPACE, config_map(metadata), &options);
        created.await.expect("it can be created").uid().to_owned()
    }

    async fn delete(&self, name: &str, policy: PropagationPolicy) {
        let options = DeleteOptions {
            propagation_policy: Some(policy),
            ..DeleteOptions::default()
        };
        let context = context();
        let deleted = self.store.delete(&context, NAMESPACE, name, options);
        deleted.await.expect("it can be deleted");
    }

    async fn update(&self, name: &str, change: impl Fn(&mut Value) + Send + Sync) {
        let mut change = FunctionUpdate::new(|object| {
            change(object);
            Ok(())
        });
        let (context, options) = (context(), UpdateOptions::default());
        let updated = self
            .store
            .update(&context, NAMESPACE, name, &mut change, &options);
        updated.await.expect("it can be changed");
    }

    async fn all(&self) -> BTreeMap<String, Value> {
        let list = self.store.list(NAMESPACE, ListOptions::default()).await;
        let items = list.expect("a list").items.into_iter();
        items
            .map(|it| (it.name().to_owned(), codec::tree(&it).expect("an object")))
            .collect()
    }

    /// Waits until exactly these objects are left, none of which is being deleted.
    async fn expect_left(&self, names: &[&str]) {
        eventually(DEADLINE, format!("only {names:?} are left"), async || {
            let all = self.all().await;
            let left: Vec<&str> = all.keys().map(String::as_str).collect();
            let done = left == names && !all.values().any(is_terminating);
            done.then_some(()).ok_or(all)
        })
        .await;
    }

    /// Waits until a condition of an object holds.
    async fn expect(&self, name: &str, is: impl Fn(&Value) -> bool) {
        eventually(DEADLINE, format!("{name} is as expected"), async || {
            let all = self.all().await;
            all.get(name).is_some_and(&is).then_some(()).ok_or(all)
        })
        .await;
    }
}

fn owner_uids(object: &Value) -> BTreeSet<String> {
    owners(object).iter().map(|it| it.uid.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn dependents_go_with_the_last_of_their_owners() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let one = objects.create("one", &[], &[]).await;
            let two = objects.create("two", &[], &[]).await;
            let child = objects
                .create("child", &[("one", &one, true), ("two", &two, true)], &[])
                .await;
            objects
                .create("grandchild", &[("child", &child, false)], &[])
                .await;
            objects.delete("one", PropagationPolicy::Background).await;
            objects
                .expect("child", |it| {
                    owner_uids(it) == BTreeSet::from([two.clone()])
                })
                .await;
            objects.expect_left(&["child", "grandchild", "two"]).await;
            objects.delete("two", PropagationPolicy::Background).await;
            objects.expect_left(&[]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_gone_already_is_found_out_at_the_start() {
    let objects = Objects::new();
    let owner = objects.create("owner", &[], &[]).await;
    objects
        .create("child", &[("owner", &owner, false)], &[])
        .await;
    objects.create("other", &[], &[]).await;
    objects.delete("owner", PropagationPolicy::Background).await;
    // Another object of the same name is not the owner.
    objects.create("owner", &[], &[]).await;
    objects
        .beside_the_collector(objects.expect_left(&["other", "owner"]))
        .await;
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_their_owner() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let owner = objects.create("owner", &[], &[]).await;
            for name in ["a", "b"] {
                objects.create(name, &[("owner", &owner, true)], &[]).await;
            }
            objects.delete("owner", PropagationPolicy::Orphan).await;
            objects.expect_left(&["a", "b"]).await;
            assert!(objects.all().await.values().all(|it| owners(it).is_empty()));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_without_dependents_while_a_definition_is_not_served_yet() {
    let (objects, definition) = Objects::beside_a_definition().await;
    objects
        .beside_the_collector(async {
            let gone = objects.create("gone", &[], &[]).await;
            for (name, policy) in [
                ("orphaning", PropagationPolicy::Orphan),
                ("foreground", PropagationPolicy::Foreground),
            ] {
                objects.create(name, &[], &[]).await;
                objects.delete(name, policy).await;
            }
            objects
                .create("child", &[("gone", &gone, false)], &[])
                .await;
            objects.delete("gone", PropagationPolicy::Background).await;
            // What came later is collected.
            eventually(DEADLINE, "the child is gone", async || {
                !objects.all().await.contains_key("child")
            })
            .await;
            let all = objects.all().await;
            assert_eq!(finalizers(&all["orphaning"]), [ORPHAN]);
            assert_eq!(finalizers(&all["foreground"]), [FOREGROUND]);
            definition.remove().await;
            objects.expect_left(&[]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_waits_in_the_foreground_for_those_that_block_it() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let owner = objects.create("owner", &[], &[]).await;
            objects
                .create("blocks", &[("owner", &owner, true)], &["a/held"])
                .await;
            objects
                .create("free", &[("owner", &owner, false)], &["a/held"])
                .await;
            objects.delete("owner", PropagationPolicy::Foreground).await;
            objects.expect("blocks", is_terminating).await;
            objects.expect("free", is_terminating).await;
            objects
                .expect("owner", |it| finalizers(it) == [FOREGROUND])
                .await;
            objects
                .update("blocks", |it| accessor::remove(it, "finalizers"))
                .await;
            eventually(DEADLINE, "the owner is gone", async || {
                !objects.all().await.contains_key("owner")
            })
            .await;
            objects
                .update("free", |it| accessor::remove(it, "finalizers"))
                .await;
            objects.expect_left(&[]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_blocks_an_owner_waits_in_turn_for_those_that_block_it() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let owner = objects.create("owner", &[], &[]).await;
            let child = objects
                .create("child", &[("owner", &owner, true)], &[])
                .await;
            objects
                .create("grandchild", &[("child", &child, true)], &["a/held"])
                .await;
            objects.delete("owner", PropagationPolicy::Foreground).await;
            objects.expect("grandchild", is_terminating).await;
            for name in ["owner", "child"] {
                objects
                    .expect(name, |it| finalizers(it) == [FOREGROUND])
                    .await;
            }
            objects
                .update("grandchild", |it| accessor::remove(it, "finalizers"))
                .await;
            objects.expect_left(&[]).await;
        })
        .await;
}

#[tokio::test]
async fn who_changes_owners_is_no_longer_a_dependent_of_the_old_ones() {
    let objects = Objects::new();
    let node = |owner: &str| Node {
        store: Arc::clone(&objects.store),
        namespace: NAMESPACE.to_owned(),
        name: "child".to_owned(),
        owners: vec![Owner {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: owner.to_owned(),
            uid: Uid::from(owner),
            blocks: true,
        }],
        deletion: Deletion::None,
    };
    let [one, two, child] = ["one", "two", "child"].map(Uid::from);
    let mut graph = Graph::default();
    assert_eq!(
        graph.put(Arc::clone(&child), node("one")),
        [Arc::clone(&child)]
    );
    assert!(graph.has_dependents(&one) && graph.is_blocked(&one));
    assert_eq!(
        graph.put(Arc::clone(&child), node("two")),
        [Arc::clone(&child)]
    );
    assert!(!graph.has_dependents(&one) && graph.has_dependents(&two));
    assert!(graph.put(Arc::clone(&child), node("two")).is_empty());
    assert!(graph.remove(&child).is_empty() && !graph.has_dependents(&two));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_no_longer_blocked_goes() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let owner = objects.create("owner", &[], &[]).await;
            objects
                .create("blocks", &[("owner", &owner, true)], &["a/held"])
                .await;
            objects.delete("owner", PropagationPolicy::Foreground).await;
            objects.expect("blocks", is_terminating).await;
            objects.update("blocks", unblock_owners).await;
            eventually(DEADLINE, "the owner is gone", async || {
                !objects.all().await.contains_key("owner")
            })
            .await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_dependent_with_another_owner_stays_when_one_waits_for_its_dependents() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let goes = objects.create("goes", &[], &[]).await;
            let stays = objects.create("stays", &[], &[]).await;
            objects.create("own", &[("goes", &goes, true)], &[]).await;
            let both = [("goes", &*goes, true), ("stays", &*stays, true)];
            objects.create("shared", &both, &[]).await;
            objects.delete("goes", PropagationPolicy::Foreground).await;
            objects.expect_left(&["shared", "stays"]).await;
            objects
                .expect("shared", |it| {
                    owner_uids(it) == BTreeSet::from([stays.clone()])
                })
                .await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_owners_is_no_obstacle() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let mut uids = Vec::new();
            for name in ["a", "b", "c"] {
                uids.push(objects.create(name, &[], &[]).await);
            }
            for (at, name) in ["b", "c", "a"].into_iter().enumerate() {
                let owned_by = ["a", "b", "c"][at];
                let reference = json!([{
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": owned_by,
                    "uid": uids[at],
                    "controller": true,
                    "blockOwnerDeletion": true,
                }]);
                objects
                    .update(name, |it| {
                        accessor::set(it, "ownerReferences", reference.clone())
                    })
                    .await;
            }
            objects.delete("a", PropagationPolicy::Foreground).await;
            objects.expect_left(&[]).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_kind_that_is_not_served_stays() {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let owner = objects.create("owner", &[], &[]).await;
            objects
                .create("child", &[("owner", &owner, false)], &[])
                .await;
            objects
                .create("foreign", &[("owner", &owner, false)], &[])
                .await;
            objects
                .update("foreign", |it| {
                    it["metadata"]["ownerReferences"][0]["kind"] = "Nothing".into();
                })
                .await;
            objects.delete("owner", PropagationPolicy::Background).await;
            objects.expect_left(&["foreign"]).await;
        })
        .await;
}

/// A step of a random run, on objects by their numbers.
#[derive(Clone, Debug)]
enum Step {
    /// Creates an object that is not there, owned by those of these that are.
    Create(usize, Vec<(usize, bool)>),
    /// Deletes an object that is there.
    Delete(usize, PropagationPolicy),
}

/// Maximum number of objects of a random run.
const OBJECTS_MAX: usize = 7;

fn step() -> impl Strategy<Value = Step> {
    let number = 0..OBJECTS_MAX;
    let owners = prop::collection::vec((number.clone(), any::<bool>()), 0..4);
    let policy = prop_oneof![
        Just(PropagationPolicy::Background),
        Just(PropagationPolicy::Foreground),
        Just(PropagationPolicy::Orphan),
    ];
    prop_oneof![
        3 => (number.clone(), owners).prop_map(|(number, owners)| Step::Create(number, owners)),
        1 => (number, policy).prop_map(|(number, policy)| Step::Delete(number, policy)),
    ]
}

/// The objects that must be there, by name, each with its uid and those of its owners.
type Model = BTreeMap<String, (String, BTreeSet<String>)>;

/// Removes an object, and with it, unless they are orphaned, all that only the removed own.
fn remove(model: &mut Model, name: &str, policy: PropagationPolicy) {
    let Some((uid, _)) = model.remove(name) else {
        return;
    };
    if policy == PropagationPolicy::Orphan {
        for (_, owners) in model.values_mut() {
            owners.remove(&uid);
        }
        return;
    }
    loop {
        let there: BTreeSet<String> = model.values().map(|(uid, _)| uid.clone()).collect();
        let before = model.len();
        model.retain(|_, (_, owners)| owners.is_empty() || !owners.is_disjoint(&there));
        if model.len() == before {
            for (_, owners) in model.values_mut() {
                owners.retain(|it| there.contains(it));
            }
            return;
        }
    }
}

async fn run_beside_model(steps: &[Step]) {
    let objects = Objects::new();
    objects
        .beside_the_collector(async {
            let mut model = Model::new();
            for step in steps {
                match step {
                    Step::Create(number, owners) => {
                        let name = format!("o{number}");
                        if model.contains_key(&name) {
                            continue;
                        }
                        let mut references = BTreeMap::new();
                        for (owner, blocks) in owners {
                            let owner = format!("o{owner}");
                            if let Some((uid, _)) = model.get(&owner) {
                                references.insert(uid.clone(), (owner, *blocks));
                            }
                        }
                        let owners = references.iter();
                        let owners: Vec<_> = owners
                            .map(|(uid, (owner, blocks))| (&**owner, &**uid, *blocks))
                            .collect();
                        let uid = objects.create(&name, &owners, &[]).await;
                        model.insert(name, (uid, references.into_keys().collect()));
                    }
                    Step::Delete(number, policy) => {
                        let name = format!("o{number}");
                        if model.contains_key(&name) {
                            objects.delete(&name, *policy).await;
                            remove(&mut model, &name, *policy);
                        }
                    }
                }
                let expected = &model;
                eventually(DEADLINE, format!("{step:?}: {expected:?}"), async || {
                    let all = objects.all().await;
                    let found: Model = all
                        .iter()
                        .filter(|(_, object)| !is_terminating(object))
                        .map(|(name, object)| {
                            let uid = accessor::text(object, "uid").to_owned();
                            (name.clone(), (uid, owner_uids(object)))
                        })
                        .collect();
                    let done = found == *expected && found.len() == all.len();
                    done.then_some(()).ok_or(all)
                })
                .await;
            }
        })
        .await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After each step the objects come to be those that the rules leave, with the owners that are left.
    #[test]
    fn random_graphs_end_as_the_rules_say(steps in prop::collection::vec(step(), 1..24)) {
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(run_beside_model(&steps));
    }
}

//! Random patches against a plain model of what they mean.
//!
//! The model knows one object: a pod's spec with containers, each with variables, with tolerations that
//! are replaced as a whole, a map of labels and a set of finalizers.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::merge;

/// A container: its image and its variables, by name and in order.
#[derive(Clone, Debug, PartialEq)]
struct Container {
    name: &'static str,
    image: Option<u8>,
    variables: Vec<(&'static str, u8)>,
}

#[derive(Clone, Debug)]
struct Pod {
    containers: Vec<Container>,
    tolerations: Vec<u8>,
    labels: Vec<(&'static str, u8)>,
    finalizers: Vec<&'static str>,
}

/// The change of one item.
#[derive(Clone, Debug)]
enum ToContainer {
    Delete,
    Merge {
        image: Option<Option<u8>>,
        variables: Vec<(&'static str, ToVariable)>,
    },
}

#[derive(Clone, Debug)]
enum ToVariable {
    Delete,
    Set(u8),
}

#[derive(Clone, Debug)]
struct Patch {
    /// True if the containers that the patch does not name are removed.
    replaces: bool,
    containers: Vec<(&'static str, ToContainer)>,
    /// The order of containers, as names.
    order: Option<Vec<&'static str>>,
    tolerations: Option<Vec<u8>>,
    labels: Vec<(&'static str, Option<u8>)>,
    /// The labels that stay, if not all.
    retained: bool,
    added: Vec<&'static str>,
    deleted: Vec<&'static str>,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn names() -> impl Strategy<Value = Vec<&'static str>> {
    Just(NAMES.to_vec())
        .prop_shuffle()
        .prop_flat_map(|names| (Just(names), 0..=NAMES.len()))
        .prop_map(|(names, count)| names.into_iter().take(count).collect())
}

/// Returns some of the names, each with something.
fn named<T: Clone + std::fmt::Debug>(
    what: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<(&'static str, T)>> {
    (names(), prop::collection::vec(what, NAMES.len()))
        .prop_map(|(names, what)| names.into_iter().zip(what).collect())
}

fn pod() -> impl Strategy<Value = Pod> {
    let container = (prop::option::of(0..3_u8), named(0..3_u8));
    let tolerations = prop::collection::vec(0..3_u8, 0..3);
    (named(container), tolerations, named(0..3_u8), names()).prop_map(
        |(containers, tolerations, labels, finalizers)| Pod {
            containers: containers
                .into_iter()
                .map(|(name, (image, variables))| Container {
                    name,
                    image,
                    variables,
                })
                .collect(),
            tolerations,
            labels,
            finalizers,
        },
    )
}

fn patch() -> impl Strategy<Value = Patch> {
    let variable = prop_oneof![
        Just(ToVariable::Delete),
        (0..3_u8).prop_map(ToVariable::Set)
    ];
    let container = prop_oneof![
        1 => Just(ToContainer::Delete),
        3 => (prop::option::of(prop::option::of(0..3_u8)), named(variable))
            .prop_map(|(image, variables)| ToContainer::Merge { image, variables }),
    ];
    let tolerations = prop::option::of(prop::collection::vec(0..3_u8, 0..3));
    let sets = (names(), names());
    let labels = named(prop::option::of(0..3_u8));
    let flags = (
        prop::bool::weighted(0.1),
        any::<bool>(),
        any::<bool>(),
        names(),
    );
    (flags, named(container), tolerations, labels, sets).prop_map(
        |((replaces, retained, orders, more), containers, tolerations, labels, sets)| {
            // The order names what the patch merges, as it comes there, and perhaps more.
            let merged = |name: &str| {
                let mut named = containers.iter().filter(|(it, _)| *it == name);
                named.any(|(_, what)| !matches!(what, ToContainer::Delete))
            };
            let order = orders.then(|| {
                let own = containers.iter().map(|(name, _)| *name);
                let own = own.filter(|name| merged(name));
                let others = more.iter().copied().filter(|name| !merged(name));
                own.chain(others).collect()
            });
            let (added, deleted) = sets;
            let deleted = deleted
                .into_iter()
                .filter(|it| !added.contains(it))
                .collect();
            Patch {
                replaces,
                containers,
                order,
                tolerations,
                labels,
                retained,
                added,
                deleted,
            }
        },
    )
}

fn map<T: Copy + Into<Value>>(pairs: &[(&'static str, T)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).into()));
    Value::Object(pairs.collect::<Map<_, _>>())
}

impl Pod {
    fn json(&self) -> Value {
        let containers = self.containers.iter().map(|it| {
            let variables = it.variables.iter();
            let variables = variables.map(|(name, value)| json!({"name": name, "value": value}));
            let mut container = json!({"name": it.name, "env": variables.collect::<Vec<_>>()});
            if let Some(image) = it.image {
                container["image"] = image.into();
            }
            container
        });
        let tolerations: Vec<_> = self
            .tolerations
            .iter()
            .map(|key| json!({"key": key}))
            .collect();
        json!({"kind": "Pod",
            "metadata": {"labels": map(&self.labels), "finalizers": self.finalizers},
            "spec": {"containers": containers.collect::<Vec<_>>(), "tolerations": tolerations}})
    }

    /// Applies the patch to the model.
    fn patched(&self, patch: &Patch) -> Self {
        let mut labels: Vec<_> = self.labels.clone();
        for (name, value) in &patch.labels {
            labels.retain(|(it, _)| it != name);
            labels.extend(value.map(|value| (*name, value)));
        }
        if patch.retained {
            labels.retain(|(name, _)| patch.labels.iter().any(|(it, _)| it == name));
        }
        let mut finalizers = self.finalizers.clone();
        finalizers.retain(|it| !patch.deleted.contains(it));
        Self {
            containers: self.containers_after(patch),
            tolerations: patch
                .tolerations
                .clone()
                .unwrap_or_else(|| self.tolerations.clone()),
            labels,
            finalizers: in_order(&union(&finalizers, &patch.added), &patch.added, &finalizers),
        }
    }

    fn containers_after(&self, patch: &Patch) -> Vec<Container> {
        let mut all = if patch.replaces {
            Vec::new()
        } else {
            self.containers.clone()
        };
        let mut named = Vec::new();
        for (name, what) in &patch.containers {
            let before = all.iter().position(|it| it.name == *name);
            match (what, before) {
                (ToContainer::Delete, before) => drop(before.map(|at| all.remove(at))),
                (ToContainer::Merge { image, variables }, before) => {
                    named.push(*name);
                    let at = before.unwrap_or_else(|| {
                        all.push(Container {
                            name,
                            image: None,
                            variables: Vec::new(),
                        });
                        all.len() - 1
                    });
                    all[at].image = image.unwrap_or(all[at].image);
                    all[at].variables = variables_after(&all[at].variables, variables);
                }
            }
        }
        let order = patch.order.as_ref().unwrap_or(&named);
        let names: Vec<_> = all.iter().map(|it| it.name).collect();
        let mut live: Vec<_> = self.containers.iter().map(|it| it.name).collect();
        if patch.order.is_some() && !patch.replaces {
            // With an order, new ones take the places at the end that deleted ones leave.
            live = names.iter().copied().take(live.len()).collect();
        }
        in_order(&names, order, &live)
            .into_iter()
            .filter_map(|name| all.iter().find(|it| it.name == name).cloned())
            .collect()
    }
}

fn variables_after(
    before: &[(&'static str, u8)],
    patch: &[(&'static str, ToVariable)],
) -> Vec<(&'static str, u8)> {
    let mut all = before.to_vec();
    let mut named = Vec::new();
    for (name, what) in patch {
        match what {
            ToVariable::Delete => all.retain(|(it, _)| it != name),
            ToVariable::Set(value) => {
                named.push(*name);
                match all.iter_mut().find(|(it, _)| it == name) {
                    Some(variable) => variable.1 = *value,
                    None => all.push((name, *value)),
                }
            }
        }
    }
    let live: Vec<_> = before.iter().map(|(name, _)| *name).collect();
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    in_order(&names, &named, &live)
        .into_iter()
        .filter_map(|name| all.iter().find(|(it, _)| *it == name).copied())
        .collect()
}

fn union(one: &[&'static str], other: &[&'static str]) -> Vec<&'static str> {
    let more = other.iter().filter(|it| !one.contains(it));
    one.iter().chain(more).copied().collect()
}

/// Returns the names in the order of the patch; one that the patch does not name stands before the first that the patch
/// names and that was behind it.
fn in_order(
    names: &[&'static str],
    patch: &[&'static str],
    live: &[&'static str],
) -> Vec<&'static str> {
    let was_at = |name: &str| live.iter().position(|it| *it == name);
    let mut waiting: Vec<_> = live.iter().filter(|it| names.contains(it)).collect();
    waiting.retain(|it| !patch.contains(it));
    let mut result = Vec::new();
    for name in patch.iter().filter(|it| names.contains(it)) {
        if let Some(at) = was_at(name) {
            while waiting
                .first()
                .is_some_and(|first| was_at(first) < Some(at))
            {
                result.push(*waiting.remove(0));
            }
        }
        result.push(*name);
    }
    result.extend(waiting);
    result
}

impl Patch {
    /// Returns the patch without what is obeyed only where there is something to merge with: what new containers have
    /// is taken as it is, and nothing is in no order.
    fn fitting(mut self, pod: &Pod) -> Self {
        let is_new = |name: &str| self.replaces || !pod.containers.iter().any(|it| it.name == name);
        for (name, what) in &mut self.containers {
            if let ToContainer::Merge { image, variables } = what
                && is_new(name)
            {
                *image = image.flatten().map(Some);
                variables.retain(|(_, what)| matches!(what, ToVariable::Set(_)));
            }
        }
        if pod.containers.is_empty() && self.containers.is_empty() {
            self.order = None;
        }
        self
    }

    fn json(&self) -> Value {
        let mut containers: Vec<Value> = Vec::new();
        if self.replaces {
            containers.push(json!({"$patch": "replace"}));
        }
        for (name, what) in &self.containers {
            let ToContainer::Merge { image, variables } = what else {
                containers.push(json!({"name": name, "$patch": "delete"}));
                continue;
            };
            let variables = variables.iter().map(|(name, what)| match what {
                ToVariable::Delete => json!({"name": name, "$patch": "delete"}),
                ToVariable::Set(value) => json!({"name": name, "value": value}),
            });
            let mut container = json!({"name": name, "env": variables.collect::<Vec<_>>()});
            if let Some(image) = image {
                container["image"] = json!(image);
            }
            containers.push(container);
        }
        let mut spec = json!({"containers": containers});
        if let Some(order) = &self.order {
            let order: Vec<_> = order.iter().map(|name| json!({"name": name})).collect();
            spec["$setElementOrder/containers"] = order.into();
        }
        if let Some(tolerations) = &self.tolerations {
            let tolerations: Vec<_> = tolerations.iter().map(|key| json!({"key": key})).collect();
            spec["tolerations"] = tolerations.into();
        }
        let mut labels = map(&self.labels);
        if self.retained {
            let names: Vec<_> = self.labels.iter().map(|(name, _)| *name).collect();
            labels["$retainKeys"] = json!(names);
        }
        json!({"spec": spec, "metadata": {"labels": labels, "finalizers": self.added,
            "$deleteFromPrimitiveList/finalizers": self.deleted}})
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn patches_mean_what_the_model_says(pod in pod(), patch in patch()) {
        let patch = patch.fitting(&pod);
        let (object, sent) = (pod.json(), patch.json());
        let patched = merge(&object, &sent).map_err(|error| error.to_string());
        let expected = pod.patched(&patch).json();
        prop_assert_eq!(patched, Ok(expected), "\nobject: {}\npatch: {}", object, sent);
    }
}

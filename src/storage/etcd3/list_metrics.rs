//! The metrics of lists from the store, under kube-apiserver's names.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The families of all types.
#[derive(Clone, Debug, Default)]
pub struct ListMetrics([Family<TypeLabels, Counter>; FAMILIES.len()]);

/// The names and meanings of the families, in the order of [`TypeListMetrics`].
const FAMILIES: [(&str, &str); 4] = [
    (
        "apiserver_storage_list",
        "[ALPHA] Number of LIST requests served from storage",
    ),
    (
        "apiserver_storage_list_fetched_objects",
        "[ALPHA] Number of objects read from storage in the course of serving a LIST request",
    ),
    (
        "apiserver_storage_list_evaluated_objects",
        "[ALPHA] Number of objects tested in the course of serving a LIST request from storage",
    ),
    (
        "apiserver_storage_list_returned_objects",
        "[ALPHA] Number of objects returned for a LIST request from storage",
    ),
];

/// The labels of a metric: the type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabels {
    group: String,
    resource: String,
}

/// The counters of one type.
#[derive(Clone, Debug, Default)]
pub struct TypeListMetrics {
    lists: Counter,
    fetched: Counter,
    evaluated: Counter,
    returned: Counter,
}

/// The cost of one list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListCost {
    /// The number of objects that were read.
    pub(super) fetched: usize,
    /// The number of objects whose attributes were compared with the selectors.
    pub(super) evaluated: usize,
    /// The number of objects that were returned.
    pub(super) returned: usize,
}

impl ListMetrics {
    /// Creates the families and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (family, (name, help)) in metrics.0.iter().zip(FAMILIES) {
            registry.register(name, help, family.clone());
        }
        metrics
    }

    /// Returns the counters of a type.
    #[must_use]
    pub fn of_type(&self, group: &str, resource: &str) -> TypeListMetrics {
        let labels = TypeLabels {
            group: group.to_owned(),
            resource: resource.to_owned(),
        };
        let counter = |family: &Family<_, _>| family.get_or_create_owned(&labels);
        let [lists, fetched, evaluated, returned] = self.0.each_ref().map(counter);
        TypeListMetrics {
            lists,
            fetched,
            evaluated,
            returned,
        }
    }
}

impl TypeListMetrics {
    /// Counts a list.
    pub(super) fn count(&self, cost: ListCost) {
        self.lists.inc();
        self.fetched.inc_by(cost.fetched as u64);
        self.evaluated.inc_by(cost.evaluated as u64);
        self.returned.inc_by(cost.returned as u64);
    }
}

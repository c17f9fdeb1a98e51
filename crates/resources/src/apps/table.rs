//! Tables of Deployments and other controllers of pods, and of PodDisruptionBudgets.

use ringwatch_apimachinery::selector_text;

use crate::core::service::table::{labels, selector};
use crate::table::{Column, TableConvertor, cells, field_docs, subject::RowSubject};

/// Column with the selector of the pods.
const SELECTOR: Column =
    Column::text("Selector", "Selects the pods that belong to the object.").wide();

/// Column with ready and desired replicas, such as `1/3`.
const READY: Column = Column::text("Ready", "Number of the pod with ready state");

/// Table of Deployments, with ready, updated and available replicas.
pub(crate) static DEPLOYMENTS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        READY,
        Column::text("Up-to-date", field_docs::DEPLOYMENT_UPDATED_REPLICAS),
        Column::text("Available", field_docs::DEPLOYMENT_AVAILABLE_REPLICAS),
        Column::AGE,
        Column::CONTAINERS.wide(),
        Column::IMAGES.wide(),
        Column::text("Selector", field_docs::DEPLOYMENT_SELECTOR).wide(),
    ],
    |deployment| {
        let (names, images) = containers(deployment, "spec.template.spec.containers");
        let selector = deployment.get("spec.selector");
        cells![
            deployment.name(),
            ready_of_wanted(deployment),
            deployment.number("status.updatedReplicas"),
            deployment.number("status.availableReplicas"),
            deployment.age(),
            names,
            images,
            selector
                .map(selector_text::label_selector)
                .unwrap_or_default(),
        ]
    },
);

/// Table of ReplicaSets, with desired, current and ready replicas.
pub(crate) static REPLICA_SETS: TableConvertor = TableConvertor::new(REPLICAS, |set| {
    replicas(set, selector(set, "spec.selector"))
});

/// Table of ReplicationControllers, with desired, current and ready replicas.
pub(crate) static REPLICATION_CONTROLLERS: TableConvertor =
    TableConvertor::new(REPLICAS, |controller| {
        replicas(controller, labels(controller, "spec.selector"))
    });

const REPLICAS: &[Column] = &[
    Column::NAME,
    Column::number("Desired", "How many replicas there should be."),
    Column::number("Current", "How many replicas there are."),
    Column::number("Ready", "How many replicas are ready."),
    Column::AGE,
    Column::CONTAINERS.wide(),
    Column::IMAGES.wide(),
    SELECTOR,
];

/// Table of StatefulSets, with ready replicas.
pub(crate) static STATEFUL_SETS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        READY,
        Column::AGE,
        Column::CONTAINERS.wide(),
        Column::IMAGES.wide(),
    ],
    |set| {
        let (names, images) = containers(set, "spec.template.spec.containers");
        cells![set.name(), ready_of_wanted(set), set.age(), names, images]
    },
);

/// Table of DaemonSets, with the numbers of nodes and the node selector.
pub(crate) static DAEMON_SETS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number("Desired", "How many nodes should run the pod."),
        Column::number("Current", "How many nodes run the pod and should."),
        Column::number("Ready", "How many nodes have a pod that is ready."),
        Column::number("Up-to-date", "How many nodes run the newest pod."),
        Column::number("Available", "How many nodes have a pod that is available."),
        Column::text(
            "Node Selector",
            "Selects the nodes that should run the pod.",
        ),
        Column::AGE,
        Column::CONTAINERS.wide(),
        Column::IMAGES.wide(),
        SELECTOR,
    ],
    |set| {
        let (names, images) = containers(set, "spec.template.spec.containers");
        cells![
            set.name(),
            set.number("status.desiredNumberScheduled"),
            set.number("status.currentNumberScheduled"),
            set.number("status.numberReady"),
            set.number("status.updatedNumberScheduled"),
            set.number("status.numberAvailable"),
            labels(set, "spec.template.spec.nodeSelector"),
            set.age(),
            names,
            images,
            selector(set, "spec.selector"),
        ]
    },
);

/// Table of PodTemplates, with their containers and labels.
pub(crate) static POD_TEMPLATES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::CONTAINERS,
        Column::IMAGES,
        Column::text("Pod Labels", "The labels for the pod template."),
    ],
    |template| {
        let (names, images) = containers(template, "template.spec.containers");
        cells![
            template.name(),
            names,
            images,
            labels(template, "template.metadata.labels"),
        ]
    },
);

/// Table of ControllerRevisions, with controller and revision.
pub(crate) static CONTROLLER_REVISIONS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Controller", "Controller of the object"),
        Column::text("Revision", "The place of the state in its history."),
        Column::AGE,
    ],
    |revision| {
        cells![
            revision.name(),
            controller(revision),
            revision.number("revision"),
            revision.age(),
        ]
    },
);

/// Table of PodDisruptionBudgets, with their bounds and the disruptions allowed now.
pub(crate) static DISRUPTION_BUDGETS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text(
            "Min Available",
            "The minimum number of pods that must be available.",
        ),
        Column::text(
            "Max Unavailable",
            "The maximum number of pods that may be unavailable.",
        ),
        Column::number(
            "Allowed Disruptions",
            "Calculated number of pods that may be disrupted at this time.",
        ),
        Column::AGE,
    ],
    |budget| {
        let bound = |path| budget.shown(path).unwrap_or_else(|| "N/A".to_owned());
        cells![
            budget.name(),
            bound("spec.minAvailable"),
            bound("spec.maxUnavailable"),
            budget.number("status.disruptionsAllowed"),
            budget.age(),
        ]
    },
);

/// Table of the `scale` subresource, with desired and current replicas.
pub(crate) static SCALES: TableConvertor = TableConvertor::new(
    &[
        Column {
            format: "",
            ..Column::NAME
        },
        Column::number("Desired", "How many replicas there should be."),
        Column::number("Available", "How many replicas there are."),
        Column::AGE,
    ],
    |scale| {
        cells![
            scale.name(),
            scale.number("spec.replicas"),
            scale.number("status.replicas"),
            scale.age(),
        ]
    },
);

/// Returns the names and the images of the containers at a path, each joined by commas.
pub(crate) fn containers(object: &RowSubject<'_>, path: &str) -> (String, String) {
    let all = |member| {
        let texts = object.list(path).map(|container| container.text(member));
        texts.collect::<Vec<_>>().join(",")
    };
    (all("name"), all("image"))
}

fn ready_of_wanted(object: &RowSubject<'_>) -> String {
    let (ready, wanted) = ("status.readyReplicas", "spec.replicas");
    format!("{}/{}", object.number(ready), object.number(wanted))
}

fn replicas(object: &RowSubject<'_>, selector: String) -> Vec<serde_json::Value> {
    let (names, images) = containers(object, "spec.template.spec.containers");
    cells![
        object.name(),
        object.number("spec.replicas"),
        object.number("status.replicas"),
        object.number("status.readyReplicas"),
        object.age(),
        names,
        images,
        selector,
    ]
}

/// Returns the controller among the object's owners as `kind.group/name`; `<none>` if there is none.
fn controller(object: &RowSubject<'_>) -> String {
    let mut owners = object.list("metadata.ownerReferences");
    let Some(owner) = owners.find(|owner| owner.boolean("controller") == Some(true)) else {
        return "<none>".to_owned();
    };
    let kind = owner.text("kind").to_lowercase();
    match owner.text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{}", group.to_lowercase(), owner.text("name")),
        None => format!("{kind}/{}", owner.text("name")),
    }
}

//! Tables of namespaces, leases, classes, components and APIServices, and of kinds without columns of their own.

use ringwatch_apimachinery::accessor::ZERO_TIME;

use crate::table::{Column, TableConvertor, cells, field_docs, subject::RowSubject};

/// Table of Namespaces, with their phase.
pub(crate) static NAMESPACES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Status", "The status of the namespace"),
        Column::AGE,
    ],
    |namespace| {
        cells![
            namespace.name(),
            namespace.text("status.phase"),
            namespace.age()
        ]
    },
);

/// Table of Leases, with their holder.
pub(crate) static LEASES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Holder", field_docs::LEASE_HOLDER_IDENTITY),
        Column::AGE,
    ],
    |lease| cells![lease.name(), lease.text("spec.holderIdentity"), lease.age()],
);

/// Table of PriorityClasses, with value and preemption policy.
pub(crate) static PRIORITY_CLASSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number("Value", "The priority of pods of the class."),
        Column::boolean(
            "Global-Default",
            "Whether pods that name no class are of it.",
        ),
        Column::AGE,
        Column::text("PreemptionPolicy", "Whether its pods push others out."),
    ],
    |class| {
        cells![
            class.name(),
            class.number("value"),
            class.boolean("globalDefault") == Some(true),
            class.age(),
            class.text("preemptionPolicy"),
        ]
    },
);

/// Table of RuntimeClasses, with their handler.
pub(crate) static RUNTIME_CLASSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Handler", "Who runs the containers of its pods."),
        Column::AGE,
    ],
    |class| cells![class.name(), class.text("handler"), class.age()],
);

/// Table of ComponentStatuses, with the condition `Healthy`.
pub(crate) static COMPONENT_STATUSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Status", "Status of the component conditions"),
        Column::text("Message", "Message of the component conditions"),
        Column::text("Error", "Error of the component conditions"),
    ],
    |component| {
        let mut conditions = component.list("conditions");
        let healthy = conditions.find(|it| it.text("type") == "Healthy");
        let status = match healthy.map(|it| it.text("status")) {
            None => "Unknown",
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
        };
        let said = |member| healthy.map_or("", |it| it.text(member));
        cells![component.name(), status, said("message"), said("error")]
    },
);

/// Table of APIServices, with their service, or `Local`, and the condition `Available`.
pub(crate) static API_SERVICES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text(
            "Service",
            "The reference to the service that hosts this API endpoint.",
        ),
        Column::text("Available", "Whether this service is available."),
        Column::AGE,
    ],
    |service| {
        let at = service.get("spec.service").map(|at| service.part(at));
        let at = at.map(|at| format!("{}/{}", at.text("namespace"), at.text("name")));
        cells![
            service.name(),
            at.unwrap_or_else(|| "Local".to_owned()),
            availability(service),
            service.age(),
        ]
    },
);

/// Table of kinds that have no columns but name and age.
pub(crate) static NAME_AND_AGE: TableConvertor =
    TableConvertor::new(&[Column::NAME, Column::AGE], |object| {
        cells![object.name(), object.age()]
    });

/// Table of kinds for which kube-apiserver has no printer, such as roles: name and creation timestamp.
pub(crate) static OTHERS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::date("Created At", field_docs::CREATION_TIMESTAMP),
    ],
    |object| {
        let created = object.text_or("metadata.creationTimestamp", ZERO_TIME);
        cells![object.name(), created]
    },
);

fn availability(service: &RowSubject<'_>) -> String {
    let mut conditions = service.list("status.conditions");
    let Some(condition) = conditions.find(|it| it.text("type") == "Available") else {
        return "Unknown".to_owned();
    };
    match (condition.text("status"), condition.text("reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

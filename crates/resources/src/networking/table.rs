//! Tables of Ingresses and IngressClasses.

use crate::core::service::table::{first_few, load_balancers};
use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

const NONE: &str = "<none>";

/// Table of Ingresses, with class, hosts, addresses and ports.
pub(crate) static INGRESSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Class", "The class whose controller serves the ingress."),
        Column::text("Hosts", "The hosts that requests may name."),
        Column::text("Address", "Where load balancers have been set up."),
        Column::text("Ports", "The ports that are open."),
        Column::AGE,
    ],
    |ingress| {
        let addresses = load_balancers(ingress).into_iter().collect::<Vec<_>>();
        let encrypted = ingress.count("spec.tls") > 0;
        cells![
            ingress.name(),
            ingress.text_or("spec.ingressClassName", NONE),
            hosts(ingress),
            addresses.join(","),
            if encrypted { "80, 443" } else { "80" },
            ingress.age(),
        ]
    },
);

/// Table of IngressClasses, with controller and parameters.
pub(crate) static INGRESS_CLASSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Controller", "Who serves ingresses of the class."),
        Column::text("Parameters", "Where there is more about the class."),
        Column::AGE,
    ],
    |class| {
        cells![
            class.name(),
            class.text("spec.controller"),
            parameters(class),
            class.age()
        ]
    },
);

fn hosts(ingress: &RowSubject<'_>) -> String {
    let hosts = ingress.list("spec.rules").map(|rule| rule.text("host"));
    let hosts = hosts.filter(|host| !host.is_empty()).map(str::to_owned);
    first_few(hosts.collect(), "*")
}

fn parameters(class: &RowSubject<'_>) -> String {
    let Some(parameters) = class.get("spec.parameters").map(|it| class.part(it)) else {
        return NONE.to_owned();
    };
    let (kind, name) = (parameters.text("kind"), parameters.text("name"));
    match parameters.text("apiGroup") {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{group}/{name}"),
    }
}

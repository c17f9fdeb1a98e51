//! Tables of Services, their endpoints and addresses, and NetworkPolicies.

use std::collections::BTreeSet;

use ringwatch_apimachinery::selector_text;

use crate::table::{Column, TableConvertor, cells, field_docs, subject::RowSubject};

const NONE: &str = "<none>";

/// Maximum number of addresses, ports or hosts that a cell names.
const NAMED_MAX: usize = 3;

/// Table of Services, with their type, addresses and ports.
pub(crate) static SERVICES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Type", field_docs::SERVICE_TYPE),
        Column::text("Cluster-IP", field_docs::SERVICE_CLUSTER_IP),
        Column::text("External-IP", field_docs::SERVICE_EXTERNAL_IPS),
        Column::text("Port(s)", field_docs::SERVICE_PORTS),
        Column::AGE,
        Column::text("Selector", field_docs::SERVICE_SELECTOR).wide(),
    ],
    |service| {
        let addresses = service.texts("spec.clusterIPs");
        let address = addresses.first().copied();
        cells![
            service.name(),
            service.text("spec.type"),
            address.unwrap_or_else(|| service.text_or("spec.clusterIP", NONE)),
            external_address(service),
            ports(service),
            service.age(),
            labels(service, "spec.selector"),
        ]
    },
);

/// Table of Endpoints, with their ready addresses.
pub(crate) static ENDPOINTS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Endpoints", "The addresses and ports that are ready."),
        Column::AGE,
    ],
    |endpoints| {
        cells![
            endpoints.name(),
            ready_addresses(endpoints),
            endpoints.age()
        ]
    },
);

/// Table of EndpointSlices, with their ports and addresses.
pub(crate) static ENDPOINT_SLICES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("AddressType", "What the addresses are: IPv4, IPv6 or FQDN."),
        Column::text("Ports", "The ports of every endpoint of the slice."),
        Column::text("Endpoints", "The addresses of the slice."),
        Column::AGE,
    ],
    |slice| {
        let ports = slice.list("ports").map(|port| {
            let known = port.shown("port").or_else(|| port.shown("name"));
            known.unwrap_or_else(|| "*".to_owned())
        });
        let endpoints = slice.list("endpoints");
        let addresses = endpoints.flat_map(|endpoint| endpoint.texts("addresses"));
        cells![
            slice.name(),
            slice.text("addressType"),
            first_few(ports.collect(), "<unset>"),
            first_few(addresses.map(str::to_owned).collect(), "<unset>"),
            slice.age(),
        ]
    },
);

/// Table of NetworkPolicies, with the selector of their pods.
pub(crate) static NETWORK_POLICIES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text(
            "Pod-Selector",
            "Selects the pods to which the policy applies.",
        ),
        Column::AGE,
    ],
    |policy| {
        cells![
            policy.name(),
            selector(policy, "spec.podSelector"),
            policy.age()
        ]
    },
);

/// Table of ServiceCIDRs, with their ranges.
pub(crate) static SERVICE_CIDRS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text(
            "CIDRs",
            "The ranges from which services get their addresses.",
        ),
        Column::AGE,
    ],
    |range| {
        cells![
            range.name(),
            range.texts("spec.cidrs").join(","),
            range.age()
        ]
    },
);

/// Table of IPAddresses, with the object to which each belongs.
pub(crate) static IP_ADDRESSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("ParentRef", "To what the address belongs."),
        Column::AGE,
    ],
    |address| cells![address.name(), parent(address), address.age()],
);

/// Joins at most [`NAMED_MAX`] texts and appends how many more there are; returns `none` if there are none.
pub(crate) fn first_few(mut all: Vec<String>, none: &str) -> String {
    let more = all.len().saturating_sub(NAMED_MAX);
    all.truncate(NAMED_MAX);
    match (all.join(","), more) {
        (text, 0) if text.is_empty() => none.to_owned(),
        (text, 0) => text,
        (text, more) => format!("{text} + {more} more..."),
    }
}

/// Formats the map of labels at a path as text; `<none>` if it is empty.
pub(crate) fn labels(object: &RowSubject<'_>, path: &str) -> String {
    let pairs = object
        .pairs(path)
        .map(|(name, value)| format!("{name}={value}"));
    let text = pairs.collect::<Vec<_>>().join(",");
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

/// Formats the LabelSelector at a path as text; `<none>` if it is empty.
pub(crate) fn selector(object: &RowSubject<'_>, path: &str) -> String {
    let text = object.get(path).map(selector_text::label_selector);
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| NONE.to_owned())
}

/// Returns the IPs, or else the host names, of the load balancers in an object's status.
pub(crate) fn load_balancers<'a>(object: &RowSubject<'a>) -> BTreeSet<&'a str> {
    let points = object.list("status.loadBalancer.ingress");
    let points = points.map(|point| point.text_or("ip", point.text("hostname")));
    points.filter(|point| !point.is_empty()).collect()
}

fn external_address(service: &RowSubject<'_>) -> String {
    let extra = service.texts("spec.externalIPs");
    match service.text("spec.type") {
        "ClusterIP" | "NodePort" if extra.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => extra.join(","),
        "LoadBalancer" => {
            let balancers = load_balancers(service).into_iter();
            let all: Vec<&str> = balancers.chain(extra).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(service: &RowSubject<'_>) -> String {
    let ports = service.list("spec.ports").map(|port| {
        let (number, protocol) = (port.number("port"), port.text("protocol"));
        match port.number("nodePort") {
            1.. => format!("{number}:{}/{protocol}", port.number("nodePort")),
            _ => format!("{number}/{protocol}"),
        }
    });
    let text = ports.collect::<Vec<_>>().join(",");
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

/// Returns ready addresses with each of their ports, or alone if a subset has no ports, as for headless services.
fn ready_addresses(endpoints: &RowSubject<'_>) -> String {
    let mut all = Vec::new();
    for subset in endpoints.list("subsets") {
        let addresses = || subset.list("addresses").map(|address| address.text("ip"));
        if subset.count("ports") == 0 {
            all.extend(addresses().map(str::to_owned));
        }
        for port in subset.list("ports") {
            let port = port.number("port");
            all.extend(addresses().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    let none = if endpoints.count("subsets") == 0 {
        NONE
    } else {
        ""
    };
    first_few(all, none)
}

fn parent(address: &RowSubject<'_>) -> String {
    let Some(parent) = address.get("spec.parentRef").map(|it| address.part(it)) else {
        return NONE.to_owned();
    };
    let resource = match parent.text("group") {
        "" => parent.text("resource").to_owned(),
        group => format!("{}.{group}", parent.text("resource")),
    };
    let resource = resource.to_lowercase();
    let place = [
        resource.as_str(),
        parent.text("namespace"),
        parent.text("name"),
    ];
    let place = place.into_iter().filter(|part| !part.is_empty());
    place.collect::<Vec<_>>().join("/")
}

//! The warnings about ports of containers that are in each other's way.
//!
//! Follows `warningsForPodSpecAndMeta` in pkg/api/pod/warnings.go of Kubernetes 1.36.

use std::collections::HashMap;

use ringwatch_apimachinery::go_text::quoted;
use ringwatch_registry::context::WARNINGS_MAX;

use crate::validation::field::Field;

/// Adds warnings about ports of a pod that are defined twice, up to a bound.
pub(super) fn defined_twice(spec: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let mut earlier = EarlierPorts::default();
    let mut found = 0;
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            for port in container.items("ports") {
                let own = PortDefinition::read(&port);
                if !own.address.is_empty() && own.on_host == 0 {
                    // As Go prints the port.
                    let (name, number) = (port.at("name").text(), own.number.unwrap_or(0));
                    warnings.push(format!(
                        "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{} HostIP:{}}}",
                        own.field, own.protocol, own.address
                    ));
                }
                for other in earlier.in_the_way_of(&own, WARNINGS_MAX - found) {
                    let (word, field) = (own.word_for(other), &other.field);
                    let own = &own.field;
                    warnings.push(format!("{own}: {word} port definition with {field}"));
                    found += 1;
                }
                if found == WARNINGS_MAX {
                    return;
                }
                earlier.add(own);
            }
        }
    }
}

/// Adds warnings about ports of a pod that have the name of another one.
pub(super) fn named_twice(spec: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let mut first = HashMap::new();
    let mut found = 0;
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            for port in container.items("ports") {
                let name = port.at("name").text();
                let own = port.field();
                if name.is_empty() {
                    continue;
                }
                if let Some(other) = first.get(name).filter(|_| found < WARNINGS_MAX) {
                    found += 1;
                    warnings.push(format!(
                        "{own}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                        quoted(name)
                    ));
                } else {
                    first.entry(name).or_insert(own);
                }
            }
        }
    }
}

/// A port of a container, and that of the host which leads to it.
struct PortDefinition<'v> {
    number: Option<i64>,
    protocol: &'v str,
    /// 0 if there is none.
    on_host: i64,
    address: &'v str,
    field: String,
}

impl<'v> PortDefinition<'v> {
    fn read(port: &Field<'v, '_>) -> Self {
        Self {
            number: port.at("containerPort").number(),
            protocol: port.at("protocol").text(),
            on_host: port.at("hostPort").number().unwrap_or(0),
            address: port.at("hostIP").text(),
            field: port.field(),
        }
    }

    /// kube-apiserver's word for the conflict with another port.
    fn word_for(&self, other: &Self) -> &'static str {
        if (self.on_host, self.address) == (other.on_host, other.address) {
            "duplicate"
        } else if self.on_host == 0 || other.on_host == 0 {
            "overlapping"
        } else {
            "dangerously ambiguous"
        }
    }
}

/// The ports met so far, filed so that those in the way of another one are found without a look at the rest.
#[derive(Default)]
struct EarlierPorts<'v> {
    all: Vec<PortDefinition<'v>>,
    filed: HashMap<PortFile<'v>, Vec<usize>>,
}

/// The number and protocol of a port, and which ports of the host it is filed by.
type PortFile<'v> = ((Option<i64>, &'v str), HostScope<'v>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum HostScope<'v> {
    All,
    HostPort(i64),
    HostAddress(i64, &'v str),
}

impl<'v> EarlierPorts<'v> {
    fn add(&mut self, port: PortDefinition<'v>) {
        let (host, address) = (port.on_host, port.address);
        let files = [
            HostScope::All,
            HostScope::HostPort(host),
            HostScope::HostAddress(host, address),
        ];
        for file in files {
            let file = ((port.number, port.protocol), file);
            self.filed.entry(file).or_default().push(self.all.len());
        }
        self.all.push(port);
    }

    /// Returns the first ports that are in the way of another one, in their order.
    fn in_the_way_of(&self, port: &PortDefinition<'v>, most: usize) -> Vec<&PortDefinition<'v>> {
        let host = port.on_host;
        let files: &[HostScope<'_>] = match (host, port.address) {
            (0, _) => &[HostScope::All],
            (_, "") => &[HostScope::HostPort(0), HostScope::HostPort(host)],
            (_, address) => &[
                HostScope::HostPort(0),
                HostScope::HostAddress(host, ""),
                HostScope::HostAddress(host, address),
            ],
        };
        let found = files
            .iter()
            .filter_map(|file| self.filed.get(&((port.number, port.protocol), *file)));
        let mut found: Vec<usize> = found
            .flat_map(|file| file.iter().take(most).copied())
            .collect();
        found.sort_unstable();
        let found = found.into_iter().take(most);
        found.map(|place| &self.all[place]).collect()
    }
}

//! The EndpointSlices of a Service: which have to be created, changed and deleted for the endpoints that are wanted.
//!
//! Each has the endpoints of one family that offer the same ports. As few as possible change: an endpoint stays in the
//! slice in which it is, new ones go into slices that change anyway, then into one that has room for all of them, and
//! then into new slices.
//!
//! Source of the semantics: `k8s.io/endpointslice/reconciler.go` 1.36.

use std::collections::BTreeMap;

use ringwatch_apimachinery::accessor;
use ringwatch_apimachinery::path;
use serde_json::{Value, json};

use super::of_pod::AddressFamily;

/// The labels of slices by which a Service finds its own.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The ports of a slice, by which slices are told apart: number, name, protocol and that of the application.
type SlicePorts = Vec<(Option<i64>, String, String, Option<String>)>;

/// The addresses, the host name and what an endpoint refers to, by which endpoints are told apart.
type EndpointKey = (Vec<String>, String, String, String);

/// The properties that all slices of a Service have.
#[derive(Clone, Debug)]
pub(super) struct SliceTemplate {
    /// The name of the Service, in whose namespace the slices are.
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) labels: Value,
    pub(super) annotations: Value,
    /// The reference to the owner.
    pub(super) owner: Value,
    /// Maximum number of endpoints of a slice.
    pub(super) endpoints_max: usize,
    /// True if there is an empty slice for want of endpoints.
    pub(super) has_placeholder: bool,
}

/// The endpoints that are wanted in one family.
#[derive(Clone, Debug, Default)]
pub(super) struct WantedEndpoints(BTreeMap<SlicePorts, EndpointsOfPorts>);

/// The endpoints that offer the same ports.
#[derive(Clone, Debug, Default)]
struct EndpointsOfPorts {
    ports: Vec<Value>,
    endpoints: BTreeMap<EndpointKey, Value>,
}

/// The slices that have to be written. Those to be changed have the names and uids of what they are now.
#[derive(Clone, Debug, Default)]
pub(super) struct SliceChanges {
    pub(super) create: Vec<Value>,
    pub(super) update: Vec<Value>,
    pub(super) delete: Vec<Value>,
}

impl WantedEndpoints {
    /// Adds an endpoint that offers these ports.
    pub(super) fn add(&mut self, ports: Vec<Value>, endpoint: Value) {
        let of_ports = self.0.entry(ports_key(&ports)).or_default();
        of_ports.ports = ports;
        of_ports.endpoints.insert(endpoint_key(&endpoint), endpoint);
    }
}

impl SliceTemplate {
    /// Returns what has to be written, so that these endpoints of a family are in slices, where now these are.
    pub(super) fn changes(
        &self,
        family: AddressFamily,
        wanted: WantedEndpoints,
        existing: Vec<Value>,
    ) -> SliceChanges {
        let mut changes = SliceChanges::default();
        let mut by_ports: BTreeMap<SlicePorts, Vec<Value>> = BTreeMap::new();
        let mut foreign = Vec::new();
        let count = existing.len();
        for slice in existing {
            if slice["addressType"] == family.name() && self.owns(&slice) {
                let key = ports_key(path::list(&slice, "ports"));
                by_ports.entry(key).or_default().push(slice);
            } else {
                foreign.push(slice);
            }
        }
        for (key, of_ports) in wanted.0 {
            let slices = by_ports.remove(&key).unwrap_or_default();
            self.fill(family, of_ports, slices, &mut changes);
        }
        changes.delete.extend(by_ports.into_values().flatten());
        let deleted = changes.delete.len().saturating_add(foreign.len());
        if self.has_placeholder && deleted == count && changes.create.is_empty() {
            match changes.delete.as_slice() {
                [only] if foreign.is_empty() && self.is_placeholder(only) => changes.delete.clear(),
                _ => changes.create.push(self.slice(family, Vec::new())),
            }
        }
        self.reuse(&mut changes);
        changes.delete.extend(foreign);
        changes
    }

    /// Puts endpoints that offer the same ports into the slices of these ports.
    fn fill(
        &self,
        family: AddressFamily,
        EndpointsOfPorts { ports, endpoints }: EndpointsOfPorts,
        slices: Vec<Value>,
        changes: &mut SliceChanges,
    ) {
        let mut wanted = endpoints;
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        for mut slice in slices {
            let before = path::list(&slice, "endpoints");
            let stay = before
                .iter()
                .filter_map(|it| wanted.remove(&endpoint_key(it)));
            let stay: Vec<Value> = stay.collect();
            let is_same = stay.len() == before.len() && stay.iter().zip(before).all(is_equal);
            if is_same && self.is_described(&slice) {
                unchanged.push(slice);
            } else if stay.is_empty() && !before.is_empty() {
                changes.delete.push(slice);
            } else {
                slice["endpoints"] = stay.into();
                self.describe(&mut slice);
                changed.push(slice);
            }
        }
        let mut left = wanted.into_values().peekable();
        // The fullest first.
        changed.sort_by_key(|it| std::cmp::Reverse(count(it)));
        for slice in &mut changed {
            self.take(slice, &mut left);
        }
        while left.peek().is_some() {
            let (needed, room) = (left.len(), |it: &Value| self.room(it));
            let fitting = unchanged.iter().enumerate();
            let fitting = fitting.filter(|(_, it)| room(it) >= needed);
            let fullest = fitting.min_by_key(|(_, it)| room(it));
            let mut slice = match fullest.map(|(index, _)| index) {
                Some(index) => unchanged.swap_remove(index),
                None => self.slice(family, ports.clone()),
            };
            self.take(&mut slice, &mut left);
            if accessor::text(&slice, "name").is_empty() {
                changes.create.push(slice);
            } else {
                changed.push(slice);
            }
        }
        changes.update.extend(changed);
    }

    /// Turns slices that would be deleted into those that would be created.
    fn reuse(&self, changes: &mut SliceChanges) {
        while !changes.create.is_empty()
            && let Some(mut slice) = changes.delete.pop()
            && let Some(new) = changes.create.pop()
        {
            for member in ["endpoints", "ports"] {
                slice[member] = new[member].clone();
            }
            self.describe(&mut slice);
            changes.update.push(slice);
        }
    }

    /// Moves as many endpoints into a slice as it has room for.
    fn take(&self, slice: &mut Value, endpoints: &mut impl Iterator<Item = Value>) {
        let added = endpoints.take(self.room(slice));
        // Stored lists that are empty are null.
        match slice["endpoints"].as_array_mut() {
            Some(taken) => taken.extend(added),
            None => slice["endpoints"] = added.collect(),
        }
    }

    fn room(&self, slice: &Value) -> usize {
        self.endpoints_max.saturating_sub(count(slice))
    }

    fn owns(&self, slice: &Value) -> bool {
        let mut owners = path::list(slice, "metadata.ownerReferences").iter();
        owners.any(|it| it["uid"] == self.owner["uid"] && it["kind"] == self.owner["kind"])
    }

    fn is_placeholder(&self, slice: &Value) -> bool {
        count(slice) == 0 && path::list(slice, "ports").is_empty() && self.is_described(slice)
    }

    fn is_described(&self, slice: &Value) -> bool {
        let is = |member: &str, value: &Value| {
            let value = value.as_object().filter(|it| !it.is_empty());
            let found = slice["metadata"][member].as_object();
            found.filter(|it| !it.is_empty()) == value
        };
        is("labels", &self.labels)
            && (self.annotations.is_null() || is("annotations", &self.annotations))
    }

    fn describe(&self, slice: &mut Value) {
        slice["metadata"]["labels"] = self.labels.clone();
        if !self.annotations.is_null() {
            slice["metadata"]["annotations"] = self.annotations.clone();
        }
    }

    /// Returns a new slice without endpoints.
    fn slice(&self, family: AddressFamily, ports: Vec<Value>) -> Value {
        let mut slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": self.namespace,
                "generateName": format!("{}-", self.name),
                "ownerReferences": [self.owner],
            },
            "addressType": family.name(),
            "endpoints": [],
            "ports": ports,
        });
        self.describe(&mut slice);
        slice
    }
}

fn count(slice: &Value) -> usize {
    path::list(slice, "endpoints").len()
}

/// Returns true if an endpoint is the same as the one that a slice has, but for the revision of what it refers to.
fn is_equal((one, other): (&Value, &Value)) -> bool {
    let mut other = other.clone();
    drop(path::remove(&mut other, "targetRef.resourceVersion"));
    *one == other
}

fn ports_key(ports: &[Value]) -> SlicePorts {
    let text = |port: &Value, member: &str| path::text(port, member).to_owned();
    let ports = ports.iter().map(|port| {
        (
            port["port"].as_i64(),
            text(port, "name"),
            text(port, "protocol"),
            port["appProtocol"].as_str().map(str::to_owned),
        )
    });
    let mut ports: SlicePorts = ports.collect();
    ports.sort();
    ports
}

fn endpoint_key(endpoint: &Value) -> EndpointKey {
    let addresses = path::list(endpoint, "addresses").iter();
    let addresses = addresses.filter_map(Value::as_str).map(str::to_owned);
    let mut addresses: Vec<String> = addresses.collect();
    addresses.sort();
    let text = |path: &str| path::text(endpoint, path).to_owned();
    (
        addresses,
        text("hostname"),
        text("targetRef.namespace"),
        text("targetRef.name"),
    )
}

#[cfg(test)]
mod tests;

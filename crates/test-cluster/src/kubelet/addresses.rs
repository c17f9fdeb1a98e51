//! The addresses of pods: one each, out of one network, that are free again when their pods have ended or gone.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringwatch_apimachinery::path;
use serde_json::Value;

use crate::owned::NamespacedName;
use crate::pods;

/// The first address for pods: that of the network, of the node and a few more are left out.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 10);

/// The last address for pods.
const LAST: Ipv4Addr = Ipv4Addr::new(10, 244, 255, 254);

/// The addresses that pods have.
#[derive(Debug, Default)]
pub(super) struct Addresses(Mutex<TakenAddresses>);

/// The pod of each address that is taken, and the address of each of these pods.
#[derive(Debug, Default)]
struct TakenAddresses {
    by_address: BTreeMap<Ipv4Addr, NamespacedName>,
    by_pod: HashMap<NamespacedName, Ipv4Addr>,
    /// The address that was given out last: one that was freed just now is not given out again at once.
    last: Option<Ipv4Addr>,
}

impl Addresses {
    /// Forgets who has which.
    pub(super) fn reset(&self) {
        let mut taken = self.taken();
        let last = taken.last;
        *taken = TakenAddresses {
            last,
            ..TakenAddresses::default()
        };
    }

    /// Notes the address that a pod has, or that one has ended and needs it no more.
    pub(super) fn note(&self, pod_name: &NamespacedName, pod: &Value) {
        let Ok(address) = path::text(pod, "status.podIP").parse::<Ipv4Addr>() else {
            return;
        };
        if pods::has_ended(pod) {
            self.free(pod_name);
        } else if (FIRST..=LAST).contains(&address) {
            self.taken().take(address, pod_name);
        }
    }

    /// Returns an address for a pod, the same again until it is freed; `None` if all are taken.
    pub(super) fn allocate(&self, pod_name: &NamespacedName) -> Option<Ipv4Addr> {
        let mut taken = self.taken();
        if let Some(address) = taken.by_pod.get(pod_name) {
            return Some(*address);
        }
        let start = taken.last.map_or(FIRST, next);
        let address = taken.free_from(start).or_else(|| taken.free_from(FIRST))?;
        taken.take(address, pod_name);
        taken.last = Some(address);
        Some(address)
    }

    /// Frees the address of a pod, if it has one.
    pub(super) fn free(&self, pod_name: &NamespacedName) {
        let mut taken = self.taken();
        if let Some(address) = taken.by_pod.remove(pod_name) {
            taken.by_address.remove(&address);
        }
    }

    fn taken(&self) -> MutexGuard<'_, TakenAddresses> {
        // No step between the two maps can fail.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakenAddresses {
    fn take(&mut self, address: Ipv4Addr, pod_name: &NamespacedName) {
        if let Some(before) = self.by_pod.insert(pod_name.clone(), address) {
            self.by_address.remove(&before);
        }
        self.by_address.insert(address, pod_name.clone());
    }

    /// Returns the first free address from this one on; `None` if there is none up to the last.
    fn free_from(&self, first: Ipv4Addr) -> Option<Ipv4Addr> {
        let mut free = first;
        for taken in self.by_address.range(first..).map(|(address, _)| *address) {
            if taken != free {
                break;
            }
            free = next(free);
        }
        (FIRST..=LAST).contains(&free).then_some(free)
    }
}

fn next(address: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(address).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(number: u32) -> NamespacedName {
        ("n".to_owned(), number.to_string())
    }

    #[test]
    fn each_pod_has_an_address_of_its_own_and_freed_ones_come_last() {
        let addresses = Addresses::default();
        let first = addresses.allocate(&name(0));
        assert_eq!(first, Some(FIRST));
        assert_eq!(addresses.allocate(&name(0)), first, "the same again");
        addresses.free(&name(0));
        assert_eq!(addresses.allocate(&name(1)), Some(next(FIRST)));
        let noted = json!({"status": {"podIP": next(next(FIRST)).to_string()}});
        addresses.note(&name(2), &noted);
        assert_eq!(
            addresses.allocate(&name(3)),
            Some(next(next(next(FIRST)))),
            "one that a pod has is taken"
        );
    }

    #[test]
    fn all_addresses_are_given_out_and_those_of_ended_pods_again() {
        let addresses = Addresses::default();
        let all = u32::from(LAST) - u32::from(FIRST) + 1;
        for pod in 0..all {
            assert!(addresses.allocate(&name(pod)).is_some(), "{pod}");
        }
        assert_eq!(addresses.allocate(&name(all)), None);
        let ended = json!({"status": {"podIP": "10.244.1.1", "phase": "Succeeded"}});
        let pod = u32::from(Ipv4Addr::new(10, 244, 1, 1)) - u32::from(FIRST);
        addresses.note(&name(pod), &ended);
        let again = Some(Ipv4Addr::new(10, 244, 1, 1));
        assert_eq!(addresses.allocate(&name(all)), again);
    }
}

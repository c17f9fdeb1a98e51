//! The end of an allocation: with a device that a ResourceClaim gives back goes the status of the device, so that
//! clients which remove an allocation need not know of it.
//!
//! Follows pkg/registry/resource/resourceclaim/strategy.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::path::{get_mut, list, remove};
use serde_json::Value;

use super::status_validation::device_id;
use crate::validation::field::Field;

const STATUSES: &str = "status.devices";

/// Removes the statuses of the devices that the claim had and has no more. Follows `dropDeallocatedStatusDevices`.
pub(super) fn drop_statuses(claim: &mut Value, old: &Value) {
    let given_back: HashSet<_> = {
        let now: HashSet<_> = devices(claim).collect();
        devices(old).filter(|it| !now.contains(it)).collect()
    };
    let Some(Value::Array(statuses)) = get_mut(claim, STATUSES) else {
        return;
    };
    statuses.retain(|it| !given_back.contains(&device_id(&Field::root(it))));
    if statuses.is_empty() {
        remove(claim, STATUSES);
    }
}

/// Returns what tells the allocated devices of a claim from each other.
fn devices(claim: &Value) -> impl Iterator<Item = [&str; 4]> {
    let results = list(claim, "status.allocation.devices.results").iter();
    results.map(|it| device_id(&Field::root(it)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::status_validation::status;
    use super::*;

    fn device(name: &str, share: Option<&str>) -> Value {
        json!({"driver": "d", "pool": "p", "device": name, "shareID": share})
    }

    fn claim(allocated: &[Value], statuses: &[Value]) -> Value {
        json!({"status": {"devices": statuses, "allocation": {"devices": {"results": allocated}}}})
    }

    #[test]
    fn a_removed_allocation_takes_the_statuses_of_its_devices_along() {
        let both = [device("a", None), device("b", None)];
        let old = claim(&both, &both);
        let mut new = json!({"status": {"devices": both}});
        drop_statuses(&mut new, &old);
        assert_eq!(new, json!({"status": {}}));
        assert_eq!(status(&new, &old), []);
    }

    #[test]
    fn statuses_of_other_devices_stay() {
        let share = Some("01234567-89ab-cdef-0123-456789abcdef");
        let old = claim(&[device("a", share), device("b", None)], &[]);
        let statuses = [
            device("a", share),
            device("a", None),
            device("b", None),
            device("c", None),
        ];
        let mut new = claim(&[device("b", None)], &statuses);
        drop_statuses(&mut new, &old);
        assert_eq!(new["status"]["devices"], json!(statuses[1..]));
        let before = new.clone();
        drop_statuses(&mut new, &json!({}));
        assert_eq!(new, before, "nothing was allocated");
    }
}

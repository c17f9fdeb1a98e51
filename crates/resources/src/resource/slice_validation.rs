//! ResourceSlices: node, driver and pool name are immutable. Nodes may write only their own, so none makes its slice
//! another's.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use crate::validation::field::{Errors, Field};

/// Checks an update of a ResourceSlice: node, driver and pool name are immutable. Follows
/// `ValidateResourceSliceUpdate`.
pub(crate) fn update(slice: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    for field in ["spec.pool.name", "spec.driver", "spec.nodeName"] {
        slice.at(field).must_stay(&old.at(field), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slice_stays_where_it_is() {
        let old = json!({"spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1}, "devices": []}});
        for (path, value, refused) in [
            ("/spec/nodeName", json!("other"), "spec.nodeName"),
            ("/spec/nodeName", json!(null), "spec.nodeName"),
            ("/spec/driver", json!("other"), "spec.driver"),
            ("/spec/pool/name", json!("other"), "spec.pool.name"),
            ("/spec/pool/generation", json!(2), ""),
        ] {
            let mut slice = old.clone();
            *slice.pointer_mut(path).expect("a field") = value;
            let mut errors = Errors::new();
            update(&Field::root(&slice), &Field::root(&old), &mut errors);
            let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields.join(","), refused, "{path}");
        }
    }
}

//! The fields that a write can change, which depend on the subresource through which it comes.

use super::set::FieldSet;

/// The fields that a write can change. Of the others, which the server resets, it manages none.
#[derive(Clone, Debug)]
pub(super) enum Writable {
    /// All fields but those at and below these paths.
    AllBut(FieldSet),
    /// The fields at and below these places, and the objects and items on the way there. A `*` in a place is any step.
    Only(&'static [&'static str]),
}

impl Writable {
    /// Removes the fields that cannot be changed from a set.
    pub(super) fn limit(&self, fields: &mut FieldSet) {
        match self {
            Self::AllBut(paths) => fields.subtract_recursively(paths),
            Self::Only(places) => fields.keep_towards(places),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_limited_to_places_and_the_way_there() {
        let all = json!({
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {
                "f:containers": {".": {}, "k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {},
                    "f:resources": {"f:limits": {"f:cpu": {}}}}},
                "f:nodeName": {},
            },
            "f:status": {},
        });
        let limited = |places: &'static [&'static str]| {
            let mut fields = FieldSet::from_json(&all).expect("a set");
            Writable::Only(places).limit(&mut fields);
            fields.to_json()
        };
        assert_eq!(
            limited(&["spec.containers.*.resources", "spec.initContainers"]),
            json!({"f:spec": {"f:containers": {".": {}, "k:{\"name\":\"c\"}": {".": {},
                "f:resources": {"f:limits": {"f:cpu": {}}}}}}})
        );
        assert_eq!(limited(&["spec"])["f:spec"], all["f:spec"]);
        assert_eq!(limited(&["spec.ephemeralContainers"]), json!({}));
    }
}

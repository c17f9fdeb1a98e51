//! The keys of a type's objects by the value of a field, in a persistent (copy-on-write) ordered map.
//!
//! ```text
//!  spec.nodeName:  ""   --> { /pods/a/new }
//!                  "n1" --> { /pods/a/one, /pods/b/two }
//! ```
//!
//! It holds keys, not objects. So it changes only when an object comes or goes or its value of the field changes; the
//! node of a pod is set once. Clones share their nodes, as those of the map of objects do: each event has the index of
//! its own state.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::meta::Object;

/// Estimate of the bytes that an object takes in an index: the key's reference, and its part of the set's nodes.
pub(crate) const INDEXED_BYTES: u64 = 40;

/// The index of a field.
#[derive(Clone, Debug)]
pub(crate) struct FieldIndex {
    /// The name of the field.
    field: Arc<str>,
    /// The keys of each value; none of the sets is empty.
    keys: OrdMap<Arc<str>, OrdSet<Arc<str>>>,
}

impl FieldIndex {
    /// Creates the index of a field, without objects.
    pub(crate) fn new(field: &str) -> Self {
        Self {
            field: field.into(),
            keys: OrdMap::new(),
        }
    }

    /// Returns the name of the field.
    pub(crate) fn field(&self) -> &Arc<str> {
        &self.field
    }

    /// Moves a key from the value of the old object to that of the new one; `None` if there is no such object.
    pub(crate) fn change(&mut self, key: &Arc<str>, was: Option<&Object>, is: Option<&Object>) {
        let (was, is) = (was.map(|it| self.value(it)), is.map(|it| self.value(it)));
        if was == is {
            return;
        }
        if let Some(was) = was
            && let Some(keys) = self.keys.get_mut(was)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.keys.remove(was);
            }
        }
        let Some(is) = is else {
            return;
        };
        match self.keys.get_mut(is) {
            Some(keys) => {
                keys.insert(Arc::clone(key));
            }
            None => {
                self.keys.insert(is.into(), OrdSet::unit(Arc::clone(key)));
            }
        }
    }

    /// Returns the keys of a value from a bound on, in order.
    pub(crate) fn keys<'a>(
        &'a self,
        value: &str,
        from: Bound<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let keys = self.keys.get(value).into_iter();
        keys.flat_map(move |keys| keys.range::<_, str>((from, Bound::Unbounded)))
    }

    /// Returns an object's value of the field; empty if it has none.
    fn value<'a>(&self, object: &'a Object) -> &'a str {
        object.attributes().field(&self.field).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::meta::{FieldPath, FieldSchema};

    /// Clients choose the values, and have time for any number of them.
    #[test]
    fn a_value_that_no_object_has_any_more_is_not_kept() {
        let schema = FieldSchema::new([FieldPath {
            name: "spec.nodeName".into(),
            default: "",
            from: &[],
            indexed: true,
        }]);
        let mut index = FieldIndex::new("spec.nodeName");
        let key: Arc<str> = "/pods/d/a".into();
        let mut was = None;
        for node in 0..10 {
            let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
                "spec": {"nodeName": format!("n{node}")}});
            let is = Object::from_value(&pod, 1, &schema).expect("an object");
            index.change(&key, was.as_ref(), Some(&is));
            assert_eq!(index.keys.len(), 1);
            was = Some(is);
        }
        index.change(&key, was.as_ref(), None);
        assert!(index.keys.is_empty());
    }
}

//! The selectors of a list or watch of converted objects, in two parts: those that hold of an object in every version,
//! by which stored objects are selected, and the others, which look at the object as it is served.

use ringwatch::meta::{LabelSelector, Object};
use ringwatch::storage::SelectionPredicate;

/// The fields that conversion leaves as they are.
const IDENTITY: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// The selection of a list or watch of converted objects.
#[derive(Debug)]
pub(super) struct Selection {
    /// The selection of stored objects: by what is the same in all versions.
    stored: SelectionPredicate,
    /// The whole selection, of objects as they are served; `None` if the stored objects are selected exactly.
    served: Option<SelectionPredicate>,
}

impl Selection {
    /// Splits a selection. `changes_content` is true if a conversion may change labels and fields.
    pub(super) fn new(predicate: &SelectionPredicate, changes_content: bool) -> Self {
        if !changes_content {
            return Self {
                stored: predicate.clone(),
                served: None,
            };
        }
        let names = predicate.field.names();
        let exact = predicate.label.is_empty() && names.iter().all(|name| IDENTITY.contains(name));
        let stored = SelectionPredicate {
            label: LabelSelector::default(),
            field: predicate.field.of_fields(&IDENTITY),
            ..predicate.clone()
        };
        Self {
            stored,
            served: (!exact).then(|| predicate.clone()),
        }
    }

    /// Returns the selection of stored objects, which may select more.
    pub(super) fn stored(&self) -> &SelectionPredicate {
        &self.stored
    }

    /// Returns true if objects must be converted before they can be selected.
    pub(super) fn looks_at_content(&self) -> bool {
        self.served.is_some()
    }

    /// Returns true if an object is selected, given as it is served.
    pub(super) fn selects(&self, served: &Object) -> bool {
        let predicate = self.served.as_ref();
        predicate.is_none_or(|it| it.matches(served.attributes()))
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::meta::FieldSelector;

    use super::*;

    #[test]
    fn stored_objects_are_selected_by_their_names_alone() {
        for (label, field, stored, exact) in [
            ("", "", "", true),
            ("", "metadata.name=a", "metadata.name=a", true),
            ("a=b", "", "", false),
            (
                "",
                "host=x,metadata.namespace!=b",
                "metadata.namespace!=b",
                false,
            ),
        ] {
            let predicate = SelectionPredicate {
                label: LabelSelector::parse(label).expect("a selector"),
                field: FieldSelector::parse(field).expect("a selector"),
                limit: 7,
                ..SelectionPredicate::default()
            };
            let selection = Selection::new(&predicate, true);
            let inner = selection.stored();
            assert!(inner.label.is_empty());
            assert_eq!((inner.field.to_string().as_str(), inner.limit), (stored, 7));
            assert_eq!(selection.looks_at_content(), !exact, "{label} {field}");
            let selection = Selection::new(&predicate, false);
            assert_eq!(selection.stored().label.to_string(), label);
            assert_eq!(selection.stored().field.to_string(), field);
            assert!(!selection.looks_at_content());
        }
    }
}

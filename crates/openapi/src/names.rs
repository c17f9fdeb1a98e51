//! The names of the schemas of a document.

use std::collections::{BTreeMap, BTreeSet};

use ringwatch_apimachinery::GroupVersion;

use super::built_in::Index;
use super::operations::Type;

/// The names of schemas, and which of them the document has to contain.
#[derive(Debug)]
pub(super) struct Names<'a> {
    pub(super) index: &'a Index<'a>,
    pub(super) wanted: BTreeSet<String>,
    /// The kinds that are not built in, by the names of their schemas.
    pub(super) custom: BTreeMap<String, (GroupVersion, String)>,
}

impl<'a> Names<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Self {
        Self {
            index,
            wanted: BTreeSet::new(),
            custom: BTreeMap::new(),
        }
    }

    /// Returns the name of a type's schema, which the document will contain; `None` for text.
    pub(super) fn require(&mut self, about: &Type) -> Option<String> {
        let name = match about {
            Type::Text => return None,
            Type::Named(name) => (*name).to_owned(),
            Type::Kind(group_version, kind) => match self.index.name(group_version, kind) {
                Some(name) => name.to_owned(),
                None => {
                    let name = of_custom(group_version, kind);
                    let kind = (group_version.clone(), kind.clone());
                    self.custom.insert(name.clone(), kind);
                    name
                }
            },
        };
        self.wanted.insert(name.clone());
        Some(name)
    }
}

/// Returns the name of the schema of a custom kind, such as `com.example.v1.Widget`.
pub(super) fn of_custom(group_version: &GroupVersion, kind: &str) -> String {
    let GroupVersion { group, version } = group_version;
    let group: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", group.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_with_the_last_of_the_group() {
        let version = GroupVersion::new("peers.example.com", "v1");
        assert_eq!(of_custom(&version, "Widget"), "com.example.peers.v1.Widget");
    }
}

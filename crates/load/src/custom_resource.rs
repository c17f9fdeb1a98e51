//! The name of a custom resource on the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A custom resource in one of its versions, written as kubectl does: `widgets.v1.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomResource {
    pub(crate) plural: String,
    pub(crate) version: String,
    pub(crate) group: String,
}

impl CustomResource {
    /// Returns the path of the group's version.
    pub(crate) fn root(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }

    /// Returns the path of the collection in a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
    }
}

impl FromStr for CustomResource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Each part is put into paths as it is.
        let is_path_safe = |part: &str| {
            let mut bytes = part.bytes();
            !part.is_empty()
                && bytes
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.".contains(&it))
        };
        let mut parts = text.splitn(3, '.');
        match [parts.next(), parts.next(), parts.next()] {
            [Some(plural), Some(version), Some(group)]
                if [plural, version, group].into_iter().all(is_path_safe) =>
            {
                Ok(Self {
                    plural: plural.to_owned(),
                    version: version.to_owned(),
                    group: group.to_owned(),
                })
            }
            _ => Err(format!(
                "{text:?} does not look like \"widgets.v1.example.com\""
            )),
        }
    }
}

impl fmt::Display for CustomResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plural,
            version,
            group,
        } = self;
        write!(f, "{plural}.{version}.{group}")
    }
}

impl Serialize for CustomResource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_resource_is_named_with_version_and_group() {
        let name: CustomResource = "widgets.v1beta1.a.example.com".parse().expect("a name");
        assert_eq!(name.to_string(), "widgets.v1beta1.a.example.com");
        assert_eq!(
            name.in_namespace("n"),
            "/apis/a.example.com/v1beta1/namespaces/n/widgets"
        );
        for wrong in [
            "",
            "widgets",
            "widgets.v1",
            "widgets..example.com",
            "a/b.v1.c",
            "w.v1.c?d",
        ] {
            assert!(wrong.parse::<CustomResource>().is_err(), "{wrong}");
        }
    }
}

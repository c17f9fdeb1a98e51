//! API groups and their versions, as `schema.GroupVersion` in Go.

use std::fmt;

/// An API group and version, as `schema.GroupVersion` in Go; the group is empty for the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// The API group, such as `apps`.
    pub group: String,
    /// The version of the group, such as `v1`.
    pub version: String,
}

impl GroupVersion {
    /// Makes a group version from its two names.
    #[must_use]
    pub fn new(group: &str, version: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
        }
    }

    /// Reads an `apiVersion`, as `schema.ParseGroupVersion`: `None` if it has more than one slash.
    ///
    /// ```
    /// use ringwatch_apimachinery::GroupVersion;
    ///
    /// assert_eq!(GroupVersion::parse("apps/v1"), Some(GroupVersion::new("apps", "v1")));
    /// assert_eq!(GroupVersion::parse("v1"), Some(GroupVersion::new("", "v1")));
    /// assert_eq!(GroupVersion::parse("a/b/c"), None);
    /// ```
    #[must_use]
    pub fn parse(api_version: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (!version.contains('/')).then(|| Self::new(group, version))
    }
}

/// Writes `v1` or `apps/v1`, as in `apiVersion`.
impl fmt::Display for GroupVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            formatter.write_str(&self.version)
        } else {
            write!(formatter, "{}/{}", self.group, self.version)
        }
    }
}

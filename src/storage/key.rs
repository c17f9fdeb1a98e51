//! Keys of objects and lists.
//!
//! A key never leads out of the prefix of its type, and the prefix of a list ends with a slash, so that `pods` does not
//! include `podsx`.

use std::fmt;

/// An error about a key that is empty or could lead out of the prefix of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey(pub String);

impl std::error::Error for InvalidKey {}

impl fmt::Display for InvalidKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self.0.as_str(), "" | "/") {
            "empty"
        } else {
            "invalid"
        };
        // As kube-apiserver names the place of a list.
        let key = self.0.strip_suffix('/').filter(|key| !key.is_empty());
        write!(formatter, "{kind} key: {:?}", key.unwrap_or(&self.0))
    }
}

/// Joins the store's prefix and a key after checking it. The key of a recursive list is made to end with a `/`.
///
/// # Errors
/// [`InvalidKey`] when the key is empty or has a segment that is empty, `.` or `..`.
///
/// ```
/// use ringwatch::storage::prepare_key;
///
/// let key = prepare_key("/registry", "/pods/default", true)?;
/// assert_eq!(key, "/registry/pods/default/");
/// assert!(prepare_key("/registry", "/pods/../secrets/a", false).is_err());
/// # Ok::<(), ringwatch::storage::InvalidKey>(())
/// ```
pub fn prepare_key(prefix: &str, key: &str, recursive: bool) -> Result<String, InvalidKey> {
    let inner = key.strip_prefix('/').unwrap_or(key);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner
        .split('/')
        .any(|segment| matches!(segment, "" | "." | ".."))
    {
        return Err(InvalidKey(key.to_owned()));
    }
    let end = if recursive || key.ends_with('/') {
        "/"
    } else {
        ""
    };
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    Ok([prefix, "/", inner, end].concat())
}

/// Returns true if `key` lies at or below `prefix`, at a segment boundary.
#[must_use]
pub fn has_path_prefix(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_joined_below_the_prefix() {
        for (prefix, key, recursive, full) in [
            ("/registry", "/pods/a/b", false, "/registry/pods/a/b"),
            ("/registry/", "pods", false, "/registry/pods"),
            ("/registry", "/pods", true, "/registry/pods/"),
            ("/registry", "/pods/", true, "/registry/pods/"),
            ("/registry", "/pods/", false, "/registry/pods/"),
            ("", "/pods/..a/b..", false, "/pods/..a/b.."),
        ] {
            assert_eq!(prepare_key(prefix, key, recursive).as_deref(), Ok(full));
        }
    }

    #[test]
    fn keys_that_lead_elsewhere_are_refused() {
        for key in [
            "", "/", ".", "..", "./a", "../a", "/../a", "a/.", "a/..", "a/./b", "a/../b", "/a/../",
            "a//b", "//a",
        ] {
            for recursive in [false, true] {
                let error = prepare_key("/registry", key, recursive).expect_err(key);
                assert_eq!(error, InvalidKey(key.to_owned()));
            }
        }
        assert_eq!(InvalidKey("..".into()).to_string(), "invalid key: \"..\"");
        assert_eq!(InvalidKey("/".into()).to_string(), "empty key: \"/\"");
        let list = InvalidKey("/secrets/../".into());
        assert_eq!(list.to_string(), "invalid key: \"/secrets/..\"");
    }

    #[test]
    fn prefixes_end_at_segments() {
        for (key, prefix, below) in [
            ("/pods/a", "/pods", true),
            ("/pods/a", "/pods/", true),
            ("/pods", "/pods", true),
            ("/podsx", "/pods", false),
            ("/podsx/a", "/pods", false),
            ("/pods", "/pods/", false),
            ("/a", "/pods", false),
        ] {
            assert_eq!(has_path_prefix(key, prefix), below, "{key} {prefix}");
        }
    }
}

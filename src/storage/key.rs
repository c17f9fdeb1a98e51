//! Keys of objects and lists.

/// A key that could lead out of its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid key: {0:?}")]
pub struct InvalidKey(pub String);

/// Joins the store's prefix and a key after checking it.
pub fn prepare_key(prefix: &str, key: &str, recursive: bool) -> Result<String, InvalidKey> {
    let _ = (prefix, recursive);
    Err(InvalidKey(key.to_owned()))
}

/// Whether `key` lies at or below `prefix`, at a segment boundary.
#[must_use]
pub fn has_path_prefix(key: &str, prefix: &str) -> bool {
    let _ = (key, prefix);
    false
}

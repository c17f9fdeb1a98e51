//! Patches: what they are read from and what they make of an object.

mod json;
mod strategic;
mod strategic_keys;

use serde_json::Value;

use self::json::JsonPatch;
use super::errors::Failure;
use crate::registry::Error;

/// A patch, ready to be applied again and again.
#[derive(Clone, Debug)]
pub(super) enum Patch {
    /// RFC 6902.
    Json(JsonPatch),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own: lists of objects are merged by their keys.
    Strategic(Value),
}

impl Patch {
    /// Reads a patch of a media type.
    ///
    /// # Errors
    /// 415 for a media type that is no patch, 400 for one that cannot be read, 413 for one with too
    /// many operations.
    pub(super) fn read(media_type: &str, content: &[u8]) -> Result<Self, Failure> {
        match media_type {
            "application/json-patch+json" => JsonPatch::read(content).map(Self::Json),
            "application/merge-patch+json" => object(content).map(Self::Merge),
            "application/strategic-merge-patch+json" => object(content).map(Self::Strategic),
            _ => Err(Failure::unsupported_media_type()),
        }
    }

    /// The object after the patch.
    ///
    /// # Errors
    /// What is wrong with the patch, given the object.
    pub(super) fn apply(&self, object: &Value) -> Result<Value, Error> {
        let patched = match self {
            Self::Json(patch) => patch.apply(object)?,
            Self::Merge(patch) => {
                let mut object = object.clone();
                json_patch::merge(&mut object, patch);
                object
            }
            Self::Strategic(patch) => strategic::merge(object, patch)?,
        };
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(Error::Unprocessable)
        }
    }

    /// What errors about the patched object show, as kube-apiserver does: a strategic merge patch
    /// itself, else the object.
    pub(super) fn shown(&self, object: &Value) -> String {
        match self {
            Self::Json(_) | Self::Merge(_) => self
                .apply(object)
                .map(|patched| patched.to_string())
                .unwrap_or_default(),
            Self::Strategic(patch) => go_words(patch),
        }
    }
}

/// A value as Go's `%+v` writes it.
fn go_words(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_words).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| format!("{name}:{}", go_words(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

/// The body of a patch that is itself an object.
fn object(content: &[u8]) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(content)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::bad_request("Invalid JSON Patch"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patches_delete_with_null() {
        let patch = Patch::read("application/merge-patch+json", br#"{"a":null,"b":{"c":1}}"#);
        let patched = patch
            .expect("a patch")
            .apply(&json!({"a": 1, "b": {"d": 2}}));
        assert_eq!(patched.expect("an object"), json!({"b": {"c": 1, "d": 2}}));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let code = |media, content: &[u8]| Patch::read(media, content).expect_err("bad").code();
        assert_eq!(code("application/json", b"{}"), 415);
        assert_eq!(code("application/merge-patch+json", b"{"), 400);
        assert_eq!(code("application/merge-patch+json", b"[]"), 400);
        assert_eq!(code("application/json-patch+json", b"{\"a\":1}"), 400);
    }
}

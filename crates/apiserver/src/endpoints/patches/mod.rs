//! Patches: parses them and applies them to objects.

mod json;
mod strategic;
mod strategic_keys;

use ringwatch_apimachinery::Error;
use serde_json::Value;

use self::json::JsonPatch;
use super::errors::Failure;

/// A parsed patch, which can be applied several times when a write is retried.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    form: Form,
    /// The complaints about duplicate fields, which do not prevent the patch.
    pub(super) complaints: Vec<String>,
}

/// The kind of a patch, by its media type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Syntax {
    Json,
    Merge,
    Strategic,
}

#[derive(Clone, Debug)]
enum Form {
    /// A JSON patch (RFC 6902).
    Json(JsonPatch),
    /// A JSON merge patch (RFC 7386).
    Merge(Value),
    /// A strategic merge patch: lists of objects are merged by their keys.
    Strategic(Value),
}

impl Syntax {
    /// Returns the syntax of a media type.
    ///
    /// # Errors
    /// 415 for a media type that is no patch.
    pub(super) fn from_media_type(media_type: &str) -> Result<Self, Failure> {
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            _ => Err(Failure::unsupported_media_type()),
        }
    }
}

impl Patch {
    /// Reads a patch, of which the JSON has been read with these complaints.
    ///
    /// # Errors
    /// 400 for one that cannot be read, 413 for one with too many operations.
    pub(super) fn read(
        syntax: Syntax,
        value: Value,
        mut complaints: Vec<String>,
    ) -> Result<Self, Failure> {
        let form = match syntax {
            Syntax::Json => Form::Json(JsonPatch::read(value)?),
            Syntax::Merge => Form::Merge(object(value)?),
            Syntax::Strategic => Form::Strategic(object(value)?),
        };
        if matches!(form, Form::Json(_)) {
            for complaint in &mut complaints {
                complaint.insert_str(0, "json patch ");
            }
        }
        Ok(Self { form, complaints })
    }

    /// Applies the patch, and returns the object after it.
    ///
    /// # Errors
    /// The reason why the patch cannot be applied to the object.
    pub(super) fn apply(&self, object: &Value) -> Result<Value, Error> {
        let patched = match &self.form {
            Form::Json(patch) => patch.apply(object)?,
            Form::Merge(patch) => {
                let mut object = object.clone();
                json_patch::merge(&mut object, patch);
                object
            }
            Form::Strategic(patch) => strategic::merge(object, patch)?,
        };
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(Error::Unprocessable)
        }
    }

    /// Returns the value that errors about the patched object show, as kube-apiserver does: a strategic merge patch
    /// itself, else the object.
    pub(super) fn shown(&self, object: &Value) -> String {
        match &self.form {
            Form::Json(_) | Form::Merge(_) => self
                .apply(object)
                .map(|patched| patched.to_string())
                .unwrap_or_default(),
            Form::Strategic(patch) => go_words(patch),
        }
    }
}

/// Writes a value as Go's `%+v` does.
fn go_words(value: &Value) -> String {
    let mut words = String::new();
    write_go_words(value, &mut words);
    words
}

fn write_go_words(value: &Value, words: &mut String) {
    match value {
        Value::Null => words.push_str("<nil>"),
        Value::String(text) => words.push_str(text),
        Value::Bool(_) | Value::Number(_) => words.push_str(&value.to_string()),
        Value::Array(items) => {
            words.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    words.push(' ');
                }
                write_go_words(item, words);
            }
            words.push(']');
        }
        Value::Object(members) => {
            words.push_str("map[");
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    words.push(' ');
                }
                words.extend([name, ":"]);
                write_go_words(value, words);
            }
            words.push(']');
        }
    }
}

/// Reads the body of a patch that is itself an object.
fn object(value: Value) -> Result<Value, Failure> {
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
        let patch = json!({"a": null, "b": {"c": 1}});
        let patch = Patch::read(Syntax::Merge, patch, Vec::new());
        let patched = patch
            .expect("a patch")
            .apply(&json!({"a": 1, "b": {"d": 2}}));
        assert_eq!(patched.expect("an object"), json!({"b": {"c": 1, "d": 2}}));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let unknown = Syntax::from_media_type("application/json").expect_err("no patch");
        assert_eq!(unknown.code(), 415);
        let code = |syntax, value| {
            let read = Patch::read(syntax, value, Vec::new());
            read.expect_err("bad").code()
        };
        assert_eq!(code(Syntax::Merge, json!([])), 400);
        assert_eq!(code(Syntax::Json, json!({"a": 1})), 400);
    }
}

//! Patches: parses them and applies them to objects.

mod json;
mod merge;
mod shown_object;
mod strategic;
mod strategic_keys;

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::{Error, FieldError, go_json, go_values};
use serde_json::{Map, Value};

use self::json::JsonPatch;
use super::errors::Failure;
use super::params::FieldValidation;

/// A parsed patch, which can be applied several times when a write is retried.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    form: PatchForm,
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
enum PatchForm {
    /// A JSON patch (RFC 6902).
    Json(JsonPatch),
    /// A JSON merge patch (RFC 7386).
    Merge(Map<String, Value>),
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

    /// Returns the 400 for a patch that Go's decoder refuses with these words. Where fields are not validated,
    /// kube-apiserver leaves the decoding to another library.
    pub(super) fn undecodable(self, why: &str, validation: FieldValidation) -> Failure {
        Failure::bad_request(match (self, validation) {
            (Self::Strategic, _) | (Self::Json, FieldValidation::Ignore) => why.to_owned(),
            (Self::Merge, FieldValidation::Ignore) => "Invalid JSON Patch".to_owned(),
            (Self::Json | Self::Merge, _) => format!("error decoding patch: {why}"),
        })
    }
}

/// Returns true if the value can be an operation, or none.
fn may_operate(value: &Value) -> bool {
    value.is_object() || value.is_null()
}

impl Patch {
    /// Returns true for a strategic merge patch, which kube-apiserver applies to an object and does not decode.
    pub(super) fn is_strategic(&self) -> bool {
        matches!(self.form, PatchForm::Strategic(_))
    }

    /// Reads a patch, of which the JSON has been read with these complaints. Its errors depend on `validation`, since
    /// kube-apiserver reads it with another decoder when it looks for duplicate fields (`applyJSPatch` and
    /// `strategicPatchObject` of `apiserver/pkg/endpoints/handlers/patch.go`, 1.36).
    ///
    /// # Errors
    /// 400 for one that cannot be read, 413 for one with too many operations.
    pub(super) fn read(
        syntax: Syntax,
        value: Value,
        mut complaints: Vec<String>,
        validation: FieldValidation,
    ) -> Result<Self, Failure> {
        let ignores = validation == FieldValidation::Ignore;
        let form = match (syntax, value) {
            (Syntax::Json, Value::Array(operations))
                if ignores && !operations.iter().all(may_operate) =>
            {
                let wrong = operations.iter().find(|it| !may_operate(it));
                let wrong = wrong.unwrap_or(&Value::Null);
                let why = go_json::not_of_type(wrong, "jsonpatch.Operation");
                return Err(syntax.undecodable(&why, validation));
            }
            (Syntax::Json, value @ (Value::Array(_) | Value::Null)) => {
                PatchForm::Json(JsonPatch::read(value, validation)?)
            }
            (Syntax::Json, value) => {
                let go_type = if ignores {
                    "jsonpatch.Patch"
                } else {
                    "[]handlers.jsonPatchOp"
                };
                let why = go_json::not_of_type(&value, go_type);
                return Err(syntax.undecodable(&why, validation));
            }
            (Syntax::Merge, Value::Object(patch)) => PatchForm::Merge(patch),
            (Syntax::Strategic, value @ Value::Object(_)) => PatchForm::Strategic(value),
            // Go's decoder makes an empty map of it.
            (Syntax::Strategic, Value::Null) => PatchForm::Strategic(Value::Object(Map::new())),
            (Syntax::Merge, Value::Null) => {
                return Err(Failure::bad_request("Invalid JSON Patch"));
            }
            (Syntax::Merge | Syntax::Strategic, value) => {
                let why = go_json::not_of_type(&value, "map[string]interface {}");
                return Err(syntax.undecodable(&why, validation));
            }
        };
        if matches!(form, PatchForm::Json(_)) {
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
            PatchForm::Json(patch) => patch.apply(object)?,
            PatchForm::Merge(patch) => {
                let mut object = object.as_object().cloned().unwrap_or_default();
                merge::merge(&mut object, patch);
                Value::Object(object)
            }
            PatchForm::Strategic(patch) => {
                let mut patched = strategic::merge(object, patch)?;
                // It is made of fields of the type, which the type itself is not. What is no text cannot be read.
                for member in ["apiVersion", "kind"] {
                    let is_text = |it: &Value| it.is_string() || it.is_null();
                    if let Some(own) = object.get(member)
                        && patch.get(member).is_none_or(is_text)
                    {
                        patched[member] = own.clone();
                    }
                }
                patched
            }
        };
        if patched.is_object() {
            return Ok(patched);
        }
        // A JSON patch can put something else in place of the object.
        let why = go_json::not_of_type(&patched, go_json::GO_TYPE_META);
        Err(Error::Invalid {
            kind: String::new(),
            name: String::new(),
            errors: vec![FieldError::invalid(
                "patch",
                &Value::String(patched.to_string()),
                format!("couldn't get version/kind; json parse error: {why}"),
            )],
        })
    }

    /// Returns the value that errors about the patched object show, as kube-apiserver does: a strategic merge patch
    /// itself, else the object.
    pub(super) fn shown(&self, object: &Value) -> String {
        match &self.form {
            PatchForm::Json(_) | PatchForm::Merge(_) => self
                .apply(object)
                .map(|patched| shown_object::json_after(&patched, object))
                .unwrap_or_default(),
            PatchForm::Strategic(patch) => go_words(patch),
        }
    }
}

/// Writes a value as Go's `%v` does, as far as errors have room.
fn go_words(value: &Value) -> String {
    go_values::plain(value, ERROR_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(syntax: Syntax, content: &str) -> Result<Patch, Failure> {
        let value = serde_json::from_str(content).expect("JSON");
        Patch::read(syntax, value, Vec::new(), FieldValidation::Warn)
    }

    #[test]
    fn merge_patches_delete_with_null() {
        let patch = read(Syntax::Merge, r#"{"a": null, "b": {"c": 1}}"#);
        let patched = patch
            .expect("a patch")
            .apply(&json!({"a": 1, "b": {"d": 2}}));
        assert_eq!(patched.expect("an object"), json!({"b": {"c": 1, "d": 2}}));
    }

    #[test]
    fn merge_patches_leave_no_nulls_in_new_lists() {
        let patch = read(
            Syntax::Merge,
            r#"{"a": [{"b": null, "c": [null]}], "d": [{"e": null}]}"#,
        );
        let patched = patch.expect("a patch").apply(&json!({"d": {"f": 1}}));
        let expected = json!({"a": [{"c": [null]}], "d": [{"e": null}]});
        assert_eq!(patched.expect("an object"), expected);
    }

    #[test]
    fn without_validation_another_library_reads_patches() {
        let read = |syntax: Syntax, content: &str| {
            let value = serde_json::from_str(content).expect("JSON");
            let read = Patch::read(syntax, value, Vec::new(), FieldValidation::Ignore);
            read.expect_err(content).status().message.clone()
        };
        let wrong = "json: cannot unmarshal";
        let expected = format!("{wrong} object into Go value of type jsonpatch.Patch");
        assert_eq!(read(Syntax::Json, "{}"), expected);
        let expected = format!("{wrong} array into Go value of type jsonpatch.Operation");
        assert_eq!(read(Syntax::Json, "[null, []]"), expected);
        assert_eq!(read(Syntax::Merge, "[]"), "Invalid JSON Patch");
        let unreadable = |syntax: Syntax| {
            let failure = syntax.undecodable("why", FieldValidation::Ignore);
            failure.status().message.clone()
        };
        assert_eq!(unreadable(Syntax::Json), "why");
        assert_eq!(unreadable(Syntax::Merge), "Invalid JSON Patch");
    }

    #[test]
    fn a_json_patch_of_null_has_no_operations() {
        let patch = read(Syntax::Json, "null").expect("a patch");
        let object = json!({"a": 1});
        assert_eq!(patch.apply(&object).expect("patched"), object);
    }

    #[test]
    fn what_takes_the_place_of_an_object_is_no_list() {
        let patch = read(
            Syntax::Json,
            r#"[{"op": "replace", "path": "", "value": [1]}]"#,
        );
        let refused = patch.expect("a patch").apply(&json!({"a": 1}));
        let Err(Error::Invalid { errors, .. }) = refused else {
            panic!("not refused: {refused:?}");
        };
        let detail = "\"[1]\": couldn't get version/kind; json parse error: json: cannot \
                       unmarshal array into Go value of type struct { APIVersion string \
                       \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        assert_eq!(errors[0].detail, detail);
    }

    #[test]
    fn strategic_patches_leave_the_type() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        for patch in ["null", r#"{"kind": "Other", "apiVersion": null}"#] {
            let patch = read(Syntax::Strategic, patch).expect("a patch");
            assert_eq!(patch.apply(&object).expect("patched"), object);
        }
        let patch = read(Syntax::Strategic, r#"{"kind": {}}"#).expect("a patch");
        let patched = patch.apply(&object).expect("patched");
        assert_eq!(patched["kind"], json!({}), "the decoder refuses it");
    }

    #[test]
    fn what_is_no_patch_is_refused_in_gos_words() {
        let unknown = Syntax::from_media_type("application/json").expect_err("no patch");
        assert_eq!(unknown.code(), 415);
        let map = "cannot unmarshal array into Go value of type map[string]interface {}";
        for (syntax, content, message) in [
            (
                Syntax::Merge,
                "[]",
                &*format!("error decoding patch: json: {map}"),
            ),
            (Syntax::Strategic, "[]", &*format!("json: {map}")),
            (Syntax::Merge, "null", "Invalid JSON Patch"),
            (
                Syntax::Json,
                "{}",
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
        ] {
            let refused = read(syntax, content).expect_err(content);
            assert_eq!(refused.code(), 400);
            assert_eq!(refused.status().message, message);
        }
        let lax = Patch::read(
            Syntax::Merge,
            json!([]),
            Vec::new(),
            FieldValidation::Ignore,
        );
        assert_eq!(lax.expect_err("bad").status().message, "Invalid JSON Patch");
        let lax = Patch::read(Syntax::Json, json!({}), Vec::new(), FieldValidation::Ignore);
        let message = "json: cannot unmarshal object into Go value of type jsonpatch.Patch";
        assert_eq!(lax.expect_err("bad").status().message, message);
    }
}

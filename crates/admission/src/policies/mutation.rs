//! A mutation of a policy, applied to an object.

use ringwatch_apimachinery::json_patch::Operation;
use ringwatch_apimachinery::numbers;
use ringwatch_apply::overlay;
use ringwatch_cel::to_json;
use ringwatch_registry::Resource;
use serde_json::{Value, json};

use super::member::text;
use crate::expression::{PolicyExpression, Variables, compile};
use crate::patching::{PatchFailure, check_types, patched, type_of};

/// A mutation of a policy: an expression that makes an ApplyConfiguration or a JSON patch.
#[derive(Debug)]
pub(super) struct Mutation {
    form: MutationForm,
    expression: PolicyExpression,
}

/// The form in which an expression says what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MutationForm {
    /// An ApplyConfiguration, which is merged into the object.
    Overlay,
    /// A JSON patch.
    Patch,
}

impl Mutation {
    pub(super) fn read(source: &Value) -> Self {
        let (form, member) = match text(source, "patchType").as_str() {
            "JSONPatch" => (MutationForm::Patch, "jsonPatch"),
            _ => (MutationForm::Overlay, "applyConfiguration"),
        };
        Self {
            form,
            expression: compile(&text(&source[member], "expression")),
        }
    }

    /// Returns the object after the change.
    ///
    /// # Errors
    /// A message that says why the object cannot be changed so.
    pub(super) fn apply(
        &self,
        variables: &mut Variables,
        resource: &Resource,
        object: Value,
    ) -> Result<Value, String> {
        let program = self.expression.as_ref().map_err(Clone::clone)?;
        let made = variables.run(program)?;
        let made = to_json(&made).ok_or("the result cannot be written as JSON")?;
        let before = type_of(&object);
        let mut changed = match self.form {
            MutationForm::Overlay => laid_over(resource, &object, made)
                .map_err(|why| format!("error applying patch: {why}"))?,
            MutationForm::Patch => {
                // What is patched is the text of the object, with values in text.
                let (mut whole, mut made) = (object.clone(), made);
                numbers::normalize(&mut made);
                if resource.is_custom() {
                    numbers::normalize(&mut whole);
                }
                match patched(whole, &operations(made)?) {
                    Ok(changed) => changed,
                    // Then there is nothing to change.
                    Err(PatchFailure::Untrue(_)) => object,
                    Err(why) => return Err(format!("JSONPath: {why}")),
                }
            }
        };
        if type_of(&changed) != before {
            return Err("apiVersion and kind must not be changed".to_owned());
        }
        check_types(&mut changed, true)?;
        Ok(changed)
    }
}

fn laid_over(resource: &Resource, object: &Value, mut made: Value) -> Result<Value, String> {
    let [version, kind] = type_of(object).map(Option::unwrap_or_default);
    made["apiVersion"] = json!(version);
    made["kind"] = json!(kind);
    let custom = resource.strategy.merge_schema();
    overlay(&version, &kind, custom, object, &made)
        .map_err(|why| format!("invalid ApplyConfiguration: {why}"))
}

/// Returns the steps of a patch.
fn operations(made: Value) -> Result<Vec<Operation>, String> {
    let why = || "JSONPatchType.expression should evaluate to array".to_owned();
    Operation::read_all(made).ok_or_else(why)
}
